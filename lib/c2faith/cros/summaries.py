"""What a comparison of trained judges says: AUROC per step, learning curves, examples needed, paired outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from c2faith.analysis import metrics
from c2faith.analysis.resampling import DRAWS, Estimate, Resamples, estimate, ratio
from c2faith.analysis.stats import auroc, holm, mcnemar
from c2faith.cros.compare import Comparison, compare
from c2faith.cros.encoder import Written
from c2faith.cros.examples import Example
from c2faith.cros.experiment import Settings
from c2faith.cros.features import StepFeatures

LOCATED = ("exact", "clean_accuracy", "processbench_f1", "detection", "mae_detected")
INTERVAL = ("", "_low", "_high")


def step_auroc(steps: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pd.DataFrame:
    """How well hazards tell the first faulty step from those before it and from clean chains' steps.

    Returns
    -------
    DataFrame
        One row a judge and kind of error: `n_steps`, `n_faulty`, `auroc` with `_low` and `_high` (0.5 is chance,
        ties count one half); intervals resample chains.
    """
    made = []
    for (judge, kind), rows in steps.groupby(["judge_id", "kind"], sort=False):
        resamples = Resamples.draw(rows["chain_id"], draws, seed)
        levels, codes = np.unique(rows["hazard"], return_inverse=True)
        faulty, chains = rows["faulty"].to_numpy(), rows["chain_id"].to_numpy()
        masses = [resamples.masses(chains[side], codes[side], len(levels)) for side in (faulty, ~faulty)]
        found = estimate(auroc(*masses), int(faulty.sum()))
        made.append(
            {"judge_id": judge, "kind": kind, "n_steps": len(rows), "n_faulty": int(faulty.sum())}
            | found.columns("auroc")
        )
    return pd.DataFrame(made)


def comparison(found: Comparison, *, draws: int = DRAWS) -> pd.DataFrame:
    """Localization of both kinds of error, and AUROC per step, one row a judge and kind.

    Returns
    -------
    DataFrame
        `judge_id`, `kind`, `n` (verdicts on faulty chains, all seeds), `n_clean`, `unanswered`, and with `_low` and
        `_high`: `exact`, `clean_accuracy`, `processbench_f1`, `detection`, `mae_detected`, `auroc` of the hazards.
    """
    parts = []
    located = found.frames["localization"]
    for kind, natural in (("injected", False), ("natural", True)):
        if not ((located["kind"] == "natural") == natural).any():
            continue
        table = metrics.localization(located, natural=natural, draws=draws)
        kept = ["judge_id", "n", "n_clean", "unanswered", *(f"{n}{end}" for n in LOCATED for end in INTERVAL)]
        parts.append(table[kept].assign(kind=kind))
    table = pd.concat(parts, ignore_index=True)
    return table.merge(step_auroc(found.steps, draws=draws), on=["judge_id", "kind"], how="left")


def other_tasks(found: Comparison, *, draws: int = DRAWS) -> pd.DataFrame:
    """Detection and coverage, one row a judge: `auroc`, `balanced_accuracy`, `false_alarm`, `mae`, `rho`.

    The coverage error and its rank correlation are over all deletion levels at once.
    """
    detected = metrics.detection(found.frames["detection"], draws=draws)
    covered = metrics.coverage(found.frames["coverage"].assign(deletion_rate=0.0), draws=draws)
    left = detected[
        ["judge_id", *(f"{n}{e}" for n in ("auroc", "balanced_accuracy", "false_alarm") for e in INTERVAL)]
    ]
    right = covered[["judge_id", *(f"{n}{e}" for n in ("mae", "rho") for e in INTERVAL)]]
    return left.merge(right, on="judge_id")


def pairs(found: Comparison, judges: Sequence[str]) -> pd.DataFrame:
    """McNemar's test between each two judges on the same chains, by what most seeds say.

    Returns
    -------
    DataFrame
        `judge_a`, `judge_b`, `kind`, `n`, `only_a` and `only_b` (chains only one judges right), `p` with
        continuity correction, `p_exact`, `p_holm` (of the exact ones, over the rows of a kind).
    """
    made = []
    located = found.frames["localization"]
    for natural, rows in located.groupby(located["kind"] == "natural"):
        outcomes, tests = right(rows), []
        for a, b in combinations(judges, 2):
            test = mcnemar(outcomes[a], outcomes[b])
            tests.append(
                {
                    "judge_a": a,
                    "judge_b": b,
                    "kind": "natural" if natural else "injected",
                    "n": test.n,
                    "only_a": test.b,
                    "only_b": test.c,
                    "p": test.p,
                    "p_exact": test.p_exact,
                }
            )
        table = pd.DataFrame(tests)
        made.append(table.assign(p_holm=holm(table["p_exact"])))
    return pd.concat(made, ignore_index=True)


def share_above(gaps: pd.Series, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """How many of the chains, by whose ids `gaps` is indexed, have a gap above 0; ties count one half.

    >>> share_above(pd.Series([0.5, 0.0, -1.0, 2.0], index=list("abcd")), draws=100).value
    0.625
    """
    chains = gaps.index.to_numpy()
    resamples = Resamples.draw(chains, draws, seed)
    won = ((gaps > 0) + 0.5 * (gaps == 0)).to_numpy(dtype=float)
    totals = resamples.totals(chains, {"won": won, "n": np.ones(len(won))})
    return estimate(ratio(totals["won"], totals["n"]), len(won))


def learning_curve(
    examples: Sequence[Example],
    features: Mapping[Written, StepFeatures],
    shares: Sequence[float],
    *,
    settings: Settings,
    **options: Any,
) -> pd.DataFrame:
    """F1 on the test problems by the share of the training problems: one row a judge, kind, share and seed.

    Returns
    -------
    DataFrame
        `judge_id`, `kind` of error, `share`, `seed`, `processbench_f1`, `exact`, `clean_accuracy`.
    """
    made = []
    for share in shares:
        found = compare(
            examples,
            features,
            settings=replace(settings, share=share),
            label=f"{share:.0%} of the problems",
            **options,
        )
        made.append(by_seed(found, share))
    return pd.concat(made, ignore_index=True)


def by_seed(found: Comparison, share: float) -> pd.DataFrame:
    """A point of a learning curve: what `learning_curve` gives, of one comparison."""
    made, frame = [], found.frames["localization"]
    for (seed, natural), rows in frame.groupby(["seed", frame["kind"] == "natural"]):
        table = metrics.localization(rows, natural=natural, draws=2)
        kept = table[["judge_id", "processbench_f1", "exact", "clean_accuracy"]]
        made.append(kept.assign(kind="natural" if natural else "injected", share=share, seed=seed))
    return pd.concat(made, ignore_index=True)


def share_needed(curve: pd.DataFrame, f1: float) -> pd.Series:
    """The smallest share of the training problems with which a judge's mean F1 reaches `f1`, interpolated.

    NaN for a judge that never does.
    """
    means = curve.groupby(["judge_id", "share"])["processbench_f1"].mean().unstack("judge_id")

    def first(column: pd.Series) -> float:
        above = np.flatnonzero(column.to_numpy() >= f1)
        if not len(above):
            return math.nan
        at = above[0]
        if at == 0:
            return float(column.index[0])
        pair = column.iloc[at - 1 : at + 1]
        return float(np.interp(f1, pair.to_numpy(), pair.index.to_numpy()))

    return means.apply(first)


def right(frame: pd.DataFrame) -> pd.DataFrame:
    """Items × judges: whether most seeds' verdicts were right, for McNemar's test between paired judges."""
    item = frame["item_id"].str.replace(r"~seed\d+$", "", regex=True)
    marks = frame.assign(item=item, right=(frame["value"] == frame["target"]).astype(float))
    return marks.pivot_table(index="item", columns="judge_id", values="right") > 0.5
