"""The whole set of tables of a run, by file name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from c2faith.analysis import words
from c2faith.analysis.resampling import DRAWS
from c2faith.analysis.tables import beyond, capability, paper, structure
from c2faith.judging import tasks
from c2faith.records import CausalityItem, as_dict


def items_frame(rows: Iterable[CausalityItem]) -> pd.DataFrame:
    """Causality rows as a frame, for the tables that look at the perturbed steps' texts."""
    return pd.DataFrame([as_dict(row) for row in rows])


def compute(
    frames: Mapping[str, pd.DataFrame],
    items: pd.DataFrame | None = None,
    totals: pd.DataFrame | None = None,
    *,
    reference: str = "annotated",
    draws: int = DRAWS,
    seed: int = 0,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """(name, table) of every table that the frames allow: the paper's, what stands beside them, what is beyond.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task; tables of a missing task are left out.
    items : DataFrame, optional
        See `items_frame`; without it Tables 5 and 6 and Appendix F are left out.
    totals : DataFrame, optional
        See `judging.verdict_frames.spending`; without it the cost table is left out.
    reference : str
        Names the reference of the coverage scores in the captions.
    draws, seed
        Of the bootstrap over chains; the same for every table and figure, so that their intervals agree.
    """
    sampled = {"draws": draws, "rng": seed}
    detection, localization, coverage = map(frames.get, ("detection", "localization", "coverage"))
    if detection is not None:
        yield "table1_detection", paper.table1_detection(detection, **sampled)
        yield "table1_pairs", paper.table1_pairs(detection, **sampled)
    if localization is not None:
        yield "table2_localization", paper.table2_localization(localization, **sampled)
    if coverage is not None:
        yield "table3_coverage", paper.table3_coverage(coverage, reference=reference, **sampled)
        yield "table3_trend", paper.table3_trend(coverage, **sampled)
    yield "table4_capability", capability.table4_capability(frames)
    if detection is not None and items is not None:
        yield "table5_predictors", structure.table5_predictors(detection, items, **sampled)
        yield "table5_logistic", structure.table5_logistic(detection, items)
        yield "table6_edit_types", structure.table6_edit_types(detection, items, **sampled)
        yield "appendix_f_words", beyond.telling_words(words.appendix_f(detection, items))
        yield "surface_cues", beyond.surface_cues(items, **sampled)
    if detection is not None:
        yield "false_alarms", beyond.false_alarms(detection, **sampled)
        yield "ensembles", beyond.ensemble_votes(detection, **sampled)
    if detection is not None and any(task in frames for task in tasks.ablations()):
        yield "ablation", beyond.ablation(frames, **sampled)
    if localization is not None:
        yield "natural_errors", beyond.natural_errors(localization, **sampled)
        yield "early_bias", beyond.early_bias(localization, **sampled)
    if len(calibrated := beyond.calibration(frames, **sampled)):
        yield "calibration", calibrated
    if totals is not None:
        yield "costs", beyond.costs(totals, frames)
