"""Mathematics in step texts: find the statements, read them, evaluate them, decide them."""

from c2faith.dataset.algebra.decide import Link, Truth, equivalent, fails_everywhere, link_truth, truth
from c2faith.dataset.algebra.parse import Reading, Tree, readings
from c2faith.dataset.algebra.text import Statement, Token, statements
from c2faith.dataset.algebra.value import names

__all__ = [
    "Link",
    "Reading",
    "Statement",
    "Token",
    "Tree",
    "Truth",
    "equivalent",
    "fails_everywhere",
    "link_truth",
    "names",
    "readings",
    "statements",
    "truth",
]
