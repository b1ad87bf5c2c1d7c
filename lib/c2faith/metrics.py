"""Public names of `c2faith.analysis.metrics`."""

from c2faith.analysis.metrics import coverage, detection, localization

__all__ = ["coverage", "detection", "localization"]
