"""Every directory of the project, and nothing else: no other module spells a path.

What is read-only (prompts, judges, frozen replies) lies in the checkout. What a run writes lies under
`home()`: the checkout itself, unless the environment variable ``C2FAITH_HOME`` names another folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from c2faith.records import InputError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PROMPTS = ROOT / "data" / "prompts"
JUDGES = ROOT / "data" / "judges"
FROZEN = ROOT / "data" / "frozen"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # a folder's name, and no path


def home() -> Path:
    """The folder that holds `data/runs` and `figures`."""
    return Path(os.environ.get("C2FAITH_HOME", ROOT))


def from_root(path: str) -> str:
    """`path`, if it is relative, from the checkout's root, where `make` runs: notebooks run in their own folder.

    A URL, the word ``hub`` and nothing stay what they are.

    >>> from_root("hub"), from_root("https://a/b"), from_root("/a/b")
    ('hub', 'https://a/b', '/a/b')
    """
    return path if path in ("", "hub") or "://" in path else str(ROOT / path)


def model_folder(model: str) -> str:
    """The folder of that name from the checkout's root if there is one; else `model`, a name or hub id, itself."""
    folder = ROOT / model
    return str(folder) if folder.is_dir() else model


def run_name(run: str) -> str:
    """`run` itself, once it is known to be a plain folder name."""
    return _plain(run, f"RUN={run[:100]!r}: a run")


def judge_name(judge_id: str) -> str:
    """`judge_id` itself, once it is known to be a plain folder name."""
    return _plain(judge_id, f"judge_id {judge_id[:100]!r}: a judge")


def _plain(name: str, what: str) -> str:
    if not _PLAIN.fullmatch(name):
        raise InputError(f"{what} is named by at most 100 letters, digits, '.', '_' and '-'")
    return name


def run_dir(run: str) -> Path:
    """`data/runs/<run>`: what notebooks 01 and 02 write."""
    return home() / "data" / "runs" / run_name(run)


def frozen_dir(run: str) -> Path:
    """`data/frozen/<run>`: recorded replies, committed and never rewritten."""
    return FROZEN / run_name(run)


def figures_dir(run: str) -> Path:
    """`figures/<run>`: what notebook 03 writes."""
    return home() / "figures" / run_name(run)


def models_dir() -> Path:
    """`data/runs/.models`: model folders made from packages, the same for every run."""
    return home() / "data" / "runs" / ".models"


def features_dir() -> Path:
    """`data/runs/.features`: what encoders made of chains, named by content and the same for every run."""
    return home() / "data" / "runs" / ".features"
