"""Many turns in several processes: same results, and no worker outlives whoever started it."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch

from c2faith.cros.experiment import in_turn
from c2faith.records import InputError

CHILD = """
import os, sys, time
from c2faith.cros.experiment import in_turn
def main():
    for pid in in_turn(wait, [0, 60], workers=2, label=""):
        print(pid, flush=True)
def wait(seconds):
    time.sleep(seconds)
    return os.getpid()
if __name__ == "__main__":
    main()
"""


def test_turns_come_back_in_order_from_one_process():
    assert list(in_turn(partial(pow, 2), [3, 1, 2], workers=1, label="")) == [8, 2, 4]


def refuse(turn):
    raise InputError(f"turn {turn}: no chain fits")


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_in_a_worker_is_one_line(workers):
    with pytest.raises(InputError, match=r"^turn [12]: no chain fits$"):
        list(in_turn(refuse, [1, 2], workers=workers, label=""))


def test_workers_share_what_is_large_and_compute_in_one_thread():
    large = np.ones(2**18)  # 2 MB; joblib copies what is below one

    def seen(turn):
        return os.getpid(), type(large).__name__, torch.get_num_threads(), float(large.sum()) + turn

    threads = torch.get_num_threads()
    found = list(in_turn(seen, [0, 1, 2], workers=2, label=""))
    assert os.getpid() not in {pid for pid, *_ in found}
    assert [rest for _, *rest in found] == [["memmap", 1, 2**18 + turn] for turn in range(3)]
    assert list(in_turn(seen, [3], workers=2, label="")) == [(os.getpid(), "ndarray", 1, 2**18 + 3)]
    assert torch.get_num_threads() == threads


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="asks Linux which processes there are")
def test_workers_end_with_their_parent(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    worker = int(child.stdout.readline())
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _alive(worker):
        time.sleep(0.1)
    try:
        assert not _alive(worker)
    finally:
        if _alive(worker):
            os.kill(worker, signal.SIGKILL)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().split(") ")[1][0] != "Z"
