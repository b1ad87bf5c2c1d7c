"""Time of every table and figure of a made-up run: 450 chains, 3 judges, 10,000 draws; together under 60 s.

Usage: python bench/bench_analysis.py [chains] [judges] [draws]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from c2faith.analysis import figures, metrics, tables

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from frames import frames

LIMIT_S = 60.0


def timed(made: Iterator[tuple[str, object]]) -> float:
    """Print the seconds each took to make, and return their sum."""
    start = begin = time.perf_counter()
    for name, _ in made:
        print(f"{name:28s} {time.perf_counter() - begin:6.2f} s")
        begin = time.perf_counter()
    return time.perf_counter() - start


def main(n_chains: int = 450, judges: int = 3, draws: int = 10_000) -> int:
    """1 if the limit is passed."""
    verdicts = frames(n_chains, judges)
    run = metrics.Measured(verdicts, items=verdicts.pop("items"), draws=draws)
    total = timed(tables.compute(run)) + timed(figures.draw(run))
    busy = time.process_time()
    print(f"{'all':28s} {total:6.2f} s ({busy:.0f} s of processor time); limit {LIMIT_S:.0f} s by default")
    return int(total > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
