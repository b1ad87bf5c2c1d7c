"""Tables beyond the paper: false alarms and ranks, natural errors, ensembles, early bias, calibration, cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from c2faith.analysis import metrics
from c2faith.analysis.ensembles import ensembles
from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, ratio
from c2faith.analysis.surface import giveaway
from c2faith.analysis.tables.paper import INTERVALS, Rng
from c2faith.judging import tasks

SHOWN_ENSEMBLES = 40


def false_alarms(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """What the clean twins do to the ranking: ranks by detection alone and by balanced accuracy."""
    checked(frame, "detection")
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    rates, fair, rows = [], [], []
    for judge, mine in per_judge(frame):
        bad, value = (mine["truth"] == 0).to_numpy(), mine["value"].to_numpy()
        columns = {
            "bad": bad,
            "caught": bad & (value == 0),
            "clean": ~bad,
            "accepted": ~bad & (value == 1),
            "alarmed": ~bad & (value == 0),
        }
        sums = resamples.totals(mine["chain_id"], columns)
        rates.append(ratio(sums["caught"], sums["bad"]))
        fair.append((rates[-1] + ratio(sums["accepted"], sums["clean"])) / 2)
        n, n_clean = int(bad.sum()), int((~bad).sum())
        rows.append(
            {
                "judge_id": judge,
                "n": n,
                "n_clean": n_clean,
                **estimate(rates[-1], n).columns("detection"),
                **estimate(ratio(sums["alarmed"], sums["clean"]), n_clean).columns("false_alarm"),
                **estimate(fair[-1], min(n, n_clean)).columns("balanced_accuracy"),
            }
        )
    for name, scores in (("rank_detection", rates), ("rank_balanced", fair)):
        for row, ranks in zip(rows, _ranks(scores), strict=True):
            row |= estimate(ranks, row["n"]).columns(name)
    table = pd.DataFrame(rows)
    table.attrs = {
        "caption": "Exp 1: what false alarms on clean twins do to the ranking. Ranks (1 is best, ties share) "
        "among this run's judges by detection alone and by balanced accuracy; their intervals rank "
        f"the judges anew in every resample. {INTERVALS}",
    }
    return table


def _ranks(scores: list[np.ndarray]) -> np.ndarray:
    """Rank of every judge (rows) in the sample and every draw (columns), best first; NaN where undefined."""
    if not scores:
        return np.empty((0, 0))
    values = np.array(scores)
    ranks = rankdata(-np.nan_to_num(values, nan=-np.inf), axis=0)
    return np.where(np.isnan(values), np.nan, ranks)


def natural_errors(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """The same judges on injected and on natural errors."""
    parts = [
        metrics.localization(frame, natural=natural, draws=draws, rng=rng).assign(
            set="natural" if natural else "injected"
        )
        for natural in (False, True)
    ]
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    order = {judge: place for place, judge in enumerate(pd.unique(frame["judge_id"]))}
    if len(table):
        table = table.sort_values("judge_id", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    table.attrs = {
        "caption": "Exp 2 on injected errors and on natural ones (chains whose first wrong step a person "
        "marked, with correct chains beside them). Chance: a guess in the middle region for "
        f"injected errors, anywhere in the chain for natural ones. {INTERVALS}",
        "keys": ["judge_id", "set"],
        "panels": {
            "Where the error is": ["n", "unanswered", "exact", "exact_corrected", "detection"],
            "How far off, and chains without an error": [
                *("mae_detected", "signed_error", "n_clean", "clean_accuracy", "processbench_f1")
            ],
        },
        "best_within": ["set"],
    }
    return table


def ensemble_votes(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Ensembles of two and three judges, with the false alarms that they cost."""
    table = ensembles(frame, draws=draws, rng=rng)
    table.attrs = {
        "caption": "Exp 1: judges alone, in twos and in threes. Majority: more than half of those that answer; "
        "any flag: one is enough; mean confidence: above one half. A detection rate says little "
        f"without the false alarms beside it: any flag can only add to both. {INTERVALS}",
        "keys": ["judges", "rule"],
        "panels": {"": ["n", "unanswered", "detection", "n_clean", "false_alarm", "balanced_accuracy"]},
        "limit": SHOWN_ENSEMBLES,
    }
    return table


