"""A command line as text: what a reader may paste into bash, whatever the names of the files."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

from traceanalyzer.render.escape import visible


def shell_line(command: str, files: Iterable[str], options: Iterable[str]) -> str:
    """Return the line of a command of ours; folders of the files are left out, since they name machines and users."""
    return " ".join(map(shell_word, ["traceanalyze", command, *map(beside, files), *options]))


def beside(path: str) -> str:
    """Return the name of a file without its folders, as an argument that is no option."""
    name = PurePath(path).name or path
    return f"./{name}" if name.startswith("-") and path != "-" else name


def shell_word(text: str) -> str:
    """Return the text as one word of bash on one line, every character visible.

    What :func:`~traceanalyzer.render.escape.visible` would spell out is given as the bytes of its UTF-8 in ``$'...'``.
    """
    if visible(text) == text:
        return shlex.quote(text)
    return "$'" + "".join(_dollar_quoted(c) for c in text) + "'"


def _dollar_quoted(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if visible(char) == char:
        return char
    return "".join(f"\\x{byte:02x}" for byte in _bytes(char))


def _bytes(char: str) -> bytes:
    try:
        return char.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return char.encode("utf-8", "surrogatepass")
