"""Tables beyond the paper: surface cues, false alarms, ensembles, ablation, natural errors, calibration, cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from c2faith.analysis.metrics import Measured, context_gain
from c2faith.analysis.resampling import estimate, means
from c2faith.analysis.tables.spec import INTERVALS, described, table
from c2faith.analysis.words import giveaway
from c2faith.judging.tasks import TASKS, ablations

SHOWN_ENSEMBLES = 40
INTERVAL = ("", "_low", "_high")


@table("detection", "items")
def surface_cues(run: Measured) -> pd.DataFrame:
    """How far the negations can be told without any context, by a reader that is no judge at all."""
    return described(
        giveaway(run.items, **run.sampled),
        "Negated steps told from original ones by their surface alone: a naive Bayes classifier over "
        "the step's own pieces, trained on other chains. Pair accuracy: the share of items whose perturbed step "
        f"looks the more suspicious. 50% and 0.5 are chance. {INTERVALS}",
        keys=["edit_type"],
        best_within=["edit_type"],
    )


@table("detection")
def false_alarms(run: Measured) -> pd.DataFrame:
    """What the clean twins do to the ranking: ranks by detection alone and by balanced accuracy."""
    made, frame = run.of("detection", "detection"), run.verdicts["detection"]
    names = ("detection", "false_alarm", "balanced_accuracy")
    made = made[["judge_id", "n", "n_clean", *(name + end for name in names for end in INTERVAL)]]
    bad, amounts = frame["truth"] == 0, {}
    for judge in made["judge_id"]:
        mine = frame["judge_id"] == judge
        amounts |= {(judge, 0): (frame["value"] == 0, mine & bad), (judge, 1): (frame["value"] == 1, mine & ~bad)}
    found = means(run.resamples("detection"), frame["chain_id"], amounts)
    rates, accepted = (np.array([found[judge, side].columns for judge in made["judge_id"]]) for side in (0, 1))
    for name, scores in {"rank_detection": rates, "rank_balanced": (rates + accepted) / 2}.items():
        ranks = rankdata(-np.nan_to_num(scores, nan=-np.inf), axis=0)
        ranks = np.where(np.isnan(scores), np.nan, ranks)
        rows = [estimate(row, n).columns(name) for row, n in zip(ranks, made["n"], strict=True)]
        made = made.join(pd.DataFrame(rows, made.index))
    return described(
        made,
        "Exp 1: what false alarms on clean twins do to the ranking. Ranks (1 is best, ties share) "
        "among this run's judges by detection alone and by balanced accuracy; their intervals rank "
        f"the judges anew in every resample. {INTERVALS}",
    )


@table("detection")
def ensembles(run: Measured) -> pd.DataFrame:
    """Ensembles of two and three judges, with the false alarms that they cost."""
    return described(
        run.of("ensembles", "detection"),
        "Exp 1: judges alone, in twos and in threes. Majority: more than half of those that answer; "
        "any flag: one is enough; mean confidence: above one half. A detection rate says little "
        f"without the false alarms beside it: any flag can only add to both. {INTERVALS}",
        keys=["judges", "rule"],
        panels={"": "n unanswered detection n_clean false_alarm balanced_accuracy"},
        limit=SHOWN_ENSEMBLES,
    )


@table("detection")
def ablation(run: Measured) -> pd.DataFrame | None:
    """How much of a judge's detection survives without the context; judges without an ablation are left out."""
    asked = {task: run.verdicts[task] for task in ablations("detection") if task in run.verdicts}
    if not asked:
        return None
    whole, parts, gains = run.of("detection", "detection"), [], []
    judges = set(pd.concat(asked.values())["judge_id"])
    for task, frame in asked.items():
        condition = TASKS[task].title
        parts.append(run.of("detection", task).assign(condition=condition))
        gained = context_gain(run.verdicts["detection"], frame, **run.sampled)
        gains.append(gained.assign(condition=condition))
    made = pd.concat([whole[whole["judge_id"].isin(judges)].assign(condition="full"), *parts])
    made = made.merge(pd.concat(gains), on=["judge_id", "condition"], how="left")
    left_out = ""
    if "shuffled" in asked:
        planned = run.verdicts["detection"]["item_id"].nunique()
        count = planned - asked["shuffled"]["item_id"].nunique()
        left_out = f"Shuffled: not asked of {count} of {planned} items, with fewer than two earlier steps. "
    return described(
        made.sort_values("judge_id", kind="stable", ignore_index=True),
        "Exp 1 with less context. What a judge still flags above its false alarms (J) when it sees "
        "the step alone, or a shuffled context, is seen in the step's surface and not in the reasoning. Gains are "
        f"paired: full context minus the condition, on the items of both. {left_out}{INTERVALS}",
        keys=["judge_id", "condition"],
        panels={
            "Rates": "n unanswered detection false_alarm balanced_accuracy youden_j auroc",
            "Gained by the full context": "n_paired n_clean_paired detection_gain false_alarm_gain youden_j_gain",
        },
        best_within=["condition"],
    )


