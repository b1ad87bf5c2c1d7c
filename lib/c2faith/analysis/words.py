r"""Words that tell: which mark a judge's right and wrong verdicts, and which give a negation away by themselves.

Appendix F compares reasoning and steps of correct detections with those of false acceptances. Counting alone
favours frequent words and ratios favour rare ones; the log-odds ratio with an informative Dirichlet prior shrinks
each word towards its share of all texts and divides by its uncertainty, so that z compares words.

A blind reader of single steps is the yardstick of what is given away before any context is read: a naive Bayes
classifier over words, commands, signs and numbers' shapes learns from other chains which steps were negated, and
then scores this chain's original and perturbed step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import fsum

import numpy as np
import pandas as pd
from scipy.stats import norm

from c2faith.analysis.resampling import DRAWS, Resamples, Rng, estimates, means, per_judge
from c2faith.analysis.stats import holm, resampled_auroc
from c2faith.records import rng as seeded

_TOKEN = re.compile(r"\\[A-Za-z]+|[^\W\d_]+(?:['’][^\W\d_]+)?")
LONGEST = 3
FEWEST = 5
PRIOR = 500.0
NOTABLE = 1.96
FOLDS = 5
_PIECE = re.compile(r"\\[A-Za-z]+|[^\W\d_]+|\d+|[^\w\s]")


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

    Columns: `word`, `count_first`, `count_second`, `log_odds` (difference of log-odds), `z`, and `p_holm`,
    two-sided and corrected over all phrases; sorted by falling z. Empty where either side has no texts.

    Source: Monroe, Colaresi and Quinn (2008), Fightin' Words, Political Analysis 16, eqs. 15, 16, 22 and 23.

    Parameters
    ----------
    longest : int
        Tokens in a phrase at most.
    fewest : int
        Occurrences in all texts together below which a phrase is left out.
    prior : float
        Weight α₀ of the prior in tokens; a phrase gets its share of all texts of it.
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

    Columns: `judge_id`, `where` (reasoning, step), `over` (correct detections, false acceptances), `word`,
    `count_correct`, `count_wrong`, `log_odds`, `z` (beyond ±1.96), `p_holm`.

    Parameters
    ----------
    frame : DataFrame
        Verdict frame of detection with `reasoning`; only answered perturbed steps count.
    top : int
        Phrases on each side.
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


def pieces(step: str) -> set[str]:
    r"""Words, commands, signs and number lengths of a step, and which of them stand side by side.

    >>> sorted(pieces("So x = 12"))
    ['00', '=', '= 00', 'so', 'so x', 'x', 'x =']
    """
    found = ["0" * len(piece) if piece.isdigit() else piece.lower() for piece in _PIECE.findall(step)]
    return {*found, *(f"{a} {b}" for a, b in pairwise(found))}


def suspicion(items: pd.DataFrame, *, folds: int = FOLDS, seed: int = 0) -> pd.DataFrame:
    """Log-odds that a step is the perturbed one, of both steps of every item, learned on the other folds' chains.

    Columns: `item_id`, `chain_id`, `original`, `perturbed`: the scores.
    """
    fold = np.array([int(seeded(seed, "fold", chain).integers(folds)) for chain in items["chain_id"]])
    sides = [[pieces(step) for step in items[name]] for name in ("original_step", "perturbed_step")]
    scores = np.full((len(items), 2), np.nan)
    for held in range(folds):
        learn = np.flatnonzero(fold != held)
        weights = _weights(*([side[row] for row in learn] for side in sides))
        for row in np.flatnonzero(fold == held):
            # fsum: a set has no order that lasts, and equal steps must score the same to the last bit.
            scores[row] = [fsum(weights.get(piece, 0.0) for piece in side[row]) for side in sides]
    return items[["item_id", "chain_id"]].assign(original=scores[:, 0], perturbed=scores[:, 1])


def _weights(original: Iterable[set[str]], perturbed: Iterable[set[str]]) -> dict[str, float]:
    """Log of the ratio of each piece's shares among perturbed and original steps, one step added to each count."""
    counts = [Counter(piece for step in side for piece in step) for side in (original, perturbed)]
    return {
        piece: float(np.log((counts[1][piece] + 1) / (counts[0][piece] + 1))) for piece in counts[0] | counts[1]
    }


def giveaway(items: pd.DataFrame, *, draws: int = DRAWS, rng: Rng = 0, seed: int = 0) -> pd.DataFrame:
    """How well the blind reader tells negated steps, over all items and by edit type.

    Columns: `edit_type` ("all" first), `n`, and with `_low` and `_high`: `pair_accuracy`, the share of items whose
    perturbed step is the more suspicious one (ties one half), and `auroc` over all steps; 0.5 is chance.
    """
    scores = suspicion(items, seed=seed).merge(items[["item_id", "edit_type"]], on="item_id")
    resamples, made = Resamples.draw(scores["chain_id"], draws, rng), []
    for name, rows in [("all", scores), *scores.groupby("edit_type", sort=True)]:
        gap = rows["perturbed"] - rows["original"]
        found = means(resamples, rows["chain_id"], {"pair_accuracy": (gap > 0) + (gap == 0) / 2})
        steps = rows.melt("chain_id", ["perturbed", "original"], "side", "score")
        area = resampled_auroc(resamples, steps["chain_id"], steps["score"], steps["side"] == "perturbed")
        head = {"edit_type": name, "n": len(rows)}
        made.append(head | estimates(found | {"auroc": (area.columns, len(rows))}))
    return pd.DataFrame(made)
