"""Scripts on disk: which files there are below a folder, how they are encoded, and the code cells of a notebook."""

from __future__ import annotations

import codecs
import io
import json
import os
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.errors import OptionError

MOST_BYTES = 2 << 20
"""A script above this is generated, or no script."""
MOST_NOTEBOOK_BYTES = 64 << 20
"""A notebook holds its outputs too."""
SUFFIXES = (".py", ".ipynb")
_SKIPPED = {"node_modules", "__pycache__", "build", "dist", "site-packages", "venv"}
_MAGIC = ("%", "!", "?")


class Unreadable(ValueError):
    """A file that cannot be taken for a script; its text says why."""


@dataclass(frozen=True)
class LintedFile:
    """A script's text. ``encoding``: as it is on disk. ``cells``: for a notebook, the line (from 1) at which each code cell begins."""

    text: str
    encoding: str
    cells: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell (from 1, among all cells of the notebook; 0 in a script) of a line, and the line in it."""
        if not self.cells:
            return 0, line
        at = bisect_right(self.cells, line) - 1
        return self.numbers[at], line - self.cells[at] + 1


def script_files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files named, and the scripts and notebooks below the folders named, by name.

    Hidden folders, environments and folders of built or installed packages are left out; links to folders are not followed.
    Raises OptionError for what is not there.
    """
    for name in paths:
        path = Path(name)
        if path.is_dir():
            yield from _below(path)
        elif path.exists():
            yield path
        else:
            raise OptionError("no_such_file", f"there is no file or folder '{name}'", hint="check the path")


def _below(folder: Path) -> Iterator[Path]:
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = [
            f for f in folders if f not in _SKIPPED and f[0] != "." and not (here / f / "pyvenv.cfg").exists()
        ]
        found += [p for f in files if f.endswith(SUFFIXES) and (p := here / f).is_file()]
    yield from sorted(found)


def read_source(path: Path) -> LintedFile:
    """Return a file's script. Raises Unreadable for what is too long, not text or no notebook, and OSError."""
    notebook = path.suffix == ".ipynb"
    if not path.is_file():
        raise Unreadable("no regular file")
    if path.stat().st_size > (limit := MOST_NOTEBOOK_BYTES if notebook else MOST_BYTES):
        raise Unreadable(f"longer than {limit >> 20} MiB")
    content = path.read_bytes()
    if notebook:
        return _cells(content)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        # bytes, so that line ends stay as they are
        return LintedFile(content.decode(encoding), encoding)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        raise Unreadable("neither UTF-8 nor the encoding that its first lines name") from None


def write_source(path: Path, text: str, encoding: str) -> None:
    """Write a script in the place of the old one, whole or not at all; a link stays a link."""
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(codecs.encode(text, encoding))
        partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _cells(content: bytes) -> LintedFile:
    """Return the code cells of a notebook in one text; lines that are no Python (magics, shell) are blank in it."""
    try:
        cells = json.loads(content)["cells"]
        lines: list[str] = []
        starts, numbers = [], []
        for number, cell in enumerate(cells, 1):
            if cell.get("cell_type") != "code":
                continue
            source = cell.get("source") or ""
            text = source if isinstance(source, str) else "".join(source)
            if text.startswith("%%") and not text.startswith(("%%time", "%%capture")):
                continue  # a cell in another language
            starts.append(len(lines) + 1)
            numbers.append(number)
            lines += [_python(line) for line in text.splitlines()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unreadable("no notebook (nbformat 4) that can be read") from None
    return LintedFile("\n".join(lines) + "\n", "utf-8", tuple(starts), tuple(numbers))


def _python(line: str) -> str:
    stripped = line.lstrip()
    return line[: len(line) - len(stripped)] + "pass" if stripped.startswith(_MAGIC) else line
