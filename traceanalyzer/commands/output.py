"""Where a rendered report goes: standard output, or a file written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from traceanalyzer.errors import OptionError


def write_output(text: str, output: str | None) -> None:
    """Write the text to the file, or to standard output when ``output`` is None or ``-``.

    A file is written beside its place and then moved there, so that a failure leaves the old one whole; a link's
    target is written, and a device or pipe is written to, never replaced. Raises OptionError when it cannot be.
    """
    text = text if text.endswith("\n") else text + "\n"
    if output is None or output == "-":
        _write_stdout(text)
        return
    target = Path(output)
    name = target.name or output
    try:
        if target.is_dir():
            raise OptionError("cannot_write", f"'{name}' is a folder", hint="give a file name to -o")
        target = target.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            _replace(target, text)
    except OSError as error:
        raise OptionError("cannot_write", f"'{name}': {error.strerror}", hint="check what was given to -o") from None


def refuse_input_as_output(output: str | None, *sources: str) -> None:
    """Raise OptionError when the output is one of the inputs, by whatever name, link or mount, or a folder.

    A trace that took an hour to record must not turn into its report; and that is said before the work is done.
    """
    if output is None or output == "-":
        return
    name = Path(output).name or output
    try:
        target = Path(output)
        if target.is_dir():
            raise OptionError("cannot_write", f"'{name}' is a folder", hint="give a file name to -o")
        if target.exists() and any(s != "-" and Path(s).exists() and target.samefile(s) for s in sources):
            raise OptionError("would_overwrite", f"'{name}' is the input itself", hint="give another file to -o")
    except (OSError, ValueError):
        return  # what is wrong with the paths is said by whoever opens them


def _replace(target: Path, text: str) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # "x": a file of that name is somebody else's
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
        partial.replace(target)
    except FileExistsError:
        raise
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _write_stdout(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # a reader like `head` has enough: no fault
    except OSError as error:
        # what stays in the buffer would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OptionError(
            "cannot_write", f"standard output: {error.strerror}", hint="make room, or write elsewhere with -o"
        ) from None


def utf8_stdout() -> None:
    """Make standard output take any name of a trace, whatever the locale: what it cannot show is escaped."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def terminal_width() -> int:
    """Return the columns of the terminal, within the widths that the tables are made for."""
    import shutil

    return max(60, min(shutil.get_terminal_size().columns, 120))
