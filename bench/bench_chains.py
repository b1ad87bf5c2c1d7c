"""Chains from a PRM800K file of 100,000 records: time against a bare parse of its lines, and peak memory.

Limits: at most 1.6 times ``orjson.loads`` over the lines, and under 400 MB. The file is made up, in the shape of
phase 2: about 5 KB a record, six in ten ending at a first error, one in ten perfect.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
import orjson

from c2faith.dataset.chains import load_chains
from c2faith.dataset.sources.synthetic import numbered
from c2faith.records import rng

MOST_TIME, MOST_MEMORY = 1.6, 400
OUTCOMES, SHARES = ("found_error", "neutral", "perfect", "bad_problem"), (0.6, 0.28, 0.1, 0.02)


def records(count: int) -> Iterator[dict]:
    """Made-up records of 8,000 problems; the same ones every time."""
    generator = rng(0, "bench_chains")
    worked = [numbered(0, index) for index in range(2000)]
    for index in range(count):
        problem = int(generator.integers(8000))
        chain = worked[problem % len(worked)]
        texts = [
            f"{text} This follows from what attempt {index} has found before, as one can check."
            for text in chain.steps
        ]
        outcome = str(generator.choice(OUTCOMES, p=SHARES))
        yield record(f"[{problem}] {chain.question}", texts, outcome, generator)


def record(problem: str, texts: list[str], outcome: str, generator: np.random.Generator) -> dict:
    """One record with that outcome."""
    ratings = [1] * len(texts)
    if outcome == "neutral":
        ratings[int(generator.integers(len(texts)))] = 0
    if outcome == "found_error":
        ratings = ratings[: int(generator.integers(1, len(texts) + 1))]
        ratings[-1] = -1
    steps = [
        {
            "completions": [{"text": text, "rating": rating, "flagged": None}] * (1 if rating != -1 else 4),
            "human_completion": None,
            "chosen_completion": None if rating == -1 else 0,
        }
        for text, rating in zip(texts, ratings, strict=False)
    ]
    return {
        "labeler": "00000000-0000-4000-8000-000000000000",
        "timestamp": "2023-01-01T00:00:00.000000",
        "generation": 3,
        "is_quality_control_question": bool(generator.random() < 0.01),
        "is_initial_screening_question": False,
        "question": {
            "problem": problem,
            "ground_truth_solution": " ".join(texts),
            "ground_truth_answer": "0",
            "pre_generated_steps": texts,
            "pre_generated_answer": "0",
            "pre_generated_verifier_score": 0.5,
        },
        "label": {
            "steps": steps,
            "total_time": 100000,
            "finish_reason": outcome if outcome in ("found_error", "bad_problem") else "solution",
        },
    }


def seconds_bare(path: Path) -> float:
    """Time to parse every line and do nothing with it."""
    start = process_time()
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
    return process_time() - start


def seconds_chains(path: Path) -> float:
    """Time to build the chains."""
    start = process_time()
    load_chains("prm800k", path=str(path))
    return process_time() - start


def peak_megabytes(path: Path) -> float:
    """Peak resident memory of a process that does nothing but build the chains."""
    call = [sys.executable, __file__, "--read", str(path)]
    return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print both figures against their limits; the exit code says whether both hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        load_chains("prm800k", path=options.read)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prm800k.jsonl"
        with path.open("wb") as file:
            file.writelines(orjson.dumps(made) + b"\n" for made in records(options.records))
        pairs = [(seconds_bare(path), seconds_chains(path)) for _ in range(3)]
        bare, chains = map(min, zip(*pairs, strict=True))
        memory = peak_megabytes(path)
        size = path.stat().st_size / 1e6
    print(f"{options.records:,} records, {size:.0f} MB: bare parse {bare:.2f} s, chains {chains:.2f} s")
    print(f"ratio {chains / bare:.2f} (at most {MOST_TIME}), peak memory {memory:.0f} MB (under {MOST_MEMORY})")
    return int(chains / bare > MOST_TIME or memory >= MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
