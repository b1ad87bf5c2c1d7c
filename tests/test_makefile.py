"""What is given to make is looked at before it is expanded or reaches a shell."""

import os
import subprocess

import pytest

from c2faith import paths
from c2faith.__main__ import main


def make(*words, **environment):
    call = ["make", "--dry-run", "--no-print-directory", *words]
    return subprocess.run(
        call, cwd=paths.ROOT, capture_output=True, text=True, env=os.environ | environment, check=False
    )


@pytest.mark.parametrize("name", ["RUN", "JUDGE", "SOURCE_PATH", "PRM800K", "LIMIT", "MODEL"])
@pytest.mark.parametrize("text", ["x'; touch {}; '", "$(shell touch {})", "$$(touch {})", "`touch {}`", 'a"b'])
def test_what_a_shell_would_run_is_refused(tmp_path, name, text):
    value = text.format(tmp_path / "touched")
    for found in (make("data", "judge", f"{name}={value}"), make("data", **{name: value})):
        assert found.returncode == 2 and found.stderr.count("\n") == 1
        assert f"error: {name} takes no quotes, backticks or dollar signs" in found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["SOURCE_PATH", "PRM800K"])
def test_a_file_is_named_by_either_name(name):
    assert "-p path='/some where/x.jsonl'" in make("data", "SOURCE=jsonl", f"{name}=/some where/x.jsonl").stdout


def test_other_text_goes_through():
    told = make("data", "RUN=mine", "LIMIT=up to 4").stdout
    assert "-p run='mine'" in told and "-p limit='up to 4'" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--run", "r" * 300, "--judge", "uniform"], "a run is named by at most 100 letters"),
        (["--judge", "openai/" + "j" * 300], "a judge is named by at most 100 letters"),
        (["--judge", "j" * 300], "unknown judge"),
        (["--judge", "j" * 300 + ".yaml"], "cannot be read"),
    ],
)
def test_a_name_too_long_for_a_folder_is_one_line(arguments, complaint, capsys):
    assert main(["judge", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and complaint in told
