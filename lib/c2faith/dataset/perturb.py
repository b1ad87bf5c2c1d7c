"""Algorithm 1: remove steps of a chain's middle region, or replace one of them by its negation.

All fractions are exact rationals: as floats, 0.3 · 10 is more than 3 and its ceiling would be 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from numpy.random import Generator

from c2faith.dataset.edits import edit_type, similarity
from c2faith.dataset.negate import Negator, flaw
from c2faith.records import CausalityItem, Chain, CoverageItem, InputError

ALPHA, BETA = Fraction(3, 10), Fraction(9, 10)
Rational = Fraction | float | str


class NoNegation(InputError):  # noqa: N818 - it is caught as an absence, not reported as a mistake
    """No step of the chain's middle region has a negation that passes validation."""


def share(value: Rational, name: str = "") -> Fraction:
    """A share exactly as it is written: 0.3 is 3/10. `name` is what to call it in an error."""
    given = f"{name}={value}" if name else f"{value!r}"
    try:
        exact = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{given}: is no number such as 0.3 or 3/10") from None
    if not 0 <= exact <= 1:
        raise InputError(f"{given}: must lie between 0 and 1")
    return exact


def middle_region(n_steps: int, alpha: Rational = ALPHA, beta: Rational = BETA) -> range:
    """0-based indices of the steps that may be perturbed.

    The paper's I = {i : ⌈αN⌉ ≤ i ≤ ⌊βN⌋} counts from 1 (Algorithm 1, line 9).

    >>> middle_region(10)  # the paper's steps 3 to 9
    range(2, 9)
    """
    first = max(1, ceil(share(alpha) * n_steps))
    return range(first - 1, max(first - 1, floor(share(beta) * n_steps)))


def delete_steps(
    chain: Chain, rate: Rational, rng: Generator, *, alpha: Rational = ALPHA, beta: Rational = BETA
) -> CoverageItem:
    """Remove ⌈rate · |I|⌉ steps of the middle region I, uniformly without replacement (lines 6-14)."""
    return delete_nested(chain, [rate], rng, alpha=alpha, beta=beta)[0]


def delete_nested(
    chain: Chain, rates: Sequence[Rational], rng: Generator, *, alpha: Rational = ALPHA, beta: Rational = BETA
) -> list[CoverageItem]:
    """One item per rate, distributed as of `delete_steps`; what a lower rate removes, a higher one does, too."""
    region = middle_region(len(chain.steps), alpha, beta)
    if not region:
        raise InputError(f"{chain.chain_id}: {len(chain.steps)} steps have no middle region to remove from")
    order, items = rng.permutation(region).tolist(), []
    for rate in map(share, rates):
        removed = tuple(sorted(order[: ceil(rate * len(order))]))
        item = CoverageItem(
            item_id=f"{chain.chain_id}/coverage-{float(100 * rate):02g}",
            chain_id=chain.chain_id,
            deletion_rate=float(rate),
            steps=tuple(step for i, step in enumerate(chain.steps) if i not in removed),
            removed=removed,
            realized_rate=len(removed) / len(order),
            realized_chain_rate=len(removed) / len(chain.steps),
        )
        items.append(item)
    return items


def targets(chain: Chain, rng: Generator, *, alpha: Rational = ALPHA, beta: Rational = BETA) -> list[int]:
    """The steps of the middle region in the order in which they are tried as targets."""
    return rng.permutation(middle_region(len(chain.steps), alpha, beta)).tolist()


def replace_step(
    chain: Chain, negator: Negator, rng: Generator, *, alpha: Rational = ALPHA, beta: Rational = BETA
) -> CausalityItem:
    """Replace one step of the middle region by its negation (lines 15-22), or raise `NoNegation`.

    The target is drawn uniformly from the steps that have a candidate without a `flaw`; the others' candidates, and
    those before its own first valid one, are counted in ``negator.rejections``.
    """
    for target in targets(chain, rng, alpha=alpha, beta=beta):
        original = chain.steps[target]
        for candidate in negator.negate(chain, target, rng):
            if reason := flaw(original, candidate):
                negator.rejections[reason] += 1
                continue
            return CausalityItem(
                item_id=f"{chain.chain_id}/causality",
                chain_id=chain.chain_id,
                steps=(*chain.steps[:target], candidate, *chain.steps[target + 1 :]),
                target=target,
                original_step=original,
                perturbed_step=candidate,
                context=chain.steps[target - 1] if target else "",
                negator=negator.name,
                edit_type=edit_type(original, candidate),
                similarity=similarity(original, candidate),
            )
    raise NoNegation(f"{chain.chain_id}: {negator.name} has no valid negation for any middle step")
