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

    The paper prints overlapping bounds; here an edit belongs to a swap only *above* 0.9, 0.9 and 0.8 are minor
    rewrites, 0.5 is a moderate one. A swap is numeric if nothing but numbers differs, else of operators if one
    changes (+ − × / = < > in any spelling: ·, ``\\leq``, "add", "less"), else ``other``, which the paper lacks.

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
    if before != after and _drop(_NUMBER, before) == _drop(_NUMBER, after):
        return "numeric_swap"
    if _keep(_OPERATOR, before) != _keep(_OPERATOR, after):
        return "operator_swap"
    return "other"


def _keep(pattern: re.Pattern[str], tokens: list[str]) -> list[str]:
    return [token.lower() for token in tokens if pattern.fullmatch(token)]


def _drop(pattern: re.Pattern[str], tokens: list[str]) -> list[str]:
    return [token for token in tokens if not pattern.fullmatch(token)]


def math_symbol_density(step: str) -> float:
    """Share of a step's non-space characters that are mathematical notation, in [0, 1]; NaN if it has none.

    Notation is digits, operators, relations, brackets and other symbols, ``$``, and all characters of a
    LaTeX command. Letters of variables are not counted, since they cannot be told from words.
    """
    n_characters = sum(not character.isspace() for character in step)
    commands = sum(map(len, _MATH_COMMAND.findall(step)))
    symbols = len(_MATH.findall(_MATH_COMMAND.sub("", step)))
    return (commands + symbols) / n_characters if n_characters else float("nan")


def features(original: str, perturbed: str, target: int, n_steps: int) -> dict[str, float]:
    """The six structural features of Table 5.

    Of the perturbed step are the density, words (between white space) and characters; `edit_similarity` is of both;
    `relative_position` is target / n_steps, in [0, 1): the share of the chain that stands before the step.
    """
    return {
        "math_symbol_density": math_symbol_density(perturbed),
        "edit_similarity": similarity(original, perturbed),
        "relative_position": target / n_steps,
        "word_count": float(len(perturbed.split())),
        "chain_length": float(n_steps),
        "character_count": float(len(perturbed)),
    }
