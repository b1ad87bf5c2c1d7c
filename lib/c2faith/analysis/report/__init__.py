"""The report of a run: one HTML page with all tables and figures and an explorer of the items."""

from c2faith.analysis.report.page import build

__all__ = ["build"]
