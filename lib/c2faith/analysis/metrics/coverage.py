"""Coverage scores against a reference: level by level, and across the levels of one chain."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked, per_judge
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, rank_correlation, ratio
from c2faith.analysis.stats import holm, spearman_p

HIGH_SCORE, TOP_SCORE = 3, 4


def coverage(frame: pd.DataFrame, *, draws: int = DRAWS, rng: np.random.Generator | int = 0) -> pd.DataFrame:
    """Scores, bias, error, inflation and correlation with the reference, one row per judge and level.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `value` in 0 … 4, NaN for no answer; `reference` in 0 … 4 (it may fall
        between the points), NaN where there is none; `deletion_rate` 0 is the control.

    Returns
    -------
    DataFrame
        `deletion_rate`, `n`, `unanswered`, `n_compared` (answered and with a reference), and with `_low`/`_high`:

        - over answered items: `mean`, `sd` (population, no interval), `inflation` = share of scores ≥ 3;
          `valid_rate` over planned items;
        - over compared items: `bias` = mean(judge) − mean(reference), `mae`, `rho` (Spearman), `kappa`
          (quadratic weights); `p` of ρ from Student's t, and `p_holm`, corrected over all rows of the table;
        - `reference_mean` over all planned items, the same for every judge;
        - over planned items with a reference: `within_1` (a non-answer is not within), and `mae_worst`, which
          charges a non-answer the largest error the scale allows.

    References
    ----------
    C2-Faith, sections 4.2 and 5.3.
    """
    checked(frame, "coverage")
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    made = pd.DataFrame(
        [
            {"judge_id": judge, "deletion_rate": float(level)} | _row(rows, resamples)
            for judge, mine in per_judge(frame)
            for level, rows in mine.groupby("deletion_rate")
        ]
    )
    return made.assign(p_holm=holm(made["p"])) if len(made) else made


def _row(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    value, reference = rows["value"].to_numpy(float), rows["reference"].to_numpy(float)
    answered, referred = ~np.isnan(value), ~np.isnan(reference)
    both = answered & referred
    score, target = np.where(answered, value, 0), np.where(referred, reference, 0)
    distance = np.where(both, np.abs(score - target), 0)
    worst = np.where(answered, distance, np.maximum(target, TOP_SCORE - target))
    sums = resamples.totals(
        rows["chain_id"],
        {
            "all": np.ones(len(rows)),
            "answered": answered,
            "score": score,
            "square": score**2,
            "high": answered & (score >= HIGH_SCORE),
            "referred": referred,
            "reference": target,
            "both": both,
            "difference": np.where(both, score - target, 0),
            "distance": distance,
            "square_difference": distance**2,
            "near": both & (distance <= 1 + 1e-9),
            "worst": np.where(referred, worst, 0),
            "x": np.where(both, score, 0),
            "y": np.where(both, target, 0),
            "x_square": np.where(both, score**2, 0),
            "y_square": np.where(both, target**2, 0),
        },
    )
    n_answered, n_referred, n_both = int(answered.sum()), int(referred.sum()), int(both.sum())
    mean = ratio(sums["score"], sums["answered"])
    rho = _rho(rows["chain_id"].to_numpy()[both], value[both], reference[both], resamples)
    columns = {
        "mean": (mean, n_answered),
        "reference_mean": (ratio(sums["reference"], sums["referred"]), n_referred),
        "bias": (ratio(sums["difference"], sums["both"]), n_both),
        "mae": (ratio(sums["distance"], sums["both"]), n_both),
        "mae_worst": (ratio(sums["worst"], sums["referred"]), n_referred),
        "inflation": (ratio(sums["high"], sums["answered"]), n_answered),
        "within_1": (ratio(sums["near"], sums["referred"]), n_referred),
        "rho": (rho, n_both),
        "kappa": (_kappa(sums), n_both),
        "valid_rate": (ratio(sums["answered"], sums["all"]), len(rows)),
    }
    variance = ratio(sums["square"], sums["answered"])[0] - mean[0] ** 2
    made = {
        "n": len(rows),
        "unanswered": len(rows) - n_answered,
        "n_compared": n_both,
        "sd": float(np.sqrt(max(variance, 0))) if n_answered else np.nan,
        "p": float(spearman_p(rho[0], n_both)),
    }
    for name, (values, bearing) in columns.items():
        made |= estimate(values, bearing).columns(name)
    return made


def _kappa(sums: dict[str, np.ndarray]) -> np.ndarray:
    """Quadratic κ from sums: 1 − E(x − y)² / (var x + var y + (mean x − mean y)²); see `stats.agreement`."""
    n, x, y = sums["both"], sums["x"], sums["y"]
    chance = ratio(sums["x_square"] + sums["y_square"], n) - 2 * ratio(x, n) * ratio(y, n)
    return 1 - ratio(ratio(sums["square_difference"], n), np.where(chance < 1e-12, 0, chance))


def _rho(chain_ids: np.ndarray, x: np.ndarray, y: np.ndarray, resamples: Resamples) -> np.ndarray:
    """Spearman's ρ of the sample and of every draw; records with the same (x, y) share a cell."""
    if not len(x):
        return np.full(resamples.counts.shape[1], np.nan)
    pairs, cells = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
    mass = resamples.masses(chain_ids, cells.ravel(), len(pairs))
    return rank_correlation(mass, pairs[:, 0], pairs[:, 1])


