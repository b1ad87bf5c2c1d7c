"""Public names of `c2faith.dataset.perturb`."""

from c2faith.dataset.perturb import delete_steps, middle_region, replace_step

__all__ = ["delete_steps", "middle_region", "replace_step"]
