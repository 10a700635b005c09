"""How the action speaks to the runner: outputs and annotations that no file name and no message can forge."""

from __future__ import annotations

import sys
from pathlib import Path
from secrets import token_hex
from typing import Literal

Level = Literal["notice", "warning", "error"]


def annotate(level: Level, title: str, message: str) -> None:
    """Write one workflow command, on one line whatever the texts.

    The runner reads a command at the beginning of a line (``::``), or anywhere in a line without one (``##[``): so text of others
    is printed here alone.
    """
    title = _one_line(f"traceanalyzer: {title}").replace(":", "%3A").replace(",", "%2C")
    line = f"::{level} title={title}::{_one_line(message)}\n"
    sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _one_line(text: str) -> str:
    """Return the text with what would end a command escaped as the runner reads it back."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def set_output(file: Path, name: str, value: str) -> None:
    """Add an output of the step. The value ends at a word drawn after it was made, so that nothing in it can end it."""
    end = f"end_{token_hex(16)}"
    with file.open("ab") as out:
        out.write(f"{name}<<{end}\n{value}\n{end}\n".encode("utf-8", "surrogateescape"))
