"""What kind of edit made one step into another (Table 6), and the features of a perturbed step (Table 5)."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

EDIT_TYPES = ("numeric_swap", "operator_swap", "minor_rewrite", "moderate_rewrite", "major_rewrite", "other")

# The paper's own example of an operator swap, "add 19x" → "subtract 19x", changes an operator in words.
_OPERATOR_WORDS = (
    "add|adds|adding|added|plus|sum|subtract|subtracts|subtracting|subtracted|minus|difference|"
    "multiply|multiplies|multiplying|multiplied|times|product|divide|divides|dividing|divided|quotient|"
    "equal|equals|less|greater|more|fewer"
)
_OPERATOR_COMMANDS = r"times|cdot|div|pm|mp|frac|dfrac|tfrac|leq?|geq?|neq?|lt|gt|equiv|approx|l?eqslant|geqslant"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TOKEN = re.compile(rf"\\[A-Za-z]+|[A-Za-z]+(?:-[A-Za-z]+)+|[A-Za-z]+|{_NUMBER.pattern}|\S")
_OPERATOR = re.compile(rf"[+\-−–×·*/÷±∓=<>≤≥≠≡≈]|\\(?:{_OPERATOR_COMMANDS})|(?:{_OPERATOR_WORDS})", re.IGNORECASE)
_MATH = re.compile(r"[\d+\-−×·*/÷±=<>≤≥≠≡≈^_(){}\[\]|!%\\$√∑∏∫∞πθ∈∉⊆∪∩]")
_MATH_COMMAND = re.compile(r"\\[A-Za-z]+")


def similarity(original: str, perturbed: str) -> float:
    """`difflib.SequenceMatcher` ratio in [0, 1] with that class's default arguments, as in Appendix E."""
    return SequenceMatcher(None, original, perturbed).ratio()


def edit_type(original: str, perturbed: str) -> str:
    """The paper's edit type (Appendix E) of a step's rewrite, one of `EDIT_TYPES`.

    The paper prints overlapping bounds; here a swap is *above* 0.9. It is numeric if nothing but numbers differs,
    else of operators if one changes (in any spelling: ·, ``\\leq``, "add"), else ``other``, which the paper lacks.

    >>> edit_type("To solve it, we add 19x to both sides.", "To solve it, we add 18x to both sides.")
    'numeric_swap'
    """
    ratio = similarity(original, perturbed)
    if ratio < 0.5:
        return "major_rewrite"
    if ratio < 0.8:
        return "moderate_rewrite"
    if ratio <= 0.9:
        return "minor_rewrite"
    before, after = _TOKEN.findall(original), _TOKEN.findall(perturbed)
    words = [[token for token in tokens if not _NUMBER.fullmatch(token)] for tokens in (before, after)]
    if before != after and words[0] == words[1]:
        return "numeric_swap"
    operators = [[token.lower() for token in tokens if _OPERATOR.fullmatch(token)] for tokens in (before, after)]
    return "operator_swap" if operators[0] != operators[1] else "other"


def math_symbol_density(step: str) -> float:
    """Share of a step's non-space characters that are mathematical notation, in [0, 1]; NaN if it has none.

    Letters count within a LaTeX command only: variables cannot be told from words.
    """
    n_characters = sum(not character.isspace() for character in step)
    commands = sum(map(len, _MATH_COMMAND.findall(step)))
    symbols = len(_MATH.findall(_MATH_COMMAND.sub("", step)))
    return (commands + symbols) / n_characters if n_characters else float("nan")


def features(original: str, perturbed: str, target: int, n_steps: int) -> dict[str, float]:
    """The six structural features of Table 5, of the perturbed step; its relative position is in [0, 1)."""
    return {
        "math_symbol_density": math_symbol_density(perturbed),
        "edit_similarity": similarity(original, perturbed),
        "relative_position": target / n_steps,
        "word_count": float(len(perturbed.split())),
        "chain_length": float(n_steps),
        "character_count": float(len(perturbed)),
    }
