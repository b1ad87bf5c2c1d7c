"""Judges that compute: the symbolic one, and baselines that do not read, which any judge has to beat.

The symbolic judge flags what it can show to be wrong, where it can read a text in full (`dataset.algebra`): a false
claim without variables; a link of a chain of equalities, in the same variables, that holds at no sample point; a
value of a variable that does not satisfy the last equation in it alone. Everything else it accepts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c2faith.dataset import algebra
from c2faith.dataset.algebra import Link, Reading, Statement, Tree
from c2faith.dataset.negate.claims import is_claimed, is_denied
from c2faith.judging import answers, tasks
from c2faith.judging.answers import Answer, Coverage, Detection, Localization
from c2faith.judging.judges import fingerprint
from c2faith.judging.judges.base import Query, Reply, refuse_unknown
from c2faith.records import InputError, rng

_KINDS = {"symbolic": "the symbolic judge", "baseline": "a baseline"}  # by provider
RULES: Mapping[str, Mapping[type[Answer], int]] = {
    "always-flag": {Detection: 0, Localization: 0, Coverage: 0},
    "never-flag": {Detection: 1, Localization: -1, Coverage: 4},
    "middle": {Detection: 0, Coverage: 2},  # and the step in the middle, ⌊n/2⌋
    "uniform": {},  # each admissible answer with the same chance, drawn from an item's name alone
}


class ComputedJudge:
    """The symbolic judge, or (provider ``baseline``) one that answers by the rule that is its model's name."""

    def __init__(self, provider: str, model: str, judge_id: str | None = None) -> None:
        if provider == "baseline" and model not in RULES:
            raise InputError(f"unknown baseline {model!r}: choose from {', '.join(RULES)}")
        self.model, self.judge_id, self.kind = model, judge_id or model, _KINDS[provider]
        self.rule = model if provider == "baseline" else provider
        self.fingerprint = fingerprint({"provider": provider, "model": model})
        self.tasks = tasks.default()

    @property
    def answers(self) -> tuple[str, ...]:
        """The tasks whose every item it has an answer to."""
        if self.rule == "uniform":
            return tuple(task.name for task in tasks.TASKS.values() if task.answer)
        return tuple(name for name in tasks.scored() if tasks.get(name).answer in _SYMBOLIC)

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer in order, with the JSON object that a language model would write; ``uniform`` has scores."""
        for query in queries:
            kind, why, scores = tasks.get(query.task).answer, f"Baseline {self.rule}.", None
            if self.rule == "uniform":
                admissible = answers.admissible(kind, query.n_steps)
                value = int(rng(0, "uniform", query.task, query.item_id).choice(admissible))
                scores = (1 / len(admissible),) * len(admissible)
            elif self.rule == "symbolic":
                why, value = _SYMBOLIC[kind](query)
            else:
                value = RULES[self.rule].get(kind, query.n_steps // 2)
            text = json.dumps({"reasoning": why, answers.key(kind): value}, ensure_ascii=False)
            yield query, Reply(text, model=self.model, mode="compute", scores=scores)


def from_config(config: Mapping[str, Any], **edge: Any) -> ComputedJudge:
    """The judge of a YAML in `data/judges`; it has no parameters and no endpoint."""
    refuse_unknown(config, _KINDS[config["provider"]], edge)
    return ComputedJudge(config["provider"], config["model"], config["judge_id"])


def _detection(query: Query) -> tuple[str, int]:
    target = query.n_steps - 1 if query.target is None else query.target
    found = objection(query.steps[: target + 1])
    return found or "Nothing that can be computed is wrong.", int(found is None)


def _localization(query: Query) -> tuple[str, int]:
    for index in range(query.n_steps):
        if found := objection(query.steps[: index + 1]):
            return f"Step {index}: {found}", index
    return "Nothing that can be computed is wrong.", -1


def _coverage(query: Query) -> tuple[str, int]:
    share = groundedness(query.question, query.steps)
    return f"{share:.0%} of the numbers and variables in use have been introduced before.", round(4 * share)


_SYMBOLIC = {Detection: _detection, Localization: _localization, Coverage: _coverage}


def objection(steps: Sequence[str]) -> str | None:
    """What is wrong with the last of the steps, or None.

    >>> objection(["We need x+5=25.", "So x=22."])
    'x=22 does not satisfy x+5=25.'
    >>> objection(["So 2+2=5."]), objection(["So x=22."])
    ('2+2=5 is false.', None)
    """
    step = steps[-1]
    if is_denied(step):
        return None
    claims = [s for s in algebra.statements(step) if s.is_claim and is_claimed(step, s.start, s.end)]
    for claim in claims:
        text = step[claim.start : claim.end]
        if algebra.truth(claim) == "false":
            return f"{text} is false."
        if _has_broken_link(claim):
            return f"{text} is no identity."
    return _wrong_root(steps, claims)


def _has_broken_link(claim: Statement) -> bool:
    # The first link is left out, since it may define a name or state an equation; so are subscripts and functions,
    # which may be related by a recurrence, and the letters e and i, which may be numbers.
    found = algebra.readings(claim)
    return bool(found) and all(
        set(reading.relations) == {"="}
        and any(_is_plain(link) and algebra.fails_everywhere(reading, link) for link in reading.links[1:])
        for reading in found
    )


def _is_plain(link: Link) -> bool:
    _, left, right = link
    used = algebra.names(left)
    comparable = used and used == algebra.names(right) and not used & {"e", "i"}
    return bool(comparable) and not _have_calls(left, right)


def _have_calls(*trees: Tree) -> bool:
    parts = [part for tree in trees for part in tree if isinstance(part, tuple)]
    return any(tree[0] in ("index", "call") for tree in trees) or (bool(parts) and _have_calls(*parts))


def _wrong_root(steps: Sequence[str], claims: Sequence[Statement]) -> str | None:
    # A claim x = number that the last equation in x alone, in this step or the one before, refutes.
    equations: list[tuple[str, Reading, str]] = []
    for step in steps[-2:]:
        for statement in algebra.statements(step):
            found = algebra.readings(statement) if statement.is_claim else ()
            if len(found) != 1 or found[0].relations != ("=",):
                continue
            left, right = found[0].sides
            if left[0] == "var" and not algebra.names(right):
                known = [(reading, text) for name, reading, text in equations if name == left[1]]
                if statement in claims and step is steps[-1] and known and _refutes(known[-1][0], left, right):
                    return f"{step[statement.start : statement.end]} does not satisfy {known[-1][1]}."
            elif len(used := algebra.names(left) | algebra.names(right)) == 1 and not _have_calls(left, right):
                equations.append((*used, found[0], step[statement.start : statement.end]))
    return None


def _refutes(equation: Reading, variable: Tree, number: Tree) -> bool:
    sides = [_put(side, variable, number) for side in equation.links[0][1:]]
    return algebra.link_truth(equation, ("=", *sides)) == "false"


def _put(tree: Tree, variable: Tree, number: Tree) -> Tree:
    if tree == variable:
        return number
    return (tree[0], *(_put(part, variable, number) if isinstance(part, tuple) else part for part in tree[1:]))


def groundedness(question: str, steps: Sequence[str]) -> float:
    """Share of the numbers and variables in the steps that the question or an earlier step has introduced.

    A crude sign of gaps: what a removed step introduced is used by a later one without an origin. In [0, 1]; 1 for
    steps without mathematics.
    """
    known, used, grounded = _symbols(question), 0, 0
    for step in steps:
        symbols = _symbols(step)
        used += len(symbols)
        grounded += len(symbols & known)
        known |= symbols
    return grounded / used if used else 1.0


def _symbols(text: str) -> set[str]:
    return {
        token.value for found in algebra.statements(text) for token in found.tokens if token.kind in ("num", "name")
    }
