"""The progress line: where the run stands, what it cost, what is left, and why nothing comes back."""

import io
import sys
import time

from c2faith.progress import Progress


def test_the_line_says_all_that_is_known(monkeypatch):
    now = iter([100.0, 110.0, 110.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    progress = Progress("judge detection", 50, 10, status=lambda: "waiting 34 s: rate limit")
    # Nothing came back in the first 10 s: no rate to foretell an end from, but a reason.
    assert progress.line() == "judge detection: 10/50, 0.0/s, waiting 34 s: rate limit"
    progress.done, progress.dollars = 30, 1.25
    # 20 items in 10 s; the 20 that are left take another 10. What earlier runs finished is not in the rate.
    assert progress.line() == "judge detection: 30/50, 2.0/s, $1.25, 00:10 left, waiting 34 s: rate limit"


def test_lines_keep_coming_while_nothing_comes_back(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with Progress("judge detection", 5, status=lambda: "3 calls under way", every_s=0.02):
        time.sleep(0.2)
    lines = said.getvalue().splitlines()
    assert len(lines) >= 3 and all(line == "judge detection: 0/5, 0.0/s, 3 calls under way" for line in lines)


def test_a_finished_run_ends_with_its_line_and_an_idle_one_is_silent(monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with Progress("judge detection", 5, 5):
        pass
    assert said.getvalue() == ""
    with Progress("judge detection", 5, 4) as progress:
        progress.advance(0.5)
    assert said.getvalue().startswith("judge detection: 5/5, ") and said.getvalue().endswith("$0.50\n")
