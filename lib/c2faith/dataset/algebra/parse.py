"""Parse a mathematical statement into trees, one for each way in which it can be read.

A tree is a nested tuple: ``("num", Fraction)``, ``("var", name)``, ``("index", name, subscript …)``,
``("call", name, argument …)``, ``("neg" | "!" | "abs", operand)`` and ``("+" | "-" | "*" | "/" | "^" | "mod", left,
right)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from c2faith.dataset.algebra.text import FUNCTIONS, Statement, Token

Tree = tuple
Link = tuple[str, Tree, Tree]
KNOWN = {*FUNCTIONS, "binom"}
MAX_TOKENS = 160  # longer statements are not read, which bounds the time for one


class Unreadable(ValueError):  # noqa: N818 - an absence of meaning, not a mistake
    """The text is not in the small language of this module: dots, sets, vectors, words and the like."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Sides joined by relations, ``sides[0] relations[0] sides[1] …``; `modulus` where they are congruences."""

    sides: tuple[Tree, ...]
    relations: tuple[str, ...]
    modulus: Tree | None = None

    @property
    def links(self) -> list[Link]:
        return list(zip(self.relations, self.sides, self.sides[1:], strict=False))


def readings(statement: Statement) -> tuple[Reading, ...]:
    """Every reading of a statement: 1/ab may be 1/(ab), and a(n) a product or a function.

    >>> from c2faith.dataset.algebra import statements
    >>> [len(readings(s)) for s in statements("x+y=2, 1/2n=k, a_(n+1)=2/k(n+1), 1+2+...+n")]
    [1, 2, 3, 0]
    """
    if len(statement.tokens) > MAX_TOKENS:
        return ()
    found: dict[Reading, None] = {}
    for tight, calls in product((False, True), repeat=2):
        try:
            found[_Parser(statement.tokens, tight=tight, calls=calls).statement()] = None
        except (Unreadable, RecursionError):
            return ()
    return tuple(found)


def names(tree: Tree) -> set[str]:
    """The variables and unknown functions of an expression (π is a number)."""
    kind, *parts = tree
    if kind == "num" or tree == ("var", "pi"):
        return set()
    own = {parts[0]} if kind in ("var", "index") or (kind == "call" and parts[0] not in KNOWN) else set()
    return own.union(*(names(part) for part in parts if isinstance(part, tuple)))


