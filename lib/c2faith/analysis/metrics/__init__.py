"""What the verdicts of a judge are worth: one row a judge, every number with its interval.

A frame holds one row per judge and planned item (`value` NaN where there is no answer). Two rules throughout:
rates of right answers keep all planned items in the denominator, a non-answer counting as wrong; quantities
that only an answer has (an error in steps, a score) rest on the answered items, and say on how many.
Undefined is NaN. Intervals resample chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pandas as pd

from c2faith.analysis.metrics.calibration import calibration, reliability
from c2faith.analysis.metrics.coverage import coverage, coverage_trend
from c2faith.analysis.metrics.detection import context_gain, detection
from c2faith.analysis.metrics.ensembles import ensembles, failure_patterns, outcomes, pairs
from c2faith.analysis.metrics.localization import early_bias_correction, localization
from c2faith.analysis.resampling import DRAWS, Resamples

__all__ = ["METRICS", "Measured", "context_gain", "failure_patterns", "outcomes"]

_LEVELS = (coverage, coverage_trend)
_RATES = (detection, localization, calibration, reliability, pairs, ensembles, early_bias_correction)
METRICS: dict[str, Callable[..., pd.DataFrame]] = {metric.__name__: metric for metric in (*_RATES, *_LEVELS)}
"""By name: verdict frame in, table out; keywords `draws` and `rng`, and options of the metric's own."""


@dataclass(frozen=True)
class Measured:
    """A run's verdict frames by task, and every metric of them: measured when first asked for, and once.

    Attributes
    ----------
    items : DataFrame, optional
        Causality rows (`tables.items_frame`), for tables that look at the perturbed steps' texts.
    totals : DataFrame, optional
        What each judge and task took (`verdict_frames.spending`).
    reference : str
        What the coverage scores were compared with.
    draws, seed
        Of the bootstrap over chains; the same everywhere, so that the intervals of tables and figures agree.
    """

    verdicts: Mapping[str, pd.DataFrame]
    items: pd.DataFrame | None = None
    totals: pd.DataFrame | None = None
    reference: str = "annotated"
    draws: int = DRAWS
    seed: int = 0
    _found: dict[Any, pd.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def sampled(self) -> dict[str, int]:
        """The keywords `draws` and `rng` of whatever resamples."""
        return {"draws": self.draws, "rng": self.seed}

    def of(self, metric: str, task: str, /, **options: Any) -> pd.DataFrame:
        """A metric of a task's verdicts, as a frame of the caller's own; options are the metric's."""
        usual = {(name, known.default) for name, known in signature(METRICS[metric]).parameters.items()}
        key = (metric, task, *sorted(options.items() - usual))
        if key not in self._found:
            self._found[key] = METRICS[metric](self.verdicts[task], **self.sampled, **options)
        return self._found[key].copy()

    def resamples(self, task: str) -> Resamples:
        """Bootstrap draws of the task's chains."""
        return Resamples.draw(self.verdicts[task]["chain_id"], self.draws, self.seed)
