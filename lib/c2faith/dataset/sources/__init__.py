"""Where chains come from: each module turns records into chains, and nothing else."""

from __future__ import annotations

from c2faith.dataset.sources import champ, jsonl, prm800k, synthetic
from c2faith.dataset.sources.base import Dropped, Request, Source
from c2faith.records import InputError

__all__ = ["SOURCES", "Dropped", "Request", "Source", "get"]

SOURCES: dict[str, Source] = {
    "champ": champ,
    "prm800k": prm800k,
    "jsonl": jsonl,
    "synthetic": synthetic,
}


def get(name: str) -> Source:
    """The source of that name; an `InputError` lists the names there are."""
    if name not in SOURCES:
        raise InputError(f"SOURCE={name}: no such source; choose one of {', '.join(SOURCES)}")
    return SOURCES[name]
