"""What a judge learns from and is tested on: written solutions with exact labels, split by problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from c2faith.cros.encoder import Written
from c2faith.dataset import Dataset, negate, perturb
from c2faith.dataset.chains import load_chains
from c2faith.judging import tasks
from c2faith.judging.tasks import Item
from c2faith.records import Chain, CoverageItem, InputError, rng, sha256


@dataclass(frozen=True, slots=True)
class Example:
    """A written solution and what is known about it.

    Attributes
    ----------
    item_id, chain_id, problem_id : str
    group : str
        ``injected`` (a perturbed chain or its clean twin), ``natural``, ``synthetic``, ``coverage``, or
        ``detection`` (a chain cut off after the step in question).
    question, steps
        What the judge reads.
    target : int or None
        Index of the first step that does not follow, −1 for none; None where that is not the question
        (a chain with steps removed).
    missing : tuple of int or None
        How many steps were removed before each step; None where the chain may lack steps that nobody counted.
    item : Item or None
        The benchmark's item, if it is one: these alone are tested on.
    """

    item_id: str
    chain_id: str
    problem_id: str
    group: str
    question: str
    steps: tuple[str, ...]
    target: int | None
    missing: tuple[int, ...] | None = None
    item: Item | None = None

    @property
    def written(self) -> Written:
        return self.question, self.steps


def fold_of(question: str, folds: int, seed: int = 0) -> int:
    """The fold of a problem, from its text alone: anyone who sees the problem can tell which it is.

    >>> fold_of("What is 2 + 2?", 5) == fold_of(" What is  2 + 2? ", 5)
    True
    """
    return int(sha256(f"{seed}\0{' '.join(question.split())}")[:15], 16) % folds


def benchmark_examples(dataset: Dataset) -> list[Example]:
    """Every item of the three tasks, with its labels."""
    examples = []
    for item in tasks.items(dataset, "detection"):
        target = -1 if item.labels["truth"] else int(item.labels["target"])
        examples.append(_example(item, "detection", target, None))
    for item in tasks.items(dataset, "localization"):
        group = "natural" if item.kind == "natural" else "injected"
        missing = (0,) * len(item.steps) if item.kind == "clean" else None
        examples.append(_example(item, group, int(item.labels["target"]), missing))
    removed = {row.item_id: row for row in dataset.coverage}
    for item in tasks.items(dataset, "coverage"):
        examples.append(_example(item, "coverage", None, missing_before(removed[item.item_id])))
    return examples


def _example(item: Item, group: str, target: int | None, missing: tuple[int, ...] | None) -> Example:
    return Example(
        item.item_id,
        item.chain_id,
        item.problem_id,
        group,
        item.question,
        item.steps,
        target,
        missing,
        item,
    )


def missing_before(row: CoverageItem) -> tuple[int, ...]:
    """How many original steps are missing just before each kept one.

    Removals lie in the middle region, which never reaches the last step, so that none is lost at the end.

    >>> missing_before(CoverageItem("", "", 0.5, ("a", "d", "e"), (1, 2), 1.0, 0.4))
    (0, 2, 0)
    """
    kept = [i for i in range(len(row.steps) + len(row.removed)) if i not in row.removed]
    return tuple(index - previous - 1 for previous, index in zip([-1, *kept], kept, strict=False))


def more_examples(
    chains: Sequence[Chain], seeds: Iterable[int], group: str, dropped: Counter[str] | None = None
) -> list[Example]:
    """Further negations to train on, one a chain and seed, of any step; with ``synthetic`` also the clean chains.

    Each chain is cut off after its negated step: what a causal model makes of the steps up to there is the same
    with and without the rest, which would take most of the reading. The same negation drawn twice counts once.
    """
    negator, examples = negate.make("rules", chains=chains), {}
    for chain in chains if group == "synthetic" else ():
        examples[chain.chain_id] = _of_chain(chain, f"{chain.chain_id}/clean", group, chain.steps, -1)
    for seed in seeds:
        for chain in chains:
            try:
                row = perturb.replace_step(
                    chain, negator, rng(seed, "cut", chain.chain_id), alpha=Fraction(0), beta=Fraction(1)
                )
            except perturb.NoNegation:
                if dropped is not None:
                    dropped["no valid negation"] += 1
                continue
            steps = row.steps[: row.target + 1]
            name = f"{row.item_id}-{sha256(list(steps))[:12]}"
            examples[name] = _of_chain(chain, name, group, steps, row.target)
    return list(examples.values())


def _of_chain(chain: Chain, item_id: str, group: str, steps: tuple[str, ...], target: int) -> Example:
    missing = (0,) * len(steps) if target < 0 else None
    return Example(item_id, chain.chain_id, chain.problem_id, group, chain.question, steps, target, missing)


def gather(
    dataset: Dataset, *, extra: int = 2, synthetic: int = 150, more_natural: int = 0
) -> tuple[list[Example], Counter[str]]:
    """All examples of an experiment: the benchmark's items, and what is only trained on.

    Parameters
    ----------
    extra : int
        Further negations of each chain.
    synthetic : int
        Synthetic chains, each with its clean twin.
    more_natural : int
        Natural-error items beyond those that judges are asked.

    Returns
    -------
    examples : list of Example
    dropped : Counter
        Why there are fewer negations than asked for.
    """
    dropped: Counter[str] = Counter()
    seed = dataset.manifest["parameters"]["seed"]
    examples = benchmark_examples(dataset)
    examples += more_examples(dataset.chains, range(seed + 1, seed + 1 + extra), "injected", dropped)
    asked = sum(example.group == "natural" for example in examples)
    for row in dataset.natural[asked : asked + more_natural]:
        examples.append(
            Example(row.item_id, row.chain_id, row.problem_id, "natural", row.question, row.steps, row.first_error)
        )
    if synthetic:
        chains = load_chains("synthetic", limit=synthetic, seed=seed)
        examples += more_examples(chains, [seed], "synthetic", dropped)
    return examples, dropped


@dataclass(frozen=True)
class Split:
    """Examples of disjoint problems."""

    train: tuple[Example, ...]
    development: tuple[Example, ...]
    test: tuple[Example, ...]


def split(examples: Sequence[Example], rotation: int, folds: int, seed: int = 0) -> Split:
    """Test on fold `rotation`, develop on the next, train on the others.

    Only benchmark items are developed and tested on; synthetic chains always train.

    Raises
    ------
    InputError
        If a part has no faulty or no clean chain: nothing could be learned from it, or measured on it.
    """
    if folds < 3:
        raise InputError(f"FOLDS={folds}: train, development and test need at least 3")
    parts: dict[str, list[Example]] = {"train": [], "development": [], "test": []}
    for example in examples:
        fold = fold_of(example.question, folds, seed)
        if example.group == "synthetic":
            parts["train"].append(example)
        elif fold == rotation % folds:
            parts["test"].append(example)
        elif fold == (rotation + 1) % folds:
            parts["development"].append(example)
        elif example.group != "detection":  # training cuts chains off by itself
            parts["train"].append(example)
    for name in ("development", "test"):
        parts[name] = [example for example in parts[name] if example.item is not None]
    for name, part in parts.items():
        for kind, found in (
            ("faulty", sum(e.target is not None and e.target >= 0 for e in part)),
            ("clean", sum(e.target == -1 for e in part)),
        ):
            if not found:
                raise InputError(
                    f"the {name} part of rotation {rotation} has no {kind} chain; give more problems or fewer FOLDS"
                )
    return Split(*(tuple(part) for part in parts.values()))
