"""The paper's negator: a language model rewrites the step, seeing only the step before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from c2faith.judges.base import Reply
from c2faith.paths import PROMPTS
from c2faith.records import Chain

Messages = Sequence[tuple[str, str]]
Complete = Callable[[Messages], Reply]

TEMPERATURE, MAX_TOKENS, ATTEMPTS = 0.7, 100, 4
"""Sampling of the paper (Section 4.2), for whoever makes `complete`; and tries per step before another step."""


class LlmNegator:
    """Asks `complete` with the prompt ``data/prompts/negation.md``.

    Parameters
    ----------
    complete
        Sends (role, content) messages to a model at `TEMPERATURE` and with `MAX_TOKENS`, and gives its
        `judges.base.Reply`. Each call is a fresh sample. A reply that is cut off, refused or failed is counted
        as a rejection and asked again.
    """

    name = "llm"

    def __init__(self, complete: Complete) -> None:
        self.rejections: Counter[str] = Counter()
        self._complete = complete
        self._template = (PROMPTS / "negation.md").read_text(encoding="utf-8")

    def negate(self, chain: Chain, target: int, rng: np.random.Generator) -> Iterator[str]:
        """Up to `ATTEMPTS` samples; the model draws by itself, so `rng` is not used."""
        previous = chain.steps[target - 1] if target else ""
        messages = self.messages(previous, chain.steps[target])
        for _ in range(ATTEMPTS):
            reply = self._complete(messages)
            if reply.error or reply.text is None:
                self.rejections[reply.error or "no_text"] += 1
            elif reply.finish_reason == "length":
                self.rejections["truncated"] += 1
            else:
                yield reply.text.strip()

    def messages(self, previous: str, step: str) -> Messages:
        """The rendered prompt: sections ``## system`` and ``## user`` of the template."""
        _, *parts = re.split(r"^## (system|user)\n", self._template, flags=re.MULTILINE)
        fields = {"{context}": previous, "{step}": step}

        def fill(body: str) -> str:
            return re.sub("|".join(map(re.escape, fields)), lambda found: fields[found[0]], body).strip()

        return [(role, fill(body)) for role, body in zip(parts[::2], parts[1::2], strict=True)]
