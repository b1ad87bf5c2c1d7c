"""Records become chains: PRM800K's quirks and known answers, JSON lines; bad input in one line."""

import gzip
import os
from pathlib import Path

import orjson
import pytest

from c2faith.dataset.chains import Dropped, Request, json_lines, load_chains, source_module
from c2faith.dataset.sources import jsonl, prm800k
from c2faith.records import Chain, InputError, NaturalItem, dump

SAMPLES = Path(os.environ.get("C2FAITH_SAMPLES", "/nowhere"))
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="C2FAITH_SAMPLES names no folder")
TEXTS = ["We know x + 1 = 3.", "So x = 2.", "Then x^2 = 4.", "And x^3 = 8.", "The sum is 12.\n\n# Answer\n\n12"]


def step(text, rating=1, *, chosen=0, human=None, flagged=None, others=()):
    completions = [{"text": text, "rating": rating, "flagged": flagged}]
    completions += [{"text": other, "rating": -1, "flagged": False} for other in others]
    return {"completions": completions, "human_completion": human, "chosen_completion": chosen}


def record(steps=None, finish="solution", solution=None, **other):
    question = {"problem": " If x + 1 = 3, find x^2 + x^3.\n", "ground_truth_answer": "SECRET"}
    if solution is not None:
        question["pre_generated_steps"] = solution
    steps = [step(text) for text in TEXTS] if steps is None else steps
    return {
        "labeler": None,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": question,
        "label": {"steps": steps, "total_time": None, "finish_reason": finish},
    } | other


def changed(index, new):
    return [new if i == index else step(text) for i, text in enumerate(TEXTS)]


def write(path, records):
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    return path


def read(path, module=prm800k, **request):
    dropped = Dropped()
    found = list(module.read(module.inputs(str(path)), Request(**request), dropped))
    return [x for x in found if isinstance(x, Chain)], [x for x in found if isinstance(x, NaturalItem)], dropped


def test_a_perfect_record_is_a_chain(tmp_path):
    chains, _, dropped = read(write(tmp_path / "a.jsonl", [record()]))
    assert [chain.steps for chain in chains] == [tuple(TEXTS)], "the closing answer stays in the last step"
    assert chains[0].question == "If x + 1 = 3, find x^2 + x^3."
    assert b"SECRET" not in dump(chains[0]), "the ground-truth answer is left behind"
    assert (dropped.read, sum(dropped.chains.values())) == (1, 0)


HUMAN = {"text": "Hence x = 2.", "rating": None, "source": "human", "flagged": False}


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (record(is_quality_control_question=True), "quality control"),
        (record(is_initial_screening_question=True), "initial screening"),
        (record(finish="give_up"), "finished by give_up"),
        (record(finish="bad_problem"), "finished by bad_problem"),
        (record(changed(2, step("Maybe.", 0))), "step not rated +1"),
        (record(changed(2, step("Unrated.", None))), "step not rated +1"),
        (record(changed(2, step("Flagged.", flagged=True))), "flagged step"),
        (record(changed(4, step("No way on.", -1, chosen=None))), "step without text"),
        (record(changed(1, step(" \n"))), "step without text"),
        (record(changed(1, step(None))), "step without text"),
        (record(changed(1, step("Bad.", -1, chosen=None, human=HUMAN))), "step written by the labeler"),
        (record(changed(1, step("Bad.", -1, chosen=None, human="Hence x = 2."))), "step written by the labeler"),
        (record([step(text) for text in TEXTS[:4]]), "too few steps"),
    ],
)
def test_an_imperfect_record_is_dropped_for_its_reason(tmp_path, made, reason):
    chains, _, dropped = read(write(tmp_path / "a.jsonl", [made]))
    assert chains == [] and dropped.chains == {reason: 1}


@pytest.mark.parametrize("human", [HUMAN, "Hence x = 2."])
def test_human_steps_can_be_let_in_as_object_and_as_string(tmp_path, human):
    path = write(tmp_path / "a.jsonl", [record(changed(1, step("Bad.", -1, chosen=None, human=human)))])
    chains, _, _ = read(path, human_steps=True)
    assert chains[0].steps[1] == "Hence x = 2."


