"""`make paper`, taken apart: seconds a notebook, and how many times each metric was computed.

Usage: python bench/bench_paper.py [run]. Every notebook is executed as `make paper` does, one after the other, in a
home of its own; then the analysis again, few draws and under a profiler, to count calls.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

NOTEBOOKS = {"02_judging": ("run",), "03_analysis": ("run",), "05_published": ()}
LIMIT_S = 30.0
COUNTING = """
import atexit, cProfile, json, os, pstats
profile = cProfile.Profile()
profile.enable()

@atexit.register
def write():
    profile.disable()
    counts = {}
    for (path, _, name), (_, calls, _, seconds, _) in pstats.Stats(profile).stats.items():
        folder, file = os.path.split(path)
        if folder.endswith(os.path.join("analysis", "metrics")) and not name.startswith(("_", "<")):
            counts[f"{file.removesuffix('.py')}.{name}"] = (calls, seconds)
    with open(os.environ["C2FAITH_COUNTS"], "w") as file:
        json.dump(counts, file)
"""


def main(run: str = "champ") -> int:
    """Print the times and counts; 1 if the limit is passed."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        os.environ |= {"C2FAITH_HOME": scratch, "C2FAITH_COUNTS": str(home / "counts.json")}
        from c2faith import notebooks, paths

        total = 0.0
        for name, takes in NOTEBOOKS.items():
            start = time.perf_counter()
            notebooks.execute(name, dict.fromkeys(takes, run), paths.run_dir(run) / "notebooks")
            total += (seconds := time.perf_counter() - start)
            print(f"{name:34s} {seconds:6.1f} s")
        print(f"{'one after the other':34s} {total:6.1f} s; limit {LIMIT_S:.0f} s on two idle cores")
        startup = home / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "00-count.py").write_text(COUNTING)
        os.environ["IPYTHONDIR"] = str(home / "ipython")
        notebooks.execute("03_analysis", {"run": run, "draws": "100"}, paths.run_dir(run) / "notebooks")
        counts = json.loads((home / "counts.json").read_text())
    for name, (calls, seconds) in sorted(counts.items(), key=lambda entry: -entry[1][0]):
        print(f"{name:34s} {calls:4d} calls {seconds:6.2f} s under the profiler")
    return int(total > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
