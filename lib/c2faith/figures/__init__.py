"""The paper's figures and those beyond it, one function a figure: verdict frames in, a matplotlib Figure out.

Functions take one task's frame and, where intervals are drawn, the number of bootstrap draws and a generator.
`looks` gives each judge of a run its colour for all of them; `save` writes a figure as PDF and PNG.
"""

from c2faith.figures.causality import (
    fig2a_detection,
    fig2b_localization,
    fig5_within_k,
    fig6_signed_error,
    fig7_position,
)
from c2faith.figures.coverage import fig3a_scores, fig3b_trend
from c2faith.figures.files import save
from c2faith.figures.style import looks

__all__ = [
    "fig2a_detection",
    "fig2b_localization",
    "fig3a_scores",
    "fig3b_trend",
    "fig5_within_k",
    "fig6_signed_error",
    "fig7_position",
    "looks",
    "save",
]
