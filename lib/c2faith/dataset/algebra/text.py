"""Find the mathematics in a step's text and cut it into tokens and statements.

Two spellings are understood: LaTeX between its delimiters, and plain text such as ``x_1*x_2≥sqrt(ab)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SPELLINGS = {
    ("rel", "="): "=", ("rel", "<"): r"< \lt", ("rel", ">"): r"> \gt", ("rel", "≠"): r"≠ \ne \neq",
    ("rel", "≤"): r"≤ \le \leq \leqslant", ("rel", "≥"): r"≥ \ge \geq \geqslant",
    ("rel", "≡"): r"≡ \equiv", ("rel", "≈"): r"≈ \approx",
    ("rel", "|"): r"∣ \mid", ("rel", "∤"): r"∤ \nmid", ("bar", "|"): r"| \lvert \rvert",
    ("op", "+"): "+", ("op", "-"): "- − –", ("op", "*"): r"* · × ⋅ \cdot \times", ("op", "/"): r"/ ÷ \div",
    ("op", "^"): "^", ("op", "_"): "_", ("op", "!"): "!", ("op", "mod"): r"mod \bmod \mod",
    ("open", "("): "(", ("open", "["): "[", ("open", "{"): "{", ("open", "⌊"): r"⌊ \lfloor",
    ("close", "("): ")", ("close", "["): "]", ("close", "{"): "}", ("close", "⌊"): r"⌋ \rfloor",
    ("open", "⌈"): r"⌈ \lceil", ("close", "⌈"): r"⌉ \rceil",
    ("command", "frac"): r"\frac \dfrac \tfrac", ("command", "binom"): r"\binom", ("command", "pmod"): r"\pmod",
    ("name", "pi"): r"π \pi",
    ("break", ","): r", ; . : ? “ ” ⇒ \\ \implies \Rightarrow \Longrightarrow \rightarrow \to \iff " + '"',
    ("silent", ""): r"\left \right \big \Big \bigl \bigr \quad \displaystyle \boxed & $ \, \; \! \: \[ \] \( \)",
}  # fmt: skip
FUNCTIONS = ("sqrt", "sin", "cos", "tan", "log", "ln", "exp", "gcd", "lcm", "min", "max", "floor", "ceil")
_GREEK = (
    r"\alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi \rho "
    r"\sigma \tau \phi \varphi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Phi \Psi \Omega \ell"
)
_MEANING = {
    **{text: meaning for meaning, texts in _SPELLINGS.items() for text in texts.split()},
    **{f"{slash}{name}": ("func", name) for name in FUNCTIONS for slash in ("", "\\")},
    **{text: ("name", text[1:]) for text in _GREEK.split()},
    "\\ ": ("silent", ""),
}
_PROSE = re.compile("th|st|nd|rd|is|to|of|if|or|so|by|as|in|we|an|at|be|it|on|no|do|us|and|for|the|are|let|all|has")
_PRODUCT_LETTERS = set("abcdekmnpqruvwxyz")

_TOKEN = re.compile(
    r"(?P<num>\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)|\d+(?:\.\d+)?)"
    r"|(?P<env>\\(?:begin|end)\{[^}]*\})|(?P<text>\\(?:text|mbox|textrm|textbf|mathrm)\{[^}]*\})"
    r"|(?P<word>[A-Za-z]+(?:'[a-z]+)?)|(?P<symbol>\\[A-Za-z]+|\\.|\.\.+|->|\S)",
    re.DOTALL,
)
_LATEX = re.compile(
    r"\$\$.+?\$\$|(?<!\\)\$[^$]+?(?<!\\)\$|\\\[.+?\\\]|\\\(.+?\\\)|\\begin\{(align\*?)\}.+?\\end\{\1\}", re.DOTALL
)
_BRIDGE = re.compile(r"\s*(?:[=<>≤≥+*/-]|\\times)\s*")


@dataclass(frozen=True, slots=True)
class Token:
    """The token ``text[start:end]``."""

    kind: str  # num, name, func, command, op, rel, open, close, bar, break, word or other
    value: str  # its canonical spelling; of a closing bracket, that of the opening one
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The stretch ``text[start:end]``: expressions joined by relations, or one expression alone."""

    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end

    @property
    def is_claim(self) -> bool:
        """Whether a relation stands outside all brackets."""
        return any(depth == 0 and token.kind == "rel" for depth, token in depths(self.tokens))


