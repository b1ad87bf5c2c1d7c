"""Figures: the numbers they draw, degenerate frames, labels inside the page, the same bytes in every process."""

import dataclasses
import functools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from c2faith.analysis import figures, metrics
from c2faith.analysis.figures import layout, registry, style
from c2faith.judging import tasks
from c2faith.records import InputError
from frames import frames

DRAWS = 40


@pytest.fixture(scope="module")
def three():
    return frames(n_chains=25, judges=3)


def rows(task, values, judge="a", kind="perturbed", **columns):
    """A small frame of one judge, an item a chain."""
    n = len(values)
    common = {
        "judge_id": judge,
        "task": task,
        "item_id": [f"c{i}/{kind}" for i in range(n)],
        "chain_id": [f"c{i}" for i in range(n)],
        "problem_id": [f"p{i}" for i in range(n)],
        "kind": kind,
        "n_steps": 10,
        "value": np.array(values, dtype=float),
        "status": ["ok" if np.isfinite(value) else "refusal" for value in values],
        "confidence": np.nan,
        "reasoning": "",
    }
    return pd.DataFrame(common | columns)


def detection(values, judge="a", kind="perturbed", target=4):
    return rows("detection", values, judge, kind, target=target, truth=int(kind == "clean"))


def localization(values, target=4, judge="a", kind="perturbed"):
    return rows("localization", values, judge, kind, target=target)


def coverage(values, level=0.1, judge="a", reference=3.0):
    made = rows("coverage", values, judge, "perturbed" if level else "clean", deletion_rate=level)
    made["item_id"] += f"-{level}"
    return made.assign(realized_rate=level, realized_chain_rate=level, n_removed=1, reference=reference)


def of(*frames, **sampled):
    """These frames, each of its task, ready to be measured."""
    return metrics.Measured({frame["task"].iloc[0]: frame for frame in frames}, **{"draws": DRAWS, **sampled})


def bars(axes):
    """(start, length) of horizontal or height of vertical bars, whichever is drawn."""
    return [(patch.get_width(), patch.get_height()) for patch in axes.patches]


def texts(figure):
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def said(figure):
    return " ".join(" ".join(text.get_text().split()) for text in texts(figure))


def test_a_judge_keeps_its_look_whoever_else_is_drawn():
    all_looks = style.looks(["c", "a", "b"])
    assert [look.label for look in all_looks.values()] == ["a", "b", "c"]
    frame = pd.concat([detection([0, 0, 1], judge="c"), detection([0, 1, 1], judge="a")])
    figure = figures.causality.fig2a_detection(of(frame), all_looks)
    drawn = {patch.get_facecolor() for patch in figure.axes[0].patches}
    expected = {to_rgba(all_looks[name].colour) for name in "ac"}
    assert drawn == expected


def test_twelve_judges_differ_in_colour_hatch_and_marker_and_thirteen_are_refused():
    twelve = style.looks(f"judge-{i}" for i in range(12)).values()
    for part in ("colour", "hatch", "marker"):
        assert len({getattr(look, part) for look in twelve}) == 12
    with pytest.raises(InputError, match="13 judges"):
        style.looks(f"judge-{i}" for i in range(13))


def test_a_dollar_in_a_name_is_drawn_as_it_is():
    figure = figures.causality.fig2a_detection(of(detection([0, 1], judge="a$b$c")))
    assert r"a\$b\$c" in said(figure)


def test_fig2a_draws_the_rates_with_non_answers_as_misses():
    # Perturbed: 2 of 4 flagged, one unanswered. Clean: 1 of 4 flagged.
    frame = pd.concat([detection([0, 0, 1, np.nan]), detection([1, 1, 1, 0], kind="clean")], ignore_index=True)
    figure = figures.causality.fig2a_detection(of(frame))
    assert [width for width, _ in bars(figure.axes[0])] == [0.5, 0.25]
    assert "n = 4 perturbed, 4 clean items a judge" in said(figure)
    assert "unanswered: a 1" in said(figure)
    assert "50.0" in said(figure)


