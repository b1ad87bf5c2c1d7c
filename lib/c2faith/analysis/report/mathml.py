"""LaTeX inside a text → MathML that a browser draws by itself, from an allowed set of elements only.

The texts are untrusted (a judge may reply anything), and the converter copies markup through, as in
``\\text{<script>}`` or ``\\href``. So its tree is rebuilt here from known elements and attributes with everything
escaped. What cannot be converted is left out: the page then shows the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert_to_element

PATTERN = (
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)"
    r"|(?<![\\$])\$(?=[^\s$])([^$]*?[^\s$\\])\$(?!\d)"
    r"|(\\begin\{(align|equation|gather|cases|[pbvBV]?matrix|array)\*?\}.+?\\end\{\6\*?\})"
)
"""Mathematics in a text, one group a kind of delimiter; the same for Python (DOTALL) and JavaScript (``s``).

A dollar sign opens mathematics only where no space follows, and closes it only where no space stands before and
no digit after, so that sums of money stay text.
"""

MOST_CHARACTERS = 1_000
_MATH = re.compile(PATTERN, re.DOTALL)
_ELEMENTS = frozenset({
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mtable", "mtr", "mtd", "menclose", "mstyle", "mpadded", "mphantom",
})  # fmt: skip
_ATTRIBUTES = frozenset({
    "accent", "columnalign", "columnspacing", "depth", "displaystyle", "fence", "form", "height", "linethickness",
    "lspace", "mathvariant", "maxsize", "minsize", "notation", "rowspacing", "rspace", "scriptlevel", "separator",
    "stretchy", "width",
})  # fmt: skip
_PLAIN = re.compile(r"[\w .%+-]*")


class UnreadableError(ValueError):
    """The converter does not know this LaTeX, or made of it what a page must not hold."""


def formulas(texts: Iterable[str]) -> dict[str, str]:
    """MathML of every formula in the texts, by its LaTeX without delimiters, sorted; unreadable ones are absent."""
    found = {next(filter(None, match.groups())) for text in texts for match in _MATH.finditer(text)}
    made = {}
    for source in sorted(found):
        with suppress(UnreadableError):
            made[source] = mathml(source)
    return made


def mathml(source: str) -> str:
    """The inside of the ``<math>`` element for one formula, or an `UnreadableError`.

    >>> mathml("x^2")
    '<msup><mi>x</mi><mn>2</mn></msup>'
    """
    if len(source) > MOST_CHARACTERS:
        raise UnreadableError(source)
    try:
        children = list(convert_to_element(source))
    except Exception as error:  # the converter's own errors, and IndexError, KeyError … on what it did not foresee
        raise UnreadableError(source) from error
    row = children[0] if len(children) == 1 and children[0].tag == "mrow" else children
    return "".join(map(_markup, row))


def _markup(element: Element) -> str:
    """An element from the allowed set as text, its contents escaped."""
    name, text = element.tag, unescape(element.text or "").strip()
    if name not in _ELEMENTS or text.startswith("\\"):
        raise UnreadableError(name)
    children = list(element)
    if name == "mrow" and len(children) == 1 and not element.attrib:
        return _markup(children[0])
    attributes = "".join(
        f' {key}="{value}"'
        for key, value in element.attrib.items()
        if key in _ATTRIBUTES and _PLAIN.fullmatch(value)
    )
    return f"<{name}{attributes}>{escape(text, quote=False)}{''.join(map(_markup, children))}</{name}>"
