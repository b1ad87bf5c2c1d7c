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


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `<folder>/<name>.pdf` and `.png`, fonts embedded, without dates or program names.

    Returns
    -------
    list of Path
        The two files, each written whole or not at all.
    """
    written = []
    for suffix, metadata in _METADATA.items():
        content = io.BytesIO()
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(RC)
            figure.savefig(content, format=suffix, dpi=PNG_DPI, metadata=dict(metadata))
        written.append(folder / f"{name}.{suffix}")
        write_bytes(written[-1], content.getvalue())
    return written
