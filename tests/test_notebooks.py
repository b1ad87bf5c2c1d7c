"""The runner: parameters checked, failures kept apart, every notebook executed for real on a small run."""

import nbformat
import pytest

import tiny_encoder
from c2faith import dataset, notebooks, paths
from c2faith.__main__ import main
from c2faith.judging import verdict_frames
from c2faith.records import InputError, read_json, sha256_file


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("C2FAITH_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", notebooks.names())
def test_a_notebook_keeps_the_house_rules(name):
    notebook = notebooks.read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = [cell for cell in code if "parameters" in cell.metadata.get("tags", ())]
    assert len(tagged) == 1 and notebooks.defaults(notebook), "one parameters cell of literals"
    assert notebook.cells[0].source.startswith("# "), "a title first"
    assert len(notebook.cells) <= 32
    for cell in code:
        assert not cell.outputs
        lines = cell.source.splitlines()
        assert len(lines) <= 20, cell.source
        assert not any(line.startswith(("def ", "class ", "import sys", "sys.path")) for line in lines), cell.source


def test_pairs_are_in_step():
    assert notebooks.pair(check=True) == [], "run `make pair`"


def test_values_take_the_declared_types():
    known = {"limit": 450, "nested": False, "run": "champ", "rate": 0.5}
    given = {"limit": "8", "nested": "true", "run": "mine", "rate": "0.25"}
    assert notebooks.coerce(given, known) == {"limit": 8, "nested": True, "run": "mine", "rate": 0.25}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"limit": "many"}, "limit=many: takes a whole number"),
        ({"nested": "perhaps"}, "nested=perhaps: takes true or false"),
        ({"lmit": "8"}, "unknown parameter 'lmit': the notebook has limit, nested"),
    ],
)
def test_a_bad_parameter_is_one_line(given, complaint):
    with pytest.raises(InputError, match=complaint):
        notebooks.coerce(given, {"limit": 450, "nested": False})


def test_a_notebook_refuses_what_papermill_only_warns_about():
    cells = ["", "import os", "run: str = 'champ'\nlimit: int = 450", "# Parameters\nlimt = 8\n"]
    with pytest.raises(InputError, match="unknown parameter 'limt': the notebook has limit, run"):
        notebooks.refuse_unknown_parameters(cells)
    notebooks.refuse_unknown_parameters([*cells[:3], "# Parameters\nlimit = 8\n"])
    notebooks.refuse_unknown_parameters(cells[:3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        (["source=chmp"], "chmp"),
        (["limit=0"], "LIMIT=0"),
        (["source=jsonl", "path=no/such/file.jsonl"], "no/such/file.jsonl"),
    ],
)
def test_a_refusing_notebook_is_one_line_and_looks_unfinished(home, capfd, parameters, complaint):
    arguments = [word for pair in parameters for word in ("-p", pair)]
    assert main(["notebook", "01_dataset", "-p", "run=bad", *arguments]) == 2
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ") and complaint in last
    folder = paths.run_dir("bad")
    assert [path.name for path in (folder / "notebooks").iterdir()] == ["01_dataset.failed.ipynb"]
    assert [path.name for path in folder.iterdir()] == ["notebooks"]


def test_unknown_names_are_one_line(home, capsys):
    assert main(["notebook", "07_nothing"]) == 2
    assert "unknown notebook '07_nothing': choose from 01_dataset" in capsys.readouterr().err
    assert main(["notebook", "01_dataset", "-p", "sorce=champ"]) == 2
    assert "unknown parameter 'sorce'" in capsys.readouterr().err
    assert main(["judge", "--run", "../x", "--judge", "symbolic"]) == 2
    assert "RUN='../x'" in capsys.readouterr().err
    assert main(["judge", "--run", "small", "--judge", "symbolyc"]) == 2
    assert "unknown judge 'symbolyc': choose from always-flag" in capsys.readouterr().err


@pytest.mark.slow
def test_the_pipeline_runs_on_a_small_run(home):
    small = ["-p", "run=small"]
    assert main(["notebook", "01_dataset", *small, "-p", "limit=8", "-p", "natural_limit=4"]) == 0
    for judge in ("symbolic", "always-flag", "uniform"):
        assert main(["judge", "--run", "small", "--judge", judge]) == 0
    assert main(["notebook", "02_judging", *small]) == 0
    assert main(["notebook", "03_analysis", *small, "-p", "draws=200"]) == 0
    figures = {path.name for path in paths.figures_dir("small").iterdir()}
    for table in ("table1_detection", "table2_localization", "table3_coverage"):
        assert {f"{table}.csv", f"{table}.md", f"{table}.tex"} <= figures
    for figure in ("fig2a_detection", "fig2b_localization", "fig3a_scores", "fig3b_trend"):
        assert {f"{figure}.pdf", f"{figure}.png"} <= figures
    for path in (paths.run_dir("small") / "notebooks").iterdir():
        errors = [
            output
            for cell in nbformat.read(path, 4).cells
            for output in cell.get("outputs", ())
            if output.output_type == "error"
        ]
        assert not errors


@pytest.mark.slow
def test_a_judge_is_trained_recorded_and_asked(home, monkeypatch):
    monkeypatch.setattr(paths, "FROZEN", home / "frozen")
    model = tiny_encoder.save(home / "tiny", context=1024)
    dataset.write(dataset.build("synthetic", limit=9), paths.run_dir("small"))
    small = {"run": "small", "model": model, "max_tokens": 900, "folds": 3, "seeds": 1, "workers": 1, "draws": 50}
    quick = {"extra": 1, "synthetic": 3, "warm_updates": 2, "updates": 2}
    arguments = [word for pair in (small | quick).items() for word in ("-p", "{}={}".format(*pair))]
    assert main(["notebook", "04_cros_rl", *arguments]) == 0
    tables = {path.stem for path in (paths.figures_dir("small") / "cros").glob("*.csv")}
    assert tables == {"comparison", "other_tasks", "pairs", "learning_curves", "transfer"}
    assert main(["judge", "--run", "small", "--judge", "cros/small"]) == 0
    assert main(["freeze", "--run", "small", "--judges", "cros-small"]) == 0
    kept = paths.frozen_dir("small") / "cros"
    assert {path.name for path in kept.iterdir()} == {
        "config.json",
        "figures.json",
        "log.jsonl",
        *(f"head-{i}.safetensors" for i in range(3)),
    }
    trained = read_json(paths.frozen_dir("small") / "record.json")["cros-small"]["trained"]
    assert trained["head-0.safetensors"] == sha256_file(kept / "head-0.safetensors")
    live = verdict_frames.load("small", reference="retention")["localization"]
    assert len(live) == 18 and set(live["status"]) <= {"ok", "length"}
