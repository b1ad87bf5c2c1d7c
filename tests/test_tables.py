"""Tables: what they hold, how they are written, and that no number of judges or items breaks them."""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest

from c2faith.analysis import metrics, published, tables
from c2faith.analysis.metrics import Measured
from c2faith.analysis.resampling import by_judge, checked, estimates, means
from c2faith.analysis.tables import paper, supplement
from c2faith.judging.tasks import TASKS
from c2faith.records import InputError
from frames import frames

pytestmark = pytest.mark.filterwarnings("error")
DRAWS = 100


def computed(n_chains, judges, draws=DRAWS):
    made = frames(n_chains, judges, seed=1)
    items = made.pop("items")
    return dict(tables.compute(Measured(made, items=items, draws=draws)))


def detected(frame, draws=2):
    return Measured({"detection": frame}, draws=draws)


@pytest.fixture(scope="module")
def made():
    return frames(40, 3, seed=1)


@pytest.fixture(scope="module")
def run():
    return computed(40, 3)


# The whole set

PAPERS = ["table1_detection", "table2_localization", "table3_coverage", "table4_capability"]
PAPERS += ["table5_predictors", "table6_edit_types"]


def test_the_set_holds_the_papers_tables_and_those_beyond(run):
    assert set(PAPERS) <= set(run)
    assert {"false_alarms", "ensembles", "natural_errors", "early_bias", "calibration"} <= set(run)
    assert all(table.attrs.get("caption") for table in run.values())


@pytest.mark.parametrize("n_chains, judges", [(1, 1), (2, 2), (3, 12)])
def test_any_number_of_judges_and_chains_makes_all_tables(n_chains, judges, tmp_path):
    for name, table in computed(n_chains, judges, draws=10).items():
        for path in tables.save(table, tmp_path, name):
            assert path.stat().st_size


@pytest.mark.parametrize("judges", [13, 28])
def test_more_judges_than_colours_or_letters_make_all_tables(judges, made, tmp_path):
    some = frames(6, judges, seed=1)
    if judges > 13:  # pairs and triples of 28 are another matter
        some = {"detection": some["detection"].query("truth == 0")}
        assert len(paper.table1_detection(Measured(some, draws=2))) == 28 + 3
    else:
        for name, table in tables.compute(Measured(some, items=some.pop("items"), draws=5)):
            assert tables.save(table, tmp_path, name)


def test_nothing_is_measured_twice(made, monkeypatch):
    asked = []

    def counted(name, metric):
        return functools.wraps(metric)(lambda *args, **keywords: asked.append(name) or metric(*args, **keywords))

    for name, metric in metrics.METRICS.items():
        monkeypatch.setitem(metrics.METRICS, name, counted(name, metric))
    run = Measured({task: made[task] for task in ("detection", "localization", "coverage")}, draws=5)
    for _ in range(2):
        dict(tables.compute(run))
    once = ["detection", "pairs", "ensembles", "coverage", "coverage_trend", "early_bias_correction"]
    assert {name: asked.count(name) for name in set(asked)} == dict.fromkeys(once, 1) | {
        "localization": 2,  # injected and natural errors
        "calibration": 2,  # of detection and of localization
    }


def test_what_was_measured_is_the_callers_own(made):
    run = Measured({"detection": made["detection"]}, draws=2)
    mine = run.of("detection", "detection")
    mine["n"] = 0
    assert (run.of("detection", "detection")["n"] == 40).all()


