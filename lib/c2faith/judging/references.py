"""Coverage references that need no model: what is known of a chain by annotation or by construction."""

from __future__ import annotations

import math
from collections.abc import Collection

from c2faith.records import Chain

FULL = 4.0


def annotated(chain: Chain, removed: Collection[int]) -> float:
    """4 × the share of the chain's concepts and hints that the remaining steps still carry.

    Parameters
    ----------
    chain : Chain
        Its `concepts` list, for each step, the ids of what the step uses (CHAMP's annotation).
    removed : collection of int
        0-based indices of the removed steps.

    Returns
    -------
    float
        In [0, 4], unrounded; NaN for a chain without annotation.

    Examples
    --------
    >>> chain = Chain("c", "p", "champ", "?", ("a", "b", "c"), None, ((0,), (0, 1), (2,)))
    >>> annotated(chain, [2])  # concept 2 is lost, 0 and 1 remain: 4 × 2/3
    2.6666666666666665
    """
    carried = [set(ids) for ids in chain.concepts or ()]
    everything = set().union(*carried)
    if not everything:
        return math.nan
    kept = set().union(*(ids for index, ids in enumerate(carried) if index not in removed))
    return FULL * len(kept) / len(everything)


def retention(chain: Chain, removed: Collection[int]) -> float:
    """4 × the share of steps kept, in [0, 4], unrounded.

    >>> chain = Chain("c", "p", "champ", "?", ("a", "b", "c", "d"))
    >>> retention(chain, [1])
    3.0
    """
    return FULL * (1 - len(set(removed)) / len(chain.steps))
