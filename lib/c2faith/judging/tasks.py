"""The tasks, one row each: what is asked, what is answered, what it is compared with and measured by.

A further task is a row of `TASKS`, its template in `data/prompts`, and its metric in `analysis.metrics.METRICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from c2faith.judging import prompts
from c2faith.judging.answers import Answer, Coverage, Detection, Localization
from c2faith.judging.judges.base import Query
from c2faith.records import Chain, InputError, NaturalItem, rng, sha256

if TYPE_CHECKING:
    from c2faith.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Item:
    """One question put to a judge, with its label."""

    item_id: str
    task: str
    chain_id: str
    problem_id: str
    kind: str  # perturbed, clean (the twin of a perturbed item, or an untouched chain) or natural
    question: str
    steps: tuple[str, ...]
    n_steps: int
    shown: int | None = None  # the index of the step in question (detection and its ablations)
    original: tuple[str, ...] = ()  # the whole chain and what was removed from it (coverage and its reference)
    removed: tuple[int, ...] = ()
    labels: Mapping[str, float] = field(default_factory=dict)  # the truth and what else metrics need; never sent

    def query(self, fingerprint: str) -> Query:
        """The item as a judge with this fingerprint gets it."""
        templates = get(self.task).templates
        messages = prompts.render(
            templates, self.question, self.steps, target=self.shown, original=self.original, removed=self.removed
        )
        key = sha256([fingerprint, messages])
        return Query(self.item_id, self.task, messages, self.question, self.steps, self.shown, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All that the library knows of one task."""

    name: str
    title: str  # words for tables
    templates: tuple[str, ...]  # the files of `data/prompts` that make its prompt, one after the other
    answer: type[Answer] | None  # what a reply is read as; None: free text
    items: Callable[[Dataset], list[Item]] | None  # None: asked while the dataset is made, not of it
    truth: str | None = None  # the frame's column that a value is compared with
    reference_task: str | None = None  # whose verdicts may be the truth instead of what is known of a chain
    confidence: Callable[[Sequence[float]], float] = max  # `Reply.scores` → the frame's `confidence`
    metric: str | None = None  # its name in `analysis.metrics.METRICS`; None: a verdict is no end in itself
    headline: str | None = None  # the metric's column that says in one number what a judge is worth
    default: bool = False  # asked without being named
    ablates: str | None = None  # the task of which it shows less
    unasked: str = ""  # what the items of that task which it cannot ask have in common


def get(name: str) -> Task:
    """The task of that name; an `InputError` lists them."""
    try:
        return TASKS[name]
    except KeyError:
        known = ", ".join(task.name for task in TASKS.values() if task.items)
        raise InputError(f"unknown task {name!r}: choose from {known}") from None


def default() -> tuple[str, ...]:
    """Names of the tasks that are asked without being named."""
    return tuple(task.name for task in TASKS.values() if task.default)


def scored() -> tuple[str, ...]:
    """Names of the tasks whose verdicts are measured, ablations among them."""
    return tuple(task.name for task in TASKS.values() if task.metric)


def ablations(of: str = "detection") -> tuple[str, ...]:
    """Names of the tasks that show less than another one."""
    return tuple(task.name for task in TASKS.values() if task.ablates == of)


def items(dataset: Dataset, name: str) -> list[Item]:
    """All items of a task: perturbed chains and their clean twins side by side, then natural errors.

    An `InputError` if the task is unknown, or not asked of a dataset.
    """
    task = get(name)
    if task.items is None:
        raise InputError(f"task {name} is not asked of a run's items, but while they are made (make data)")
    return [replace(item, task=name) for item in task.items(dataset)]


def left_out(dataset: Dataset, name: str) -> str:
    """How many items of the task that this one ablates it cannot ask, and why, in words; nothing if it can all."""
    task = get(name)
    if not task.unasked:
        return ""
    count = len(items(dataset, task.ablates)) - len(items(dataset, name))
    return f"{name}: {count} items have {task.unasked} and are not asked"


def _item(of: Chain | NaturalItem, item_id: str, kind: str, steps: tuple[str, ...], **more: Any) -> Item:
    return Item(item_id, "", of.chain_id, of.problem_id, kind, of.question, steps, len(steps), **more)


