"""The report: formulas, outcomes, one safe and stable page, and a browser that clicks through it."""

import base64
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from c2faith.analysis import figures, metrics, report, tables
from c2faith.analysis.report.explorer import grade, payload
from c2faith.analysis.report.mathml import UnreadableError, formulas, mathml
from c2faith.dataset import Dataset
from c2faith.judging import tasks
from c2faith.records import CausalityItem, Chain, CoverageItem, NaturalItem
from frames import frames

EVIL = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'></script> "
    r"so $\text{<script>window.hacked = 3</script>}$ and $\href{javascript:alert(1)}{x}$ <!-- <script>"
)


def made_up(n_chains=12, judges=3):
    """Verdict frames and the dataset they could have come from; one judge replies with an attack."""
    made = frames(n_chains=n_chains, judges=judges)
    chains, causality, coverage, natural = [], [], [], []
    removed = made["coverage"].drop_duplicates("item_id").set_index("item_id")["n_removed"]
    for row in made["items"].itertuples():
        steps = [*row.steps[: row.target], row.original_step, *row.steps[row.target + 1 :]]
        chains.append(Chain(row.chain_id, row.problem_id, "synthetic", row.question, tuple(steps)))
        texts = (row.original_step, row.perturbed_step, row.context, row.negator, row.edit_type, row.similarity)
        causality.append(CausalityItem(row.item_id, row.chain_id, row.steps, row.target, *texts))
        model = f"model-{row.chain_id}"
        natural.append(
            NaturalItem(f"{model}/natural", model, row.problem_id, "synthetic", row.question, tuple(steps), -1)
        )
        for level in (0.0, 0.1, 0.3, 0.5, 0.7):
            item_id = f"{row.chain_id}/coverage-{round(100 * level):02d}"
            gone = tuple(range(1, 1 + removed[item_id]))
            kept = tuple(step for index, step in enumerate(steps) if index not in gone)
            coverage.append(CoverageItem(item_id, row.chain_id, level, kept, gone, level, level))
    verdicts = {task: made[task] for task in ("detection", "localization", "coverage")}
    verdicts["detection"].loc[verdicts["detection"]["judge_id"] == "judge-1", "reasoning"] = EVIL
    items = Dataset(tuple(chains), tuple(causality), tuple(coverage), tuple(natural), {})
    return verdicts, items


@pytest.fixture(scope="module")
def run():
    return made_up()


def build(out_path, verdicts, items, made=None):
    folder = out_path.parent
    return report.build(
        out_path, run="test", verdicts=verdicts, tables=made or {}, figures_folder=folder, items=items
    )


# ---- formulas ----


