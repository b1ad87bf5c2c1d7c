"""Sources → chains → perturbed items: everything that a judge will be asked about, and how it was made."""

from c2faith.dataset.building import RATES, build, rebuild
from c2faith.dataset.items import Dataset, compare_with_recorded, differing, is_recorded, of_run, read, write

__all__ = [
    "RATES", "Dataset", "build", "compare_with_recorded", "differing", "is_recorded", "of_run", "read", "rebuild",
    "write",
]  # fmt: skip
