"""Typed rows: canonical bytes, atomic writing, and errors that name file and line."""

import os
import subprocess
import sys

import pytest

from c2faith import records
from c2faith.records import Chain, InputError

CHAIN = Chain("c", "p", "champ", "Find x.", ("Let x = 1.", "So x = 1."), "1", ((0,), (1, 2)))


def test_rows_come_back_as_they_went(tmp_path):
    path = tmp_path / "deep" / "chains.jsonl"
    assert records.write_jsonl(path, [CHAIN, CHAIN]) == 2
    assert records.read_jsonl(path, Chain) == [CHAIN, CHAIN]


def test_same_rows_are_same_bytes(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    records.write_jsonl(first, [CHAIN])
    records.write_jsonl(second, records.read_jsonl(first, Chain))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"chain_id": "c"', "line 2: not one JSON object"),
        (b"[1, 2]", "line 2: the line: Input should be"),
        (b'{"chain_id": "c"}', "line 2: problem_id: "),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, complaint):
    path = tmp_path / "chains.jsonl"
    path.write_bytes(records.dump(CHAIN) + b"\n" + line + b"\n")
    with pytest.raises(InputError, match=complaint) as caught:
        records.read_jsonl(path, Chain)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        records.read_jsonl(tmp_path / "none.jsonl", Chain)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "chains.jsonl"
    records.write_jsonl(path, [CHAIN])
    before = path.read_bytes()

    def rows():
        yield CHAIN
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        records.write_jsonl(path, rows())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["chains.jsonl"]


def test_an_unwritable_folder_is_one_line(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        records.write_json(blocker / "x.json", {})


def test_generators_differ_by_word_and_agree_across_processes():
    code = "from c2faith.records import rng; print(rng(7, 'causality', 'a').integers(10**9))"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert int(elsewhere.stdout) == records.rng(7, "causality", "a").integers(10**9)
    assert records.rng(7, "a").integers(10**9) != records.rng(7, "b").integers(10**9)
    assert records.rng(7, "ab", "c").integers(10**9) != records.rng(7, "a", "bc").integers(10**9)


def test_hashes_are_sha256(tmp_path):
    # The empty input's digest is a published constant.
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert records.sha256(b"") == records.sha256("") == empty
    (tmp_path / "empty").write_bytes(b"")
    assert records.sha256_file(tmp_path / "empty") == empty
