"""Which files the lines of the input ``traces`` name: paths, and patterns as bash expands them with ``globstar``.

Python's own ``glob`` follows links to folders below ``**``: it walks a link to a folder above again and again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate

from traceanalyzer.action.inputs import Fault
from traceanalyzer.render.shell import shell_word

SIDECAR = ".sidecar.json"


def traces_of(given: Iterable[str]) -> tuple[list[str], list[Fault]]:
    """Return the traces of all lines, each once, in the order of the lines and of the bytes of their names; and lines without any."""
    found: dict[str, None] = {}
    faults = []
    for line in given:
        paths = [_plain(path) for path in _matches(line)]
        if not paths:
            message = "no file matches; the workspace is searched, so download artifacts into it first"
            faults.append(Fault(shell_word(line), message))
        # a pattern for traces also finds what a capture wrote next to them
        found |= dict.fromkeys(p for p in paths if not p.endswith(SIDECAR) or p == line)
    return list(found), faults


def _matches(line: str) -> list[str]:
    named = [line] if os.path.exists(line) else []
    if named and not re.search(r"[*?]", line):
        return named
    # a file may have the very name of a pattern: it hides none of those that the pattern finds
    expanded = sorted(expand(line), key=os.fsencode) if re.search(r"[*?[]", line) else []
    return [path for path in [*named, *expanded] if path == line or not os.path.isdir(path)]


def _plain(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def expand(pattern: str) -> set[str]:
    """Return the paths that match; ``*``, ``?`` and ``[...]`` match within a name, ``**`` any number of folders.

    Names that begin with a dot match only where the pattern has that dot.
    """
    absolute = pattern.startswith("/")
    parts = [part for part in pattern.split("/") if part]
    parts = [part for part, before in zip(parts, ["", *parts], strict=False) if (part, before) != ("**", "**")]
    return set(_below("/" if absolute else "", parts))


def _below(folder: str, parts: list[str]) -> Iterator[str]:
    if not parts:
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        for inner in _folders(folder):
            if rest:
                yield from _below(inner, rest)
            else:
                yield from (inner + e.name for e in _entries(inner) if not e.name.startswith("."))
        return
    if not re.search(r"[*?[]", part):
        names = [part] if os.path.lexists(folder + part) else []
    else:
        matches = re.compile(translate(_of_bash(part))).match
        names = [e.name for e in _entries(folder) if matches(e.name) and (part.startswith(".") or e.name[0] != ".")]
    for name in names:
        if not rest:
            yield folder + name
        elif os.path.isdir(folder + name):
            yield from _below(f"{folder}{name}/", rest)


def _folders(folder: str) -> Iterator[str]:
    """Yield the folder and those below it, without hidden ones and without links."""
    left = [folder]
    while left:
        yield (inner := left.pop())
        left += [
            f"{inner}{e.name}/"
            for e in _entries(inner)
            if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
        ]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            return list(entries)
    except OSError:
        return []  # as bash does: what cannot be looked into matches nothing


def _of_bash(part: str) -> str:
    """Return a pattern of bash as ``fnmatch`` reads it: a backslash quotes, and ``[^...]`` is ``[!...]``."""
    quoted = re.sub(r"\\(.)", lambda m: f"[{m[1]}]" if m[1] in "*?[" else m[1], part)
    return quoted.replace("[^", "[!")
