"""Judges that do not read: what any judge has to beat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from c2faith.judging import answers, tasks
from c2faith.judging.answers import Answer, Coverage, Detection, Localization
from c2faith.judging.judges import fingerprint
from c2faith.judging.judges.base import Query, Reply, refuse_unknown
from c2faith.records import InputError, rng

RULES = ("always-flag", "never-flag", "middle", "uniform")


class Baseline:
    """One of four rules.

    - ``always-flag``: every step is wrong (detection 0), the first one to begin with (localization 0), and
      nothing is covered (coverage 0).
    - ``never-flag``: every step follows (1), no step is wrong (−1), everything is covered (4).
    - ``middle``: the step is wrong (0), namely the middle one (⌊n/2⌋), and half is covered (2).
    - ``uniform``: each admissible answer with the same chance, drawn from the item's name alone.
    """

    kind = "a baseline"

    def __init__(self, rule: str, judge_id: str | None = None) -> None:
        if rule not in RULES:
            raise InputError(f"unknown baseline {rule!r}: choose from {', '.join(RULES)}")
        self.judge_id, self.rule = judge_id or rule, rule
        self.tasks = tasks.default()

    @property
    def answers(self) -> tuple[str, ...]:
        """The tasks whose every item has an answer by rule."""
        if self.rule == "uniform":
            return tuple(task.name for task in tasks.TASKS.values() if task.answer)
        return tuple(name for name in tasks.scored() if tasks.get(name).answer in _FIXED)

    @property
    def fingerprint(self) -> str:
        return fingerprint({"provider": "baseline", "model": self.rule})

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer in order, as JSON; ``uniform`` gives its probabilities as scores."""
        for query in queries:
            kind = tasks.get(query.task).answer
            admissible = answers.admissible(kind, query.n_steps)
            if self.rule == "uniform":
                value = int(rng(0, "uniform", query.task, query.item_id).choice(admissible))
                scores = (1 / len(admissible),) * len(admissible)
            else:
                value, scores = _FIXED[kind](query.n_steps)[self.rule], None
            text = json.dumps({"reasoning": f"Baseline {self.rule}.", answers.key(kind): value})
            yield query, Reply(text, model=self.rule, mode="compute", scores=scores)


_FIXED: dict[type[Answer], Callable[[int], dict[str, int]]] = {
    Detection: lambda n_steps: {"always-flag": 0, "never-flag": 1, "middle": 0},
    Localization: lambda n_steps: {"always-flag": 0, "never-flag": -1, "middle": n_steps // 2},
    Coverage: lambda n_steps: {"always-flag": 0, "never-flag": 4, "middle": 2},
}


def from_config(config: Mapping[str, Any], **edge: Any) -> Baseline:
    """The baseline of a YAML in `data/judges`; it has no parameters and no endpoint."""
    refuse_unknown(config, Baseline.kind, edge)
    return Baseline(config["model"], config["judge_id"])
