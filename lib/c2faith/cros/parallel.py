"""One function over many turns, in several processes that each hold a copy of what all turns need."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from tqdm import tqdm

_common: tuple[Any, ...] = ()


def over(
    function: Callable[..., Any], common: Sequence[Any], turns: Sequence[Any], *, workers: int, label: str
) -> Iterator[Any]:
    """``function(*common, turn)`` for every turn, in order; what comes out does not depend on `workers`.

    Everything goes between processes as pickled bytes: torch would otherwise open a file for each tensor.
    """
    workers = min(workers, len(turns))
    with tqdm(total=len(turns), desc=label, mininterval=2) as bar:
        if workers < 2:
            for turn in turns:
                with one_thread():
                    result = function(*common, turn)
                bar.update()
                yield result
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _begin, (pickle.dumps(tuple(common)),)) as pool:
            for blob in pool.map(partial(_call, function), turns):
                bar.update()
                yield pickle.loads(blob)


def _begin(blob: bytes) -> None:
    global _common  # noqa: PLW0603 - a worker's only state, set once as it starts
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    torch.set_num_threads(1)
    _common = pickle.loads(blob)


def _end_with(parent: int) -> None:
    """End this worker once its parent is gone: a killed notebook leaves nothing behind that eats memory."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _call(function: Callable[..., Any], turn: Any) -> bytes:
    return pickle.dumps(function(*_common, turn))


@contextmanager
def one_thread() -> Iterator[None]:
    """Heads are so small that several threads would mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