def test_a_further_task_gets_a_table_of_its_metric(made, monkeypatch):
    """A row in the tasks and a metric by name are all that a sixth task needs."""

    def mean_score(frame, *, draws, rng):
        return by_judge(checked(frame, "guess", "truth"), score, draws=draws, rng=rng)

    def score(rows, resamples):
        return {"n": len(rows), **estimates(means(resamples, rows["chain_id"], {"score": rows["value"] == 1}))}

    monkeypatch.setitem(metrics.METRICS, "mean_score", mean_score)
    row = dataclasses.replace(
        TASKS["detection"], name="guess", title="Guessing", metric="mean_score", headline="score", default=False
    )
    monkeypatch.setitem(TASKS, "guess", row)
    totals = pd.DataFrame([{"judge_id": "judge-0", "task": "guess", "calls": 80}])
    found = dict(
        tables.compute(Measured({"guess": made["detection"].assign(task="guess")}, totals=totals, draws=9))
    )
    assert list(found["guess"].columns) == ["judge_id", "n", "score", "score_low", "score_high"]
    assert found["guess"].attrs["caption"].startswith("Guessing")
    assert found["costs"]["worth"].to_list() == [found["guess"]["score"].iloc[0]]


def test_a_single_task_makes_its_tables(made):
    names = [name for name, _ in tables.compute(Measured({"coverage": made["coverage"]}, draws=2))]
    assert names == ["table3_coverage", "table3_trend", "table4_capability"]


def test_pending_items_refuse_every_table(made):
    frame = made["detection"].copy()
    frame.loc[frame.index[0], ["status", "value"]] = ["api_error", np.nan]
    for make in (paper.table1_detection, paper.table1_pairs, supplement.false_alarms, supplement.ensembles):
        with pytest.raises(InputError, match="pending \\(1 of judge-0\\)"):
            make(detected(frame))


def test_published_rows_stand_under_ours_and_are_marked(run):
    for name in PAPERS[:3] + PAPERS[4:]:
        origin = run[name]["origin"].to_list()
        assert origin == sorted(origin, key=["run", "published"].index)
        assert "published" in origin
    printed = run["table2_localization"].query("origin == 'published'").set_index("judge_id")
    assert printed.loc["o4-mini", "exact"] == 0.68
    assert np.isnan(printed.loc["o4-mini", "processbench_f1"])


def test_every_table_says_how_many_and_how_many_unanswered(run, made):
    bad = made["detection"].query("truth == 0")
    table = run["table1_detection"].query("origin == 'run'").set_index("judge_id")
    for judge, rows in bad.groupby("judge_id"):
        assert table.loc[judge, "n"] == len(rows)
        assert table.loc[judge, "unanswered"] == rows["value"].isna().sum()
    for name in ("table2_localization", "table3_coverage", "table6_edit_types", "ensembles", "natural_errors"):
        assert {"n", "unanswered"} <= set(run[name].columns)


# Table 1's marks


def test_table1_reproduces_the_paper():
    table = paper.table1_detection(detected(published.exp1_frame(), draws=2000), alpha=0.001)
    ours, printed = (table.query("origin == @o").set_index("judge_id") for o in ("run", "published"))
    for judge in published.JUDGES:
        assert f"{ours.loc[judge, 'detection']:.3f}" == f"{printed.loc[judge, 'detection']:.3f}"
        assert f"{ours.loc[judge, 'sd']:.3f}" == f"{printed.loc[judge, 'sd']:.3f}"
    key = ours.loc["GPT-4.1", "key"]
    assert ours["better_than"].to_dict() == {"GPT-4.1": "", "DeepSeek-V3.1": key, "o4-mini": key}


def test_pairs_of_the_paper():
    """Discordant counts from Fig. 8: GPT-4.1 against DeepSeek 8 + 1 and 40 + 23 …"""
    pairs = paper.table1_pairs(detected(published.exp1_frame())).set_index(["judge_a", "judge_b"])
    assert pairs.loc[("GPT-4.1", "DeepSeek-V3.1"), ["only_a", "only_b"]].to_list() == [9, 63]
    assert pairs.loc[("DeepSeek-V3.1", "o4-mini"), ["only_a", "only_b"]].to_list() == [27, 15]
    assert f"{pairs.loc[('DeepSeek-V3.1', 'o4-mini'), 'p']:.3f}" == "0.090"
    assert pairs["difference"].to_list() == pytest.approx([-54 / 450, -42 / 450, 12 / 450])


