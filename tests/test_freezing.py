"""Recording a run, replaying it, and noticing a table that differs."""

import orjson
import pytest

from c2faith import dataset, paths
from c2faith.judging import judges, replies, tasks, verdict_frames
from c2faith.judging.ask import ask_run
from c2faith.judging.recording import freeze
from c2faith.records import InputError, read_json, sha256_file

RUN = "champ"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A small live run of one judge, recorded under a home of its own."""
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    monkeypatch.setattr(paths, "FROZEN", tmp_path / "frozen")
    dataset.write(dataset.build("synthetic", limit=4), paths.run_dir("small"))
    ask_run("small", "uniform")
    return tmp_path


def test_replay_equals_live(recorded):
    live = verdict_frames.load("small", reference="retention")
    freeze("small")
    assert len(replies.of_run("small", "uniform", "detection")) == len(live["detection"])  # not twice
    for path in sorted((paths.run_dir("small") / "replies").rglob("*.jsonl")):
        path.unlink()
    replayed = verdict_frames.load("small", reference="retention")
    assert live.keys() == replayed.keys() == {"detection", "localization", "coverage"}
    for task, frame in live.items():
        assert frame.equals(replayed[task])
        assert (frame["status"] == "ok").all()


def test_a_recorded_judge_is_asked_nothing(recorded):
    freeze("small")
    (paths.run_dir("small") / "replies" / "uniform" / "detection.jsonl").unlink()
    tally = ask_run("small", "uniform", ["detection"])["detection"]
    assert (tally.items, tally.finished, tally.calls) == (8, 8, 0)


def test_a_record_is_never_rewritten(recorded):
    written = freeze("small")
    assert [path.name for path in written] == [
        *("coverage.jsonl", "detection.jsonl", "localization.jsonl"),
        *("chains.jsonl.gz", "causality.jsonl.gz", "coverage.jsonl.gz", "natural.jsonl.gz", "manifest.json"),
    ]
    record = read_json(paths.frozen_dir("small") / "record.json")["uniform"]
    assert record["command"] == "make judge RUN=small JUDGE=uniform"
    assert record["files"]["detection.jsonl"] == sha256_file(written[1])
    with pytest.raises(InputError, match="uniform is recorded already"):
        freeze("small")


def test_replies_to_another_dataset_are_not_mixed_in(recorded):
    freeze("small")
    dataset.write(dataset.build("synthetic", limit=3), paths.run_dir("small"))
    with pytest.raises(InputError, match="another dataset"):
        freeze("small", ["uniform"])


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
            items = tasks.items(champ, path.stem)
            rows = replies.of_run(RUN, judge_id, path.stem)
            frame = verdict_frames.verdict_frame(items, rows, judge_id, replies.read_pin(folder)["fingerprint"])
            assert not frame["status"].isin(["pending", "api_error"]).any(), f"{judge_id} {path.stem}"


@pytest.mark.parametrize("judge_id", ["always-flag", "never-flag", "uniform", "middle", "symbolic"])
def test_an_offline_judge_still_says_what_was_recorded(champ, judge_id):
    judge = judges.make(judge_id)
    recorded = {row["prompt_sha256"]: row["text"] for row in replies.of_run(RUN, judge_id, "detection")}
    queries = [item.query(judge.fingerprint) for item in tasks.items(champ, "detection")[:40]]
    assert {q.prompt_sha256: reply.text for q, reply in judge.replies(queries)}.items() <= recorded.items()


def test_nothing_is_recorded_unless_all_of_it_can_be(recorded):
    ask_run("small", "middle", part="1/3")
    with pytest.raises(InputError, match=r"middle/coverage.jsonl: \d+ items are pending"):
        freeze("small", ["uniform", "middle"])
    assert not paths.frozen_dir("small").exists()
    with pytest.raises(InputError, match="make data"):
        freeze("nothing")


def test_a_torn_line_is_asked_again(recorded):
    path = replies.journal_path(paths.run_dir("small"), "uniform", "detection")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    tally = ask_run("small", "uniform")["detection"]
    assert (tally.items, tally.finished) == (8, 8)
    assert path.with_suffix(".torn").exists()
    assert [row["item_id"] for row in replies.read(path)] == [eval_id(line) for line in whole.splitlines()]


def eval_id(line):
    return orjson.loads(line)["item_id"]


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_a_limit_that_limits_nothing_is_refused(recorded, limit):
    with pytest.raises(InputError, match="MAX_COST"):
        ask_run("small", "uniform", max_cost=limit)


def test_a_baseline_says_what_it_does_not_answer(recorded):
    with pytest.raises(InputError, match="a baseline answers detection, localization, coverage, not reference"):
        ask_run("small", "middle", ["reference"])