def coverage_trend(frame: pd.DataFrame, *, draws: int = DRAWS, rng: np.random.Generator | int = 0) -> pd.DataFrame:
    """Do a judge's scores fall as steps go missing? One row a judge, over all levels.

    Returns
    -------
    DataFrame
        `n`, `unanswered`, `n_pairs`, and with `_low`/`_high`:

        - `order_accuracy` in [0, 1]: over pairs of versions of one chain of which one misses more steps, the
          share in which the fuller one scores higher, ties counting one half (0.5 = chance), a pair without
          two scores counting as wrong; `order_answered` leaves such pairs out; `order_ties`: share of ties;
        - `rho_realized`: Spearman's ρ of the score with the realized removed share of the middle region, and
          `rho_reference` with the reference, over all levels at once (levels of a chain move together).
    """
    checked(frame, "coverage")
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    return pd.DataFrame([{"judge_id": judge} | _trend(rows, resamples) for judge, rows in per_judge(frame)])


def _trend(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    chains, fuller, thinner = _level_pairs(rows)
    scored = ~np.isnan(fuller - thinner)
    tied, right = scored & (fuller == thinner), scored & (fuller > thinner)
    sums = resamples.totals(
        chains, {"all": np.ones(len(chains)), "scored": scored, "credit": right + tied / 2, "tied": tied}
    )
    columns = {
        "order_accuracy": (ratio(sums["credit"], sums["all"]), len(chains)),
        "order_answered": (ratio(sums["credit"], sums["scored"]), int(scored.sum())),
        "order_ties": (ratio(sums["tied"], sums["scored"]), int(scored.sum())),
    }
    for name, column in {"rho_realized": "realized_rate", "rho_reference": "reference"}.items():
        known = rows[rows["value"].notna() & rows[column].notna()]
        x, y = known["value"].to_numpy(float), known[column].to_numpy(float)
        columns[name] = (_rho(known["chain_id"].to_numpy(), x, y, resamples), len(known))
    made = {"n": len(rows), "unanswered": int(rows["value"].isna().sum()), "n_pairs": len(chains)}
    for name, (values, bearing) in columns.items():
        made |= estimate(values, bearing).columns(name)
    return made


def _level_pairs(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chain, score of the fuller and of the thinner of every two versions of a chain that miss different shares."""
    wide = rows.pivot(index="chain_id", columns="deletion_rate", values=["value", "realized_rate"])
    value, share = wide["value"].to_numpy(float), wide["realized_rate"].to_numpy(float)
    one, other = np.array(list(combinations(range(value.shape[1]), 2)), dtype=int).reshape(-1, 2).T
    more = share[:, other] - share[:, one]
    fuller = np.where(more > 0, value[:, one], value[:, other])
    thinner = np.where(more > 0, value[:, other], value[:, one])
    differ = ~np.isnan(more) & (more != 0)
    chains = np.broadcast_to(wide.index.to_numpy(dtype=object)[:, None], differ.shape)
    return chains[differ], fuller[differ], thinner[differ]
