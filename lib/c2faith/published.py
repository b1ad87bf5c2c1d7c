"""Public names of `c2faith.analysis.published`."""

from c2faith.analysis.published import exp1_outcomes

__all__ = ["exp1_outcomes"]
