"""Verdicts → estimates → tables, figures, report."""
