"""Saved JSON reports: recognised by how they begin, read with bounds, and checked against the model."""

from __future__ import annotations

import io
import re
import sys
import zlib
from pathlib import Path

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.report.model import SCHEMA, ReportData, load_every_type
from traceanalyzer.trace.source import Source, is_endless

MAX_BYTES = 256 << 20
"""Longest report read: a thousand kernels with all their samples take a hundredth."""
_HEAD = 4096
_CLASS = re.compile(rb'"class"\s*:')
_BEGINS = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"schema"\s*:\s*"traceanalyzer\.(report|compare)/(\d+)"')


def open_pipe(path: str | Path) -> io.BufferedReader | None:
    """Return a pipe (``<(zcat run.json.gz)``, a FIFO) opened, as it can be read once only; None for any other path."""
    try:
        return Path(path).open("rb") if str(path) != "-" and Path(path).is_fifo() else None
    except (OSError, ValueError):
        return None


def saved_schema(path: str | Path, pipe: io.BufferedReader | None = None) -> str:
    """Return the schema that a file names at its very beginning, empty for anything else (a trace, or nothing readable).

    Nothing is taken from standard input or from an open ``pipe``.
    """
    peek = getattr(getattr(sys.stdin, "buffer", None) if str(path) == "-" else pipe, "peek", None)
    if peek is not None:
        head = peek(_HEAD)[:_HEAD]
    elif str(path) == "-":
        head = b""
    else:
        try:
            if is_endless(Path(path)):
                return ""
            with Path(path).open("rb") as file:
                head = file.read(_HEAD)
        except (OSError, ValueError):
            return ""
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(31).decompress(head, _HEAD)
        except zlib.error:
            return ""
    found = _BEGINS.match(head)
    return f"traceanalyzer.{found[1].decode()}/{found[2].decode()}" if found else ""


def read_report(path: str | Path, pipe: io.BufferedReader | None = None) -> ReportData:
    """Return a saved report. Raises TraceFormatError where it is damaged, too long, or of another version."""
    import msgspec

    load_every_type()

    source = Source(path, ReadLimits(max_bytes=MAX_BYTES), file=pipe)
    content = b"".join(source.pieces()).removeprefix(b"\xef\xbb\xbf")
    try:
        # outside of strings only a key can be followed by a colon, and a quote inside a string is escaped
        report = msgspec.json.decode(_CLASS.sub(b'"class_":', content), type=ReportData)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise TraceFormatError(
            "bad_report",
            f"'{source.given}' begins like a saved report but is none of this version",
            hint="make it again: traceanalyze report TRACE --format json -o FILE",
        ) from None
    if report.schema != SCHEMA:
        raise TraceFormatError("bad_report", f"'{source.given}' is of another schema", hint=f"expected {SCHEMA}")
    return report