def test_fig2b_draws_the_metrics_of_table_2():
    # Target 4: one exact, one off by one, one off by three, one −1: 1/4 exact, 3/4 detected, 2/3 of these within 1.
    figure = figures.causality.fig2b_localization(of(localization([4, 5, 7, -1])))
    assert [height for _, height in bars(figure.axes[0])] == pytest.approx([1 / 4, 3 / 4, 2 / 3, 2 / 3])


def test_intervals_are_those_of_the_tables(three):
    table = metrics.detection(three["detection"], draws=DRAWS, rng=7).set_index("judge_id")
    figure = figures.causality.fig2a_detection(of(three["detection"], seed=7))
    ends = [tuple(segment[:, 0]) for segment in figure.axes[0].collections[0].get_segments()]
    assert ends == [tuple(row) for row in table[["detection_low", "detection_high"]].to_numpy()]


def test_fig3b_draws_means_of_answered_items_and_the_dashed_reference():
    levels = [coverage([4, 4, np.nan], 0.0, reference=4.0), coverage([4, 2, 3], 0.5, reference=[1.0, 2.0, np.nan])]
    frame = pd.concat(levels, ignore_index=True)
    figure = figures.coverage.fig3b_trend(of(frame))
    judge, reference = figure.axes[0].lines
    assert judge.get_ydata().tolist() == [4, 3]
    assert reference.get_ydata().tolist() == [4, 1.5]
    assert reference.get_linestyle() == "--"
    assert figure.axes[0].get_xlabel() == "middle steps removed, nominal (%)"


def test_fig3b_on_the_realized_share():
    frame = pd.concat([coverage([4, 4], 0.1), coverage([3, 3], 0.3)], ignore_index=True)
    frame["realized_rate"] = [0.2, 0.3, 0.4, 0.6]
    figure = figures.coverage.fig3b_trend(of(frame), x="realized")
    assert figure.axes[0].get_xticks().tolist() == pytest.approx([25, 50])
    with pytest.raises(InputError, match="nominal or realized"):
        figures.coverage.fig3b_trend(of(frame), x="real")


def test_fig3a_violins_have_the_area_of_their_shares():
    # All scores 2 on the judge's side: the widest point lies at 2 and has the full half width.
    figure = figures.coverage.fig3a_scores(of(coverage([2, 2, 2], reference=np.nan)))
    left, right = (path.get_paths()[0].vertices for path in figure.axes[0].collections[:2])
    assert left[:, 0].min() == pytest.approx(-0.46)
    assert left[left[:, 0].argmin(), 1] == pytest.approx(2)
    assert right[:, 0].max() == pytest.approx(0.46)  # without a reference the judge has both sides
    assert "no reference" in said(figure)


def test_fig4_draws_the_five_capabilities():
    # Coverage: |3−3|, |2−3|, |1−3|, one unanswered: within 1 is 2 of 4; MAE (0 + 1 + 2) / 3 = 1, so 1 − 1/4.
    tasks = detection([0, 0, 0, 1]), localization([4, 5, -1, np.nan]), coverage([3, 2, 1, np.nan])
    figure = figures.overall.fig4_radar(of(*tasks))
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0.75, 0.25, 0.5, 0.5, 0.75, 0.75]


def test_fig4_leaves_a_gap_where_a_task_is_missing():
    figure = figures.overall.fig4_radar(of(detection([0, 1])))
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).sum() == 4
    assert "undefined" in said(figure)


def test_fig5_counts_within_k_among_the_detected():
    # Errors 0, 1, 3 and 9 among four detected, one −1: 1/4, 2/4, 2/4, 3/4, 3/4, 3/4; detected 4/5.
    figure = figures.causality.fig5_within_k(of(localization([4, 5, 7, 9, -1], target=[4, 4, 4, 0, 4])))
    line = figure.axes[0].lines[0].get_ydata()
    assert line[:6].tolist() == [0.25, 0.5, 0.5, 0.75, 0.75, 0.75]
    assert np.isnan(line[6])
    assert line[7] == 0.8


