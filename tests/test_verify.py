"""Whatever is committed, verification notices if it is not what was recorded or made again."""

import itertools
import re
import shutil
import zlib
from base64 import b64decode, b64encode

import pytest

from c2faith import dataset, paths
from c2faith.__main__ import main
from c2faith.analysis import verify
from c2faith.records import InputError, read_json, write_json

CSV = "judge,n,rate\na,4,0.25\n"


@pytest.fixture
def committed(tmp_path, monkeypatch):
    """A checkout with a recorded run, and another home where all of its figures were made again."""
    monkeypatch.setattr(paths, "ROOT", tmp_path / "checkout")
    monkeypatch.setattr(paths, "FROZEN", tmp_path / "checkout" / "frozen")
    frozen = paths.frozen_dir("small")
    dataset.write(dataset.build("synthetic", limit=3), frozen, packed=True)
    (frozen / "replies" / "a").mkdir(parents=True)
    (frozen / "replies" / "a" / "detection.jsonl").write_text("{}\n")
    write_json(frozen / "record.json", {"a": {"files": {"detection.jsonl": verify.sha256_file(
        frozen / "replies" / "a" / "detection.jsonl")}}})  # fmt: skip
    figures = tmp_path / "checkout" / "figures"
    for folder in ("small", "published", "small/cros"):
        (figures / folder).mkdir(parents=True, exist_ok=True)
        (figures / folder / "table.csv").write_text(CSV)
        (figures / folder / "table.md").write_text("| a | 0.25 |\n")
    write_json(
        frozen / "cros" / "figures.json",
        {path.name: verify.sha256_file(path) for path in (figures / "small" / "cros").iterdir()},
    )
    shutil.copytree(figures, tmp_path / "again" / "figures", ignore=shutil.ignore_patterns("cros"))
    return tmp_path


def test_all_is_the_same(committed):
    lines = verify.verify("small", committed / "again")
    assert lines == [
        "items: 4 files built again, the same",
        "replies and heads: 1 files as recorded",
        "figures/small: 2 files made again, the same, 2 as make cros recorded them",
        "figures/published: 2 files made again, the same",
    ]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("figures/small/table.csv", "table.csv"),
        ("figures/small/table.md", "line 1"),
        ("figures/published/table.csv", "table.csv"),
        ("figures/small/cros/table.csv", "not as make cros recorded it"),
        ("frozen/small/replies/a/detection.jsonl", "changed since it was recorded"),
        ("frozen/small/causality.jsonl.gz", "causality.jsonl.gz"),
    ],
)
def test_an_altered_file_is_named(committed, name, complaint):
    path = committed / "checkout" / name
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.26").replace(b"{}", b"[]")[: path.stat().st_size - 1])
    with pytest.raises(InputError, match=complaint):
        verify.verify("small", committed / "again")


@pytest.mark.parametrize(
    ("again", "complaint"),
    [
        (CSV, None),
        ("judge,n,rate\na,4,0.2500000001\n", None),
        ("judge,n,rate\na,4,0.2501\n", r"rate.*0\.2501"),
        ("judge,n,rate\nb,4,0.25\n", "judge.*b"),
        ("judge,n,rate\n", "shape"),
        ("judge,n,rate\na,4,\n", "rate"),
    ],
)
def test_tables_are_compared_cell_by_cell(committed, again, complaint):
    (committed / "again" / "figures" / "small" / "table.csv").write_text(again)
    if complaint is None:
        verify.verify("small", committed / "again")
    else:
        with pytest.raises(InputError, match=complaint) as caught:
            verify.verify("small", committed / "again")
        assert "\n" not in str(caught.value)


def test_a_file_too_few_or_too_many_is_named(committed):
    (committed / "again" / "figures" / "small" / "table.md").unlink()
    (committed / "again" / "figures" / "small" / "new.csv").write_text(CSV)
    with pytest.raises(InputError, match=r"table\.md: was not made again; .*new\.csv: made, but not committed"):
        verify.verify("small", committed / "again")


def test_nothing_committed_is_no_success(committed):
    shutil.rmtree(committed / "checkout" / "figures" / "published")
    with pytest.raises(InputError, match="nothing is committed"):
        verify.verify("small", committed / "again")


def test_code_that_builds_other_items_is_noticed(committed, monkeypatch, capsys):
    recorded = read_json(paths.frozen_dir("small") / "manifest.json")
    built = dataset.rebuild(recorded)
    changed = {**built.manifest["files"], "causality.jsonl": "0"}
    other = dataset.Dataset(built.chains, built.causality, built.coverage, built.natural,
                            built.manifest | {"files": changed})  # fmt: skip
    monkeypatch.setattr(dataset, "rebuild", lambda *_: other)
    assert main(["verify", "--run", "small", "--against", str(committed / "again")]) == 2
    assert "builds another causality.jsonl; give what it builds another RUN" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_the_committed_pictures_differ_from_each_other(suffix):
    files = [path for path in sorted((paths.ROOT / "figures").rglob(f"*{suffix}")) if "cros" not in path.parts]
    assert len(files) > 10
    for path, other in itertools.pairwise(files):
        assert len(list(verify.different(path, other))) == 1, f"{path.name} is not {other.name}"


def repacked(path, change):
    """A PDF's streams, or a report's content, changed and compressed by another level."""
    raw = path.read_bytes()
    if path.suffix == ".pdf":
        pack = lambda match: b"stream\n" + zlib.compress(change(zlib.decompress(match[1])), 1) + b"\nendstream"  # noqa: E731
        return re.sub(rb"stream\r?\n(x.*?)\r?\nendstream", pack, raw, flags=re.DOTALL)
    found = max(re.findall(rb"[\w+/=]{2000,}", re.sub(rb"data:image/png;base64,[\w+/=]+", b"", raw)), key=len)
    return raw.replace(found, b64encode(zlib.compress(change(zlib.decompress(b64decode(found))), 1)))


@pytest.mark.parametrize("name", ["fig4_radar.pdf", "report.html"])
def test_what_is_said_counts_and_not_how_it_was_compressed(tmp_path, name):
    path, again = paths.ROOT / "figures" / "champ" / name, tmp_path / name
    again.write_bytes(repacked(path, lambda said: said))
    assert again.read_bytes() != path.read_bytes() and list(verify.different(path, again)) == []
    again.write_bytes(repacked(path, lambda said: said.replace(b"0.", b"7.", 1)))
    (line,) = verify.different(path, again)
    assert re.search(r"line \d+: '.*7.*', committed '", line)
