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
from c2faith.cros.examples import fold_of
from c2faith.cros.heads import Reading, TrainedHead
from c2faith.cros.reading import Encoder, FeatureStore, Written, identity
from c2faith.judging.judges.base import Query, Reply, refuse_unknown
from c2faith.records import InputError, read_json, sha256, sha256_file, write_json

CONFIG, ADAPTER = "config.json", "adapter"
CHUNK = 512  # queries whose features are gathered at once


class CrosJudge:
    """A judge trained by `c2faith.cros`.

    `folder` holds ``config.json``, ``head-<fold>.safetensors`` and perhaps ``adapter/``, as `save` writes them;
    `model` says where the encoder lies on this machine, if not where the configuration says.
    """

    kind = "a trained judge"
    tasks: tuple[str, ...] = ("detection", "localization", "coverage")

    def __init__(self, judge_id: str, folder: Path, *, model: str | None = None, device: str = "cpu") -> None:
        self.judge_id, self.folder, self.device = judge_id, folder, device
        if not (folder / CONFIG).exists():
            raise InputError(f"{folder}: no trained judge here; train one with make cros")
        self.known = read_json(folder / CONFIG)
        self.model = model or self.known["encoder"]["model"]
        self._head_files = [folder / f"head-{fold}.safetensors" for fold in range(self.known["folds"])]

    @property
    def answers(self) -> tuple[str, ...]:
        """The tasks that show it the problem, which chooses its head."""
        return tuple(_ANSWERS)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the encoder's content, how it reads, and all heads."""
        heads = [sha256_file(file) for file in self._head_files]
        adapter = [sha256_file(file) for file in sorted((self.folder / ADAPTER).glob("*.safetensors"))]
        encoder = {name: value for name, value in self.known["encoder"].items() if name != "model"}
        return sha256([encoder, self.known["folds"], self.known["fold_seed"], heads, adapter])

    @cached_property
    def heads(self) -> list[TrainedHead]:
        """One head a fold."""
        return [TrainedHead.load(file) for file in self._head_files]

    @cached_property
    def store(self) -> FeatureStore:
        """The encoder's features, read once on this machine; another model than the recorded one is refused."""
        known = self.known["encoder"]
        if identity(self.model) != known["identity"]:
            raise InputError(
                f"judge {self.judge_id} was trained on {known['model']}; {self.model} is another model"
            )
        adapter = self.folder / ADAPTER
        encoder = Encoder(
            self.model,
            **{name: known[name] for name in ("layers", "max_tokens", "dtype")},
            device=self.device,
            adapter=str(adapter) if adapter.exists() else None,
        )
        return FeatureStore(paths.features_dir(), encoder)

    def read(self, chains: Sequence[Written]) -> list[Reading]:
        """Hazards, verdict and score probabilities of each (question, steps)."""
        written = [(question, tuple(steps)) for question, steps in chains]
        features = self.store.get(written, self.judge_id)
        folds = [self._fold(question) for question, _ in written]
        readings: dict[int, Reading] = {}
        for fold in set(folds):
            rows = [row for row, other in enumerate(folds) if other == fold]
            readings |= zip(rows, self.heads[fold].read([features[row] for row in rows]), strict=True)
        return [readings[row] for row in range(len(written))]

    def _fold(self, question: str) -> int:
        return fold_of(question, self.known["folds"], self.known["fold_seed"])

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
        head = self.heads[self._fold(query.question)]
        answered = _ANSWERS[query.task](reading, head)
        about = {"latency_s": latency, "model": f"cros@{self.fingerprint[:12]}", "mode": "cros"}
        about["extra"] = {"seen": len(reading.hazards)}
        if answered is None:  # steps that did not fit into the context are never called clean
            return Reply(None, "length", error="length", **about)
        return Reply(json.dumps(answered[0]), scores=answered[1], **about)


Answer = tuple[dict[str, Any], tuple[float, ...] | None] | None


def _detection(reading: Reading, head: TrainedHead) -> Answer:
    if not reading.whole:
        return None
    hazard = float(reading.hazards[-1])
    reasoning = f"The step fails with probability {hazard:.2f}, against a threshold of {head.step_threshold:.2f}."
    return {"reasoning": reasoning, "score": int(hazard < head.step_threshold)}, (hazard, 1 - hazard)


def _localization(reading: Reading, head: TrainedHead) -> Answer:
    index, clean = reading.localization(head.clean_threshold), reading.verdicts[-1]
    if index is None:
        return None
    reasoning = (
        f"Every step follows with probability {clean:.2f}, against a threshold of {head.clean_threshold:.2f}."
    )
    return {"reasoning": reasoning, "index": index}, tuple(map(float, reading.verdicts)) if reading.whole else None


def _coverage(reading: Reading, head: TrainedHead) -> Answer:
    score = reading.score()
    if score is None:
        return None
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
    refuse_unknown(config, CrosJudge.kind, edge, ("model", "device"))
    parameters = config.get("parameters") or {}
    return CrosJudge(config["judge_id"], trained_folder(config["model"]), **parameters)


def trained_folder(name: str) -> Path:
    """Where a run's heads lie: the recorded ones, else the live ones; or the folder of that name."""
    if Path(name).is_dir():
        return Path(name)
    recorded, live = (folder / "cros" for folder in (paths.frozen_dir(name), paths.run_dir(name)))
    return recorded if (recorded / CONFIG).exists() else live
