"""One line of progress: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Self

from tqdm import tqdm


class Progress:
    """Counts finished items, and keeps saying where the run stands even while nothing comes back.

    `done` are those finished by earlier runs; `status` says why nothing comes back, or nothing; plain lines come
    every `every_s` seconds.
    """

    def __init__(
        self, label: str, total: int, done: int = 0, *, status: Callable[[], str] = str, every_s: float = 10.0
    ):
        self.label, self.total, self.done, self.first = label, total, done, done
        self.dollars = 0.0
        self._status, self._every_s = status, every_s
        self._start = time.monotonic()
        self._closed = threading.Event()
        self._bar = None
        if sys.stderr.isatty():
            self._bar = tqdm(desc=label, total=total, initial=done, unit="item", dynamic_ncols=True)
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._ticker.join()
        if self._bar is not None:
            self._bar.close()
        elif self.done > self.first:
            print(self.line(), file=sys.stderr, flush=True)

    def advance(self, dollars: float) -> None:
        """Count one more finished item; `dollars` is what the run has cost so far."""
        self.done += 1
        self.dollars = dollars
        if self._bar is not None:
            self._bar.update()

    def line(self) -> str:
        """done/total, rate, cost so far, time left, and why it waits, as one plain line."""
        rate = (self.done - self.first) / max(time.monotonic() - self._start, 1e-9)
        parts = [f"{self.label}: {self.done}/{self.total}", f"{rate:.1f}/s"]
        if self.dollars:
            parts.append(f"${self.dollars:.2f}")
        if rate and self.done < self.total:
            parts.append(f"{tqdm.format_interval((self.total - self.done) / rate)} left")
        if status := self._status():
            parts.append(status)
        return ", ".join(parts)

    def _tick(self) -> None:
        while not self._closed.wait(1.0 if self._bar is not None else self._every_s):
            if self._bar is None:
                print(self.line(), file=sys.stderr, flush=True)
            else:
                cost = f"${self.dollars:.2f} " if self.dollars else ""
                self._bar.set_postfix_str(cost + self._status())
