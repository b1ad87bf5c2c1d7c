"""`local:cros`: the recorded heads as a judge among judges.

A problem is judged by the head of its fold. On the data the heads were trained on that is the one head which
never saw the problem, so the replies are cross-fitted: no judge is tested on what it learned from. A new
problem falls into some fold as well, and any of the heads will do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from c2faith import paths
from c2faith.cros.encoder import Encoder, Written, identity
from c2faith.cros.examples import fold_of
from c2faith.cros.features import FeatureStore
from c2faith.cros.trained import Reading, TrainedHead
from c2faith.judging.judges.base import Query, Reply
from c2faith.records import InputError, read_json, sha256, sha256_file, write_json

CONFIG, ADAPTER = "config.json", "adapter"
CHUNK = 512  # queries whose features are gathered at once


class CrosJudge:
    """A judge trained by `c2faith.cros`.

    Parameters
    ----------
    judge_id : str
    folder : Path
        Holds ``config.json``, ``head-<fold>.safetensors`` and perhaps ``adapter/``, as `save` writes them.
    model : str, optional
        Where the encoder lies on this machine, if not where the configuration says.
    device : str
    """

    kind = "a trained judge"
    tasks: tuple[str, ...] = ("detection", "localization", "coverage")

    def __init__(self, judge_id: str, folder: Path, *, model: str | None = None, device: str = "cpu") -> None:
        self.judge_id, self.folder, self.device = judge_id, folder, device
        if not (folder / CONFIG).exists():
            raise InputError(f"{folder}: no trained judge here; train one with make cros")
        self.known = read_json(folder / CONFIG)
        self.model = model or self.known["encoder"]["model"]

    @property
    def answers(self) -> tuple[str, ...]:
        """The tasks that show it the problem, which chooses its head."""
        return tuple(_ANSWERS)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the encoder's content, how it reads, and all heads."""
        heads = [sha256_file(self.folder / f"head-{fold}.safetensors") for fold in range(self.known["folds"])]
        adapter = [sha256_file(file) for file in sorted((self.folder / ADAPTER).glob("*.safetensors"))]
        encoder = {name: value for name, value in self.known["encoder"].items() if name != "model"}
        return sha256([encoder, self.known["folds"], self.known["fold_seed"], heads, adapter])

    @cached_property
    def heads(self) -> list[TrainedHead]:
        """One head a fold."""
        return [TrainedHead.load(self.folder / f"head-{fold}.safetensors") for fold in range(self.known["folds"])]

    @cached_property
    def store(self) -> FeatureStore:
        """The encoder's features, read once on this machine; another model than the recorded one is refused."""
        known = self.known["encoder"]
        if identity(self.model) != known["identity"]:
            raise InputError(
                f"judge {self.judge_id} was trained on {known['model']}; {self.model} is another model"
            )
        encoder = Encoder(
            self.model,
            layers=known["layers"],
            max_tokens=known["max_tokens"],
            dtype=known["dtype"],
            device=self.device,
            adapter=str(self.folder / ADAPTER) if (self.folder / ADAPTER).exists() else None,
        )
        return FeatureStore(paths.features_dir(), encoder)

    def read(self, chains: Sequence[Written]) -> list[Reading]:
        """Hazards, verdict and score probabilities of each (question, steps)."""
        written = [(question, tuple(steps)) for question, steps in chains]
        features = self.store.get(written, self.judge_id)
        readings: list[Reading | None] = [None] * len(written)
        folds = [fold_of(question, self.known["folds"], self.known["fold_seed"]) for question, _ in written]
        for fold in set(folds):
            rows = [row for row, other in enumerate(folds) if other == fold]
            for row, reading in zip(rows, self.heads[fold].read([features[row] for row in rows]), strict=True):
                readings[row] = reading
        return readings

    def head_for(self, question: str) -> TrainedHead:
        """The head of the problem's fold."""
        return self.heads[fold_of(question, self.known["folds"], self.known["fold_seed"])]

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer in order, some hundred at a time.

        A task that hides the problem is refused: without it there is no telling which head never saw it.
        """
        if unknown := {query.task for query in queries} - _ANSWERS.keys():
            known = ", ".join(_ANSWERS)
            raise InputError(f"judge {self.judge_id} cannot be asked {unknown.pop()}: choose {known}")
        for start in range(0, len(queries), CHUNK):
            part, began = queries[start : start + CHUNK], time.monotonic()
            readings = self.read([(query.question, query.steps) for query in part])
            latency = (time.monotonic() - began) / len(part)
            for query, reading in zip(part, readings, strict=True):
                yield query, self._reply(query, reading, latency)

    def _reply(self, query: Query, reading: Reading, latency: float) -> Reply:
        head = self.head_for(query.question)
        answer, scores = _ANSWERS[query.task](query, reading, head)
        model = f"cros@{self.fingerprint[:12]}"
        seen = {"seen": len(reading.hazards)}
        if answer is None:  # steps that did not fit into the context are never called clean
            return Reply(None, "length", latency_s=latency, model=model, mode="cros", error="length", extra=seen)
        return Reply(json.dumps(answer), latency_s=latency, model=model, mode="cros", scores=scores, extra=seen)


Answer = tuple[dict[str, Any] | None, tuple[float, ...] | None]


def _detection(query: Query, reading: Reading, head: TrainedHead) -> Answer:
    if not reading.whole:
        return None, None
    hazard = float(reading.hazards[-1])
    reasoning = f"The step fails with probability {hazard:.2f}, against a threshold of {head.step_threshold:.2f}."
    return {"reasoning": reasoning, "score": int(hazard < head.step_threshold)}, (hazard, 1 - hazard)


def _localization(query: Query, reading: Reading, head: TrainedHead) -> Answer:
    index = reading.localization(head.clean_threshold)
    if index is None:
        return None, None
    clean = reading.verdicts[-1]
    reasoning = (
        f"Every step follows with probability {clean:.2f}, against a threshold of {head.clean_threshold:.2f}."
    )
    scores = tuple(map(float, reading.verdicts)) if reading.whole else None
    return {"reasoning": reasoning, "index": index}, scores


def _coverage(query: Query, reading: Reading, head: TrainedHead) -> Answer:
    score = reading.score()
    if score is None:
        return None, None
    missing = reading.n_steps * (4 / reading.coverage - 1)
    reasoning = f"About {missing:.1f} steps seem to be missing beside the {reading.n_steps} written ones."
    return {"reasoning": reasoning, "score": score}, tuple(map(float, reading.scores))


_ANSWERS = {
    "detection": _detection,
    "localization": _localization,
    "coverage": _coverage,
    "shuffled": _detection,
}


def save(folder: Path, heads: Sequence[TrainedHead], encoder: Encoder, config: Mapping[str, Any]) -> None:
    """Write a judge: one head a fold, and what they need to be used; `config` adds how they were trained."""
    for fold, head in enumerate(heads):
        head.save(folder / f"head-{fold}.safetensors")
    known = {**encoder.settings, "identity": identity(encoder.model)}
    write_json(folder / CONFIG, {**config, "encoder": known, "folds": len(heads)})


def from_config(config: Mapping[str, Any], **edge: Any) -> CrosJudge:
    """The judge of a YAML in `data/judges`; `model` is a run that has trained heads, or their folder."""
    parameters = config.get("parameters") or {}
    if unknown := sorted({*parameters, *edge} - {"model", "device"}):
        raise InputError(f"judge {config['judge_id']}: a trained judge has no {unknown[0]!r}")
    return CrosJudge(config["judge_id"], trained_folder(config["model"]), **parameters)


def trained_folder(name: str) -> Path:
    """Where a run's heads lie: the recorded ones, else the live ones; or the folder of that name."""
    if Path(name).is_dir():
        return Path(name)
    recorded, live = (folder / "cros" for folder in (paths.frozen_dir(name), paths.run_dir(name)))
    return recorded if (recorded / CONFIG).exists() else live