@table("localization")
def natural_errors(run: Measured) -> pd.DataFrame:
    """The same judges on injected and on natural errors."""
    judges = pd.unique(run.verdicts["localization"]["judge_id"])
    parts = [
        run.of("localization", "localization", natural=natural).assign(set=name)
        for name, natural in {"injected": False, "natural": True}.items()
    ]
    made = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    if len(made):
        made = made.sort_values("judge_id", key=pd.Index(judges).get_indexer, kind="stable", ignore_index=True)
    return described(
        made,
        "Exp 2 on injected errors and on natural ones (chains whose first wrong step a person "
        "marked, with correct chains beside them). Chance: a guess in the middle region for "
        f"injected errors, anywhere in the chain for natural ones. {INTERVALS}",
        keys=["judge_id", "set"],
        panels={
            "Where the error is": "n unanswered exact exact_corrected detection",
            "How far off, and chains without an error": "mae_detected signed_error n_clean clean_accuracy "
            "processbench_f1",
        },
        best_within=["set"],
    )


@table("localization")
def early_bias(run: Measured) -> pd.DataFrame:
    """Does shifting a judge's index against its early bias help on chains that the shift was not fitted on?"""
    return described(
        run.of("early_bias_correction", "localization"),
        "Exp 2: the detected index moved against the bias found on the other half of the chains. "
        "Mean error: by the mean signed error, rounded; least MAE: by the whole shift that makes "
        f"the error least there. Changes are after − before, over detected chains. {INTERVALS}",
        keys=["judge_id", "method"],
        panels={
            "The shift": "n shift_a shift_b signed_before signed_after",
            "What it changes": "mae_before mae_after mae_change exact_before exact_after exact_change",
        },
    )


@table()
def calibration(run: Measured) -> pd.DataFrame | None:
    """Expected calibration error and Brier score of the judges that give confidences, None if there are none."""
    parts = [
        run.of("calibration", task, task=task).assign(task=task)
        for task in ("detection", "localization")
        if task in run.verdicts
    ]
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if made.empty:
        return None
    return described(
        made,
        "Calibration of P(something is wrong) over perturbed items and clean twins: expected "
        f"calibration error in ten equal bins, Brier score, and the means. {INTERVALS}",
        keys=["judge_id", "task"],
        best_within=["task"],
    )


@table("totals")
def costs(run: Measured) -> pd.DataFrame:
    """The sums of `verdict_frames.spending` with each task's headline figure beside them."""
    worth = {}
    for task in run.verdicts:
        if (row := TASKS[task]).metric:
            values = run.of(row.metric, task).set_index("judge_id")[row.headline]
            worth |= {(judge, task): value for judge, value in values.items()}
    asked = zip(run.totals["judge_id"], run.totals["task"], strict=True)
    return described(
        run.totals.assign(worth=[worth.get(pair, np.nan) for pair in asked]),
        "Cost and quality by judge and task, over all attempts recorded. US$ is 0 for judges that "
        "run offline and empty where prices are unknown; seconds are of single calls, a local model's "
        "the mean of a batch. Worth: "
        "balanced accuracy (detection), exact match (localization), order accuracy across levels "
        "(coverage).",
        keys=["judge_id", "task"],
        panels={"": "items calls retries tokens_in tokens_out dollars p50_s p95_s worth"},
        best_within=["task"],
    )
