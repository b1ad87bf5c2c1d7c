"""The whole set of tables of a run, by file name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from c2faith.resampling import DRAWS
from c2faith.tables import paper


def compute(
    frames: Mapping[str, pd.DataFrame], *, reference: str = "annotated", draws: int = DRAWS, seed: int = 0
) -> Iterator[tuple[str, pd.DataFrame]]:
    """(name, table) of every table that the frames allow, the paper's first.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task; tables of a missing task are left out.
    reference : str
        Names the reference of the coverage scores in the captions.
    draws, seed
        Of the bootstrap over chains; the same for every table, so that their intervals agree.
    """
    sampled = {"draws": draws, "rng": seed}
    if "detection" in frames:
        yield "table1_detection", paper.table1_detection(frames["detection"], **sampled)
        yield "table1_pairs", paper.table1_pairs(frames["detection"], **sampled)
    if "localization" in frames:
        yield "table2_localization", paper.table2_localization(frames["localization"], **sampled)
    if "coverage" in frames:
        yield "table3_coverage", paper.table3_coverage(frames["coverage"], reference=reference, **sampled)
        yield "table3_trend", paper.table3_trend(frames["coverage"], **sampled)
