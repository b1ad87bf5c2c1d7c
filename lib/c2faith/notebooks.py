"""Execute the numbered notebooks headlessly: parameters checked first, a failed run never posing as a finished one.

The `.py` file (percent format) is the source; its `.ipynb` pair is for reading, Binder and Colab.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import papermill
from nbformat.v4 import new_code_cell
from papermill.exceptions import PapermillExecutionError
from papermill.translators import PythonTranslator

from c2faith import paths
from c2faith.records import InputError, replacing

INJECTED = "# Parameters"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def names() -> list[str]:
    """The notebooks, in order."""
    return sorted(path.stem for path in paths.NOTEBOOKS.glob("[0-9]*.py"))


def read(name: str) -> nbformat.NotebookNode:
    """A notebook from its source, by its name or its number."""
    matches = [known for known in names() if name in (known, known.split("_")[0])]
    if not matches:
        raise InputError(f"unknown notebook {name!r}: choose from {', '.join(names())}")
    notebook = jupytext.read(paths.NOTEBOOKS / f"{matches[0]}.py")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for position, cell in enumerate(notebook.cells):
        cell["id"] = f"{matches[0][:2]}-{position:02d}"
    return notebook


def defaults(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """Names and literal values of the one cell tagged ``parameters``."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    return {name: ast.literal_eval(text) for cell in cells for name, text in _assigned(cell.source).items()}


def coerce(given: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Texts from a command line as values of the types the notebook declares.

    >>> coerce({"limit": "8"}, {"limit": 450, "seed": 0})
    {'limit': 8}
    >>> coerce({"limt": "8"}, {"limit": 450, "seed": 0})
    Traceback (most recent call last):
    c2faith.records.InputError: unknown parameter 'limt': the notebook has limit, seed
    """
    values = {}
    for name, text in given.items():
        if name not in known:
            raise InputError(f"unknown parameter {name!r}: the notebook has {', '.join(known)}")
        values[name] = _typed(name, text, type(known[name]))
    return values


def execute(name: str, given: Mapping[str, str], folder: Path) -> Path:
    """Run a notebook (``01_dataset`` or ``01``) with papermill, parameters as typed on a command line.

    ``<name>.ipynb`` appears in `folder` when, and only when, the run ends well; a failed one is kept as
    ``<name>.failed.ipynb``.

    Raises
    ------
    InputError
        For bad parameters, and for whatever the notebook itself refuses.
    RuntimeError
        If the notebook fails otherwise; names the kept notebook.
    """
    notebook = read(name)
    name = next(known for known in names() if name in (known, known.split("_")[0]))
    values = coerce(given, defaults(notebook))
    finished, failed = folder / f"{name}.ipynb", folder / f"{name}.failed.ipynb"
    running = folder / f"{name}.running.ipynb"
    with replacing(running) as file:
        file.write(nbformat.writes(notebook).encode())
    finished.unlink(missing_ok=True)
    failed.unlink(missing_ok=True)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    try:
        papermill.execute_notebook(
            running,
            running,
            parameters=values,
            kernel_name="python3",
            cwd=paths.NOTEBOOKS,
            progress_bar=sys.stderr.isatty(),
            stderr_file=sys.stderr,
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
    except PapermillExecutionError as error:
        running.rename(failed)
        if error.ename == InputError.__name__:
            raise InputError(error.evalue) from None
        raise RuntimeError(f"notebook {name} failed: {error.ename}: {error.evalue} (see {failed})") from None
    except BaseException:
        running.rename(failed)
        raise
    running.rename(finished)
    return finished


def refuse_unknown_parameters(cells: Sequence[str]) -> None:
    """Stop a notebook into which papermill, which only warns, injected a name that its parameters cell lacks.

    `cells` is IPython's `In`: the sources run so far.
    """
    injected = [source for source in cells if source.startswith(INJECTED)]
    if not injected:
        return
    declared: set[str] = set()
    for source in cells[: cells.index(injected[0])]:
        declared |= _assigned(source).keys()
    if unknown := sorted(_assigned(injected[-1]).keys() - declared):
        raise InputError(f"unknown parameter {unknown[0]!r}: the notebook has {', '.join(sorted(declared))}")


def pair(check: bool = False) -> list[str]:
    """Rewrite every `.ipynb` from its `.py` source, unexecuted, or only compare; names those that differed."""
    differing = []
    for name in names():
        path = paths.NOTEBOOKS / f"{name}.ipynb"
        notebook = read(name)
        content = (nbformat.writes(notebook) + "\n").encode()
        if not path.exists() or path.read_bytes() != content:
            differing.append(name)
            if not check:
                with replacing(path) as file:
                    file.write(content)
    return differing


def _assigned(source: str) -> dict[str, str]:
    return {found.name: found.default for found in PythonTranslator.inspect(new_code_cell(source))}


def _typed(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() in ("1", "true", "yes"):
            return True
        if text.lower() in ("0", "false", "no", ""):
            return False
        raise InputError(f"{name}={text}: takes true or false")
    try:
        return kind(text)
    except ValueError:
        wanted = {int: "a whole number", float: "a number"}.get(kind, kind.__name__)
        raise InputError(f"{name}={text}: takes {wanted}") from None
