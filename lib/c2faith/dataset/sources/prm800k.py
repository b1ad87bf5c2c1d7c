"""Chains and natural errors from PRM800K's raw records (Lightman et al. 2023), read as a stream.

One record a line is one labelled solution: ``question.problem``, and ``label.steps[]`` with the completions shown
to the labeler, their ratings (−1, 0, 1 or null) and which one was chosen. The ground-truth answer is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from c2faith.dataset.chains import Dropped, Request, Unfit, chain, json_lines, kept, leave_out, natural_item
from c2faith.records import Chain, InputError, NaturalItem

# The training split of both phases, verbatim, at a fixed revision of a public copy on the hub.
_HUB = "hf://datasets/tasksource/PRM800K@547b19506677a59037ee888838834b65e9b1ddd4"
HUB_FILES = (f"{_HUB}/phase1_train.jsonl", f"{_HUB}/phase2_train.jsonl")
_TEST_SPLIT = re.compile(r"(^|[_.-])test([_.-]|$)")


def inputs(path: str | None) -> dict[str, Path]:
    """A file, plain or gzipped; a folder's ``*.jsonl`` and ``*.jsonl.gz`` but for a test split; a URL
    (``https://``, ``hf://``, ``file://``); or, if `path` is None, "" or "hub", the training split on the hub.
    """
    if path in (None, "", "hub"):
        return _download(HUB_FILES)
    if "://" in path:
        return _download([path])
    if Path(path).is_file():
        return {Path(path).name: Path(path)}
    if not Path(path).is_dir():
        raise InputError(f"{path}: no such file or folder; give PRM800K's files, their folder, a URL or 'hub'")
    found = [file for file in sorted(Path(path).iterdir()) if file.name.endswith((".jsonl", ".jsonl.gz"))]
    if train := {file.name: file for file in found if not _TEST_SPLIT.search(file.name)}:
        return train
    raise InputError(f"{path}: holds no *.jsonl or *.jsonl.gz of the training split; give the folder that does")


def _download(urls: Sequence[str]) -> dict[str, Path]:
    from datasets import DownloadManager  # takes a second to import, and local files do without

    found = {}
    for url in urls:
        try:
            found[url.rsplit("/", 1)[-1]] = Path(DownloadManager().download(url))
        except Exception as error:  # the library lets its transports' own exceptions through
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            raise InputError(f"{url}: cannot be fetched ({reason}); download it and give its path") from error
    return found


def read(files: Mapping[str, Path], request: Request, dropped: Dropped) -> Iterator[Chain | NaturalItem]:
    """Chains whose every step is rated +1, and natural items if asked for."""
    for path in files.values():
        for number, record in json_lines(path):
            dropped.read += 1
            try:
                yield from kept(dropped.chains, _perfect, record, request)
                if request.natural:
                    yield from kept(dropped.natural, _natural, record)
            except (KeyError, TypeError, IndexError, AttributeError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise InputError(f"{path}, line {number}: not a PRM800K record ({reason})") from None


def _check_usable(record: Mapping[str, Any], finish: str, allowed: Sequence[str]) -> None:
    leave_out(record.get("is_quality_control_question"), "quality control")
    leave_out(record.get("is_initial_screening_question"), "initial screening")
    leave_out(finish not in allowed, f"finished by {finish}")


def _perfect(record: Mapping[str, Any], request: Request) -> Chain:
    problem, label = record["question"]["problem"], record["label"]
    steps = label["steps"]
    _check_usable(record, label["finish_reason"], ("solution",))
    texts = [_text(step, request) for step in steps]
    leave_out(len(texts) < request.min_steps, "too few steps")
    return chain("prm800k", problem.strip(), texts)


def _text(step: Mapping[str, Any], request: Request) -> str:
    if (chosen := step["chosen_completion"]) is not None:
        completion = step["completions"][chosen]
        if completion["rating"] != 1:
            raise Unfit("step not rated +1")
    elif (completion := step["human_completion"]) is None:
        raise Unfit("step without text")
    elif not request.human_steps:
        raise Unfit("step written by the labeler")
    if isinstance(completion, str):
        completion = {"text": completion}
    if completion.get("flagged"):
        raise Unfit("flagged step")
    if not (text := (completion["text"] or "").strip()):
        raise Unfit("step without text")
    return text


def _natural(record: Mapping[str, Any]) -> NaturalItem:
    # Ratings stop at the first error, and the labelled steps with them: only in phase 2 does the record hold the
    # solution's other steps. A solution that ends with its error would give the place away.
    label, solution = record["label"], record["question"].get("pre_generated_steps")
    _check_usable(record, label["finish_reason"], ("found_error", "solution"))
    leave_out(not solution, "no whole solution")
    leave_out(not all(text and not text.isspace() for text in solution), "step without text")
    rated = [step["completions"][0] for step in label["steps"] if step["completions"]]
    leave_out(any(completion.get("flagged") for completion in rated), "flagged step")
    texts = [completion["text"] for completion in rated]
    leave_out(texts != solution[: len(rated)], "rated steps are not the solution's")
    ratings = [completion["rating"] for completion in rated]
    leave_out(None in ratings, "step not rated")
    first_error = ratings.index(-1) if -1 in ratings else -1
    solved = label["finish_reason"] == "solution"
    unsound = solved and (first_error >= 0 or len(rated) != len(solution))
    leave_out(unsound, "solution with an error or unrated steps")
    leave_out(not solved and first_error < 0, "error not marked")
    leave_out(first_error == len(solution) - 1, "ends at its error")
    problem, steps = record["question"]["problem"].strip(), [text.strip() for text in solution]
    return natural_item("prm800k", problem, steps, first_error)
