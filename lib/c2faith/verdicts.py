"""Public names of `c2faith.judging.verdicts`."""

from c2faith.judging.verdicts import Verdict, parse

__all__ = ["Verdict", "parse"]
