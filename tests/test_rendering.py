"""Tables as files: full numbers in CSV, the same bytes again, Markdown that holds together."""

import csv
import io
import json
import re

import pandas as pd
import pytest

from c2faith.analysis import tables
from c2faith.analysis.metrics import Measured
from c2faith.analysis.tables.spec import MISSING
from c2faith.records import InputError
from frames import frames

pytestmark = pytest.mark.filterwarnings("error")
DRAWS = 100


def computed(n_chains, judges):
    made = frames(n_chains, judges, seed=1)
    items = made.pop("items")
    return dict(tables.compute(Measured(made, items=items, draws=DRAWS)))


@pytest.fixture(scope="module")
def run():
    return computed(40, 3)


def test_csv_holds_full_numbers(run, tmp_path):
    tables.save(run["table1_detection"], tmp_path, "t")
    back = pd.read_csv(tmp_path / "t.csv", keep_default_na=True)
    ours = run["table1_detection"]
    assert list(back.columns) == list(ours.columns)
    assert back["detection_low"].to_numpy() == pytest.approx(ours["detection_low"].to_numpy(), rel=1e-9)


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    written = []
    for folder in ("a", "b"):
        for name, table in computed(3, 1).items():
            tables.save(table, tmp_path / folder / "run", name)
        written.append({path.name: path.read_bytes() for path in (tmp_path / folder / "run").iterdir()})
    assert written[0] == written[1]


def test_markdown_merges_intervals_and_marks_the_best(run):
    text = tables.markdown(run["table1_detection"])
    row = next(line for line in text.splitlines() if line.startswith("| judge-0 "))
    assert re.search(r"\| \*\*\d+\.\d \[\d+\.\d, \d+\.\d\]\*\* \|", row)
    published_rows = [line for line in text.splitlines() if "published" in line]
    assert len(published_rows) == 3  # not in the panel for which the paper has nothing
    assert not any("**" in line for line in published_rows)


def test_equal_values_have_no_best():
    table = pd.DataFrame({"judge_id": ["a", "b"], "detection": [0.5, 0.5]})
    assert "**" not in tables.markdown(table)


def test_missing_values_are_dashes_and_never_nan(run):
    for table in run.values():
        assert not re.search(r"\bnan\b|<NA>|\bNone\b", tables.markdown(table))
    assert MISSING in tables.markdown(run["table1_detection"])


def test_stars_stand_on_the_correlation(run):
    text = tables.markdown(run["table3_coverage"])
    assert r"0.151\*\*\*" in text
    assert r"−0.006 |" in text


def test_a_long_table_shows_its_first_rows_and_says_so():
    table = pd.DataFrame({"judge_id": [f"j{k}" for k in range(9)], "n": range(9)})
    table.attrs["limit"] = 3
    text = tables.markdown(table)
    assert "The first 3 of 9 rows" in text
    assert "j3" not in text


def test_a_pipe_in_a_name_does_not_break_a_row():
    table = pd.DataFrame({"judge_id": ["a|b"], "n": [1]})
    row = tables.markdown(table).splitlines()[-1]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


def test_numbers_are_plain_json_with_null_where_undefined(run, tmp_path):
    tables.save_numbers(run, tmp_path / "numbers.json")
    text = (tmp_path / "numbers.json").read_text()
    assert "NaN" not in text
    read = json.loads(text)
    row = read["table1_detection"][-1]
    assert row["origin"] == "published"
    assert row["false_alarm"] is None
    assert row["detection"] == 0.92


def test_an_unwritable_folder_is_one_clear_line(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        tables.save(run["table1_detection"], tmp_path / "file", "t")


def test_csv_quotes_what_needs_it(tmp_path):
    table = pd.DataFrame({"judge_id": ['a,"b"\nc'], "n": [1]})
    tables.save(table, tmp_path, "t")
    assert list(csv.reader(io.StringIO((tmp_path / "t.csv").read_text())))[1] == ['a,"b"\nc', "1"]
