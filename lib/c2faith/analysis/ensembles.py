"""Judges that vote: does a second or third opinion catch more, and what does it cost in false alarms?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from c2faith.analysis.metrics.frames import checked
from c2faith.analysis.resampling import DRAWS, Resamples, estimate, ratio

Vote = Callable[[np.ndarray, np.ndarray], np.ndarray]


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
    frame: pd.DataFrame,
    sizes: Sequence[int] = (2, 3),
    *,
    draws: int = DRAWS,
    rng: np.random.Generator | int = 0,
) -> pd.DataFrame:
    """Every judge alone, then every set of `sizes` judges under every rule, on the items all of it were asked.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection, with clean twins where there are any.

    Returns
    -------
    DataFrame
        `judges` (joined by " + "), `n_judges`, `rule`, `n`, `unanswered`, `n_clean`, and with `_low` and `_high`
        `detection`, `false_alarm` and `balanced_accuracy`, as in `metrics.detection`. An item is unanswered if
        no member answers (for the mean confidence: unless all members do), and then counts as wrong. The mean
        confidence stands only for sets whose members all give confidences.

    References
    ----------
    C2-Faith, section 5.5.2 (that two or more judges could detect above 98%).
    """
    checked(frame, "detection")
    names = list(pd.unique(frame["judge_id"]))
    about = frame.drop_duplicates("item_id").set_index("item_id")[["chain_id", "truth"]]
    flags = _wide(frame.assign(flag=1 - frame["value"]), "flag", names).reindex(about.index)
    asked = _wide(frame.assign(asked=1.0), "asked", names).reindex(about.index).notna()
    if "confidence" not in frame:
        frame = frame.assign(confidence=np.nan)
    confidences = _wide(frame, "confidence", names).reindex(about.index)
    resamples = Resamples.draw(about["chain_id"], draws, rng)
    flags, asked, confidences = (wide.to_numpy() for wide in (flags, asked, confidences))
    rows = []
    for size in (1, *sizes):
        for rule, vote in {"alone": any_flag}.items() if size == 1 else RULES.items():
            votes = {}
            for members in combinations(range(len(names)), size):
                columns = list(members)
                if vote is mean_confidence and np.isnan(confidences[:, columns]).all(axis=0).any():
                    continue
                common = asked[:, columns].all(axis=1)
                votes[members] = common, vote(flags[:, columns], confidences[:, columns])
            heads = [
                {"judges": " + ".join(names[member] for member in members), "n_judges": size, "rule": rule}
                for members in votes
            ]
            scores = _scores(list(votes.values()), about, resamples)
            rows += [head | score for head, score in zip(heads, scores, strict=True)]
    table = pd.DataFrame(rows)
    return table.sort_values(["n_judges", "judges"], kind="stable", ignore_index=True) if rows else table


def _wide(frame: pd.DataFrame, values: str, names: Sequence[str]) -> pd.DataFrame:
    """Items × judges."""
    return frame.pivot(index="item_id", columns="judge_id", values=values).reindex(columns=names)


def _scores(
    votes: Sequence[tuple[np.ndarray, np.ndarray]], about: pd.DataFrame, resamples: Resamples
) -> list[dict[str, float]]:
    """The rates of each (items in common, their flags), all sets resampled at once."""
    bad = about["truth"].to_numpy() == 0
    columns = {}
    for place, (common, flagged) in enumerate(votes):
        columns |= {
            (place, "bad"): common & bad,
            (place, "caught"): common & bad & (flagged == 1),
            (place, "clean"): common & ~bad,
            (place, "alarmed"): common & ~bad & (flagged == 1),
            (place, "accepted"): common & ~bad & (flagged == 0),
        }
    sums = resamples.totals(about["chain_id"], columns) if columns else {}
    scores = []
    for place, (common, flagged) in enumerate(votes):
        n, n_clean = int((common & bad).sum()), int((common & ~bad).sum())
        rate = ratio(sums[place, "caught"], sums[place, "bad"])
        accepted = ratio(sums[place, "accepted"], sums[place, "clean"])
        alarms = ratio(sums[place, "alarmed"], sums[place, "clean"])
        scores.append(
            {
                "n": n,
                "unanswered": int((common & bad & np.isnan(flagged)).sum()),
                "n_clean": n_clean,
                **estimate(rate, n).columns("detection"),
                **estimate(alarms, n_clean).columns("false_alarm"),
                **estimate((rate + accepted) / 2, min(n, n_clean)).columns("balanced_accuracy"),
            }
        )
    return scores