def test_the_chosen_of_several_completions_is_the_step(tmp_path):
    several = step("Wrong.", -1, others=["Worse.", "Worst."], chosen=3)
    several["completions"].append({"text": "So x = 2.", "rating": 1, "flagged": False})
    several["completions"][0]["flagged"] = True  # not the chosen one
    chains, _, _ = read(write(tmp_path / "a.jsonl", [record(changed(1, several))]))
    assert chains[0].steps[1] == "So x = 2."


def stopped(at, solution=TEXTS, rating=-1):
    """Labelled until step `at`, the first error, with alternatives there as phase 2 has them."""
    steps = [step(text) for text in TEXTS[:at]] + [step(TEXTS[at], rating, chosen=None, others=["Alternative."])]
    return record(steps, "found_error", solution)


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (stopped(2), 2),
        (stopped(0), 0),
        (stopped(4), "ends at its error"),
        (stopped(2, solution=None), "no whole solution"),
        (stopped(2, solution=[]), "no whole solution"),
        (stopped(2, solution=["Other.", *TEXTS[1:]]), "rated steps are not the solution's"),
        (stopped(2, solution=[*TEXTS[:4], ""]), "step without text"),
        (stopped(2, rating=None), "step not rated"),
        (stopped(2, rating=1), "error not marked"),
        (record(changed(1, step(TEXTS[1], 0)), solution=TEXTS), -1),
        (record([step(text) for text in TEXTS[:4]], solution=TEXTS), "solution with an error or unrated steps"),
        (
            record(changed(4, step(TEXTS[4], -1, chosen=None)), solution=TEXTS),
            "solution with an error or unrated steps",
        ),
        (record(changed(1, step(TEXTS[1], flagged=True)), solution=TEXTS), "flagged step"),
        (record(finish="give_up", solution=TEXTS), "finished by give_up"),
        (record(solution=TEXTS, is_quality_control_question=True), "quality control"),
    ],
)
def test_natural_items_are_whole_solutions(tmp_path, made, outcome):
    _, items, dropped = read(write(tmp_path / "a.jsonl", [made]), natural=True)
    if isinstance(outcome, str):
        assert items == [] and dropped.natural == {outcome: 1}
    else:
        assert [(item.first_error, item.steps) for item in items] == [(outcome, tuple(TEXTS))]


def test_plain_gzipped_folder_and_url_read_alike(tmp_path):
    lines = write(tmp_path / "phase2_train.jsonl", [record(), record(finish="give_up")]).read_bytes()
    (tmp_path / "phase1_train.jsonl.gz").write_bytes(gzip.compress(lines))
    write(tmp_path / "phase2_test.jsonl", [record(question={"problem": "Of the test split.", "answer": "1"})])
    one = read(tmp_path / "phase2_train.jsonl")
    assert read(tmp_path / "phase1_train.jsonl.gz")[0] == one[0]
    assert read(f"file://{tmp_path}/phase1_train.jsonl.gz")[0] == one[0]
    chains, _, dropped = read(tmp_path)
    assert (len(chains), dropped.read) == (2, 4), "both training files, not the test split"
    assert len(read(tmp_path / "phase2_test.jsonl")[0]) == 1, "unless it is named"


