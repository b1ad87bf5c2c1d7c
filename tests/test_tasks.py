"""The tasks: every item with its twin, labels apart from what a judge sees, keys that pin prompt and judge."""

import dataclasses

import pytest

from c2faith import dataset, paths
from c2faith.judging import tasks, verdict_frames
from c2faith.judging.ask import ask_run
from c2faith.records import CausalityItem, Chain, CoverageItem, InputError, NaturalItem

CHAIN = Chain("c", "p", "champ", "Find x.", ("s0", "s1", "s2", "s3", "s4"))
BROKEN = ("s0", "s1", "not s2", "s3", "s4")
ROWS = dataset.Dataset(
    chains=(CHAIN,),
    causality=(CausalityItem("c/causality", "c", BROKEN, 2, "s2", "not s2", "s1", "rules", "other", 0.95),),
    coverage=(
        CoverageItem("c/coverage-00", "c", 0.0, CHAIN.steps, (), 0.0, 0.0),
        CoverageItem("c/coverage-50", "c", 0.5, ("s0", "s3", "s4"), (1, 2), 2 / 3, 0.4),
    ),
    natural=(NaturalItem("n/natural", "n", "q", "champ", "Find y.", ("t0", "t1"), 1),),
    manifest={},
)


def text(item):
    return "\n".join(content for _, content in item.query("f").messages)


def test_detection_asks_the_step_and_its_twin_with_the_same_past():
    broken, clean = tasks.items(ROWS, "detection")
    assert (broken.item_id, clean.item_id) == ("c/causality", "c/causality~clean")
    assert (broken.labels["truth"], clean.labels["truth"]) == (0, 1)
    assert text(broken).replace("not s2", "s2") == text(clean)
    assert broken.query("f").steps == ("s0", "s1", "not s2")
    assert broken.n_steps == 5
    assert "s3" not in text(broken)


def test_localization_asks_the_chain_its_twin_and_the_natural_errors():
    items = tasks.items(ROWS, "localization")
    assert [item.kind for item in items] == ["perturbed", "clean", "natural"]
    assert [item.labels["target"] for item in items] == [2, -1, 1]
    assert items[0].query("f").target is None


def test_no_more_natural_items_are_asked_than_perturbed_ones():
    more = dataclasses.replace(
        ROWS, natural=(*ROWS.natural, dataclasses.replace(ROWS.natural[0], item_id="m/natural"))
    )
    assert [item.item_id for item in tasks.items(more, "localization")][2:] == ["n/natural"]


def test_coverage_asks_each_level_and_the_reference_sees_more():
    control, degraded = tasks.items(ROWS, "coverage")
    assert (control.kind, degraded.kind) == ("clean", "perturbed")
    assert degraded.labels == {
        "deletion_rate": 0.5,
        "realized_rate": 2 / 3,
        "realized_chain_rate": 0.4,
        "n_removed": 2,
    }
    assert "s1" not in text(degraded)
    assert '<step index="1">s1</step>' in text(tasks.items(ROWS, "reference")[1])


def test_the_key_changes_with_the_judge_and_with_the_prompt():
    broken, clean = tasks.items(ROWS, "detection")
    keys = {item.query(judge).prompt_sha256 for item in (broken, clean) for judge in ("a", "b")}
    assert len(keys) == 4
    assert broken.query("a").prompt_sha256 == broken.query("a").prompt_sha256


def test_an_unknown_task_is_refused():
    with pytest.raises(InputError, match="unknown task 'dettection': choose from detection"):
        tasks.items(ROWS, "dettection")


def test_a_task_of_no_dataset_is_refused():
    with pytest.raises(InputError, match="negation is not asked of a run's items, but while they are made"):
        tasks.items(ROWS, "negation")


@pytest.mark.parametrize("judge", ["middle", "uniform", "symbolic"])
def test_a_further_task_is_a_row_and_a_template(tmp_path, monkeypatch, judge):
    """Here localization's items and answer under another prompt."""
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    for name in ("detection", "localization", "rubric", "coverage", "further"):
        (tmp_path / f"{name}.md").write_text(f"## system\n{name}\n## user\n{{question}} {{steps}}\n")
    row = dataclasses.replace(tasks.get("localization"), name="further", templates=("further",))
    monkeypatch.setitem(tasks.TASKS, "further", row)
    dataset.write(dataset.build("synthetic", limit=2, natural_limit=1), paths.run_dir("small"))

    tallies = ask_run("small", judge, announce=str)
    assert list(tallies) == ["detection", "localization", "coverage", "further"]
    asked = tasks.items(dataset.of_run("small"), "further")
    assert asked[0].query("").messages[0] == ("system", "further")
    assert (tallies["further"].finished, tallies["further"].pending) == (len(asked), 0)
    frame = verdict_frames.load("small", reference="retention")["further"]
    assert frame["item_id"].tolist() == [item.item_id for item in asked]
    assert (frame["task"] == "further").all() and (frame["status"] == "ok").all() and "target" in frame
