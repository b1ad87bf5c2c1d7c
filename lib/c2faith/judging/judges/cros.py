"""A judge trained by `c2faith.cros`, by its name in `data/judges` or as ``cros/<run or folder>``."""

from c2faith.cros.judge import from_config

__all__ = ["from_config"]
