"""Judges together: who misses what, and does a second or third opinion catch more than it costs in false alarms?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, checked, estimates, means
from c2faith.analysis.stats import bonferroni, holm, mcnemar

Vote = Callable[[np.ndarray, np.ndarray], np.ndarray]


def outcomes(frame: pd.DataFrame) -> pd.DataFrame:
    """Who caught which perturbed step: items × judges, True where caught, a non-answer counting as missed.

    Items that not every judge was asked are left out, so that judges are compared on the same ones.
    """
    bad = frame[frame["truth"] == 0]
    return _wide(bad.assign(caught=bad["value"] == 0), "caught").dropna().astype(bool)


def failure_patterns(frame: pd.DataFrame) -> pd.DataFrame:
    """How many items each set of judges misses (the paper's Fig. 8), the most frequent set first.

    Columns: `missed_by` (judge ids joined by " + ", empty where all catch it), `n_missing` judges, `count`,
    `share`.
    """
    caught = outcomes(frame)
    missed = [tuple(caught.columns[~row]) for row in caught.to_numpy()]
    counts = pd.Series(missed, dtype=object).value_counts()
    return pd.DataFrame(
        [
            {"missed_by": " + ".join(who), "n_missing": len(who), "count": count, "share": count / len(missed)}
            for who, count in sorted(counts.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
        ],
        columns=["missed_by", "n_missing", "count", "share"],
    )


def pairs(frame: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0) -> pd.DataFrame:
    """Every pair of judges on the perturbed steps that both were asked: difference of rates, McNemar's tests.

    Columns: `judge_a`, `judge_b`, `n`, `difference` of detection rates with `_low` and `_high`, `only_a` and
    `only_b` (steps that one alone catches), `p` with continuity correction, `p_exact`, and the former corrected
    over the table's pairs: `p_bonferroni`, `p_holm`.
    """
    bad = checked(frame, "detection", "truth")[frame["truth"] == 0]
    caught = _wide(bad.assign(caught=(bad["value"] == 0).astype(float)), "caught")
    chains = bad.drop_duplicates("item_id").set_index("item_id")["chain_id"].reindex(caught.index)
    caught = caught.reindex(columns=pd.unique(frame["judge_id"]))
    gaps = {(a, b): caught[a] - caught[b] for a, b in combinations(caught.columns, 2)}
    amounts = {couple: (gap, gap.notna()) for couple, gap in gaps.items()}
    rows = []
    for (a, b), gap in means(Resamples.draw(bad["chain_id"], draws, rng), chains, amounts).items():
        both = gaps[a, b].notna()
        test = mcnemar(caught.loc[both, a], caught.loc[both, b])
        row = {"judge_a": a, "judge_b": b, "n": test.n, **estimates({"difference": gap})}
        rows.append(row | {"only_a": test.b, "only_b": test.c, "p": test.p, "p_exact": test.p_exact})
    names = ["judge_a", "judge_b", "n", "difference", "difference_low", "difference_high", "only_a", "only_b"]
    table = pd.DataFrame(rows, columns=[*names, "p", "p_exact"])
    p = table["p"].to_numpy(float)
    return table.assign(p_bonferroni=bonferroni(p), p_holm=holm(p))


def majority(flags: np.ndarray, confidences: np.ndarray) -> np.ndarray:
    """Flagged by more than half of those that answered; two judges must agree."""
    answered = (~np.isnan(flags)).sum(axis=1)
    share = np.divide(np.nansum(flags, axis=1), answered, out=np.full(len(flags), np.nan), where=answered > 0)
    return np.where(answered > 0, share > 0.5, np.nan)


def any_flag(flags: np.ndarray, confidences: np.ndarray) -> np.ndarray:
    """Flagged by at least one."""
    answered = (~np.isnan(flags)).any(axis=1)
    return np.where(answered, np.nansum(flags, axis=1) > 0, np.nan)


def mean_confidence(flags: np.ndarray, confidences: np.ndarray) -> np.ndarray:
    """Flagged where the mean P(does not follow) passes one half; no answer unless all give a confidence."""
    mean = confidences.mean(axis=1)
    return np.where(np.isnan(mean), np.nan, mean > 0.5)


RULES: dict[str, Vote] = {"majority": majority, "any flag": any_flag, "mean confidence": mean_confidence}


def ensembles(
    frame: pd.DataFrame, sizes: Sequence[int] = (2, 3), *, draws: int = DRAWS, rng: Rng = 0
) -> pd.DataFrame:
    """Every judge alone, then every set of `sizes` judges under every rule, on the items all of it were asked.

    Columns: `judges` (joined by " + "), `n_judges`, `rule`, `n`, `unanswered`, `n_clean`, and with `_low` and
    `_high` `detection`, `false_alarm` and `balanced_accuracy`, as in `metrics.detection`. An item is unanswered if
    no member answers (for the mean confidence: unless all members do), and then counts as wrong. The mean
    confidence stands only for sets whose members all give confidences.

    Source: C2-Faith, section 5.5.2 (that two or more judges could detect above 98%).

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection, with clean twins where there are any.
    """
    checked(frame, "detection", "truth")
    about = frame.drop_duplicates("item_id").set_index("item_id")[["chain_id", "truth"]]
    frame = pd.DataFrame({"confidence": np.nan}, frame.index).assign(**frame, flag=1 - frame["value"], asked=1.0)
    flags, asked, confidences = (
        _wide(frame, values).reindex(about.index).to_numpy(float) for values in ("flag", "asked", "confidence")
    )
    names, resamples = list(pd.unique(frame["judge_id"])), Resamples.draw(about["chain_id"], draws, rng)
    rows = []
    for size in (1, *sizes):
        for rule, vote in {"alone": any_flag}.items() if size == 1 else RULES.items():
            heads, votes = [], []
            for members in map(list, combinations(range(len(names)), size)):
                if vote is mean_confidence and np.isnan(confidences[:, members]).all(axis=0).any():
                    continue
                heads.append({"judges": " + ".join(names[m] for m in members), "n_judges": size, "rule": rule})
                votes.append((asked[:, members] == 1, vote(flags[:, members], confidences[:, members])))
            scores = _scores([(common.all(axis=1), flagged) for common, flagged in votes], about, resamples)
            rows += [head | score for head, score in zip(heads, scores, strict=True)]
    table = pd.DataFrame(rows)
    return table.sort_values(["n_judges", "judges"], kind="stable", ignore_index=True) if rows else table


def _wide(frame: pd.DataFrame, values: str) -> pd.DataFrame:
    """Items × judges, in the order in which judges appear."""
    wide = frame.pivot(index="item_id", columns="judge_id", values=values)
    return wide[list(pd.unique(frame["judge_id"]))]


def _scores(
    votes: Sequence[tuple[np.ndarray, np.ndarray]], about: pd.DataFrame, resamples: Resamples
) -> list[dict[str, float]]:
    """The rates of each (items in common, their flags), all sets resampled at once."""
    bad, amounts = about["truth"].to_numpy() == 0, {}
    for place, (common, flagged) in enumerate(votes):
        amounts |= {
            (place, "detection"): (flagged == 1, common & bad),
            (place, "false_alarm"): (flagged == 1, common & ~bad),
            (place, "accepted"): (flagged == 0, common & ~bad),
        }
    rates, scores = means(resamples, about["chain_id"], amounts), []
    for place, (common, flagged) in enumerate(votes):
        hit, alarm, accepted = (rates[place, name] for name in ("detection", "false_alarm", "accepted"))
        balanced = (hit.columns + accepted.columns) / 2, min(hit.n, alarm.n)
        counts = {"n": hit.n, "unanswered": int((common & bad & np.isnan(flagged)).sum()), "n_clean": alarm.n}
        found = {"detection": hit, "false_alarm": alarm, "balanced_accuracy": balanced}
        scores.append(counts | estimates(found))
    return scores