def test_fig6_gathers_far_errors_and_prints_the_mean():
    # Errors −8, 0, +1, +1: the first falls into the bar "≤ −6". Mean −1.5.
    figure = figures.causality.fig6_signed_error(of(localization([1, 4, 5, 5, -1], target=[9, 4, 4, 4, 4])))
    heights = [height for _, height in bars(figure.axes[0])]
    assert heights == [0.25, 0, 0, 0, 0, 0, 0.25, 0.5, 0, 0, 0, 0, 0]
    assert "−1.50" in said(figure)


def test_fig7_bins_positions_equally_and_prints_their_counts():
    # Positions 0.2, 0.3 … 0.7: bins of width 0.1, the last holding 0.6 and 0.7.
    frame = detection([0, 1, 0, 0, 1, 0], target=[2, 3, 4, 5, 6, 7])
    figure = figures.causality.fig7_position(of(frame))
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1, 0, 1, 1, 0.5]
    assert "(2)" in figure.axes[0].get_xticklabels()[-1].get_text()


def test_fig8_names_the_patterns_of_few_judges():
    frame = pd.concat([detection([0, 0, 1, 1]), detection([0, 0, 1, 0], judge="b")], ignore_index=True)
    figure = figures.overall.fig8_failures(of(frame))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert dict(zip(labels, (width for width, _ in bars(figure.axes[0])), strict=True)) == {
        "caught by all": 2,
        "missed only by a": 1,
        "missed by all": 1,
    }


def test_fig8_is_an_upset_plot_from_four_judges_on_and_loses_no_item():
    frame = frames(n_chains=60, judges=12)["detection"]
    bars_axes, matrix = figures.overall.fig8_failures(of(frame)).axes
    assert sum(height for _, height in bars(bars_axes)) == 60
    missed = (frame[frame["kind"] == "perturbed"].set_index("judge_id")["value"] != 0).groupby("judge_id").sum()
    assert f"judge-3 ({missed['judge-3']})" in [label.get_text() for label in matrix.get_yticklabels()]


def test_fig8_leaves_out_items_that_not_all_were_asked():
    frame = pd.concat([detection([0, 0, 1]), detection([0, 0], judge="b")], ignore_index=True)
    assert "n = 2 perturbed steps put to every judge of 3" in said(figures.overall.fig8_failures(of(frame)))


def test_false_alarms_puts_judges_into_the_plane_with_their_roc():
    frame = pd.concat([detection([0, 0, 1, 1]), detection([1, 1, 1, 0], kind="clean")], ignore_index=True)
    frame["confidence"] = [0.9, 0.8, 0.4, 0.3, 0.1, 0.2, 0.4, 0.7]
    figure = figures.causality.false_alarm_plane(of(frame))
    _, roc, point = figure.axes[0].lines
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (0.25, 0.5)
    # Falling thresholds .9 .8 .7 .4 .3 .2 .1; at .4 one of each kind passes at once.
    assert roc.get_xdata().tolist() == [0, 0, 0, 0.25, 0.5, 0.5, 0.75, 1]
    assert roc.get_ydata().tolist() == [0, 0.25, 0.5, 0.5, 0.75, 1, 1, 1]


def test_calibration_says_who_gives_no_confidence(three):
    frame = three["detection"].copy()
    frame.loc[frame["judge_id"] == "judge-1", "confidence"] = np.nan
    figure = figures.overall.calibration(of(frame))
    assert [axes.get_title() for axes in figure.axes] == ["judge-0", "judge-2"]
    assert "no confidence: judge-1" in said(figure)
    assert "No judge gives" in said(figures.overall.calibration(of(frame.assign(confidence=np.nan))))


def test_pending_items_are_refused(three):
    frame = three["detection"].copy()
    frame.loc[0, ["status", "value"]] = ["api_error", np.nan]
    with pytest.raises(InputError, match="pending"):
        figures.causality.fig2a_detection(of(frame))


