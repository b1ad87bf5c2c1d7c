"""Load, render and hash the prompt templates of `data/prompts` (paper, Appendix C; the wording is ours).

A template is Markdown with `## system` and `## user` sections and `{placeholders}`. What fills them is untrusted:
it is put in by one pass (a placeholder inside a problem stays text), and the templates' own tags in it are
disarmed: a step can neither close its element nor pose as another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


def _number_steps(steps: Iterable[str], first: int = 0) -> str:
    lines = [f'<step index="{i}">{disarm(step)}</step>' for i, step in enumerate(steps, start=first)]
    return "\n".join(lines) or "(none)"


@cache
def _sections(path: Path) -> tuple[tuple[str, str], ...]:
    try:
        parts = re.split(r"^## (system|user)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return tuple((role, body.strip()) for role, body in zip(parts[1::2], parts[2::2], strict=True))


def _fill(templates: Iterable[str], fields: Mapping[str, str]) -> Messages:
    sections = [section for name in templates for section in _sections(paths.PROMPTS / f"{name}.md")]
    return tuple((role, re.sub(r"\{(\w+)\}", lambda match: fields[match[1]], body)) for role, body in sections)


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

    Placeholders of the `templates` (names in `data/prompts`): ``question``, ``steps`` (those that the judge sees);
    with a `target`, the 0-based index of the step in question, ``context`` (the steps before it), ``target``
    (numbered) and ``step`` (without its number); with an `original`, the whole chain, ``original`` and ``removed``.
    """
    fields = {"question": disarm(question), "steps": _number_steps(steps)}
    if target is not None:
        fields["context"] = _number_steps(steps[:target])
        fields["target"] = _number_steps([steps[target]], first=target)
        fields["step"] = disarm(steps[target])
    if original:
        fields["original"] = _number_steps(original)
        fields["removed"] = "\n".join(_number_steps([original[i]], first=i) for i in removed) or "(none)"
    return _fill(templates, fields)


def render_negation(context: str, step: str) -> Messages:
    """The request for an acausal rewrite of `step`, given only the step before it (Section 3.1)."""
    return _fill(["negation"], {"context": disarm(context) or "(none)", "step": disarm(step)})