def early_bias(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Does shifting a judge's index against its early bias help on chains that the shift was not fitted on?"""
    table = metrics.early_bias_correction(frame, draws=draws, rng=rng)
    table.attrs = {
        "caption": "Exp 2: the detected index moved against the bias found on the other half of the chains. "
        "Mean error: by the mean signed error, rounded; least MAE: by the whole shift that makes "
        f"the error least there. Changes are after − before, over detected chains. {INTERVALS}",
        "keys": ["judge_id", "method"],
        "panels": {
            "The shift": ["n", "shift_a", "shift_b", "signed_before", "signed_after"],
            "What it changes": [
                *("mae_before", "mae_after", "mae_change", "exact_before", "exact_after", "exact_change")
            ],
        },
    }
    return table


def calibration(frames: Mapping[str, pd.DataFrame], *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Expected calibration error and Brier score of the judges that give confidences."""
    parts = [
        metrics.calibration(frames[task], task, draws=draws, rng=rng).assign(task=task)
        for task in ("detection", "localization")
        if task in frames
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    table.attrs = {
        "caption": "Calibration of P(something is wrong) over perturbed items and clean twins: expected "
        f"calibration error in ten equal bins, Brier score, and the means. {INTERVALS}",
        "keys": ["judge_id", "task"],
        "best_within": ["task"],
    }
    return table


CONDITIONS: Mapping[str, str] = {"detection": "full", "step_only": "step only", "shuffled": "shuffled context"}
"""What a judge is shown of the context, by task."""


def ablation(frames: Mapping[str, pd.DataFrame], *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """How much of a judge's detection survives without the context, by condition.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task: detection, and one or both of its ablations. Judges without an ablation are left
        out.
    """
    rates, gains = [], []
    full = frames["detection"]
    for task in (task for task in tasks.ablations() if task in frames):
        made = metrics.detection(frames[task], draws=draws, rng=rng).assign(condition=CONDITIONS[task])
        gained = metrics.context_gain(full, frames[task], draws=draws, rng=rng)
        rates.append(made)
        gains.append(gained.assign(condition=CONDITIONS[task]))
    asked = set(pd.concat(rates)["judge_id"])
    whole = metrics.detection(full[full["judge_id"].isin(asked)], draws=draws, rng=rng)
    table = pd.concat([whole.assign(condition=CONDITIONS["detection"]), *rates], ignore_index=True)
    table = table.merge(pd.concat(gains), on=["judge_id", "condition"], how="left")
    order = {judge: place for place, judge in enumerate(sorted(set(table["judge_id"])))}
    table = table.sort_values("judge_id", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    table.attrs = {
        "caption": "Exp 1 with less context. What a judge still flags above its false alarms (J) when it sees "
        "the step alone, or a shuffled context, is seen in the step's surface and not in the reasoning. Gains are "
        f"paired: full context minus the condition, on the items of both. {_left_out(frames)}{INTERVALS}",
        "keys": ["judge_id", "condition"],
        "panels": {
            "Rates": ["n", "unanswered", "detection", "false_alarm", "balanced_accuracy", "youden_j", "auroc"],
            "Gained by the full context": [
                *("n_paired", "n_clean_paired", "detection_gain", "false_alarm_gain", "youden_j_gain")
            ],
        },
        "best_within": ["condition"],
    }
    return table


def _left_out(frames: Mapping[str, pd.DataFrame]) -> str:
    """How many items the shuffled condition cannot ask."""
    if "shuffled" not in frames:
        return ""
    planned, asked = (frames[task]["item_id"].nunique() for task in ("detection", "shuffled"))
    return f"Shuffled: not asked of {planned - asked} of {planned} items, with fewer than two earlier steps. "


def surface_cues(items: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """How far the negations can be told without any context, by a reader that is no judge at all."""
    table = giveaway(items, draws=draws, rng=rng)
    table.attrs = {
        "caption": "Negated steps told from original ones by their surface alone: a naive Bayes classifier over "
        "the step's own pieces, trained on other chains. Pair accuracy: the share of items whose perturbed step "
        f"looks the more suspicious. 50% and 0.5 are chance. {INTERVALS}",
        "keys": ["edit_type"],
        "best_within": ["edit_type"],
    }
    return table


def telling_words(found: pd.DataFrame) -> pd.DataFrame:
    """Appendix F from `words.appendix_f`."""
    table = found.copy()
    table.attrs = {
        "caption": "Exp 1, perturbed steps: words and phrases over-represented in correct detections and in "
        "false acceptances, in the judge's reasoning and in the steps it was shown. Log-odds with "
        "an informative Dirichlet prior; z is in standard errors, shown beyond 1.96; Holm over all phrases of a "
        "judge and place.",
        "keys": ["judge_id", "where", "over"],
        "panels": {"": ["word", "count_correct", "count_wrong", "z", "p_holm"]},
    }
    return table


def costs(totals: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The sums of `judging.verdict_frames.spending` with each task's main figure beside them."""
    worth = {
        **dict.fromkeys(CONDITIONS, (metrics.detection, "balanced_accuracy")),
        "localization": (metrics.localization, "exact"),
        "coverage": (metrics.coverage_trend, "order_accuracy"),
    }
    found = {}
    for task, (metric, column) in worth.items():
        if task in frames:
            table = metric(frames[task], draws=1).set_index("judge_id")[column]
            found |= {(judge, task): value for judge, value in table.items()}
    pairs = zip(totals["judge_id"], totals["task"], strict=True)
    table = totals.assign(worth=[found.get(pair, np.nan) for pair in pairs])
    table.attrs = {
        "caption": "Cost and quality by judge and task, over all attempts recorded. US$ is 0 for judges that "
        "run offline and empty where prices are unknown; seconds are of single calls, a local model's "
        "the mean of a batch. Worth: "
        "balanced accuracy (detection), exact match (localization), order accuracy across levels "
        "(coverage).",
        "keys": ["judge_id", "task"],
        "panels": {
            "": ["items", "calls", "retries", "tokens_in", "tokens_out", "dollars", "p50_s", "p95_s", "worth"]
        },
        "best_within": ["task"],
    }
    return table