class _Parser:
    """Recursive descent. `tight`: an unwritten product binds before a division; `calls`: a(n) is a function."""

    def __init__(self, tokens: Sequence[Token], *, tight: bool, calls: bool) -> None:
        self.tokens = [(token.kind, token.value) for token in tokens] + [("", "")] * 3
        self.tight, self.calls = tight, calls
        self.position, self.in_bars = 0, False

    @property
    def next(self) -> tuple[str, str]:
        return self.tokens[self.position]

    def step(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1][1]

    def take(self, *wanted: tuple[str, str]) -> str | None:
        return self.step() if self.next in wanted else None

    def need(self, *wanted: tuple[str, str]) -> str:
        if self.next not in wanted:
            raise Unreadable(str(self.next))
        return self.step()

    def statement(self) -> Reading:
        sides, relations, modulus = [self.side()], [], None
        while self.next[0] == "rel":
            relations.append(self.step())
            sides.append(self.side())
        if self.take(("command", "pmod")):
            modulus = self.operand()
        if "≡" in relations and modulus is None and sides[-1][0] == "mod":
            _, sides[-1], modulus = sides[-1]
        if self.next != ("", "") or ("≡" in relations) != (modulus is not None):
            raise Unreadable(str(self.next))
        return Reading(tuple(sides), tuple(relations), modulus)

    def side(self) -> Tree:
        tree = self.sum()
        while self.take(("op", "mod")):
            tree = ("mod", tree, self.sum())
        return tree

    def sum(self) -> Tree:
        sign = self.take(("op", "-"), ("op", "+"))
        tree = ("neg", self.term()) if sign == "-" else self.term()
        while sign := self.take(("op", "+"), ("op", "-")):
            tree = (sign, tree, self.term())
        return tree

    def term(self) -> Tree:
        tree = self.factor()
        while True:
            if sign := self.take(("op", "*"), ("op", "/")):
                tree = (sign, tree, ("neg", self.factor()) if self.take(("op", "-")) else self.factor())
            elif self.starts_factor():
                tree = ("*", tree, self.power())
            else:
                return tree

    def factor(self) -> Tree:
        tree = self.power()
        while self.tight and self.starts_factor():
            tree = ("*", tree, self.power())
        return tree

    def starts_factor(self) -> bool:
        kind, value = self.next
        before, ahead = self.tokens[self.position - 1], self.tokens[self.position + 1 : self.position + 3]
        if (kind, value, before[0]) == ("command", "frac", "num") and "num" in dict(ahead):
            raise Unreadable("a mixed number or a product")
        return kind in ("name", "func", "open") or (kind == "command" and value != "pmod")

    def power(self) -> Tree:
        tree = self.atom()
        while self.take(("op", "!")):
            tree = ("!", tree)
        return ("^", tree, self.exponent()) if self.take(("op", "^")) else tree

    def exponent(self) -> Tree:
        if self.take(("op", "-")):
            return ("neg", self.exponent())
        tree = self.atom(in_exponent=True)
        return ("^", tree, self.exponent()) if self.take(("op", "^")) else tree

    def atom(self, *, in_exponent: bool = False) -> Tree:
        kind, value = self.next
        self.step()
        if kind == "num":
            return ("num", Fraction(value))
        if kind == "name":
            return self.name(value, may_call=not in_exponent)
        if kind == "func":
            return self.function(value)
        if kind == "command" and value != "pmod":
            return self.command(value)
        if kind == "open":
            tree = self.side()
            self.need(("close", value))
            return {"⌊": ("call", "floor", tree), "⌈": ("call", "ceil", tree)}.get(value, tree)
        if kind == "bar" and not self.in_bars:
            self.in_bars = True
            tree = self.sum()
            self.need(("bar", "|"))
            self.in_bars = False
            return ("abs", tree)
        raise Unreadable(value)

    def arguments(self) -> tuple[Tree, ...]:
        opened = self.need(("open", "("), ("open", "{"))
        found = [self.side()]
        while self.take(("break", ",")):
            found.append(self.side())
        self.need(("close", opened))
        return tuple(found)

    def operand(self) -> Tree:
        """A braced group, or the single token that LaTeX takes for one."""
        return self.arguments()[0] if self.next == ("open", "{") else self.atom(in_exponent=True)

    def name(self, name: str, *, may_call: bool) -> Tree:
        if self.take(("op", "_")):
            return ("index", name, *(self.arguments() if self.next[0] == "open" else [self.atom(in_exponent=True)]))
        if may_call and self.next == ("open", "("):
            start = self.position
            arguments = self.arguments()
            if name == "C" and len(arguments) == 2:
                return ("call", "binom", *arguments)
            if self.calls or len(arguments) > 1:
                return ("call", name, *arguments)
            self.position = start
        return ("var", name)

    def function(self, name: str) -> Tree:
        base, power = (), None
        if name == "sqrt" and self.take(("open", "[")):
            base = (self.side(),)
            self.need(("close", "["))
        elif self.take(("op", "_")):
            base = (self.operand(),)
        if self.take(("op", "^")) and (power := self.exponent())[0] == "neg":
            raise Unreadable("an inverse function or a power")
        if self.next[0] == "open":
            arguments = self.arguments()
        elif name == "sqrt":
            arguments = (self.operand(),)
        else:  # the product that follows, as in sin 2x
            argument = self.power()
            while self.next[0] in ("name", "command"):
                argument = ("*", argument, self.power())
            arguments = (argument,)
        tree = ("call", name, *arguments, *base)
        return ("^", tree, power) if power else tree

    def command(self, name: str) -> Tree:
        if self.next[0] == "num" and len(self.next[1]) == 2:  # \frac12
            first, second = (("num", Fraction(digit)) for digit in self.step())
        else:
            first, second = self.operand(), self.operand()
        return ("/", first, second) if name == "frac" else ("call", "binom", first, second)
