"""Which files a fleet is made of: the traces below folders and behind patterns, with size and time of change."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.fleet.tables import kept_name
from traceanalyzer.trace.folder import is_trace_name

MANIFEST = "fleet.json"
"""The file that makes a folder one of results; such a folder holds no traces."""
_HOST = re.compile(r"^(.+?)_\d+\.\d+(?:\.\d+)?\.pt\.trace\.json(?:\.gz)?$")
_RANDOM = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class TraceSource:
    """One file of the fleet. ``file`` is its path relative to what was given, with ``/``; ``code`` is why it cannot be opened at all."""

    path: str
    file: str
    size: int
    mtime_ns: int
    code: str = ""

    @property
    def run(self) -> str:
        """Return the name of the run: one file in one state."""
        text = f"{self.file}\0{self.size}\0{self.mtime_ns}".encode("utf-8", "surrogateescape")
        return hashlib.blake2b(text, digest_size=10).hexdigest()

    @property
    def job(self) -> str:
        """Return the folder of the file, ``.`` for the top."""
        return self.file.rpartition("/")[0] or "."

    @property
    def host(self) -> str | None:
        """Return the host that the TensorBoard handler of PyTorch writes in front of a name."""
        match = _HOST.match(self.file.rpartition("/")[2])
        return match[1] if match else None


def sources(given: Sequence[str]) -> list[TraceSource]:
    """Return the files of folders (with their subfolders), patterns and names, once each, in order of their relative paths.

    Hidden files, links to folders, sidecars and folders of results are left out. Raises TraceFormatError where nothing is there.
    """
    paths: dict[str, Path] = {}
    for text in given:
        for path in _expanded(text):
            for found in _below(path) if path.is_dir() else [path]:
                paths.setdefault(os.path.abspath(found), found)  # noqa: PTH100 - resolve() would follow links
    if not paths:
        shown = ", ".join(f"'{g}'" for g in given[:3])
        raise TraceFormatError("no_traces", f"{shown}: no trace there", hint="give folders, or patterns in quotes")
    roots = [_root(g) for g in given]
    top = os.path.commonpath(roots)
    made = [_source(absolute, os.path.relpath(absolute, top)) for absolute in paths]
    return sorted(made, key=lambda s: s.file)


def _expanded(text: str) -> list[Path]:
    if "\0" in text:
        raise TraceFormatError("cannot_open", "a path holds a NUL byte", hint="check the path")
    if os.path.lexists(text):
        return [Path(text)]
    if not _RANDOM.search(text):
        raise TraceFormatError("cannot_open", f"'{text}' is not there", hint="check the path")
    return [Path(p) for p in glob.glob(text, recursive=True)]  # noqa: PTH207 - the pattern may be absolute


def _root(text: str) -> str:
    """Return the folder that files of an argument are named from: itself, or what is in front of its first wildcard."""
    path = Path(text)
    if path.is_dir():
        return os.path.abspath(path)  # noqa: PTH100
    if os.path.lexists(path):
        return os.path.abspath(path.parent)  # noqa: PTH100
    fixed = []
    for part in path.parts[:-1]:
        if _RANDOM.search(part):
            break
        fixed.append(part)
    return os.path.abspath(Path(*fixed))  # noqa: PTH100


def _below(folder: Path) -> Iterator[Path]:
    # a folder that cannot be listed is not passed over in silence: it is a source with a code
    refused: list[OSError] = []
    for base, folders, names in os.walk(folder, onerror=refused.append):
        if MANIFEST in names and Path(base, "runs").is_dir():
            folders.clear()
            continue
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            if is_trace_name(name):
                yield Path(base, name)
    for error in refused:
        yield Path(os.fsdecode(error.filename))


def _source(absolute: str, relative: str) -> TraceSource:
    file = kept_name(relative.replace(os.sep, "/"))
    try:
        found = Path(absolute).stat()
    except OSError:
        return TraceSource(absolute, file, 0, 0, "cannot_open")
    code = "" if stat.S_ISREG(found.st_mode) else "cannot_open" if stat.S_ISDIR(found.st_mode) else "not_a_file"
    return TraceSource(absolute, file, found.st_size, found.st_mtime_ns, code)
