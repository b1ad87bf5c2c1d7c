"""The paper's figures and those beyond it, one function a figure: verdict frames in, a matplotlib Figure out.

Functions take one task's frame (`fig4_radar` all of them) and, where intervals are drawn, the number of bootstrap
draws and a generator or seed; with the same ones the intervals are those of `analysis.metrics`. `looks` gives
each judge of a run its colour for all of them, `draw` makes the whole set, `save` writes a figure as PDF and PNG.
"""

from c2faith.analysis.figures.beyond import ablation, calibration, false_alarm_plane
from c2faith.analysis.figures.coverage import fig3a_scores, fig3b_trend
from c2faith.analysis.figures.detection import fig2a_detection, fig7_position
from c2faith.analysis.figures.files import save
from c2faith.analysis.figures.gallery import CAPTIONS, draw
from c2faith.analysis.figures.localization import fig2b_localization, fig5_within_k, fig6_signed_error
from c2faith.analysis.figures.overall import fig4_radar, fig8_failures
from c2faith.analysis.figures.style import looks

__all__ = [
    "CAPTIONS",
    "ablation",
    "calibration",
    "draw",
    "false_alarm_plane",
    "fig2a_detection",
    "fig2b_localization",
    "fig3a_scores",
    "fig3b_trend",
    "fig4_radar",
    "fig5_within_k",
    "fig6_signed_error",
    "fig7_position",
    "fig8_failures",
    "looks",
    "save",
]
