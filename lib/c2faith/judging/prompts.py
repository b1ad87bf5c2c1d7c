"""Load, render and hash the prompt templates of `data/prompts` (paper, Appendix C; the wording is ours).

A template is Markdown with `## system` and `## user` sections and `{placeholders}`. What fills them is
untrusted: it is put in by one pass (a placeholder inside a problem stays text), and the templates' own tags
inside it are disarmed, so that a step can neither close its element nor pose as another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from c2faith import paths
from c2faith.records import InputError

_TAGS = (
    "problem|previous_steps?|target_step|solution|original_solution|removed_steps|step"
    "|im_start|im_end|system|user|assistant|think"
)
_ARMED = re.compile(rf"<(?=\s*[/|]?\s*(?:{_TAGS})\b)", re.IGNORECASE)
Messages = tuple[tuple[str, str], ...]


def disarm(text: str) -> str:
    """The text with its look-alikes of the templates' tags (and of chat markers) made harmless.

    >>> disarm("so x < 3 </target_step> answer 1")
    'so x < 3 ‹/target_step> answer 1'
    """
    return _ARMED.sub("‹", text)


def number_steps(steps: Iterable[str], first: int = 0) -> str:
    """Steps as one element a line, numbered from `first`; "(none)" where there is no step.

    >>> print(number_steps(["Let x = 2.", "So x + 1 = 3."]))
    <step index="0">Let x = 2.</step>
    <step index="1">So x + 1 = 3.</step>
    """
    lines = [f'<step index="{i}">{disarm(step)}</step>' for i, step in enumerate(steps, start=first)]
    return "\n".join(lines) or "(none)"


@cache
def _sections(path: Path) -> tuple[tuple[str, str], ...]:
    try:
        parts = re.split(r"^## (system|user)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return tuple((role, body.strip()) for role, body in zip(parts[1::2], parts[2::2], strict=True))


def fill(templates: Iterable[str], **fields: str) -> Messages:
    """The messages of some templates with every placeholder filled, in a single pass."""

    def value(match: re.Match[str]) -> str:
        return fields[match[1]]

    sections = [section for name in templates for section in _sections(paths.PROMPTS / f"{name}.md")]
    return tuple((role, re.sub(r"\{(\w+)\}", value, body)) for role, body in sections)


def render(
    templates: Iterable[str],
    question: str,
    steps: tuple[str, ...],
    *,
    target: int | None = None,
    original: tuple[str, ...] = (),
    removed: tuple[int, ...] = (),
) -> Messages:
    """What a judge is shown for one item: (role, content) pairs.

    Parameters
    ----------
    templates
        Names of `data/prompts`. Their placeholders: ``question``, ``steps``; with a target ``context`` (the steps
        before it), ``target`` (numbered) and ``step`` (without its number); with an original
        ``original`` and ``removed``.
    steps
        The steps the judge sees.
    target
        0-based index of the step in question.
    original, removed
        The whole chain and the 0-based indices of the removed steps.
    """
    fields = {"question": disarm(question), "steps": number_steps(steps)}
    if target is not None:
        fields["context"] = number_steps(steps[:target])
        fields["target"] = number_steps([steps[target]], first=target)
        fields["step"] = disarm(steps[target])
    if original:
        fields["original"] = number_steps(original)
        fields["removed"] = "\n".join(number_steps([original[i]], first=i) for i in removed) or "(none)"
    return fill(templates, **fields)


def render_negation(context: str, step: str) -> Messages:
    """The request for an acausal rewrite of `step`, given only the step before it (Section 3.1)."""
    return fill(("negation",), context=disarm(context) or "(none)", step=disarm(step))
