"""The journal: nothing finished is lost, nothing is asked twice, two writers never meet."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from c2faith.judging import replies
from c2faith.judging.judges.base import Query, Reply
from c2faith.judging.replies import Journal
from c2faith.records import InputError, write_jsonl


def query(item, key="k"):
    return Query(item, "detection", (("user", "?"),), "q", ("a", "b"), 1, key)


def finished(path, asked):
    return asked.key in replies.settled(replies.read(path))


def test_a_reply_settles_its_item(tmp_path):
    path = tmp_path / "detection.jsonl"
    with Journal(path) as book:
        assert not finished(path, query("a"))
        book.append(query("a"), Reply('{"score": 0}'))
        assert finished(path, query("a"))
        assert not finished(path, query("a", key="another prompt"))
    with Journal(path):
        assert finished(path, query("a"))


def test_an_api_error_leaves_the_item_pending_and_counts_attempts(tmp_path):
    path = tmp_path / "detection.jsonl"
    with Journal(path) as book:
        book.append(query("a"), Reply(None, None, error="api_error"))
        assert not finished(path, query("a"))
    with Journal(path) as book:
        row = book.append(query("a"), Reply("{}"))
        assert (row["attempt"], finished(path, query("a"))) == (1, True)


def test_a_due_second_sample_leaves_the_item_pending(tmp_path):
    path = tmp_path / "detection.jsonl"
    with Journal(path) as book:
        book.append(query("a"), Reply("", extra={"will_retry": True}))
        assert not finished(path, query("a"))


def test_a_torn_last_line_is_set_aside(tmp_path):
    path = tmp_path / "detection.jsonl"
    with Journal(path) as book:
        book.append(query("a"), Reply("{}"))
        book.append(query("b"), Reply("x" * 200_000))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[:-5])
    with Journal(path) as book:
        assert finished(path, query("a")) and not finished(path, query("b"))
        book.append(query("b"), Reply("{}"))
    assert path.with_suffix(".torn").read_bytes() == whole[first:-5] + b"\n"
    assert [row["item_id"] for row in replies.read(path)] == ["a", "b"]


def test_a_mangled_line_is_named(tmp_path):
    path = tmp_path / "detection.jsonl"
    path.write_text('{"item_id": "a"}\n')
    with pytest.raises(InputError, match="line 1: no journal row"):
        Journal(path)


def test_a_second_process_is_refused(tmp_path):
    path = tmp_path / "detection.jsonl"
    code = f"from c2faith.judging.replies import Journal; import pathlib; Journal(pathlib.Path({str(path)!r}))"
    with Journal(path):
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "another process is writing it" in second.stderr.splitlines()[-1]


def test_a_full_disk_keeps_what_was_finished(tmp_path):
    path = tmp_path / "detection.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Journal(path) as book:
            book.append(query("a"), Reply("{}"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path) + 100, hard))
            with pytest.raises(InputError, match="make room and run the same command"):
                book.append(query("b"), Reply("y" * 1_000))
            assert not finished(path, query("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert [row["item_id"] for row in replies.read(path)] == ["a"]


def test_the_last_final_attempt_counts(tmp_path):
    path = tmp_path / "detection.jsonl"
    base = {"item_id": "a", "prompt_sha256": "k", "error": None, "extra": {}}
    rows = [{**base, "attempt": 0}, {**base, "attempt": 1, "error": "api_error"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert replies.is_final(replies.latest(replies.read(path))[("a", "k")])
    assert replies.latest(replies.read(tmp_path / "none.jsonl")) == {}


def test_rows_are_written_whole_and_forced_to_the_disk_at_checkpoints(tmp_path, monkeypatch):
    writes, synced = [], []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda file, data: writes.append(data) or write(file, data))
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(len(writes)) or fsync(file))
    with Journal(tmp_path / "often.jsonl", checkpoint_s=0.0) as book:
        book.append(query("a"), Reply("{}"))
        book.append(query("b"), Reply("{}"))
    assert synced == [1, 2, 2]  # after each row, and at the end
    writes.clear(), synced.clear()
    with Journal(tmp_path / "seldom.jsonl", checkpoint_s=3600.0) as book:
        book.append(query("a"), Reply("x" * 100_000))
        assert book.append(query("b"), Reply("{}"))["attempt"] == 0 and not synced
    assert [data.endswith(b"\n") and data.count(b"\n") for data in writes] == [1, 1] and synced == [2]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"item_id": 3}, "item_id"),
        ({"attempt": "0"}, "attempt"),
        ({"attempt": -1}, "attempt"),
        ({"text": ["a"]}, "text"),
        ({"usage": [1]}, "usage"),
        ({"usage": {"prompt_tokens": "many"}}, "usage.prompt_tokens"),
        ({"latency_s": "long"}, "latency_s"),
        ({"error": "gone fishing"}, "error"),
        ({"scores": "0.5"}, "scores"),
        ({"extra": 5}, "extra"),
        ({"at": 5}, "at"),
    ],
)
def test_a_row_of_a_wrong_type_is_one_line_with_its_number(tmp_path, change, complaint):
    path = tmp_path / "j.jsonl"
    good = {"item_id": "a", "prompt_sha256": "b", "attempt": 0, "text": "{}", "error": None}
    write_jsonl(path, [good, good | {"attempt": 1} | change])
    with pytest.raises(InputError, match=rf"j\.jsonl, line 2: no journal row: {complaint}") as caught:
        list(replies.read(path))
    assert "\n" not in str(caught.value)


def test_what_a_server_said_in_any_type_is_read(tmp_path):
    row = {"item_id": "a", "prompt_sha256": "b", "attempt": 0, "text": "{}", "finish_reason": {"type": "stop"}}
    write_jsonl(tmp_path / "j.jsonl", [row | {"extra": {"reasoning_content": ["x"], "refusal": {"a": 1}}}])
    (read,) = replies.read(tmp_path / "j.jsonl")
    assert read["finish_reason"] == '{"type": "stop"}'
    assert not replies.is_final(read), "a word that is not known is neither success nor final"


def test_an_attempt_that_stands_twice_counts_once(tmp_path):
    row = {"item_id": "a", "prompt_sha256": "b", "attempt": 0, "text": "{}", "usage": {"prompt_tokens": 7}}
    write_jsonl(tmp_path / "j.jsonl", [row, row, row | {"attempt": 1}])
    assert [read["attempt"] for read in replies.read(tmp_path / "j.jsonl")] == [0, 1]
