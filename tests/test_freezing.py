"""Recording a run, replaying it, and noticing a table that differs."""

import orjson
import pytest

from c2faith import dataset, paths
from c2faith.__main__ import main
from c2faith.judging import judges, replies, tasks, verdict_frames
from c2faith.judging.ask import ask_run
from c2faith.judging.judges.computed import ComputedJudge
from c2faith.judging.recording import freeze
from c2faith.records import InputError, read_json, sha256_file

RUN = "champ"


def test_replay_equals_live(small_run):
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


def test_a_recorded_judge_is_asked_nothing(small_run):
    freeze("small")
    (paths.run_dir("small") / "replies" / "uniform" / "detection.jsonl").unlink()
    tally = ask_run("small", "uniform", ["detection"])["detection"]
    assert (tally.items, tally.finished, tally.calls) == (12, 12, 0)


def test_a_record_is_never_rewritten(small_run):
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


def test_replies_to_another_dataset_are_not_mixed_in(small_run):
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


def test_nothing_is_recorded_unless_all_of_it_can_be(small_run):
    ask_run("small", "middle", part="1/3")
    with pytest.raises(InputError, match=r"middle/coverage.jsonl: \d+ items are pending"):
        freeze("small", ["uniform", "middle"])
    assert not paths.frozen_dir("small").exists()
    with pytest.raises(InputError, match="make data"):
        freeze("nothing")


def test_a_torn_line_is_asked_again(small_run):
    path = replies.journal_path(paths.run_dir("small"), "uniform", "detection")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    tally = ask_run("small", "uniform")["detection"]
    assert (tally.items, tally.finished) == (12, 12)
    assert path.with_suffix(".torn").exists()
    assert [row["item_id"] for row in replies.read(path)] == [eval_id(line) for line in whole.splitlines()]


def eval_id(line):
    return orjson.loads(line)["item_id"]


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_a_limit_that_limits_nothing_is_refused(small_run, limit):
    with pytest.raises(InputError, match="MAX_COST"):
        ask_run("small", "uniform", max_cost=limit)


def test_a_baseline_says_what_it_does_not_answer(small_run):
    with pytest.raises(InputError, match="a baseline answers detection, localization, coverage, not reference"):
        ask_run("small", "middle", ["reference"])


@pytest.mark.parametrize(
    ("judge", "task", "words"),
    [
        (
            "symbolic",
            "reference",
            "symbolic: the symbolic judge answers detection, localization, coverage, not ref",
        ),
        ("middle", "reference", "middle: a baseline answers detection, localization, coverage, not reference"),
        (
            "uniform",
            "negation",
            "uniform: a baseline answers detection, localization, coverage, reference, not neg",
        ),
        (
            "cros/champ",
            "step_only",
            "cros-champ: a trained judge answers detection, localization, coverage, not step",
        ),
        ("symbolic", "detektion", "unknown task 'detektion': choose from detection, localization, coverage, refer"),
    ],
)
def test_what_a_judge_does_not_answer_is_said_before_anything_is_written(small_run, capsys, judge, task, words):
    trained = paths.ROOT / "data" / "frozen" / "champ" / "cros"
    name = judge.replace("champ", str(trained))
    before = sorted(small_run.rglob("*"))
    assert main(["judge", "--run", "small", "--judge", name, "--tasks", f"detection,{task}"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert words.replace("cros-champ", f"cros{str(trained).replace('/', '-')}") in said
    assert sorted(small_run.rglob("*")) == before
    assert verdict_frames.load("small", reference="retention")["detection"]["judge_id"].unique() == ["uniform"]


def test_an_empty_journal_is_not_asked(small_run):
    for name, raw in (("symbolic", b""), ("middle", b'{"item_id": "torn')):
        path = replies.journal_path(paths.run_dir("small"), name, "step_only")
        path.parent.mkdir(parents=True)
        path.write_bytes(raw)
    assert "step_only" not in verdict_frames.load("small", reference="retention")
    with pytest.raises(InputError, match="judge symbolic has no replies in run small; there are: uniform"):
        verdict_frames.load("small", ["symbolic"])


def test_a_judge_that_never_replies_leaves_no_journal(small_run, monkeypatch):
    def refuse(self, queries):
        raise InputError("refused")
        yield

    monkeypatch.setattr(ComputedJudge, "replies", refuse)
    with pytest.raises(InputError, match="refused"):
        ask_run("small", "symbolic", ["detection"])
    assert not list(small_run.rglob("symbolic/*.jsonl"))
