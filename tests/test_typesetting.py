"""LaTeX tables: names escaped, nothing taken for a command, no float too large for a page, and they compile."""

import re
import shutil
import subprocess

import pandas as pd
import pytest

from c2faith import paths
from c2faith.analysis import tables
from c2faith.analysis.metrics import Measured
from c2faith.analysis.tables.rendering import escape
from frames import frames

NASTY = r"a%b&c_d#e~f^g\h$i{j}k|l--m`n'o\"p<q>r?"
PREAMBLE = r"\documentclass{article}\usepackage{booktabs}\usepackage{graphicx}\begin{document}"


def computed(n_chains, judges):
    made = frames(n_chains, judges, seed=1)
    items = made.pop("items")
    return dict(tables.compute(Measured(made, items=items, draws=10)))


def nasty():
    """A table whose every text tries to be something else."""
    names = [NASTY, "[x", "*", "猫 café\t\x07", "\\\\", "%", "--- ?` !`", "\\end{table}"]
    frame = pd.DataFrame({"judge_id": names, "rule": names, "n": range(len(names)), "detection": 0.5})
    frame["note"] = [f"{name} and what else there is to say about it, at some length" for name in names]
    frame.attrs = {"keys": ["judge_id", "rule"], "panels": {NASTY: ["n", "detection", "note"]}}
    return frame


# Escaping


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("%", r"\%"),
        ("&", r"\&"),
        ("_", r"\_"),
        ("#", r"\#"),
        ("~", r"\textasciitilde{}"),
        ("^", r"\textasciicircum{}"),
        ("\\", r"\textbackslash{}"),
        ("$", r"\$"),
        ("{x}", r"\{x\}"),
        ("|", r"\textbar{}"),
        ("`", r"\textasciigrave{}"),
        ("a--b---c-d", "a-{}-b-{}-{}-c-d"),
        ("a\nb\tc", "a b c"),
        ("猫\x07", "[U+732B][U+0007]"),
        ("50% & a_b ≥ −1", r"50\% \& a\_b $\geq$ $-$1"),
    ],
)
def test_text_is_escaped(text, written):
    assert escape(text) == written


def test_nothing_in_a_name_is_left_to_latex():
    text = escape("".join(map(chr, range(32, 127))))
    assert text.isascii()
    bare = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}])|\$[<>]\$", "", text)
    assert not re.search(r"[\\&%$#_{}~^|`\"<>]", bare)


@pytest.mark.parametrize("name", ["[x]", "*", "猫"])
def test_a_name_is_no_argument_of_the_line_above(name):
    text = tables.latex(pd.DataFrame({"judge_id": ["a", name], "n": [1, 2]}), "t")
    assert rf"\\{chr(10)}{{}}{escape(name)} & 2 \\" in text


# Layout


@pytest.fixture(scope="module")
def run():
    return computed(40, 3)


@pytest.mark.parametrize("name", ["table1_detection", "table3_coverage", "table4_capability", "appendix_f_words"])
def test_a_table_is_balanced_ascii_and_escaped(run, name):
    table = run[name]
    text = tables.latex(table, name, table.attrs["caption"])
    assert text.isascii()
    assert text.count(r"\begin{") == text.count(r"\end{")
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    body = re.sub(r"\$[^$]*\$", "", re.sub(r"\\label\{.*?\}|\\.", "", text))
    assert not re.search(r"[#_^~]", body)
    for alignment, rows in re.findall(r"\\begin\{tabular\}\{([lr]*)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        widths = {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows.split("\\\\\n") if "&" in row}
        assert widths == {len(alignment)}


def test_numbers_stand_right_texts_left_and_long_texts_are_wrapped():
    table = pd.DataFrame(
        {"judge_id": ["a"], "rule": ["any flag"], "n": [3], "sd": [float("nan")], "note": ["x " * 30]}
    )
    table.attrs["keys"] = ["judge_id"]
    text = tables.latex(table, "t")
    assert r"\begin{tabular}{llrrl}" in text
    assert rf"& \parbox[t]{{5.6cm}}{{\raggedright {'x ' * 30}\strut}} \\" in text


def test_what_is_too_high_for_a_page_is_continued_with_its_heading_and_number():
    table = pd.DataFrame({"judge_id": [f"j{number}" for number in range(100)], "n": range(100)})
    text = tables.latex(table, "t", "All of them.")
    floats = text.split(r"\begin{table}")[1:]
    assert [len(re.findall(r"^j\d+ ", part, re.MULTILINE)) for part in floats] == [39, 39, 22]
    assert re.findall(r"^j(\d+) ", text, re.MULTILINE) == [str(number) for number in range(100)]
    assert all(r"Judge & n \\" in part for part in floats)
    assert r"\caption{All of them.}" in floats[0]
    assert all(r"\addtocounter{table}{-1}\caption{(continued)}" in part for part in floats[1:])
    assert text.count(r"\label{tab:t}") == 1


def test_an_empty_table_has_its_heading():
    text = tables.latex(pd.DataFrame({"judge_id": [], "n": []}), "t", "None.")
    assert text.count(r"\begin{table}") == 1
    assert r"Judge & n \\" in text


def test_two_runs_in_one_paper_have_labels_of_their_own(tmp_path):
    table = pd.DataFrame({"judge_id": ["a"], "n": [1]})
    for run in ("champ", "prm"):
        tables.save(table, tmp_path / run, "t")
        assert rf"\label{{tab:{run}:t}}" in (tmp_path / run / "t.tex").read_text()


# A real engine


def complaints(folder, sources):
    """What pdflatex says is wrong with a document of these sources."""
    document = "\n".join([PREAMBLE, *(f"\\input{{{source}}}\\clearpage" for source in sources), r"\end{document}"])
    (folder / "all.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"]
    for _ in range(2):  # labels are known from the second time on
        subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "all.log").read_text("latin-1")
    assert "Output written on all.pdf" in log
    return [line for line in log.splitlines() if re.match(r"!|Overfull|Missing character|LaTeX.*Warning", line)]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_every_table_compiles_and_fits_its_page(tmp_path):
    committed = sorted(paths.ROOT.glob("figures/*/*.tex"))
    assert len(committed) > 20
    for name, table in {**computed(30, 12), "nasty": nasty()}.items():
        tables.save(table, tmp_path / "many", name, caption=table.attrs.get("caption", NASTY))
    made = sorted((tmp_path / "many").glob("*.tex"))
    assert complaints(tmp_path, [*committed, *made]) == []
