"""Judges that do not read: what any judge has to beat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c2faith.judging.judges import fingerprint
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.verdicts import KEYS, admissible
from c2faith.records import ABLATIONS, InputError, Task, rng

RULES = ("always-flag", "never-flag", "middle", "uniform")


class Baseline:
    """One of four rules.

    - ``always-flag``: every step is wrong (detection 0), the first one to begin with (localization 0), and
      nothing is covered (coverage 0).
    - ``never-flag``: every step follows (1), no step is wrong (−1), everything is covered (4).
    - ``middle``: the step is wrong (0), namely the middle one (⌊n/2⌋), and half is covered (2).
    - ``uniform``: each admissible answer with the same chance, drawn from the item's name alone.
    """

    tasks: tuple[Task, ...] = ("detection", "localization", "coverage")

    def __init__(self, rule: str, judge_id: str | None = None) -> None:
        if rule not in RULES:
            raise InputError(f"unknown baseline {rule!r}: choose from {', '.join(RULES)}")
        self.judge_id, self.rule = judge_id or rule, rule

    @property
    def fingerprint(self) -> str:
        return fingerprint({"provider": "baseline", "model": self.rule})

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer in order, as JSON; ``uniform`` gives its probabilities as scores."""
        for query in queries:
            answers = admissible(query.task, query.n_steps)
            value = self._answer(query, answers)
            text = json.dumps({"reasoning": f"Baseline {self.rule}.", KEYS[query.task]: value})
            scores = (1 / len(answers),) * len(answers) if self.rule == "uniform" else None
            yield query, Reply(text, model=self.rule, mode="compute", scores=scores)

    def _answer(self, query: Query, answers: range) -> int:
        if self.rule == "uniform":
            return int(rng(0, "uniform", query.task, query.item_id).choice(answers))
        task = "detection" if query.task in ABLATIONS else query.task
        fixed = {
            "detection": {"always-flag": 0, "never-flag": 1, "middle": 0},
            "localization": {"always-flag": 0, "never-flag": -1, "middle": query.n_steps // 2},
            "coverage": {"always-flag": 0, "never-flag": 4, "middle": 2},
        }
        if task not in fixed:
            raise InputError(f"judge {self.judge_id}: a baseline answers {', '.join(fixed)}, not {task}")
        return fixed[task][self.rule]


def from_config(config: Mapping[str, Any], **edge: Any) -> Baseline:
    """The baseline of a YAML in `data/judges`; it has no parameters and no endpoint."""
    if unknown := sorted({*(config.get("parameters") or {}), *edge}):
        raise InputError(f"judge {config['judge_id']}: a baseline has no {unknown[0]!r}")
    return Baseline(config["model"], config["judge_id"])
