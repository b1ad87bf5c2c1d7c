"""What the verdicts of a judge are worth: one row a judge, every number with its interval.

A frame holds one row per judge and planned item (`value` NaN where there is no answer). Two rules throughout:
rates of right answers keep all planned items in the denominator, a non-answer counting as wrong; quantities
that only an answer has (an error in steps, a score) rest on the answered items, and say on how many.
Undefined is NaN. Intervals resample chains.
"""

from c2faith.analysis.metrics.ablation import context_gain
from c2faith.analysis.metrics.calibration import calibration, reliability
from c2faith.analysis.metrics.coverage import coverage, coverage_trend
from c2faith.analysis.metrics.detection import detection, failure_patterns, outcomes
from c2faith.analysis.metrics.localization import localization
from c2faith.analysis.metrics.shift import early_bias_correction

__all__ = [
    "calibration",
    "context_gain",
    "coverage",
    "coverage_trend",
    "detection",
    "early_bias_correction",
    "failure_patterns",
    "localization",
    "outcomes",
    "reliability",
]
