"""One function a table: verdict frames in, a DataFrame with full numbers out; `save` writes it for a page."""

from c2faith.tables.gallery import compute
from c2faith.tables.paper import (
    table1_detection,
    table1_pairs,
    table2_localization,
    table3_coverage,
    table3_trend,
)
from c2faith.tables.rendering import markdown
from c2faith.tables.saving import numbers, save, save_numbers

__all__ = [
    "compute",
    "markdown",
    "numbers",
    "save",
    "save_numbers",
    "table1_detection",
    "table1_pairs",
    "table2_localization",
    "table3_coverage",
    "table3_trend",
]
