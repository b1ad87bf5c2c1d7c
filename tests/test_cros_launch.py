"""The commands that train where a notebook cannot go, on a tiny model and in one process."""

import pytest

import tiny_encoder
from c2faith import dataset, paths
from c2faith.__main__ import main
from c2faith.cros import grpo, judge
from c2faith.records import read_json

SMALL = ["--run", "small", "--folds", "3", "--updates", "2", "--batch", "2"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    dataset.write(dataset.build("synthetic", limit=9), paths.run_dir("small"))
    return tiny_encoder.save(tmp_path / "tiny", context=1024)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["lora", "full"])
def test_a_tuned_judge_is_kept_and_tested(model, mode, capsys):
    assert main(["tune", *SMALL, "--model", model, "--mode", mode, "--max-tokens", "300"]) == 0
    assert "processbench_f1" in capsys.readouterr().out
    folder = paths.run_dir("small") / f"cros-{mode}"
    assert read_json(folder / "log.json")[-1]["update"] == 2
    (reading,) = judge.CrosJudge("tuned", folder).read([("1 + 1?", ("1 + 1 = 2.",))])
    assert reading.whole


def test_grpo_is_asked_for_with_what_was_given(model, monkeypatch, capsys):
    asked = {}

    def train_grpo(model, rows, folder, **options):
        asked.update(model=model, folder=folder, tasks={row["task"] for row in rows}, **options)
        return [{"reward": -1.0}, {"reward": 0.5}]

    monkeypatch.setattr(grpo, "train_grpo", train_grpo)
    given = ["--generations", "4", "--completion-tokens", "48", "--full", "--vllm", "--seed", "3"]
    assert main(["grpo", *SMALL, "--model", model, *given]) == 0
    assert capsys.readouterr().out == "reward -1.000 → 0.500 in 2 updates\n"
    assert asked == {
        "model": model,
        "folder": paths.run_dir("small") / "grpo",
        "tasks": {"detection", "localization", "coverage"},
        "updates": 2,
        "generations": 4,
        "prompts_per_update": 2,
        "max_completion_tokens": 48,
        "learning_rate": 1e-5,
        "lora": False,
        "use_vllm": True,
        "seed": 3,
    }


def test_a_run_without_items_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    assert main(["grpo", "--run", "nowhere"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