def test_one_judge_has_no_marks_and_no_pairs(made):
    frame = made["detection"].query("judge_id == 'judge-0'")
    assert paper.table1_detection(detected(frame))["better_than"].iloc[0] == ""
    assert paper.table1_pairs(detected(frame)).empty


def test_judges_are_compared_on_the_items_that_both_were_asked(made):
    frame = made["detection"]
    few = frame[(frame["judge_id"] != "judge-1") | (frame["chain_id"] < "chain-0010")]
    pairs = paper.table1_pairs(detected(few)).set_index(["judge_a", "judge_b"])["n"]
    assert pairs.to_list() == [10, 40, 10]


# Table 4


def test_table4_ranks_by_the_mean_rank_of_its_rows(run):
    """Printed: detection 3 1 2, exact 2 3 1, ρ 1.5 3 1.5, bias 2 3 1: means 2.125, 2.5, 1.375."""
    table = run["table4_capability"].set_index("task")
    names = [f"{judge} (published)" for judge in published.JUDGES]
    assert table.loc["Mean rank (paper's rows)", names].to_list() == [2.125, 2.5, 1.375]
    assert table.loc["Overall rank (paper's rows)", names].to_list() == [2, 3, 1]


def test_a_judge_without_a_task_has_no_rank(made):
    some = made["localization"].query("judge_id != 'judge-1'")
    table = paper.table4_capability(Measured(made | {"localization": some}, draws=2))
    ranks = table.set_index("task").loc["Overall rank (paper's rows)", ["judge-0", "judge-1", "judge-2"]]
    assert ranks.isna().to_list() == [False, True, False]


def test_an_undefined_correlation_ranks_last(made):
    frame = made["coverage"].copy()
    frame.loc[frame["judge_id"] == "judge-0", "value"] = 4.0
    table = paper.table4_capability(Measured(made | {"coverage": frame}, draws=2)).set_index("task")
    others = table.loc["Cov. ρ @70%", ["judge-1", "judge-2"]]
    assert np.isnan(table.loc["Cov. ρ @70%", "judge-0"])
    assert others.notna().all()
    assert table.loc["Mean rank (paper's rows)", "judge-0"] >= 1.5  # 3 of the four ranks at best 1, ρ 3


# Beyond


def test_false_alarms_turn_the_ranking_over():
    """`always` flags everything: first by detection, last by balanced accuracy."""
    parts = []
    for judge, values in {"always": [0, 0, 0, 0], "fair": [0, 1, 1, 1]}.items():
        parts.append(
            pd.DataFrame(
                {
                    "judge_id": judge,
                    "item_id": list("abcd"),
                    "chain_id": ["1", "2", "1", "2"],
                    "kind": "perturbed",
                    "n_steps": 9,
                    "truth": [0, 0, 1, 1],
                    "value": np.array(values, dtype=float),
                    "status": "ok",
                }
            )
        )
    table = supplement.false_alarms(detected(pd.concat(parts), DRAWS)).set_index("judge_id")
    assert table["rank_detection"].to_list() == [1, 2]
    assert table["rank_balanced"].to_list() == [2, 1]


def test_natural_and_injected_errors_stand_side_by_side(run, made):
    table = run["natural_errors"]
    assert table["set"].to_list() == ["injected", "natural"] * 3
    assert table["judge_id"].drop_duplicates().to_list() == ["judge-0", "judge-1", "judge-2"]


def test_conditions_of_an_ablation_are_compared(made):
    run = {"detection": made["detection"], "step_only": made["detection"]}
    table = supplement.ablation(Measured(run, draws=2))
    assert table["condition"].value_counts().to_dict() == {"full": 3, "step only": 3}


def test_costs_stand_beside_what_they_bought(made):
    totals = pd.DataFrame([{"judge_id": "judge-0", "task": "detection", "calls": 80, "dollars": 0.25}])
    table = supplement.costs(Measured({"detection": made["detection"]}, totals=totals, draws=2))
    expected = metrics.detection(made["detection"], draws=2)["balanced_accuracy"].iloc[0]
    assert table["worth"].to_list() == [expected]
