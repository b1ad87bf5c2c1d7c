"""Public names of `c2faith.dataset.edits`."""

from c2faith.dataset.edits import edit_type

__all__ = ["edit_type"]