@pytest.mark.parametrize(
    ("latex", "markup"),
    [
        (r"\frac{1}{2}", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        ("a < b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (r"\text{<b>&amp;</b>}", "<mtext>&lt;b&gt;&amp;&lt;/b&gt;</mtext>"),
        (r"\href{javascript:alert(1)}{x}", "<mrow><mi>x</mi></mrow>"),
    ],
)
def test_formulas_become_escaped_mathml(latex, markup):
    assert mathml(latex) == markup


@pytest.mark.parametrize(
    "latex", [r"\frac{", r"\nosuchcommand{x}", "{" * 900, "x" * 1001, "}{", r"\begin{matrix} a"]
)
def test_formulas_that_cannot_be_read_stay_text(latex):
    with pytest.raises(UnreadableError):
        mathml(latex)
    assert formulas([f"${latex}$"]) == {}


def test_formulas_are_found_between_their_delimiters_and_money_is_none():
    text = r"From \(a\) and \[b\] with $c$, $$d$$ and \begin{align*}e\end{align*}: \$5, $5 and $6, costs $7."
    assert sorted(formulas([text])) == [r"\begin{align*}e\end{align*}", "a", "b", "c", "d"]


# ---- grades ----


@pytest.mark.parametrize(
    ("task", "value", "label", "expected"),
    [
        ("detection", 0, 0, "caught"),
        ("detection", 1, 0, "missed"),
        ("detection", 1, 1, "accepted"),
        ("detection", 0, 1, "false alarm"),
        ("detection", np.nan, 0, "no answer"),
        ("localization", 3, 3, "exact"),
        ("localization", 2, 3, "one step off"),
        ("localization", 0, 3, "elsewhere"),
        ("localization", -1, 3, "missed"),
        ("localization", -1, -1, "accepted"),
        ("localization", 0, -1, "false alarm"),
        ("coverage", 3, 3.5, "as the reference"),
        ("coverage", 4, 3.4, "too high"),
        ("coverage", 0, 1, "too low"),
        ("coverage", 0, np.nan, "no reference"),
        ("coverage", np.nan, np.nan, "no answer"),
    ],
)
def test_grades(task, value, label, expected):
    names = {"detection": "truth", "localization": "target", "coverage": "reference"}
    assert grade({"task": task, "value": value, names[task]: label}) == expected


# ---- the explorer's content ----


def test_payload_holds_every_item_with_its_verdicts(run):
    verdicts, items = run
    content = payload(verdicts, items)
    assert len(content["items"]) == sum(frame["item_id"].nunique() for frame in verdicts.values())
    first = content["items"][0]
    texts = content["texts"]
    assert texts[first["steps"][first["target"]]] == items.causality[0].perturbed_step
    assert texts[first["was"]] == items.causality[0].original_step
    row = verdicts["detection"].iloc[0]
    value, _, status, confidence, reasoning = first["verdicts"][0]
    assert (value, status, confidence) == (row["value"], "ok", round(row["confidence"], 3))
    assert texts[reasoning] == row["reasoning"]
    assert len(texts) == len(set(texts))


def test_payload_shows_removed_steps_in_their_places(run):
    verdicts, items = run
    content = payload(verdicts, items)
    entry = next(entry for entry in content["items"] if entry["id"].endswith("coverage-50"))
    row = next(row for row in items.coverage if row.item_id == entry["id"])
    chain = next(chain for chain in items.chains if chain.chain_id == row.chain_id)
    assert tuple(content["texts"][number] for number in entry["steps"]) == chain.steps
    assert tuple(entry["removed"]) == row.removed


def test_a_judge_that_was_not_asked_has_no_verdict(run):
    verdicts, items = run
    fewer = verdicts | {"coverage": verdicts["coverage"].query("judge_id != 'judge-1'")}
    entries = [entry for entry in payload(fewer, items)["items"] if entry["task"] == "coverage"]
    assert all(entry["verdicts"][1] is None and entry["verdicts"][0] for entry in entries)


@pytest.fixture
def further(run, monkeypatch):
    """The run with a sixth task: one score a chain, compared with a column of its own."""
    verdicts, items = run

    def planned(dataset):
        return [item for item in tasks.items(dataset, "detection") if item.kind == "perturbed"]

    row = {"name": "necessity", "metric": "needed", "headline": "share", "items": planned, "truth": "needed"}
    monkeypatch.setitem(tasks.TASKS, "necessity", dataclasses.replace(tasks.TASKS["coverage"], **row))
    frame = verdicts["detection"].query("kind == 'perturbed'").assign(task="necessity", value=3.0, needed=2.0)
    return verdicts | {"necessity": frame}, items


def test_a_further_task_is_explored_and_counted_like_the_others(further, run, tmp_path):
    added = [item for item in payload(*further)["items"] if item["task"] == "necessity"]
    assert len(added) == len(run[1].causality)
    assert {verdict[1] for item in added for verdict in item["verdicts"]} == {"too high"}
    page = build(tmp_path / "report.html", *further).read_text("utf-8")
    assert "<th>coverage</th><th>necessity</th>" in page
    assert page.count("<td>12 of 12</td>") >= 3
    assert "answers ${value}" in page and "{%" not in page


def test_of_more_judges_than_colours_some_share_one(run):
    verdicts, items = run
    first = verdicts["detection"].query("judge_id == 'judge-0'")
    many = pd.concat([first.assign(judge_id=f"judge-{number}") for number in range(14)])
    colours = [judge["colour"] for judge in payload({"detection": many}, items)["judges"]]
    assert len(colours) == 14 and len(set(colours)) == 12


# ---- the page ----


def test_the_page_needs_nothing_from_outside_and_runs_one_script(run, tmp_path):
    page = build(tmp_path / "report.html", *run).read_text("utf-8")
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page) == []
    assert not re.search(r"@import|url\(", page)
    assert len(re.findall(r"<script", page)) == 2
    assert len(re.findall(r"</script", page)) == 2
    assert "default-src &#39;none&#39;" in page
    assert (Path(report.__file__).parent / "page.css").read_text("utf-8") in page
    assert "answers ${value}" not in page and "{%" not in page


def test_the_items_are_packed_into_the_page_and_come_out_as_they_went_in(run, tmp_path):
    page = build(tmp_path / "report.html", *run).read_text("utf-8")
    packed = re.search(r'id="content">([^<]*)<', page)[1]
    content = json.loads(zlib.decompress(base64.b64decode(packed, validate=True)))
    assert {name: content[name] for name in ("texts", "items")} == {
        name: value for name, value in payload(*run).items() if name in ("texts", "items")
    }
    assert EVIL in content["texts"]
    assert "window.hacked" not in page


def test_the_page_escapes_names_and_captions(run, tmp_path):
    verdicts, items = run
    table = pd.DataFrame({"judge_id": ["<i>x</i>"], "n": [3]})
    table.attrs["caption"] = "a < b & c"
    page = build(tmp_path / "report.html", verdicts, items, {"table9_test": table}).read_text("utf-8")
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert "a &lt; b &amp; c" in page
    assert "<h3>Table 9, test</h3>" in page


SAME = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_report
test_report.build(Path(sys.argv[1]), *test_report.made_up())
"""


def test_the_page_is_the_same_bytes_in_another_process(run, tmp_path):
    here = build(tmp_path / "here" / "report.html", *run).read_bytes()
    there = tmp_path / "there" / "report.html"
    command = [sys.executable, "-c", SAME, str(there), str(Path(__file__).parent)]
    subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "7"}, check=True)
    assert there.read_bytes() == here


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver) and not os.environ.get("CI"):
        pytest.skip("needs chromium and chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync", "disable-dev-shm-usage",
        "force-prefers-reduced-motion", "window-size=1400,900",
        f"user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):  # fmt: skip
        options.add_argument(f"--{switch}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(browser, run, tmp_path_factory):
    """The report of the made-up run, opened, its items unpacked."""
    from selenium.webdriver.support.ui import WebDriverWait

    verdicts, items = run
    folder = tmp_path_factory.mktemp("report")
    figures.save(figures.overall.fig8_failures(metrics.Measured(verdicts)), folder, "fig8_failures")
    made = {"table1_detection": tables.paper.table1_detection(metrics.Measured(verdicts, draws=20))}
    browser.get(build(folder / "report.html", verdicts, items, made).as_uri())
    WebDriverWait(browser, 20).until(lambda page: " of " in page.find_element("css selector", "#found").text)
    return browser


@pytest.fixture
def explorer(page):
    return Explorer(page)


PAUSE = "await new Promise((done) => setTimeout(done, 60))"


class Explorer:
    """The page as a reader uses it."""

    def __init__(self, driver):
        self.driver = driver
        self.find("#clear").click()
        self.run(PAUSE)

    def run(self, script, *arguments):
        return self.driver.execute_async_script(
            f"const args = [...arguments], done = args.pop(); (async () => {{ {script} }})().then(done)", *arguments
        )

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        return [found.text for found in self.driver.find_elements("css selector", selector)]

    def choose(self, **wanted):
        from selenium.webdriver.support.ui import Select

        for menu, value in wanted.items():
            Select(self.find(f"#{menu}")).select_by_value(value)

    @property
    def found(self):
        return int(self.find("#found").text.split(" of ")[0].replace(",", ""))

    def press(self, keys):
        self.find("#list").send_keys(keys)


def test_the_page_opens_without_a_complaint_and_asks_the_network_nothing(page):
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert page.execute_script("return [...document.images].every((image) => image.naturalWidth > 0)")
    assert page.find_element("css selector", "#table1_detection td").text == "judge-0"


def test_an_attack_in_a_reply_stays_text(explorer):
    explorer.choose(task="detection", judge="1")
    explorer.press("j")
    assert "<script>window.hacked = 1</script>" in explorer.texts(".verdict .text")[1]
    assert explorer.run("return window.hacked ?? null") is None
    assert explorer.run("return document.querySelectorAll('#item script, #item img, #item a').length") == 0


def test_filters_count_what_the_frames_hold(explorer, run):
    verdicts, items = run
    explorer.choose(task="detection", kind="perturbed", judge="2", verdict="missed")
    missed = verdicts["detection"].query("judge_id == 'judge-2' and kind == 'perturbed' and value == 1")
    assert explorer.found == len(missed) > 0
    explorer.find("#clear").click()
    edit = items.causality[0].edit_type
    explorer.choose(task="localization", kind="perturbed", edit=edit)
    assert explorer.found == sum(row.edit_type == edit for row in items.causality)


def test_disagreement_means_one_right_and_one_wrong(explorer, run):
    verdicts, _ = run
    explorer.choose(task="detection", disagreement="split")
    frame = verdicts["detection"]
    right = (frame["value"] == frame["truth"]).groupby(frame["item_id"])
    wrong = ((frame["value"] != frame["truth"]) & frame["value"].notna()).groupby(frame["item_id"])
    assert explorer.found == (right.any() & wrong.any()).sum() > 0


def test_search_looks_into_problems_steps_and_reasoning(explorer):
    search = explorer.find("#search")
    search.send_keys("claim")  # stands in perturbed steps only: detection and localization of 12 chains
    assert explorer.found == 24
    search.clear()
    search.send_keys("WINDOW.HACKED")
    assert explorer.found == 24  # judge-1's reasoning on 12 perturbed steps and 12 twins
    search.clear()
    search.send_keys("no such thing")
    assert explorer.found == 0
    assert "No item fits" in explorer.find("#item").text


def test_the_perturbed_step_stands_out_with_what_it_was(explorer, run):
    _, items = run
    explorer.choose(task="localization", kind="perturbed")
    item = items.causality[0]
    target = explorer.find(".steps .target")
    assert target.find_element("css selector", ".number").text == str(item.target)
    assert target.find_element("css selector", ".tag").text == "perturbed"
    assert explorer.run("return document.querySelectorAll('.steps .target math').length") >= 1
    assert explorer.run("return document.querySelectorAll('.was math').length") == 1


def test_each_pick_stands_at_its_step(explorer, run):
    verdicts, items = run
    explorer.choose(task="localization", kind="perturbed")
    here = verdicts["localization"]["item_id"] == items.causality[0].item_id
    picks = verdicts["localization"][here].set_index("judge_id")["value"]
    for judge, value in picks[picks >= 0].items():
        row = explorer.driver.find_elements("css selector", ".steps li")[int(value)]
        assert judge in row.find_element("css selector", ".picks").text


def test_removed_steps_and_the_scores_are_shown(explorer, run):
    verdicts, items = run
    explorer.choose(task="coverage", kind="perturbed")
    row = next(row for row in items.coverage if row.removed)
    assert len(explorer.texts(".steps .removed")) == len(row.removed)
    score = verdicts["coverage"].query("item_id == @row.item_id and judge_id == 'judge-0'")["value"].item()
    assert explorer.texts(".verdict .says")[0].startswith("no answer" if np.isnan(score) else f"{score:.0f} of 4")


def test_keys_step_through_the_items_and_the_address_leads_back(explorer):
    first = explorer.find("#item h3").text
    explorer.press("jjj")
    third = explorer.find("#item h3").text
    assert third != first
    address = explorer.driver.current_url
    explorer.press("kkk")
    assert explorer.find("#item h3").text == first
    explorer.run(
        "location.hash = args[0]; await new Promise((done) => setTimeout(done, 50))", address.split("#")[1]
    )
    assert explorer.find("#item h3").text == third


def test_the_list_draws_only_the_rows_in_view(explorer):
    n_items = explorer.found
    assert 5 < len(explorer.texts(".row")) < 50 < n_items
    explorer.run(
        "document.getElementById('list').scrollTop = 1e6; await new Promise((done) => setTimeout(done, 100))"
    )
    assert len(explorer.texts(".row")) < 50


def test_nothing_went_wrong_on_the_way(explorer):
    assert explorer.driver.get_log("browser") == []
