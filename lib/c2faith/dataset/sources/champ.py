"""Chains and natural errors from CHAMP (Mao et al. 2024), which the package champ-dataset carries.

270 problems with an expert's solution, each step with the concepts and hints it uses; and 540 model solutions in
which a person marked the first wrong step, or found none. A model's solution is running text: `split_steps`
makes steps of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from c2faith.dataset.chains import Dropped, Request, chain, kept, leave_out, natural_item, no_path
from c2faith.records import Chain, InputError, NaturalItem

_DISPLAYS = re.compile(r"\$\$.+?\$\$|\\\[.+?\\\]|\\begin\{(\w+\*?)\}.+?\\end\{\1\}", re.DOTALL)
_LEADS_ON = re.compile(r"([:,]|(^|\s)[A-Za-z]{2,})\**\s*$")  # what ends so is not finished: "we get", "Case 1:"
_GOES_ON = re.compile(r"(where|which|and|or|so|since|because|if|for|with|as|but|when|is|are)\b")


def inputs(path: str | None) -> dict[str, Path]:
    """The package's one file, found without importing the package, which would read all of it."""
    no_path(path, "champ")
    spec = find_spec("champ_dataset")
    if spec is None or spec.origin is None:
        raise InputError("SOURCE=champ: the package champ-dataset is not installed; pip install champ-dataset")
    return {"champ-dataset/v0.json": Path(spec.origin).parent / "dataset_files" / "v0.json"}


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain | NaturalItem]:
    """The experts' solutions as chains, and the models' as natural items if asked for."""
    for path in files.values():
        for problem in orjson.loads(path.read_bytes())["problems"].values():
            dropped.read += 1
            yield from kept(dropped.chains, _perfect, problem, request)
            for annotation in problem["fws_annotations"].values() if request.natural else ():
                yield from kept(dropped.natural, _natural, problem, annotation)


def _perfect(problem: Mapping[str, Any], request: Request) -> Chain:
    steps = problem["solution"]["steps"]
    leave_out(len(steps) < request.min_steps, "too few steps")
    texts, concepts = [step["_text"].strip() for step in steps], tuple(tuple(step["ch_idxs"]) for step in steps)
    answer, name = problem["_answer"], problem["identifier"]
    return chain("champ", problem["_text"], texts, name, answer=answer, concepts=concepts)


def _natural(problem: Mapping[str, Any], annotation: Mapping[str, Any]) -> NaturalItem:
    text, start = annotation["text"], annotation["start_idx"]
    spans = split_steps(text)
    leave_out(len(spans) < 2, "a single step")
    first_error = -1
    if start is not None:
        last = start + len(text[start : annotation["end_idx"]].rstrip()) - 1
        holding = [index for index, (begin, end) in enumerate(spans) if begin <= last and start < end]
        leave_out(len(holding) != 1, "marked span covers several steps")
        first_error = holding[0]
    steps = [text[slice(*span)] for span in spans]
    return natural_item("champ", problem["_text"], steps, first_error, problem["identifier"])


def split_steps(text: str) -> list[tuple[int, int]]:
    """(begin, end) of each step of a solution written as running text.

    A line is a step, with these exceptions: a displayed formula is never cut; a line that ends in a colon, a
    comma or a word without a full stop ("we get", a heading) leads on to the next; a line that begins with a
    connective in lower case ("where", "so"), or has neither letter nor digit ("..."), continues the last.

    >>> text = "Expanding, we get\\n\\n3x + 6 = 9.\\n\\nSo x = 1."
    >>> [text[begin:end] for begin, end in split_steps(text)]
    ['Expanding, we get\\n\\n3x + 6 = 9.', 'So x = 1.']
    """
    displays = [match.span() for match in _DISPLAYS.finditer(text)]
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"\S[^\n]*", text):
        begin, end = match.start(), match.start() + len(match.group().rstrip())
        if spans and (
            any(left < begin < right for left, right in displays)
            or _LEADS_ON.search(text, *spans[-1])
            or _GOES_ON.match(text, begin)
            or not re.search(r"\w", match.group())
        ):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((begin, end))
    return spans
