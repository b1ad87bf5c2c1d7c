"""Datasets: what is in them, that they are the same bytes anywhere, and that bad input leaves nothing behind."""

import gzip
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path

import orjson
import pytest

from c2faith import dataset, paths
from c2faith.dataset.perturb import middle_region
from c2faith.records import InputError, dump, sha256_file, write_json

SAMPLES = Path(os.environ.get("C2FAITH_SAMPLES", "/nowhere"))
SMALL = {"source": "synthetic", "limit": 12}


@pytest.fixture(scope="module")
def small():
    return dataset.build(**SMALL)


def test_each_chain_has_its_items(small):
    chains = {chain.chain_id: chain for chain in small.chains}
    assert len(chains) == 12
    assert Counter(item.chain_id for item in small.coverage) == dict.fromkeys(chains, 5)
    assert len(small.causality) + small.manifest["dropped"]["causality"].get("no valid negation", 0) == 12
    for item in small.causality:
        original = chains[item.chain_id].steps
        assert item.target in middle_region(len(original))
        assert [i for i, step in enumerate(item.steps) if step != original[i]] == [item.target]


def test_deletions_and_their_control(small):
    chains = {chain.chain_id: chain for chain in small.chains}
    for item in small.coverage:
        steps = chains[item.chain_id].steps
        region = middle_region(len(steps))
        tenths = round(10 * item.deletion_rate)
        assert len(item.removed) == ceil(tenths * len(region) / 10) and set(item.removed) <= set(region)
        assert item.steps == tuple(step for i, step in enumerate(steps) if i not in item.removed)
        if not tenths:
            assert item.item_id.endswith("/coverage-00") and item.steps == steps


def test_rates_are_drawn_independently_or_nested():
    def removed(items, rate):
        return [set(item.removed) for item in items if item.deletion_rate == rate]

    def subsets(items):
        return sum(low <= high for low, high in zip(removed(items, 0.1), removed(items, 0.3), strict=True))

    assert subsets(dataset.build(**SMALL | {"limit": 60}, nested=True).coverage) == 60
    # Independently, one of about six middle steps is among two of them in about a third of the chains.
    assert 5 < subsets(dataset.build(**SMALL | {"limit": 60}).coverage) < 45


def test_a_larger_limit_leaves_the_items_of_the_others_alone(small):
    larger = dataset.build(**SMALL | {"limit": 20})
    assert set(small.chains) < set(larger.chains)
    assert set(small.coverage) < set(larger.coverage)


def test_other_seeds_make_other_items(small):
    other = dataset.build(**SMALL, seed=1)
    assert not set(small.chains) & set(other.chains)


def test_the_manifest_accounts_for_every_record(tmp_path):
    rows = [{"question": f"q{i // 2}", "steps": [f"{i}+{i}={2 * i}"] * (4 + i % 3)} for i in range(30)]
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    manifest = dataset.build("jsonl", path=str(path), limit=6).manifest
    assert manifest["counts"]["records"] == 30
    assert manifest["counts"]["chains"] + sum(manifest["dropped"]["chains"].values()) == 30
    assert manifest["inputs"] == {"mine.jsonl": sha256_file(path)}
    assert str(tmp_path) not in dump(manifest).decode(), "no path of this machine"


def test_the_manifest_states_the_exact_parameters():
    parameters = dataset.build(**SMALL | {"limit": 2}, alpha=0.3, rates=["1/3", 0.5]).manifest["parameters"]
    assert (parameters["alpha"], parameters["beta"]) == ("3/10", "9/10")
    assert parameters["rates"] == ["0", "1/3", "1/2"]


def test_written_and_read_again(small, tmp_path):
    dataset.write(small, tmp_path / "run")
    assert dataset.read(tmp_path / "run") == small
    for name, digest in small.manifest["files"].items():
        assert sha256_file(tmp_path / "run" / name) == digest


PROGRAM = """
import sys
from pathlib import Path
from c2faith import dataset
dataset.write(dataset.build(sys.argv[1], limit=int(sys.argv[2])), Path(sys.argv[3]))
"""


@pytest.mark.parametrize(("source", "limit"), [("synthetic", 12), ("champ", 20)])
def test_the_same_bytes_in_another_process(source, limit, tmp_path):
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        call = [sys.executable, "-c", PROGRAM, source, str(limit), str(tmp_path / seed)]
        subprocess.run(call, check=True, env=environment)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == ["causality.jsonl", "chains.jsonl", "coverage.jsonl", "manifest.json", "natural.jsonl"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_recorded_negations_are_replayed(small, tmp_path):
    dataset.write(small, tmp_path)
    again = dataset.build(**SMALL, negator="recorded", recorded=tmp_path / "causality.jsonl")
    assert [replace(item, negator="rules") for item in again.causality] == list(small.causality)
    assert again.manifest["inputs"] == {"negations/causality.jsonl": small.manifest["files"]["causality.jsonl"]}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"source": "prm"}, "SOURCE=prm: no such source"),
        ({"limit": 0}, "LIMIT=0"),
        ({"natural_limit": 0}, "NATURAL_LIMIT=0"),
        ({"negator": "magic"}, "magic"),
        ({"negator": "recorded"}, "recorded"),
        ({"rates": ["0.3", "0.1"]}, "RATES=0.3, 0.1: must rise"),
        ({"rates": [0]}, "RATES=0: must rise"),
        ({"rates": [1.5]}, "RATES=1.5: must lie between 0 and 1"),
        ({"rates": ["much"]}, "RATES=much: is no number"),
        ({"alpha": "3/0"}, "ALPHA=3/0: is no number"),
        ({"source": "champ", "limit": 180, "require": True}, "champ has only 179 perfect chains"),
        ({"source": "prm800k", "path": "nowhere.jsonl"}, "nowhere.jsonl: no such file or folder"),
    ],
)
def test_bad_input_is_one_line(given, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        dataset.build(**SMALL | given)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_left_as_it_was(small, tmp_path):
    (tmp_path / "run").write_text("a file where the folder should be")
    with pytest.raises(InputError, match="cannot be written"):
        dataset.write(small, tmp_path / "run" / "here")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("manifest", ["[]", "{}", "null", '{"files": 5}'])
def test_a_manifest_that_is_none_is_one_line(small, tmp_path, manifest):
    dataset.write(small, tmp_path)
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match="no manifest of a dataset"):
        dataset.read(tmp_path)


