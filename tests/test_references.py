"""Label-free coverage references."""

import math

import pytest

from c2faith.judging.verdict_frames import annotated, retention
from c2faith.records import Chain

CHAIN = Chain("c", "p", "champ", "?", ("a", "b", "c", "d"), None, ((0, 1), (1, 2), (), (3,)))


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        ((), 4.0),
        ((1,), 3.0),  # concept 2 is lost, 1 is still carried by the first step: 4 · 3/4
        ((2,), 4.0),  # carries nothing
        ((0, 1), 1.0),  # only concept 3 remains
        ((0, 1, 2, 3), 0.0),
        ((1, 1), 3.0),  # removed once, named twice
    ],
)
def test_annotated_by_hand(removed, expected):
    assert annotated(CHAIN, removed) == expected


def test_annotated_is_undefined_without_annotation():
    assert math.isnan(annotated(Chain("c", "p", "jsonl", "?", ("a",)), ()))
    assert math.isnan(annotated(Chain("c", "p", "champ", "?", ("a", "b"), None, ((), ())), (0,)))


@pytest.mark.parametrize(
    ("removed", "expected"), [((), 4.0), ((1,), 3.0), ((0, 3), 2.0), ((0, 1, 2, 3), 0.0), ((1, 1), 3.0)]
)
def test_retention_by_hand(removed, expected):
    assert retention(CHAIN, removed) == expected


def test_removing_more_never_raises_a_reference():
    for reference in (annotated, retention):
        scores = [reference(CHAIN, tuple(range(k))) for k in range(5)]
        assert scores == sorted(scores, reverse=True)
