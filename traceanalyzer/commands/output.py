"""Where a rendered report goes: standard output, or a file written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

from traceanalyzer.errors import OptionError


def write_output(text: str, output: str | None) -> None:
    """Write the text to the file, or to standard output when ``output`` is None or ``-``.

    A file is written beside its place and then moved there, so that a failure leaves the old one whole.
    """
    if output in (None, "-"):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
        return
    assert output is not None
    target = Path(output)
    partial = target.with_name(target.name + ".part")
    try:
        if target.is_dir():
            raise OptionError("cannot_write", f"'{target.name}' is a folder", hint="give a file name to -o")
        partial.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True) if partial.parent.is_dir() else None
        raise OptionError(
            "cannot_write", f"'{target.name}': {error.strerror}", hint="check the folder given to -o"
        ) from None


def utf8_stdout() -> None:
    """Make standard output take any name of a trace, whatever the locale: what it cannot show is escaped."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
