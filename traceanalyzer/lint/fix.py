"""Edits applied to a text. Lines are numbered as they were before any edit."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.lint.model import Delete, Edit, Insert, Replace


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits made; one that does not meet the text it expects is left out."""
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    inserts: dict[int, list[str]] = {}
    for edit in edits:
        if isinstance(edit, Insert):
            line = "".join(edit.indent + part + ending for part in edit.text.split("\n"))
            if line not in inserts.setdefault(edit.line, []):
                inserts[edit.line].append(line)
    for edit in sorted(
        (e for e in edits if isinstance(e, Replace)), key=lambda e: (e.line, e.column), reverse=True
    ):  # from the end of a line, so that columns stay
        line = lines[edit.line - 1]
        if line[edit.column : edit.column + len(edit.old)] == edit.old:
            lines[edit.line - 1] = line[: edit.column] + edit.text + line[edit.column + len(edit.old) :]
    gone = {
        e.line for e in edits if isinstance(e, Delete) and e.line <= len(lines) and lines[e.line - 1].strip() == e.text
    }
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        result += inserts.get(number, [])
        if number not in gone:
            result.append(line)
    if result and not result[-1].endswith(("\n", "\r")) and len(lines) + 1 in inserts:
        result[-1] += ending
    return "".join([*result, *inserts.get(len(lines) + 1, [])])
