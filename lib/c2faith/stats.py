"""Public names of `c2faith.analysis.stats`."""

from c2faith.analysis.stats import bootstrap_ci, mcnemar

__all__ = ["bootstrap_ci", "mcnemar"]
