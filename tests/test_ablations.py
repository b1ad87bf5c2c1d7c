"""Detection without the context: what is shown and hidden, who answers, what the difference is."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from c2faith import dataset, paths
from c2faith.analysis import figures, metrics, tables
from c2faith.cros.judge import CrosJudge
from c2faith.judging import judges, tasks, verdict_frames
from c2faith.judging.ask import ask_run
from c2faith.judging.judges.local_scoring import admissible
from c2faith.judging.judges.request import Dialect
from c2faith.judging.recording import freeze
from c2faith.judging.tasks import another_order
from c2faith.records import CausalityItem, Chain, InputError, read_json
from frames import verdicts

CHAIN = Chain("c", "p", "champ", "Find QQ.", ("aa", "bb", "cc", "dd", "ee", "ff"))
EARLY = Chain("e", "p", "champ", "Find RR.", ("gg", "hh", "ii", "jj", "kk"))
ROWS = dataset.Dataset(
    chains=(CHAIN, EARLY),
    causality=(
        CausalityItem("c/x", "c", ("aa", "bb", "cc", "zz", "ee", "ff"), 3, "dd", "zz", "cc", "rules", "other", 0.9),
        CausalityItem("e/x", "e", ("gg", "yy", "ii", "jj", "kk"), 1, "hh", "yy", "gg", "rules", "other", 0.9),
    ),
    coverage=(),
    natural=(),
    manifest={},
)


def text(item):
    return "\n".join(content for _, content in item.query("f").messages)


# What is asked


def test_the_step_alone_is_shown_without_problem_other_steps_or_place():
    items = tasks.items(ROWS, "step_only")
    assert [item.item_id for item in items] == [item.item_id for item in tasks.items(ROWS, "detection")]
    assert [item.labels["truth"] for item in items] == [0, 1, 0, 1]
    for item, step in zip(items, ("zz", "dd", "yy", "hh"), strict=True):
        query = item.query("f")
        assert (query.question, query.steps, query.target) == ("", (step,), 0)
        body = query.messages[1][1]
        hidden = {"QQ", "RR", *CHAIN.steps, *EARLY.steps, "zz", "yy", "index="} - {step}
        assert step in body
        assert not [word for word in hidden if word in body]


def test_every_recorded_step_alone_says_nothing_of_its_chain():
    rows = dataset.build("synthetic", limit=30)
    alone = {item.item_id: item for item in tasks.items(rows, "step_only")}
    for item in tasks.items(rows, "detection"):
        blind = dataclasses.replace(
            item, task="step_only", question="other", steps=("other",) * item.shown + item.steps[item.shown :]
        )
        assert blind.query("f").messages == alone[item.item_id].query("f").messages


def test_shuffled_steps_are_the_earlier_ones_in_another_order_and_the_judged_one_last():
    items = tasks.items(ROWS, "shuffled")
    assert [item.item_id for item in items] == ["c/x", "c/x~clean"]  # one step before e's: no other order
    broken, clean = (item.query("f") for item in items)
    assert broken.question == "Find QQ."
    assert broken.steps[:3] == clean.steps[:3]
    assert sorted(broken.steps[:3]) == ["aa", "bb", "cc"]
    assert broken.steps[:3] != ("aa", "bb", "cc")
    assert (broken.steps[3], clean.steps[3], broken.target) == ("zz", "dd", 3)
    assert f'<step index="0">{broken.steps[0]}</step>' in text(items[0])
    assert "ee" not in broken.messages[1][1]
    assert items[0].n_steps == 6


def test_an_order_is_seeded_by_name_and_never_the_old_one():
    orders = [tuple(another_order(3, f"chain-{number}")) for number in range(200)]
    assert set(orders) == {(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)}
    assert another_order(3, "chain-0") == list(orders[0])


# Who is asked, and who answers


@pytest.mark.parametrize("name", judges.named())
def test_no_judge_is_asked_them_by_default(name, monkeypatch):
    for key in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(key, "none")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://example.invalid")
    asked = CrosJudge.tasks if name == "cros" else judges.make(name).tasks  # no heads of a cros are at hand
    assert not set(asked) & set(tasks.ablations())


@pytest.mark.parametrize("task", tasks.ablations())
def test_every_kind_of_judge_answers_as_in_detection(task):
    queries = [item.query("f") for item in tasks.items(ROWS, task)]
    told = {}
    for name in ("always-flag", "middle", "never-flag"):
        told[name] = {json.loads(reply.text)["score"] for _, reply in judges.make(name).replies(queries)}
    assert told == {"always-flag": {0}, "middle": {0}, "never-flag": {1}}
    assert {reply.scores for _, reply in judges.make("uniform").replies(queries)} == {(0.5, 0.5)}
    assert admissible(task, 4) == ['{"score": 0}', '{"score": 1}']
    schema = Dialect("m", {}).request(queries[0])["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"]["enum"] == [0, 1]


def test_the_symbolic_judge_objects_to_what_it_is_shown_only():
    chain = Chain("s", "p", "champ", "?", ("Let t=1.", "We need x+5=25.", "So x=20.", "So x=20.", "Done."))
    broken = (*chain.steps[:2], "So x=22.", *chain.steps[3:])
    item = CausalityItem("s/x", "s", broken, 2, "", "", "", "rules", "o", 0.9)
    rows = dataclasses.replace(ROWS, chains=(chain,), causality=(item,))
    judge = judges.make("symbolic")
    asked = {
        task: [item.query("") for item in tasks.items(rows, task)] for task in ("detection", *tasks.ablations())
    }
    said = {
        task: [json.loads(reply.text)["score"] for _, reply in judge.replies(queries)]
        for task, queries in asked.items()
    }
    # Only the last equation of the step before refutes x=22: alone or behind "Let t=1." it stands.
    assert said == {"detection": [0, 1], "step_only": [1, 1], "shuffled": [1, 1]}


def test_a_trained_judge_refuses_to_judge_without_the_problem_that_chooses_its_head():
    judge = object.__new__(CrosJudge)
    judge.judge_id = "cros"
    with pytest.raises(InputError, match="cros cannot be asked step_only: choose detection"):
        next(judge.replies([tasks.items(ROWS, "step_only")[0].query("")]))


# From the journal to the table


def test_asked_on_request_they_are_frames_and_recorded_beside_what_is_recorded(small_run):
    freeze("small")
    before = read_json(paths.frozen_dir("small") / "record.json")["uniform"]
    assert verdict_frames.load("small", reference="retention").keys() == set(tasks.default())
    said = []
    tallies = ask_run("small", "uniform", tasks.ablations(), announce=said.append)
    planned = [len(tasks.items(dataset.read(paths.run_dir("small")), task)) for task in ("step_only", "shuffled")]
    assert [tally.finished for tally in tallies.values()] == planned
    assert said == [f"shuffled: {12 - planned[1]} items have fewer than two steps to shuffle and are not asked"]
    live = verdict_frames.load("small", reference="retention")
    assert (live["step_only"]["confidence"] == 0.5).all()
    assert live["shuffled"]["n_steps"].isin(live["detection"]["n_steps"]).all()

    written = freeze("small", ["uniform"])
    assert [path.name for path in written] == ["shuffled.jsonl", "step_only.jsonl"]
    after = read_json(paths.frozen_dir("small") / "record.json")["uniform"]
    assert {name: after["files"][name] for name in before["files"]} == before["files"]
    (added,) = after["added"]
    assert added["command"] == "make judge RUN=small JUDGE=uniform TASKS=shuffled,step_only"
    assert added["files"] == ["shuffled.jsonl", "step_only.jsonl"]
    with pytest.raises(InputError, match="recorded already"):
        freeze("small")


def test_nothing_is_added_to_the_record_of_another_model(small_run):
    freeze("small")
    ask_run("small", "uniform", ["step_only"])
    pin = paths.run_dir("small") / "replies" / "uniform" / "judge.json"
    pin.write_text(pin.read_text().replace(read_json(pin)["fingerprint"], "0" * 64))
    with pytest.raises(InputError, match="uniform was recorded as another model"):
        freeze("small")


# The difference


def condition(task, values, chains, truth):
    kind = ["clean" if follows else "perturbed" for follows in truth]
    return verdicts(task, values, truth=truth, chain_id=chains, kind=kind, target=4, reasoning="")


FULL = condition("detection", [0, 0, 1, 0, 1, 1, 0, np.nan], [*"abcd"] * 2, [0] * 4 + [1] * 4)
ALONE = condition("step_only", [0, 1, 1, np.nan, 1, 0, 0, 1], [*"abcd"] * 2, [0] * 4 + [1] * 4)


def test_differences_are_paired_by_item():
    """Perturbed: 3 of 4 flagged, then 1. Twins: 1 of 4 flagged and 2 accepted, then 2 flagged and 2 accepted."""
    (row,) = metrics.context_gain(FULL, ALONE, draws=200).to_dict("records")
    assert (row["n_paired"], row["n_clean_paired"]) == (4, 4)
    assert row["detection_gain"] == pytest.approx(2 / 4)
    assert row["false_alarm_gain"] == pytest.approx(-1 / 4)
    assert row["youden_j_gain"] == pytest.approx(2 / 4)
    few = ALONE[ALONE["chain_id"].isin(["b", "c"])]  # flagged: 1 then 0 of 2; accepted: 1 then 0 of 2
    (row,) = metrics.context_gain(FULL, few, draws=200).to_dict("records")
    assert [row[name] for name in ("n_paired", "detection_gain", "youden_j_gain")] == [2, 0.5, 1.0]


def test_the_interval_resamples_chains():
    """Two chains, each with ten equal items: a draw takes whole chains, so the gain is 0, 1/2 or 1."""
    chains = ["a"] * 10 + ["b"] * 10
    full = condition("detection", [0] * 20, chains, [0] * 20)
    less = condition("step_only", [1] * 10 + [0] * 10, chains, [0] * 20)
    row = metrics.context_gain(full, less, draws=2000).iloc[0]
    assert row[["detection_gain", "detection_gain_low", "detection_gain_high"]].to_list() == [0.5, 0.0, 1.0]
    assert np.isnan(row["youden_j_gain"])  # no twins


def test_a_condition_equal_to_the_full_one_gains_nothing_for_certain():
    row = metrics.context_gain(FULL, FULL.assign(task="step_only"), draws=100).iloc[0]
    assert row.filter(like="_gain").abs().max() == 0


def test_pending_items_refuse_a_difference():
    with pytest.raises(InputError, match="pending"):
        metrics.context_gain(FULL, ALONE.assign(status="pending"), draws=2)


def test_the_table_and_the_figure_stand_only_where_a_judge_was_asked():
    other = FULL.assign(judge_id="never asked")
    run = {"detection": pd.concat([FULL, other]), "step_only": ALONE, "shuffled": ALONE.iloc[[0, 1, 4, 5]]}
    made = dict(tables.compute(metrics.Measured(run, draws=20)))["ablation"]
    assert made[["judge_id", "condition", "n", "unanswered"]].to_numpy().tolist() == [
        ["j", "full", 4, 0],
        ["j", "step only", 4, 1],
        ["j", "shuffled context", 2, 0],
    ]
    assert made["detection_gain"].fillna(-9).to_list() == [-9, 0.5, 0.5]
    assert "not asked of 4 of 8 items" in made.attrs["caption"]
    assert "ablation" not in dict(tables.compute(metrics.Measured({"detection": FULL}, draws=2)))

    figure = figures.causality.ablation(metrics.Measured(run, draws=20))
    heights = [[patch.get_height() for patch in axes.patches] for axes in figure.axes]
    assert heights == [[0.75, 0.25, 0.5], [0.25, 0.5, 0.5]]
    assert "ablation" in dict(figures.draw(metrics.Measured(run, draws=2)))
    assert "ablation" not in dict(figures.draw(metrics.Measured({"detection": FULL}, draws=2)))