def depths(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Each token with the number of brackets around it, not counting itself."""
    depth = 0
    for token in tokens:
        depth -= token.kind == "close"
        yield depth, token
        depth += token.kind == "open"


def statements(text: str) -> list[Statement]:
    """All mathematical statements of a text, in order.

    >>> text = r"So 3/21 is $\\frac{1}{7}$, and x_1 = 2."
    >>> [text[s.start : s.end] for s in statements(text)]
    ['3/21', '\\\\frac{1}{7}', 'x_1 = 2']
    """
    found, position = [], 0
    for start, end in [*_latex_spans(text), (len(text), len(text))]:
        found += _plain_statements(text, position, start)
        found += _cut(list(_tokens(text, start, end, latex=True)))
        position = end
    return found


def _latex_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for match in _LATEX.finditer(text):
        if spans and _BRIDGE.fullmatch(text, spans[-1][1], match.start()):
            spans[-1] = (spans[-1][0], match.end())
        else:
            spans.append(match.span())
    return spans


def _tokens(text: str, start: int, end: int, *, latex: bool) -> Iterator[Token]:
    for match in _TOKEN.finditer(text, start, end):
        kind, value = _meaning(match)
        token = Token(kind, value, *match.span())
        if kind != "silent":
            yield from _spell(token) if latex and kind == "word" else [token]


def _meaning(match: re.Match[str]) -> tuple[str, str]:
    text, group = match[0], match.lastgroup
    if group == "num":
        return "num", text.replace("{,}", "").replace(",", "")
    if group == "text":
        return "break", ","
    if group == "env" and "align" in text:
        return "silent", ""
    plain = "word" if group == "word" and len(text) > 1 else "name" if text.isalpha() else "other"
    return _MEANING.get(text, (plain, text))


def _spell(word: Token) -> list[Token]:
    return [Token("name", letter, i, i + 1) for i, letter in enumerate(word.value, start=word.start)]


def _plain_statements(text: str, start: int, end: int) -> list[Statement]:
    # Words, and spaces that are not beside an operator, part the groups of tokens.
    tokens = list(_tokens(text, start, end, latex=False))
    groups: list[list[Token]] = [[]]
    depth = 0
    for before, plain, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        token = _in_plain(plain, before, after)
        parts = token.kind == "word" or (token.kind == "break" and depth == 0)
        if parts or (groups[-1] and not _joined(groups[-1][-1], token, depth)):
            groups.append([])
            depth = 0
        if not parts:
            groups[-1] += _spell(token) if token.kind == "product" else [token]
            depth += (token.kind == "open") - (token.kind == "close")
    found = [statement for group in groups for statement in _cut(group)]
    return [each for each in found if len(each.tokens) > 1 or each.tokens[0].value not in ("a", "A", "I")]


def _in_plain(token: Token, before: Token | None, after: Token | None) -> Token:
    """What a token is, given its neighbours: hyphens, divisibility bars and products such as ``ab`` look alike."""
    left = before if before and before.end == token.start else None
    right = after if after and after.start == token.end else None
    if token.value == "-" and (_is_prose(left) or _is_prose(right)):
        return Token("word", "-", token.start, token.end)
    if token.kind == "bar" and not left and not right and before and after:
        return Token("rel", "|", token.start, token.end)
    if token.kind == "word" and not _is_prose(token):
        strict = len(token.value) > 2  # "even-degree" is no product, "ab-cd" is one
        kinds = {near.kind for near in (left, right) if near and not (strict and near.value == "-")}
        beside_mod = any(near and near.value == "mod" for near in (before, after))
        if kinds & {"op", "rel", "num"} or kinds == {"open", "close"} or beside_mod:
            return Token("product", token.value, token.start, token.end)
    if token.value == "x" and before and after and before.kind == after.kind == "num" and not left and not right:
        return Token("op", "*", token.start, token.end)
    return token


def _is_prose(token: Token | None) -> bool:
    # It can be no product of one-letter variables.
    word = token.value if token and token.kind == "word" else ""
    return bool(_PROSE.fullmatch(word.lower())) or (len(word) > 2 and not set(word) <= _PRODUCT_LETTERS)


def _joined(left: Token, right: Token, depth: int) -> bool:
    near = left.end == right.start
    binary = left.kind in ("op", "rel") or right.kind in ("op", "rel")
    return near or binary or (depth > 0 and left.kind == "break")


def _cut(tokens: Sequence[Token]) -> list[Statement]:
    pieces: list[list[Token]] = [[]]
    partners = _paired(tokens)
    depth = 0
    for i, token in enumerate(tokens):
        if token.kind in ("open", "close"):
            if i not in partners:
                pieces.append([])
                continue
            depth += 1 if token.kind == "open" else -1
        if token.kind == "break" and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [Statement(tuple(piece)) for piece in map(_trim, pieces) if piece]


def _paired(tokens: Sequence[Token]) -> set[int]:
    waiting: list[int] = []
    paired: set[int] = set()
    for i, token in enumerate(tokens):
        if token.kind == "open":
            waiting.append(i)
        elif token.kind == "close":
            while waiting and tokens[waiting[-1]].value != token.value:
                waiting.pop()
            if waiting:
                paired |= {i, waiting.pop()}
    return paired


def _trim(piece: list[Token]) -> list[Token]:
    # Operators and relations at an end have nothing to bind, but for a sign or a factorial.
    for end, bound in ((0, "-"), (-1, "!")):
        while piece and (piece[end].kind == "rel" or (piece[end].kind == "op" and piece[end].value != bound)):
            piece.pop(end)
    return piece
