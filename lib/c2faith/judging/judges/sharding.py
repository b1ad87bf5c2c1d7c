"""Disjoint parts of a run for several machines; their journals merge by concatenation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from c2faith.judging.judges.base import Query
from c2faith.records import InputError, sha256


def shard(queries: Sequence[Query], part: str) -> list[Query]:
    """The queries of one part, e.g. ``3/8``: those whose item falls to it.

    An item's part depends on its id alone, so it is the same on every machine and whatever else is asked.

    Parameters
    ----------
    queries : sequence of Query
    part : str
        ``k/n`` with 1 ≤ k ≤ n; all queries if empty.

    Raises
    ------
    InputError
        If `part` is no such fraction.
    """
    if not part:
        return list(queries)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)
    k, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= k <= n:
        raise InputError(f"SHARD={part}: a shard is k/n with k from 1 to n, e.g. 3/8")
    return [query for query in queries if int(sha256(query.item_id)[:16], 16) % n == k - 1]
