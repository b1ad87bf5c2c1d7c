"""A transformers model in this process as a judge: the probabilities of its admissible answers, or written JSON.

`score` reads how probable each admissible JSON reply is, closing brace included (so "1" and "12" are told apart):
one forward pass, a verdict with a confidence, and no reply that cannot be parsed. `generate` writes a reply as an
API would, `guided` as one that holds a model to a JSON schema: the reasoning is written freely up to its closing
quote, then the value is read as `score` reads it. torch is imported when the first query comes.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from c2faith.judging import tasks
from c2faith.judging.judges import local_model
from c2faith.judging.judges.base import Query, Reply
from c2faith.records import InputError, rng, sha256

CHUNK = 2048  # queries planned at once: bounds memory, and a chain's queries stand close together
MODES = ("score", "generate", "guided")
PROBE = ("Is 2 + 2 equal to 4?", "Is 2 + 2 equal to 5?")
OPENING = '{"reasoning": "'


@dataclass(eq=False)
class LocalJudge:
    """Judge with a model in this process.

    Attributes
    ----------
    model, dtype, device, revision
        As `local_model.load` takes them.
    batch_tokens
        Most tokens in a batch, padding included; by default what suits the device and mode.
    max_new_tokens, temperature, seed
        Of what is written; temperature 0 is greedy. A query's noise depends on `seed` and the query alone.
    """

    judge_id: str
    model: str
    _: KW_ONLY
    mode: Literal["score", "generate", "guided"] = "score"
    dtype: str = "auto"
    device: str = "auto"
    batch_tokens: int | None = None
    max_new_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    revision: str | None = None
    tasks: Sequence[str] = field(default_factory=tasks.default)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"judge {self.judge_id}: mode {self.mode!r} is unknown; choose {', '.join(MODES)}")
        least = min(1 if self.batch_tokens is None else self.batch_tokens, self.max_new_tokens)
        if least < 1 or self.temperature < 0:
            raise InputError(
                f"judge {self.judge_id}: batch_tokens and max_new_tokens must be at least 1, temperature at least 0"
            )
        self.tasks = tuple(self.tasks)

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
        return local_model.load(self.model, dtype=self.dtype, device=self.device, revision=self.revision, chat=True)

    @cached_property
    def _suits_trees(self) -> bool:
        from c2faith.judging.judges import local_scoring

        tolerance = 0.01 if self.loaded.dtype == "float32" else 0.5  # in nats
        return local_scoring.largest_difference(self.loaded, PROBE) <= tolerance

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer batch by batch, each yielded when done; queries of one task are read together."""
        answer = {"score": self._scored, "generate": self._generated, "guided": self._guided}[self.mode]
        for task in dict.fromkeys(query.task for query in queries):
            asked = [query for query in queries if query.task == task]
            for start in range(0, len(asked), CHUNK):
                chunk = asked[start : start + CHUNK]
                try:
                    yield from ((chunk[key], reply) for key, reply in answer(chunk))
                except RuntimeError as error:
                    if "out of memory" not in str(error):
                        raise
                    raise InputError(
                        f"judge {self.judge_id}: out of memory; give a smaller batch_tokens"
                    ) from error

    def _scored(self, queries: Sequence[Query]) -> Iterator[tuple[int, Reply]]:
        prompts = [self.loaded.encode_chat(query.messages, enable_thinking=False) for query in queries]
        for key, text, fields in self._values(queries, dict(enumerate(prompts))):
            yield key, self._reply(prompts[key], text, len(self.loaded.encode(text or "")), **fields)

    def _generated(self, queries: Sequence[Query]) -> Iterator[tuple[int, Reply]]:
        prompts = [self.loaded.encode_chat(query.messages) for query in queries]
        for batch in self._written(queries, prompts):
            for key, (text, n_tokens, reason, seconds) in batch.items():
                yield key, self._reply(prompts[key], text, n_tokens, finish_reason=reason, latency_s=seconds)

    def _guided(self, queries: Sequence[Query]) -> Iterator[tuple[int, Reply]]:
        opened = self.loaded.encode(OPENING)
        prompts = [[*self.loaded.encode_chat(q.messages, enable_thinking=False), *opened] for q in queries]
        for batch in self._written(queries, prompts, until='"'):
            ids = {}
            for key, (reasoning, *_) in batch.items():
                if reasoning is None:
                    yield key, self._reply(prompts[key], None)
                else:
                    ids[key] = [*prompts[key], *self.loaded.encode(reasoning)]
            for key, value, fields in self._values(queries, ids, '", '):
                if value is None:
                    yield key, self._reply(ids[key], None)
                    continue
                reasoning, n_tokens, _, seconds = batch[key]
                text = json.dumps({"reasoning": reasoning, **json.loads(value)}, ensure_ascii=False)
                fields["latency_s"] = round(fields["latency_s"] + seconds, 4)
                yield key, self._reply(prompts[key], text, n_tokens, **fields)

    def _reply(self, prompt: Sequence[int], text: str | None, completion_tokens: int = 0, **fields: Any) -> Reply:
        if text is None:
            fields = {"finish_reason": "length", "error": "length"}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": completion_tokens}
        mode = f"{self.mode}/{self.loaded.dtype}"
        return Reply(text=text, usage=usage, model=self.loaded.name, mode=mode, **fields)

    def _budget(self, cpu: int, accelerator: int) -> int:
        return self.batch_tokens or (cpu if self.loaded.device.type == "cpu" else accelerator)

    def _values(
        self, queries: Sequence[Query], prompts: Mapping[int, Sequence[int]], closing: str = "{"
    ) -> Iterator[tuple[int, str | None, dict[str, Any]]]:
        """(key, the most probable answer, its reply's fields) of each prompt; no answer where it does not fit.

        `closing` stands in the place of an answer's opening brace, behind what is already written.
        """
        from c2faith.judging.judges import local_scoring

        texts = {q.n_steps: local_scoring.admissible(q.task, q.n_steps) for q in queries}
        answers = {n: [self.loaded.encode(closing + text[1:]) for text in several] for n, several in texts.items()}
        asked = []
        for key, ids in prompts.items():
            prompt = local_scoring.prompt(key, ids, answers[queries[key].n_steps])
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
        for key, log_p, seconds in local_scoring.score(self.loaded, asked, self._budget(1024, 16384)):
            total = np.logaddexp.reduce(log_p)
            fields = {
                "latency_s": round(seconds, 4),
                "scores": tuple(round(float(p), 6) for p in np.exp(log_p - total)),
                "extra": {"admissible_mass": round(float(np.exp(total)), 6)},
            }
            yield key, texts[queries[key].n_steps][int(np.argmax(log_p))], fields

    def _written(
        self, queries: Sequence[Query], prompts: Sequence[Sequence[int]], until: str | None = None
    ) -> Iterator[dict[int, tuple[str | None, int, str, float]]]:
        """Batches of key → (text, tokens, finish reason, seconds); no text where a prompt leaves no room."""
        from c2faith.judging.judges import local_writing

        room = self.loaded.context - self.max_new_tokens
        yield {key: (None, 0, "length", 0.0) for key, ids in enumerate(prompts) if len(ids) > room}
        fitting = [key for key, ids in enumerate(prompts) if len(ids) <= room]
        fitting.sort(key=lambda key: -len(prompts[key]))
        while fitting:
            rows = max(1, self._budget(8192, 65536) // (len(prompts[fitting[0]]) + self.max_new_tokens))
            batch, fitting = fitting[:rows], fitting[rows:]
            started = time.perf_counter()
            written = local_writing.write(
                self.loaded,
                [prompts[key] for key in batch],
                self.max_new_tokens,
                self.temperature,
                [rng(self.seed, queries[key].prompt_sha256) for key in batch],
                until=until,
            )
            seconds = round((time.perf_counter() - started) / len(batch), 4)
            yield {key: (*one, seconds) for key, one in zip(batch, written, strict=True)}


def from_config(config: Mapping[str, Any], **edge: Any) -> LocalJudge:
    """The judge that a YAML of `data/judges` describes; anything about an endpoint is refused: it has none."""
    parameters = dict(config.get("parameters") or {})
    known = inspect.signature(LocalJudge).parameters.keys() - {"judge_id", "model", "tasks"}
    if unknown := sorted((parameters.keys() - known) | edge.keys()):
        raise InputError(
            f"judge {config['judge_id']}: a local judge has no {unknown[0]!r}; "
            f"its parameters are {', '.join(sorted(known))}"
        )
    given = {name: config[name] for name in ("judge_id", "model", "tasks") if name in config}
    return LocalJudge(**given, **parameters)
