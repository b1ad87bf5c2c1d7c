"""Load, render and hash the prompt templates of `data/prompts` (paper, Appendix C; the wording is ours).

A template is Markdown with `## system` and `## user` sections and `{placeholders}`. What fills them is
untrusted: it is put in by one pass (a placeholder inside a problem stays text), and the templates' own tags
inside it are disarmed, so that a step can neither close its element nor pose as another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from c2faith import paths
from c2faith.records import InputError, Task, sha256

TEMPLATES: dict[str, tuple[str, ...]] = {
    "detection": ("detection",),
    "localization": ("localization",),
    "coverage": ("rubric", "coverage"),
    "reference": ("rubric", "reference"),
    "step_only": ("step_only",),
    "shuffled": ("detection",),
    "negation": ("negation",),
}
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
def _sections(name: str) -> tuple[tuple[str, str], ...]:
    path = paths.PROMPTS / f"{name}.md"
    try:
        parts = re.split(r"^## (system|user)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return tuple((role, body.strip()) for role, body in zip(parts[1::2], parts[2::2], strict=True))


@cache
def template_sha256(task: str) -> str:
    """Hash of the templates behind a task, for manifests."""
    return sha256([_sections(name) for name in TEMPLATES[task]])


def fill(task: str, **fields: str) -> Messages:
    """The task's messages with every placeholder filled, in a single pass."""

    def value(match: re.Match[str]) -> str:
        return fields[match[1]]

    sections = [section for name in TEMPLATES[task] for section in _sections(name)]
    return tuple((role, re.sub(r"\{(\w+)\}", value, body)) for role, body in sections)


def render(
    task: Task,
    question: str,
    steps: tuple[str, ...],
    *,
    target: int | None = None,
    original: tuple[str, ...] = (),
    removed: tuple[int, ...] = (),
) -> Messages:
    """What a judge is shown for one item.

    Parameters
    ----------
    task : {'detection', 'localization', 'coverage', 'reference', 'step_only', 'shuffled'}
    question : str
    steps : tuple of str
        The steps the judge sees; for detection only those up to `target` are shown.
    target : int, optional
        0-based index of the step in question (detection and its ablations).
    original, removed
        The whole chain and the 0-based indices of the removed steps (reference).

    Returns
    -------
    tuple of (role, content)
    """
    fields = {"question": disarm(question), "steps": number_steps(steps)}
    if target is not None:
        fields["context"] = number_steps(steps[:target])
        fields["target"] = number_steps([steps[target]], first=target)
        fields["step"] = disarm(steps[target])
    if original:
        fields["original"] = number_steps(original)
        fields["removed"] = "\n".join(number_steps([original[i]], first=i) for i in removed) or "(none)"
    return fill(task, **fields)


def render_negation(context: str, step: str) -> Messages:
    """The request for an acausal rewrite of `step`, given only the step before it (Section 3.1)."""
    return fill("negation", context=disarm(context) or "(none)", step=disarm(step))