def degenerate(case, made):
    tasks = {task: made[task] for task in ("detection", "localization", "coverage")}
    tasks |= {task: made["detection"].assign(task=task) for task in ("step_only", "shuffled")}
    if case == "one judge, one chain":
        alone = "judge_id == 'judge-0' and chain_id == 'chain-0003'"
        return {task: frame.query(alone) for task, frame in tasks.items()}
    if case == "no clean twins":
        return {task: frame[frame["kind"] != "clean"] for task, frame in tasks.items()}
    if case == "all unanswered":
        gone = {"value": np.nan, "confidence": np.nan, "status": "refusal"}
        return {task: frame.assign(**gone) for task, frame in tasks.items()}
    if case == "constant":
        return {task: frame.assign(value=1.0, confidence=0.5, status="ok") for task, frame in tasks.items()}
    assert case == "empty"
    return {task: frame.iloc[:0] for task, frame in tasks.items()}


@pytest.mark.parametrize("case", ["one judge, one chain", "no clean twins", "all unanswered", "constant", "empty"])
def test_degenerate_frames_still_give_every_figure(case, three):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = dict(figures.draw(metrics.Measured(degenerate(case, three), draws=DRAWS)))
        if case in ("all unanswered", "constant"):
            for figure in made.values():
                figure.draw_without_rendering()
    assert list(made) == list(figures.captions())
    assert all(texts(figure) for figure in made.values())
    if case == "no clean twins":
        assert "false alarms unknown" in said(made["fig2a_detection"])
    if case == "all unanswered":
        assert "named no step" in said(made["fig6_signed_error"])


def test_a_missing_task_leaves_its_figures_out(three):
    names = [name for name, _ in figures.draw(of(three["detection"]))]
    assert names == [
        "fig2a_detection", "fig4_radar", "fig7_position", "fig8_failures", "false_alarm_plane",
        "calibration_detection",
    ]  # fmt: skip


@pytest.fixture
def sixth(monkeypatch):
    """A task that no figure is about, whose metric is a share of its own."""

    def share(frame, draws, rng):
        means = frame.groupby("judge_id", as_index=False)["value"].mean()
        return means.rename(columns={"value": "share_needed"}).assign(share_needed_low=0.1, share_needed_high=0.9)

    row = dataclasses.replace(tasks.TASKS["detection"], name="necessity", title="Necessity", metric="needed")
    monkeypatch.setitem(tasks.TASKS, "necessity", dataclasses.replace(row, headline="share_needed"))
    monkeypatch.setitem(metrics.METRICS, "needed", share)


def test_a_further_task_has_a_figure_of_its_headline(sixth, three):
    assert figures.captions()["necessity"] == "Necessity: share needed."
    frame = detection([1, 1, 0, 1]).assign(task="necessity")
    made = dict(figures.draw(of(three["detection"], frame)))
    assert list(made)[-1] == "necessity"
    dot = made["necessity"].axes[0].lines[0]
    assert dot.get_xdata()[0] == 0.75
    assert made["necessity"].axes[0].collections[0].get_segments()[0][:, 0].tolist() == [0.1, 0.9]
    assert "share needed" in said(made["necessity"]) and "n = 4 perturbed items a judge" in said(made["necessity"])


def test_of_thirteen_judges_and_more_the_best_twelve_are_drawn_and_the_note_says_so(sixth):
    many = frames(n_chains=12, judges=15)
    own = many["detection"].assign(task="necessity")
    ablated = many["detection"].assign(task="step_only")
    run = of(many["detection"], many["localization"], many["coverage"], ablated, own)
    made = dict(figures.draw(run))
    assert list(made) == [*figures.captions()]
    words = {"fig2b_localization": "localization: exact", "fig3a_scores": "coverage: order accuracy"}
    words |= {"fig2a_detection": "detection: balanced accuracy", "necessity": "necessity: share needed"}
    for name, figure in made.items():
        assert "the best 12 of 15 judges by " + words.get(name, "") in said(figure)
    worth = run.of("detection", "detection").set_index("judge_id")["balanced_accuracy"]
    best = worth.sort_index().sort_values(ascending=False, kind="stable").index[:12]
    ticks = [label.get_text() for label in made["fig2a_detection"].axes[0].get_yticklabels()]
    assert ticks == sorted(best)


