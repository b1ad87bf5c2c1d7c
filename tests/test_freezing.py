"""Recording a run, replaying it, and noticing a table that differs."""

import orjson
import pytest

from c2faith import dataset, paths
from c2faith.judging import ask as judging
from c2faith.judging import judges
from c2faith.judging import recording as freezing
from c2faith.judging import replies as journal
from c2faith.judging import run as runs
from c2faith.judging import verdict_frames as frames
from c2faith.judging.tasks import plan
from c2faith.records import InputError, read_json, sha256_file

RUN = "champ"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A small live run of one judge, recorded under a home of its own."""
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "FROZEN", tmp_path / "frozen")
    dataset.write(dataset.build("synthetic", limit=4), paths.run_dir("small"))
    runs.judge_run("small", "uniform")
    return tmp_path


def test_replay_equals_live(recorded):
    live = frames.load_frames("small", reference="retention")
    freezing.freeze("small")
    assert len(frames.replies("small", "uniform", "detection")) == len(live["detection"])  # not twice
    for path in sorted((paths.run_dir("small") / "replies").rglob("*.jsonl")):
        path.unlink()
    replayed = frames.load_frames("small", reference="retention")
    assert live.keys() == replayed.keys() == {"detection", "localization", "coverage"}
    for task, frame in live.items():
        assert frame.equals(replayed[task])
        assert (frame["status"] == "ok").all()


def test_a_recorded_judge_is_asked_nothing(recorded):
    freezing.freeze("small")
    (paths.run_dir("small") / "replies" / "uniform" / "detection.jsonl").unlink()
    tally = runs.judge_run("small", "uniform", ["detection"])["detection"]
    assert (tally.items, tally.finished, tally.calls) == (8, 8, 0)


def test_a_record_is_never_rewritten(recorded):
    written = freezing.freeze("small")
    assert [path.name for path in written] == ["coverage.jsonl", "detection.jsonl", "localization.jsonl"]
    record = read_json(paths.frozen_dir("small") / "record.json")["uniform"]
    assert record["command"] == "make judge RUN=small JUDGE=uniform"
    assert record["files"]["detection.jsonl"] == sha256_file(written[1])
    with pytest.raises(InputError, match="uniform is recorded already"):
        freezing.freeze("small")


def test_replies_to_another_dataset_are_not_mixed_in(recorded):
    freezing.freeze("small")
    dataset.write(dataset.build("synthetic", limit=3), paths.run_dir("small"))
    with pytest.raises(InputError, match="another dataset"):
        freezing.freeze("small", ["uniform"])


@pytest.fixture(scope="module")
def champ():
    return dataset.build("champ")


def test_the_recorded_dataset_is_made_again_to_the_byte(champ):
    assert champ.manifest["files"] == read_json(paths.frozen_dir(RUN) / "manifest.json")["files"]


def test_the_recorded_run_is_complete(champ):
    record = read_json(paths.frozen_dir(RUN) / "record.json")
    assert set(record) >= {"smollm2-135m", "symbolic", "always-flag", "never-flag", "uniform", "middle"}
    for judge_id, entry in record.items():
        folder = paths.frozen_dir(RUN) / "replies" / judge_id
        assert {path.name: sha256_file(path) for path in folder.glob("*.jsonl")} == entry["files"]
        for path in folder.glob("*.jsonl"):
            items = plan(champ, path.stem)
            rows = frames.replies(RUN, judge_id, path.stem)
            frame = frames.verdict_frame(items, rows, judge_id, judging.read_pin(folder)["fingerprint"])
            assert not frame["status"].isin(["pending", "api_error"]).any(), f"{judge_id} {path.stem}"


@pytest.mark.parametrize("judge_id", ["always-flag", "never-flag", "uniform", "middle", "symbolic"])
def test_an_offline_judge_still_says_what_was_recorded(champ, judge_id):
    judge = judges.make(judge_id)
    recorded = {row["prompt_sha256"]: row["text"] for row in frames.replies(RUN, judge_id, "detection")}
    queries = [item.query(judge.fingerprint) for item in plan(champ, "detection")[:40]]
    assert {q.prompt_sha256: reply.text for q, reply in judge.replies(queries)}.items() <= recorded.items()


def test_nothing_is_recorded_unless_all_of_it_can_be(recorded):
    runs.judge_run("small", "middle", part="1/3")
    with pytest.raises(InputError, match=r"middle/coverage.jsonl: \d+ items are pending"):
        freezing.freeze("small", ["uniform", "middle"])
    assert not paths.frozen_dir("small").exists()
    with pytest.raises(InputError, match="make data"):
        freezing.freeze("nothing")


def test_a_torn_line_is_asked_again(recorded):
    path = judging.reply_path(paths.run_dir("small"), "uniform", "detection")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    tally = runs.judge_run("small", "uniform")["detection"]
    assert (tally.items, tally.finished) == (8, 8)
    assert path.with_suffix(".torn").exists()
    assert [row["item_id"] for row in journal.read(path)] == [eval_id(line) for line in whole.splitlines()]


def eval_id(line):
    return orjson.loads(line)["item_id"]


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_a_limit_that_limits_nothing_is_refused(recorded, limit):
    with pytest.raises(InputError, match="MAX_COST"):
        runs.judge_run("small", "uniform", max_cost=limit)


def test_a_baseline_says_what_it_does_not_answer(recorded):
    with pytest.raises(InputError, match="a baseline answers detection, localization, coverage, not reference"):
        runs.judge_run("small", "middle", ["reference"])