def test_records_are_read_one_by_one(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(orjson.dumps(record()) + b"\n{broken")
    stream = prm800k.read({"a": path}, Request(), Dropped())
    assert next(stream).steps == tuple(TEXTS), "the first line is out before the second is looked at"
    with pytest.raises(InputError, match="line 2"):
        next(stream)


GOOD = orjson.dumps(record())


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (GOOD + b"\n" + GOOD[:200], r"a\.jsonl, line 2: not one JSON object"),
        (GOOD + b"\n" + GOOD + GOOD + b"\n", r"a\.jsonl, line 2: not one JSON object"),
        (GOOD + b"\n\xff\xfe\n", r"a\.jsonl, line 2: not one JSON object"),
        (b'{"steps": ["a"]}\n', r"a\.jsonl, line 1: not a PRM800K record \(KeyError: 'question'\)"),
        (b'{"question": {"problem": "p"}}\n', r"a\.jsonl, line 1: not a PRM800K record \(KeyError: 'label'\)"),
        (b"\n[1, 2]\n", r"a\.jsonl, line 2: not a PRM800K record"),
        (b'"text"\n', r"a\.jsonl, line 1: not a PRM800K record"),
        (orjson.dumps(record(changed(1, step("x", chosen=7)))), r"a\.jsonl, line 1: not a PRM800K record"),
        (orjson.dumps(record(changed(1, "x"))), r"a\.jsonl, line 1: not a PRM800K record"),
        (b"", r"a\.jsonl: empty"),
        (b" \n\n", r"a\.jsonl: empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", r"line 1.*git lfs pull"),
        (gzip.compress(GOOD * 50)[:-20], r"a\.jsonl, after line 0: cannot be read"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_line(tmp_path, content, complaint):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read(tmp_path / "a.jsonl")
    assert "\n" not in str(caught.value)


def test_missing_paths_and_unknown_sources(tmp_path):
    for path in ("nowhere.jsonl", tmp_path, f"file://{tmp_path}/nowhere.jsonl"):
        with pytest.raises(InputError, match=r"no such file|holds no \*\.jsonl|cannot be fetched") as caught:
            prm800k.inputs(str(path))
        assert "\n" not in str(caught.value)
    with pytest.raises(
        InputError, match="SOURCE=prm8k: no such source; choose one of champ, prm800k, jsonl, synthetic"
    ):
        load_chains("prm8k")
    for source in ("champ", "synthetic"):
        with pytest.raises(InputError, match=r"leave the path empty \(SOURCE_PATH\)$"):
            source_module(source).inputs("a.jsonl")


@needs_samples
def test_the_real_sample_gives_its_known_counts():
    chains, items, dropped = read(SAMPLES / "prm800k_sample.jsonl", natural=True)
    assert (dropped.read, len(chains)) == (1196, 102)
    assert dropped.read == len(chains) + sum(dropped.chains.values())
    assert len(load_chains("prm800k", path=str(SAMPLES / "prm800k_sample.jsonl"))) == 70
    assert dropped.natural["ends at its error"] == 1028
    assert all(item.first_error == -1 for item in items), "no error is followed by further steps"


@needs_samples
def test_the_real_phase_1_records():
    path = SAMPLES / "prm800k_phase1_raw.jsonl"
    chains, items, dropped = read(path, natural=True)
    assert (chains, items) == ([], [])
    assert dropped.chains == {"step written by the labeler": 2, "finished by give_up": 1}
    assert [len(chain.steps) for chain in read(path, human_steps=True)[0]] == [6, 6]


def test_json_lines_chains_need_labels_of_1(tmp_path):
    rows = [
        {"question": "q1", "steps": TEXTS, "labels": [1, 1, True, 1, 1], "answer": 12},
        {"question": "q2", "steps": TEXTS, "labels": [1, 1, 0, 1, 1]},
        {"question": "q3", "steps": TEXTS, "labels": [1, None, 1, 1, 1]},
        {"question": " q4 ", "steps": [f" {text}" for text in TEXTS], "more": "ignored"},
        {"question": "q5", "steps": TEXTS[:4]},
    ]
    chains, _, dropped = read(write(tmp_path / "a.jsonl", rows), module=jsonl)
    assert [(c.question, c.steps, c.answer) for c in chains] == [
        ("q1", tuple(TEXTS), "12"),
        ("q4", tuple(TEXTS), None),
    ]
    assert dropped.chains == {"step not labelled 1": 2, "too few steps": 1}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"steps": TEXTS}, "line 2: question: Field required"),
        ({"question": "q", "steps": "a"}, "line 2: steps: "),
        ({"question": "q", "steps": ["a", 3]}, r"line 2: steps\.1: "),
        ({"question": "q", "steps": ["a", " "]}, r"line 2: steps\.1: "),
        ({"question": "q", "steps": ["a", "b"], "labels": [1]}, "line 2: 1 labels for 2 steps"),
        ({"question": "q", "steps": ["a"], "labels": ["good"]}, r"line 2: labels\.0"),
        ([1], "line 2: the line: "),
    ],
)
def test_a_bad_json_line_is_named(tmp_path, row, complaint):
    path = write(tmp_path / "a.jsonl", [{"question": "q", "steps": TEXTS}, row])
    with pytest.raises(InputError, match=complaint) as caught:
        read(path, module=jsonl)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "complaint"), [("", "needs a path"), (".", "is a folder"), ("no.jsonl", "no such file")]
)
def test_json_lines_need_a_file(path, complaint):
    with pytest.raises(InputError, match=complaint):
        jsonl.inputs(path)


def test_line_numbers_count_blank_lines(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"1\n\n3\n")
    assert list(json_lines(tmp_path / "a.jsonl")) == [(1, 1), (3, 3)]
