"""Coverage scores against a reference: level by level, and across the levels of one chain."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, by_judge, checked, estimates, means, per_judge, ratio
from c2faith.analysis.stats import holm, rank_correlation, spearman_p

HIGH_SCORE, TOP_SCORE = 3, 4
COLUMNS = ("deletion_rate", "realized_rate", "reference")


def coverage(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Scores, bias, error, inflation and correlation with the reference, one row per judge and level.

    Columns: `deletion_rate`, `n`, `unanswered`, `n_compared` (answered and with a reference), and with
    `_low`/`_high`:

    - over answered items: `mean`, `sd` (population, no interval), `inflation` = share of scores ≥ 3;
      `valid_rate` over planned items;
    - over compared items: `bias` = mean(judge) − mean(reference), `mae`, `rho` (Spearman), `kappa`
      (quadratic weights); `p` of ρ from Student's t, and `p_holm`, corrected over all rows of the table;
    - `reference_mean` over all planned items, the same for every judge;
    - over planned items with a reference: `within_1` (a non-answer is not within), and `mae_worst`, which
      charges a non-answer the largest error the scale allows.

    Source: C2-Faith, sections 4.2 and 5.3; Fleiss and Cohen (1973) and Lin (1989) for κ over scores that are
    numbers.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of the task: `value` in 0 … 4, NaN for no answer; `reference` in 0 … 4 (it may fall
        between the points), NaN where there is none; `deletion_rate` 0 is the control.
    """
    checked(frame, "coverage", *COLUMNS)
    resamples = Resamples.draw(frame["chain_id"], draws, rng)
    made = pd.DataFrame(
        [
            {"judge_id": judge, "deletion_rate": float(level), **_row(rows, resamples)}
            for judge, mine in per_judge(frame)
            for level, rows in mine.groupby("deletion_rate")
        ]
    )
    return made.assign(p_holm=holm(made["p"])) if len(made) else made


def _row(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    value, reference = rows["value"].to_numpy(float), rows["reference"].to_numpy(float)
    answered, referred = ~np.isnan(value), ~np.isnan(reference)
    both, distance = answered & referred, np.abs(value - reference)
    worst = np.where(answered, distance, np.maximum(reference, TOP_SCORE - reference))
    rho, n_both = _rho(rows, "reference", resamples)
    found = means(
        resamples,
        rows["chain_id"],
        {
            "mean": (value, answered),
            "reference_mean": (reference, referred),
            "bias": (value - reference, both),
            "mae": (distance, both),
            "mae_worst": (worst, referred),
            "inflation": (value >= HIGH_SCORE, answered),
            "within_1": (distance <= 1 + 1e-9, referred),
            "valid_rate": answered,
            "square": (value**2, answered),
            "apart": (distance**2, both),
            "x": (value, both),
            "y": (reference, both),
            "squares": (value**2 + reference**2, both),
        },
    )
    valid_rate = found.pop("valid_rate")
    square, apart, x, y, squares = (found.pop(name).columns for name in ("square", "apart", "x", "y", "squares"))
    # Quadratic κ: 1 − E(x − y)² / (var x + var y + (mean x − mean y)²).
    chance = squares - 2 * x * y
    kappa = 1 - ratio(apart, np.where(chance < 1e-12, 0, chance))
    found |= {"rho": (rho, n_both), "kappa": (kappa, n_both), "valid_rate": valid_rate}
    mean, n_answered = found["mean"]
    return {
        "n": len(rows),
        "unanswered": len(rows) - n_answered,
        "n_compared": n_both,
        "sd": float(np.sqrt(max(square[0] - mean[0] ** 2, 0))) if n_answered else np.nan,
        "p": float(spearman_p(rho[0], n_both)),
        **estimates(found),
    }


def _rho(rows: pd.DataFrame, other: str, resamples: Resamples) -> tuple[np.ndarray, int]:
    """Spearman's ρ of the scores with another column; records with the same two values share a cell."""
    known = rows[rows["value"].notna() & rows[other].notna()]
    values = known[["value", other]].to_numpy(float)
    pairs, cells = np.unique(values, axis=0, return_inverse=True)
    mass = resamples.masses(known["chain_id"], cells.ravel(), len(pairs))
    return rank_correlation(mass, pairs[:, 0], pairs[:, 1]), len(known)


def coverage_trend(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Do a judge's scores fall as steps go missing? One row a judge, over all levels.

    Columns: `n`, `unanswered`, `n_pairs`, and with `_low`/`_high`:

    - `order_accuracy` in [0, 1]: over pairs of versions of one chain of which one misses more steps, the
      share in which the fuller one scores higher, ties counting one half (0.5 = chance), a pair without
      two scores counting as wrong; `order_answered` leaves such pairs out; `order_ties`: share of ties;
    - `rho_realized`: Spearman's ρ of the score with the realized removed share of the middle region, and
      `rho_reference` with the reference, over all levels at once (levels of a chain move together).
    """
    return by_judge(checked(frame, "coverage", *COLUMNS), _trend, draws=draws, rng=rng)


def _trend(rows: pd.DataFrame, resamples: Resamples) -> dict[str, float]:
    chains, fuller, thinner = _level_pairs(rows)
    scored, tied = ~np.isnan(fuller - thinner), fuller == thinner
    credit = (fuller > thinner) + tied / 2
    amounts = {"order_accuracy": credit, "order_answered": (credit, scored), "order_ties": (tied, scored)}
    found = means(resamples, chains, amounts)
    found |= {"rho_realized": _rho(rows, "realized_rate", resamples)}
    found |= {"rho_reference": _rho(rows, "reference", resamples)}
    unanswered = int(rows["value"].isna().sum())
    return {"n": len(rows), "unanswered": unanswered, "n_pairs": len(chains), **estimates(found)}


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
