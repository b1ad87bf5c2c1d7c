"""Figures as files that are the same bytes in any process and on any day."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from c2faith.figures.style import RC
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
    return content.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `<folder>/<name>.pdf` and `.png`, each whole or not at all; returns their paths."""
    written = [folder / f"{name}.{suffix}" for suffix in _METADATA]
    for path in written:
        write_bytes(path, rendered(figure, path.suffix[1:]))
    return written
