"""Figures as files that are the same bytes in any process and on any day."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from c2faith.analysis.figures.style import RC
from c2faith.records import write_bytes

_METADATA: Mapping[str, Mapping[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
PNG_DPI = 200


class Picture(Figure):
    """A figure that a notebook shows as the very PNG that `save` writes, at half its pixel size."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return rendered(self, "png"), {"width": round(self.get_figwidth() * PNG_DPI / 2)}


def rendered(figure: Figure, suffix: str) -> bytes:
    """A figure as a PDF or PNG file's bytes, fonts embedded, without dates or program names."""
    content = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        figure.savefig(content, format=suffix, dpi=PNG_DPI, metadata=dict(_METADATA[suffix]))
    return _fewer_colours(content) if suffix == "png" else content.getvalue()


def _fewer_colours(png: io.BytesIO) -> bytes:
    """The same picture with a palette: a third of the bytes, and no difference that an eye would see."""
    smaller = io.BytesIO()
    picture = (
        Image.open(png).convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    )
    picture.save(smaller, "png", optimize=True, dpi=(PNG_DPI, PNG_DPI))
    return smaller.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `<folder>/<name>.pdf` and `.png`, each whole or not at all; returns their paths."""
    written = [folder / f"{name}.{suffix}" for suffix in _METADATA]
    for path in written:
        write_bytes(path, rendered(figure, path.suffix[1:]))
    return written
