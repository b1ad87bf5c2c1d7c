"""The whole set of figures of a run, by file name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from c2faith.analysis.figures import beyond, coverage, detection, localization, overall, style
from c2faith.analysis.resampling import DRAWS
from c2faith.judging import tasks as judging_tasks

CAPTIONS: Mapping[str, str] = {
    "fig2a_detection": "Exp 1: perturbed steps detected, and clean twins flagged.",
    "fig2b_localization": "Exp 2: localization metrics.",
    "fig3a_scores": "Coverage scores by deletion level, judges against the reference.",
    "fig3b_trend": "Mean coverage score against the deletion level; dashed: the reference.",
    "fig3b_trend_realized": "The same against the share of middle steps really removed.",
    "fig4_radar": "Five capabilities, from 0 (centre) to 1.",
    "fig5_within_k": "How near the named step lies to the true one.",
    "fig6_signed_error": "On which side of the true step the named one lies.",
    "fig7_position": "Exp 1: detection by the step's position in its chain.",
    "fig8_failures": "Exp 1: which judges miss which perturbed steps.",
    "false_alarm_plane": "Exp 1: detection against false alarms.",
    "ablation": "Exp 1: what is flagged with the full context, without it, and with it shuffled.",
    "calibration_detection": "Exp 1: do confidences mean what they say?",
    "calibration_localization": "Exp 2: do confidences mean what they say?",
}
"""What each figure shows, in the order of the paper, then those beyond it."""


def draw(frames: Mapping[str, pd.DataFrame], *, draws: int = DRAWS, seed: int = 0) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of every figure that the frames allow, in the order of `CAPTIONS`.

    Parameters
    ----------
    frames : mapping
        Verdict frames by task; figures of a missing task are left out.
    draws, seed
        Of the bootstrap over chains; the seed of the tables gives the intervals of the tables.
    """
    tasks = {task: frames[task] for task in ("detection", "localization", "coverage") if task in frames}
    looks = style.looks(pd.concat(tasks.values())["judge_id"])
    sampled = {"looks": looks, "draws": draws, "rng": seed}
    makers: dict[str, tuple[str, Callable[[pd.DataFrame], Figure]]] = {
        "fig2a_detection": ("detection", partial(detection.fig2a_detection, **sampled)),
        "fig2b_localization": ("localization", partial(localization.fig2b_localization, **sampled)),
        "fig3a_scores": ("coverage", partial(coverage.fig3a_scores, **sampled)),
        "fig3b_trend": ("coverage", partial(coverage.fig3b_trend, **sampled)),
        "fig3b_trend_realized": ("coverage", partial(coverage.fig3b_trend, x="realized", **sampled)),
        "fig5_within_k": ("localization", partial(localization.fig5_within_k, **sampled)),
        "fig6_signed_error": ("localization", partial(localization.fig6_signed_error, **sampled)),
        "fig7_position": ("detection", partial(detection.fig7_position, **sampled)),
        "fig8_failures": ("detection", partial(overall.fig8_failures, looks=looks)),
        "false_alarm_plane": ("detection", partial(beyond.false_alarm_plane, **sampled)),
        "calibration_detection": ("detection", partial(beyond.calibration, **sampled)),
        "calibration_localization": ("localization", partial(beyond.calibration, task="localization", **sampled)),
    }
    for name in CAPTIONS:
        if name == "fig4_radar":
            yield name, overall.fig4_radar(tasks, **sampled)
        elif name == "ablation":
            if "detection" in frames and any(task in frames for task in judging_tasks.ablations()):
                yield name, beyond.ablation(frames, **sampled)
        elif makers[name][0] in tasks:
            task, make = makers[name]
            yield name, make(tasks[task])
