"""Dataset → items → queries: what is put to a judge, in a fixed order, with the labels kept apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from c2faith.dataset import Dataset
from c2faith.judging import prompts
from c2faith.judging.judges.base import Query
from c2faith.records import ABLATIONS, Chain, InputError, Task, rng, sha256

TASKS: tuple[Task, ...] = ("detection", "localization", "coverage", "reference", *ABLATIONS)


@dataclass(frozen=True, slots=True)
class Item:
    """One question put to a judge, with its label.

    `kind` is ``perturbed``, ``clean`` (the twin of a perturbed item, or an untouched chain) or ``natural``.
    `shown` is the index of the step in question (detection and its ablations). `labels` hold the truth and
    whatever else the metrics need by item; nothing of them reaches a query.
    """

    item_id: str
    task: Task
    chain_id: str
    problem_id: str
    kind: str
    question: str
    steps: tuple[str, ...]
    n_steps: int
    shown: int | None = None
    original: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()
    labels: Mapping[str, float] = field(default_factory=dict)

    def query(self, fingerprint: str) -> Query:
        """The item as a judge with this fingerprint gets it."""
        messages = prompts.render(
            self.task,
            self.question,
            self.steps,
            target=self.shown,
            original=self.original,
            removed=self.removed,
        )
        key = sha256([fingerprint, messages])
        return Query(self.item_id, self.task, messages, self.question, self.steps, self.shown, key)


def plan(dataset: Dataset, task: Task) -> list[Item]:
    """All items of a task: perturbed chains and their clean twins side by side, then natural errors.

    Of the dataset's natural items, which stand in a drawn order, localization asks the first ones, no more than
    there are perturbed chains: models' own solutions are long, and would cost more than all the rest.

    Raises
    ------
    InputError
        For an unknown task.
    """
    try:
        make = _MAKERS[task]
    except KeyError:
        raise InputError(f"unknown task {task!r}: choose from {', '.join(TASKS)}") from None
    return make(dataset, {chain.chain_id: chain for chain in dataset.chains})


def _detection(dataset: Dataset, chains: Mapping[str, Chain]) -> list[Item]:
    items = []
    for row in dataset.causality:
        chain = chains[row.chain_id]
        for kind, steps, truth in (("perturbed", row.steps, 0), ("clean", chain.steps, 1)):
            items.append(
                Item(
                    item_id=row.item_id + ("~clean" if truth else ""),
                    task="detection",
                    chain_id=chain.chain_id,
                    problem_id=chain.problem_id,
                    kind=kind,
                    question=chain.question,
                    steps=steps[: row.target + 1],
                    n_steps=len(steps),
                    shown=row.target,
                    labels={"target": row.target, "truth": truth},
                )
            )
    return items


def _localization(dataset: Dataset, chains: Mapping[str, Chain]) -> list[Item]:
    items = []
    for row in dataset.causality:
        chain = chains[row.chain_id]
        for kind, steps, target in (("perturbed", row.steps, row.target), ("clean", chain.steps, -1)):
            items.append(
                Item(
                    item_id=row.item_id + ("~clean" if kind == "clean" else ""),
                    task="localization",
                    chain_id=chain.chain_id,
                    problem_id=chain.problem_id,
                    kind=kind,
                    question=chain.question,
                    steps=steps,
                    n_steps=len(steps),
                    labels={"target": target},
                )
            )
    natural = [
        Item(
            item_id=row.item_id,
            task="localization",
            chain_id=row.chain_id,
            problem_id=row.problem_id,
            kind="natural",
            question=row.question,
            steps=row.steps,
            n_steps=len(row.steps),
            labels={"target": row.first_error},
        )
        for row in dataset.natural[: len(dataset.causality)]
    ]
    return items + natural


def _coverage(dataset: Dataset, chains: Mapping[str, Chain], task: Task = "coverage") -> list[Item]:
    items = []
    for row in dataset.coverage:
        chain = chains[row.chain_id]
        items.append(
            Item(
                item_id=row.item_id,
                task=task,
                chain_id=chain.chain_id,
                problem_id=chain.problem_id,
                kind="perturbed" if row.removed else "clean",
                question=chain.question,
                steps=row.steps,
                n_steps=len(row.steps),
                original=chain.steps if task == "reference" else (),
                removed=row.removed,
                labels={
                    "deletion_rate": row.deletion_rate,
                    "realized_rate": row.realized_rate,
                    "realized_chain_rate": row.realized_chain_rate,
                    "n_removed": len(row.removed),
                },
            )
        )
    return items


def _reference(dataset: Dataset, chains: Mapping[str, Chain]) -> list[Item]:
    return _coverage(dataset, chains, task="reference")


def _step_only(dataset: Dataset, chains: Mapping[str, Chain]) -> list[Item]:
    """The items of detection without problem and earlier steps: what is left cannot give the context away."""
    return [
        replace(item, task="step_only", question="", steps=(item.steps[item.shown],), shown=0)
        for item in _detection(dataset, chains)
    ]


def _shuffled(dataset: Dataset, chains: Mapping[str, Chain]) -> list[Item]:
    """The items of detection with the earlier steps in another order, the same for twins.

    Left out where fewer than two steps stand before the one in question: there is no other order.
    """
    items = []
    for item in _detection(dataset, chains):
        if item.shown >= 2:
            order = another_order(item.shown, item.chain_id)
            steps = (*(item.steps[index] for index in order), item.steps[item.shown])
            items.append(replace(item, task="shuffled", steps=steps))
    return items


def another_order(n: int, name: str) -> list[int]:
    """A shuffle of 0 … n − 1 (n at least 2) drawn for `name` from all orders but the ascending one.

    >>> another_order(2, "any")
    [1, 0]
    """
    draw, order = rng(0, "shuffled", name), list(range(n))
    while order == sorted(order):
        order = draw.permutation(n).tolist()
    return order


_MAKERS: dict[str, Callable[[Dataset, Mapping[str, Chain]], list[Item]]] = {
    "detection": _detection,
    "localization": _localization,
    "coverage": _coverage,
    "reference": _reference,
    "step_only": _step_only,
    "shuffled": _shuffled,
}
