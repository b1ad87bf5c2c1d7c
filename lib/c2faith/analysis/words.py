r"""Appendix F: which words mark reasoning and steps of correct detections, and which those of false acceptances.

Counting alone favours frequent words and ratios favour rare ones. The log-odds ratio with an informative Dirichlet
prior shrinks each word towards its share of all texts and divides by its uncertainty, so that z compares words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import norm

from c2faith.analysis.resampling import per_judge
from c2faith.analysis.stats import holm

_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+(?:['’][^\W\d_]+)?")
LONGEST = 3
FEWEST = 5
PRIOR = 500.0
NOTABLE = 1.96


def tokens(text: str) -> list[str]:
    r"""Lower-case words and LaTeX commands of a text; numbers, variables' digits and signs are left out.

    >>> tokens(r"So \frac{x}{2} doesn't follow.")
    ['so', '\\frac', 'x', "doesn't", 'follow']
    """
    return [token if token.startswith("\\") else token.lower() for token in _TOKEN.findall(text)]


def phrases(text: str, longest: int = LONGEST) -> list[str]:
    """All runs of one to `longest` tokens."""
    found = tokens(text)
    return [
        " ".join(found[start : start + n]) for n in range(1, longest + 1) for start in range(len(found) - n + 1)
    ]


def log_odds(
    first: Iterable[str],
    second: Iterable[str],
    *,
    longest: int = LONGEST,
    fewest: int = FEWEST,
    prior: float = PRIOR,
) -> pd.DataFrame:
    """Words and short phrases over-represented in the `first` texts (z > 0) or the `second` (z < 0).

    Parameters
    ----------
    longest : int
        Tokens in a phrase at most.
    fewest : int
        Occurrences in all texts together below which a phrase is left out.
    prior : float
        Weight α₀ of the prior in tokens; a phrase gets its share of all texts of it.

    Columns: `word`, `count_first`, `count_second`, `log_odds` (difference of log-odds), `z`, and `p_holm`,
    two-sided and corrected over all phrases; sorted by falling z. Empty where either side has no texts.

    Source: Monroe, Colaresi and Quinn (2008), Fightin' Words, Political Analysis 16, eqs. 15, 16, 22 and 23.
    """
    counts = [Counter(phrase for text in texts for phrase in phrases(text, longest)) for texts in (first, second)]
    words = sorted(word for word, count in (counts[0] + counts[1]).items() if count >= fewest)
    if len(words) < 2 or not all(counts):
        return pd.DataFrame(columns=["word", "count_first", "count_second", "log_odds", "z", "p_holm"])
    y = np.array([[count[word] for word in words] for count in counts], dtype=float)
    totals = np.array([[sum(count.values())] for count in counts], dtype=float)
    alpha = prior * y.sum(axis=0) / totals.sum()
    odds = np.log((y + alpha) / (totals + prior - y - alpha))
    z = (odds[0] - odds[1]) / np.sqrt((1 / (y + alpha)).sum(axis=0))
    columns = {"word": words, "count_first": y[0].astype(int), "count_second": y[1].astype(int)}
    columns |= {"log_odds": odds[0] - odds[1], "z": z, "p_holm": holm(2 * norm.sf(np.abs(z)))}
    return pd.DataFrame(columns).sort_values(["z", "word"], ascending=[False, True], ignore_index=True)


def appendix_f(frame: pd.DataFrame, items: pd.DataFrame, *, top: int = 10) -> pd.DataFrame:
    """The most telling phrases of every judge's reasoning and of the steps it was shown.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection with `reasoning`; only answered perturbed steps count.
    top : int
        Phrases on each side.

    Columns: `judge_id`, `where` (reasoning, step), `over` (correct detections, false acceptances), `word`,
    `count_correct`, `count_wrong`, `log_odds`, `z` (beyond ±1.96), `p_holm`.
    """
    bad = frame[(frame["truth"] == 0) & frame["value"].notna()]
    steps = items.set_index("item_id")["perturbed_step"]
    rows = []
    for judge, mine in per_judge(bad):
        caught = mine["value"] == 0
        texts = {"reasoning": mine["reasoning"].fillna(""), "step": mine["item_id"].map(steps).fillna("")}
        for where, text in texts.items():
            found = log_odds(text[caught], text[~caught])
            found = found.rename(columns={"count_first": "count_correct", "count_second": "count_wrong"})
            sides = {
                "correct detections": found[found["z"] > NOTABLE],
                "false acceptances": found[found["z"] < -NOTABLE].iloc[::-1],
            }
            for over, side in sides.items():
                head = {"judge_id": judge, "where": where, "over": over}
                rows += [head | row for row in side.head(top).to_dict("records")]
    names = ["judge_id", "where", "over", "word", "count_correct", "count_wrong", "log_odds", "z", "p_holm"]
    return pd.DataFrame(rows, columns=names)
