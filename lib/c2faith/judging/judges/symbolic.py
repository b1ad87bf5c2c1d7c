"""A judge that computes: it flags what it can show to be wrong and accepts everything else.

Three checks, each of which is silent unless the text can be read in full (`dataset.algebra`): a claim without
variables that is false; a link of a chain of equalities between expressions in the same variables that holds at no
sample point; a value claimed for a variable that does not satisfy the last equation in that variable alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from c2faith.dataset.algebra import (
    Link,
    Reading,
    Statement,
    Tree,
    fails_everywhere,
    link_truth,
    names,
    readings,
    statements,
    truth,
)
from c2faith.dataset.negate.claims import is_claimed, is_denied
from c2faith.judging import tasks
from c2faith.judging.answers import Coverage, Detection, Localization
from c2faith.judging.judges import fingerprint
from c2faith.judging.judges.base import Query, Reply, refuse_unknown


class SymbolicJudge:
    """Detection by `objection`, localization by the first step it objects to, coverage by `groundedness`."""

    kind = "the symbolic judge"

    def __init__(self, judge_id: str = "symbolic", model: str = "algebra") -> None:
        self.judge_id, self.model = judge_id, model
        self.tasks = tasks.default()

    @property
    def answers(self) -> tuple[str, ...]:
        """The tasks whose answer it can compute."""
        return tuple(name for name in tasks.scored() if tasks.get(name).answer in _ANSWERS)

    @property
    def fingerprint(self) -> str:
        return fingerprint({"provider": "symbolic", "model": self.model})

    def replies(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Reply]]:
        """Answer in order; the reply is the JSON object that a language model would write."""
        for query in queries:
            answer = _ANSWERS[tasks.get(query.task).answer](query)
            yield query, Reply(json.dumps(answer, ensure_ascii=False), model=self.model, mode="compute")


def from_config(config: Mapping[str, Any], **edge: Any) -> SymbolicJudge:
    """The judge of a YAML in `data/judges`; it has no parameters and no endpoint."""
    refuse_unknown(config, SymbolicJudge.kind, edge)
    return SymbolicJudge(config["judge_id"], config["model"])


def _detection(query: Query) -> dict[str, Any]:
    target = query.n_steps - 1 if query.target is None else query.target
    found = objection(query.steps[: target + 1])
    return {"reasoning": found or "Nothing that can be computed is wrong.", "score": int(found is None)}


def _localization(query: Query) -> dict[str, Any]:
    for index in range(query.n_steps):
        if found := objection(query.steps[: index + 1]):
            return {"reasoning": f"Step {index}: {found}", "index": index}
    return {"reasoning": "Nothing that can be computed is wrong.", "index": -1}


def _coverage(query: Query) -> dict[str, Any]:
    share = groundedness(query.question, query.steps)
    return {
        "reasoning": f"{share:.0%} of the numbers and variables in use have been introduced before.",
        "score": round(4 * share),
    }


_ANSWERS = {Detection: _detection, Localization: _localization, Coverage: _coverage}


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
    claims = [s for s in statements(step) if s.is_claim and is_claimed(step, s.start, s.end)]
    for claim in claims:
        text = step[claim.start : claim.end]
        if truth(claim) == "false":
            return f"{text} is false."
        if _has_broken_link(claim):
            return f"{text} is no identity."
    return _wrong_root(steps, claims)


def _has_broken_link(claim: Statement) -> bool:
    """Whether, in every reading, a link after the first of a chain of equalities fails at every sample point.

    The first link is left out, since it may define a name or state an equation; so are subscripts and functions,
    which may be related by a recurrence, and the letters e and i, which may be numbers.
    """
    found = readings(claim)
    return bool(found) and all(
        set(reading.relations) == {"="}
        and any(_is_plain(link) and fails_everywhere(reading, link) for link in reading.links[1:])
        for reading in found
    )


def _is_plain(link: Link) -> bool:
    _, left, right = link
    used = names(left)
    return (
        bool(used)
        and used == names(right)
        and not used & {"e", "i"}
        and not (_has_calls(left) or _has_calls(right))
    )


def _has_calls(tree: Tree) -> bool:
    return tree[0] in ("index", "call") or any(_has_calls(part) for part in tree[1:] if isinstance(part, tuple))


def _wrong_root(steps: Sequence[str], claims: Sequence[Statement]) -> str | None:
    """A claim x = number that the last equation in x alone, in this step or the one before, refutes."""
    equations: list[tuple[str, Reading, str]] = []
    for step in steps[-2:]:
        for statement in statements(step):
            found = readings(statement) if statement.is_claim else ()
            if len(found) != 1 or found[0].relations != ("=",):
                continue
            left, right = found[0].sides
            if left[0] == "var" and not names(right):
                known = [(reading, text) for name, reading, text in equations if name == left[1]]
                if statement in claims and step is steps[-1] and known and _refutes(known[-1][0], left, right):
                    return f"{step[statement.start : statement.end]} does not satisfy {known[-1][1]}."
            elif len(used := names(left) | names(right)) == 1 and not (_has_calls(left) or _has_calls(right)):
                equations.append((*used, found[0], step[statement.start : statement.end]))
    return None


def _refutes(equation: Reading, variable: Tree, number: Tree) -> bool:
    _, left, right = equation.links[0]
    return link_truth(equation, ("=", _put(left, variable, number), _put(right, variable, number))) == "false"


def _put(tree: Tree, variable: Tree, number: Tree) -> Tree:
    """The tree with a number for a variable."""
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
    return {token.value for found in statements(text) for token in found.tokens if token.kind in ("num", "name")}