def test_a_figure_is_added_in_one_place(monkeypatch, three):
    monkeypatch.setattr(registry, "FIGURES", known := dict(registry.FIGURES))
    monkeypatch.setattr(figures, "FIGURES", known)

    @registry.figure("Items a judge.", "coverage")
    def fig9_counts(measured, looks):
        frame, looks = registry.shown(measured, "coverage", looks)
        picture, axes = layout.canvas(3, 2)
        axes.bar(list(looks), frame["judge_id"].value_counts()[list(looks)])
        return picture

    names = list(figures.captions())
    assert names.index("fig9_counts") == names.index("fig8_failures") + 1
    assert "fig9_counts" in dict(figures.draw(of(three["coverage"])))
    assert "fig9_counts" not in dict(figures.draw(of(three["detection"])))


def test_each_metric_is_computed_once(monkeypatch, three):
    asked = []

    def counting(metric):
        @functools.wraps(metric)
        def counted(frame, **options):
            asked.append((metric.__name__, frame["task"].iloc[0]))
            return metric(frame, **options)

        return counted

    for name, metric in list(metrics.METRICS.items()):
        monkeypatch.setitem(metrics.METRICS, name, counting(metric))
    list(figures.draw(of(*(three[task] for task in ("detection", "localization", "coverage")))))
    assert len(asked) == len(set(asked)) > 0


@pytest.mark.parametrize("judges", [2, 12])
def test_nothing_is_cut_off_at_the_edge_of_the_page(judges):
    made = frames(n_chains=8, judges=judges)
    names = {f"judge-{i}": f"provider/a-model-with-a-long-name-{i:02d}" for i in range(judges)}
    run = of(*(made[task].replace({"judge_id": names}) for task in ("detection", "localization", "coverage")))
    drawn_pages = ("fig2a_detection", "fig2b_localization", "fig4_radar", "fig7_position", "fig8_failures")
    for figure in (registry.FIGURES[name].draw(run) for name in drawn_pages):
        figure.draw_without_rendering()
        drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        slack = 0.02
        assert drawn.x0 > -slack and drawn.y0 > -slack, said(figure)
        assert drawn.x1 < width + slack and drawn.y1 < height + slack, said(figure)


DRAW = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_figures
test_figures.draw_localization(Path(sys.argv[1]))
"""


def draw_localization(folder):
    figure = figures.causality.fig2b_localization(of(frames(n_chains=8, judges=4)["localization"], draws=20))
    return [path.read_bytes() for path in figures.save(figure, folder, "same")]


def test_the_same_figure_is_the_same_bytes_in_another_process(tmp_path):
    pdf, png = draw_localization(tmp_path / "here")
    command = [sys.executable, "-c", DRAW, str(tmp_path / "there"), str(Path(__file__).parent)]
    subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "7"}, check=True)
    assert (tmp_path / "there" / "same.pdf").read_bytes() == pdf
    assert (tmp_path / "there" / "same.png").read_bytes() == png
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf
    assert b"Software" not in png


def test_a_notebook_shows_the_saved_picture(tmp_path):
    figure = figures.causality.fig2a_detection(of(detection([0, 1])))
    shown, size = figure._repr_png_()
    _, png = figures.save(figure, tmp_path, "same")
    assert shown == png.read_bytes()
    assert size == {"width": 330}


def test_drawing_leaves_matplotlib_settings_alone(three):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    assert isinstance(figures.overall.fig8_failures(of(three["detection"])), Figure)
    assert dict(mpl.rcParams) == before
