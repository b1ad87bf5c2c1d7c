"""One function a table: verdict frames in, a DataFrame with full numbers out; `save` writes it for a page.

`compute` makes the whole set of a run.
"""

from c2faith.analysis.tables.beyond import (
    ablation,
    calibration,
    costs,
    early_bias,
    ensemble_votes,
    false_alarms,
    natural_errors,
    surface_cues,
    telling_words,
)
from c2faith.analysis.tables.capability import table4_capability
from c2faith.analysis.tables.gallery import compute, items_frame
from c2faith.analysis.tables.paper import (
    table1_detection,
    table1_pairs,
    table2_localization,
    table3_coverage,
    table3_trend,
)
from c2faith.analysis.tables.rendering import markdown
from c2faith.analysis.tables.saving import numbers, save, save_numbers
from c2faith.analysis.tables.structure import table5_logistic, table5_predictors, table6_edit_types
from c2faith.analysis.tables.typesetting import latex

__all__ = [
    "ablation",
    "calibration",
    "compute",
    "costs",
    "early_bias",
    "ensemble_votes",
    "false_alarms",
    "items_frame",
    "latex",
    "markdown",
    "natural_errors",
    "numbers",
    "save",
    "save_numbers",
    "surface_cues",
    "table1_detection",
    "table1_pairs",
    "table2_localization",
    "table3_coverage",
    "table3_trend",
    "table4_capability",
    "table5_logistic",
    "table5_predictors",
    "table6_edit_types",
    "telling_words",
]
