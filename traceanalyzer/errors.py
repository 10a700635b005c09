"""Errors a user can cause, each with the exit code it ends in.

The library raises them; only :mod:`traceanalyzer.cli` turns one into a line on standard error and an
exit code. A message says what was found, what was expected and what to do next.
"""

from __future__ import annotations

import sys
from enum import IntEnum

from traceanalyzer._version import __version__

DEBUG_VARIABLE = "TRACEANALYZER_DEBUG"
"""Environment variable that shows the traceback of an error."""


class ExitCode(IntEnum):
    """Exit codes of the command line, as documented in the README."""

    OK = 0
    FINDINGS = 1
    BAD_INPUT = 2
    CANNOT_JUDGE = 3
    CAPTURE_UNAVAILABLE = 4
    INTERNAL = 5


class TraceAnalyzerError(Exception):
    """Base of every error that is the input's or the user's, not ours.

    ``kind`` is a stable word for programs (``invalid_json``, ``truncated``, ...); ``offset`` is the byte
    position in the (decompressed) file when there is one.
    """

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, kind: str, message: str, *, offset: int | None = None, hint: str = "") -> None:
        self.kind = kind
        self.offset = offset
        self.hint = hint
        super().__init__(message)

    def one_line(self) -> str:
        """Return ``kind: what was found (at byte N); what to do``, on one line without control bytes."""
        text = f"{self.kind}: {self}"
        if self.offset is not None:
            text += f" (at byte {self.offset})"
        if self.hint:
            text += f"; {self.hint}"
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


class TraceFormatError(TraceAnalyzerError):
    """The file is not a trace that can be read, or a limit against hostile files was met."""


class OptionError(TraceAnalyzerError):
    """An option has a value that means nothing (an unknown range, a bad regular expression)."""


class CaptureUnavailable(TraceAnalyzerError):
    """Something a capture needs (torch, triton, a device) is not there."""

    exit_code = ExitCode.CAPTURE_UNAVAILABLE


def fault_line(error: BaseException) -> str:
    """Return one line on a fault of ours: its type, its place and our version, and nothing of the input."""
    place, at = "", error.__traceback__
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("traceanalyzer") or not place:
            place = f"{module}:{at.tb_lineno}"
        at = at.tb_next
    return (
        f"internal_error: {type(error).__name__} at {place} (traceanalyzer {__version__}, Python "
        f"{'.'.join(map(str, sys.version_info[:3]))}); a fault of traceanalyzer, not of the input: please report it with this "
        f"line, the command and, if possible, the file; {DEBUG_VARIABLE}=1 shows the traceback"
    )