def test_reading_refuses_what_is_missing_torn_or_changed(small, tmp_path):
    with pytest.raises(InputError, match=r"no dataset here; build it first \(make data RUN="):
        dataset.read(tmp_path / "none")
    dataset.write(small, tmp_path)
    lines = (tmp_path / "coverage.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "coverage.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match=r"coverage\.jsonl: changed since its manifest was written"):
        dataset.read(tmp_path)
    (tmp_path / "coverage.jsonl").write_bytes(b"".join(lines)[:-30])
    with pytest.raises(InputError, match=rf"coverage\.jsonl, line {len(lines)}: "):
        dataset.read(tmp_path)


@pytest.fixture
def recorded(small, tmp_path, monkeypatch):
    """The folder of a recorded run, with its items."""
    monkeypatch.setattr(paths, "FROZEN", tmp_path / "frozen")
    dataset.write(small, paths.frozen_dir("small"), packed=True)
    return paths.frozen_dir("small")


def test_packed_items_are_the_same_bytes_each_time(small, recorded, tmp_path):
    written = dataset.write(small, tmp_path / "again", packed=True)
    names = ["chains.jsonl.gz", "causality.jsonl.gz", "coverage.jsonl.gz", "natural.jsonl.gz", "manifest.json"]
    assert [path.name for path in written] == names
    assert all(path.read_bytes() == (recorded / path.name).read_bytes() for path in written)
    assert dataset.read(recorded) == small, "packed or not, the manifest's hashes are of the rows"


def test_a_run_s_items_are_the_recorded_ones_if_there_are_any(small, recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path / "home"))
    other = dataset.build(**SMALL, seed=1)
    for run in ("small", "live"):
        dataset.write(other, paths.run_dir(run))
    assert dataset.of_run("small") == small and dataset.of_run("live") == other
    (recorded / "natural.jsonl.gz").unlink()
    assert not dataset.is_recorded(recorded) and dataset.of_run("small") == other, "all of them or none"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (lambda packed: packed[:-9], r"after line \d+: cannot be read"),
        (lambda packed: packed[:40] + b"\0" + packed[41:], r"after line \d+: cannot be read"),
        (lambda packed: b"", r"changed since its manifest was written"),
        (lambda packed: gzip.compress(gzip.decompress(packed)[:-5]), r"line 60: not one JSON object"),
        (lambda packed: gzip.compress(gzip.decompress(packed) * 2), r"changed since its manifest was written"),
    ],
)
def test_a_torn_or_altered_packed_file_is_one_line(recorded, changed, complaint):
    path = recorded / "coverage.jsonl.gz"
    path.write_bytes(changed(path.read_bytes()))
    with pytest.raises(InputError, match=rf"coverage\.jsonl\.gz.*{complaint}") as caught:
        dataset.read(recorded)
    assert "\n" not in str(caught.value)


def test_comparison_with_what_is_recorded(small, recorded):
    def compare(**changed):
        write_json(recorded / "manifest.json", small.manifest | changed)
        return dataset.compare_with_recorded(small, "small")

    assert dataset.compare_with_recorded(small, "another") == "No dataset is recorded for this run."
    assert "All 4 files are, byte for byte, the recorded ones" in compare()
    assert "All 4 files" in compare(versions={"numpy": "0"}), "the same bytes by other versions"
    with pytest.raises(InputError, match=r"^the run is recorded with another seed; name a RUN of its own"):
        compare(parameters=small.manifest["parameters"] | {"seed": 9})
    said = compare(files=small.manifest["files"] | {"chains.jsonl": "0"})
    assert said.startswith("chains.jsonl: not as recorded") and "build it as another RUN" in said


def test_champ_has_natural_errors_of_both_solutions_of_a_problem():
    made = dataset.build("champ", natural_limit=10)
    assert made.manifest["counts"]["chains"] == 179
    assert len({item.problem_id for item in made.natural}) == 10 < len(made.natural) <= 20


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="C2FAITH_SAMPLES names no folder")
def test_the_real_prm800k_sample():
    made = dataset.build("prm800k", path=str(SAMPLES / "prm800k_sample.jsonl"))
    assert made.manifest["counts"]["chains"] == 70 and made.natural == ()
    assert made.manifest["dropped"]["natural"]["ends at its error"] == 1028
    assert made.manifest["counts"]["chains"] + sum(made.manifest["dropped"]["chains"].values()) == 1196