def _by_id(dataset: Dataset) -> dict[str, Chain]:
    return {chain.chain_id: chain for chain in dataset.chains}


def _twins(dataset: Dataset) -> Iterator[Item]:
    chains = _by_id(dataset)
    for row in dataset.causality:
        chain, target = chains[row.chain_id], row.target
        for name, kind, steps, truth in (("", "perturbed", row.steps, 0), ("~clean", "clean", chain.steps, 1)):
            labels = {"target": target, "truth": truth}
            yield _item(chain, row.item_id + name, kind, steps, shown=target, labels=labels)


def _detection(dataset: Dataset) -> list[Item]:
    return [replace(item, steps=item.steps[: item.shown + 1]) for item in _twins(dataset)]


def _localization(dataset: Dataset) -> list[Item]:
    twins = [
        replace(item, shown=None, labels={"target": -1 if item.labels["truth"] else item.shown})
        for item in _twins(dataset)
    ]
    # Models' own solutions are long: all of them, which stand in a drawn order, would cost more than all the rest.
    natural = dataset.natural[: len(dataset.causality)]
    return twins + [
        _item(row, row.item_id, "natural", row.steps, labels={"target": row.first_error}) for row in natural
    ]


def _coverage(dataset: Dataset) -> list[Item]:
    chains, made = _by_id(dataset), []
    for row in dataset.coverage:
        labels = {name: getattr(row, name) for name in ("deletion_rate", "realized_rate", "realized_chain_rate")}
        labels["n_removed"] = len(row.removed)
        kind, chain = "perturbed" if row.removed else "clean", chains[row.chain_id]
        more = {"original": chain.steps, "removed": row.removed, "labels": labels}
        made.append(_item(chain, row.item_id, kind, row.steps, **more))
    return made


def _step_only(dataset: Dataset) -> list[Item]:
    return [replace(item, question="", steps=(item.steps[item.shown],), shown=0) for item in _detection(dataset)]


def _shuffled(dataset: Dataset) -> list[Item]:
    made = []
    for item in _detection(dataset):
        if item.shown >= 2:
            order = another_order(item.shown, item.chain_id)  # the same for twins
            made.append(replace(item, steps=tuple(item.steps[index] for index in (*order, item.shown))))
    return made


def another_order(n: int, name: str) -> list[int]:
    """A shuffle of 0 … n − 1 (n at least 2) drawn for `name` from all orders but the ascending one.

    >>> another_order(2, "any")
    [1, 0]
    """
    draw, order = rng(0, "shuffled", name), list(range(n))
    while order == sorted(order):
        order = draw.permutation(n).tolist()
    return order


_DETECTION = Task(
    name="detection",
    title="Exp 1, detection",
    templates=("detection",),
    answer=Detection,
    items=_detection,
    truth="truth",
    confidence=itemgetter(0),  # P(the step does not follow)
    metric="detection",
    headline="balanced_accuracy",
    default=True,
)
_ABLATED = replace(_DETECTION, default=False, ablates="detection")
_TOO_FEW = "fewer than two steps to shuffle"
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _DETECTION,
        Task(
            name="localization",
            title="Exp 2, localization",
            templates=("localization",),
            answer=Localization,
            items=_localization,
            truth="target",
            confidence=lambda scores: 1 - scores[-1],  # P(some step is broken)
            metric="localization",
            headline="exact",
            default=True,
        ),
        Task(
            name="coverage",
            title="coverage",
            templates=("rubric", "coverage"),
            answer=Coverage,
            items=_coverage,
            truth="reference",
            reference_task="reference",
            metric="coverage_trend",
            headline="order_accuracy",
            default=True,
        ),
        Task(
            name="reference",
            title="coverage reference",
            templates=("rubric", "reference"),
            answer=Coverage,
            items=_coverage,
        ),
        replace(_ABLATED, name="step_only", title="step only", templates=("step_only",), items=_step_only),
        replace(_ABLATED, name="shuffled", title="shuffled context", items=_shuffled, unasked=_TOO_FEW),
        Task(name="negation", title="negation", templates=("negation",), answer=None, items=None),
    )
}
