"""Where a rendered report goes: standard output, or a file written whole or not at all."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from traceanalyzer.errors import OptionError
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.render.base import WIDTH
from traceanalyzer.render.escape import log

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NARROWEST, _WIDEST = 60, 200
_PIECE = 1 << 20
_NOT_FOR_LOGS = ("github", "html")  # commands of ours, whose texts are escaped; pages, which escape for themselves
_SPELLED = "traceanalyzer.ascii"
_ASCII = str.maketrans(
    "\u2500\u2501\u2550\u2502\u2503\u2026\u00b5\u03bc\u00d7\u2013\u2014\u2010\u2011\u2212\u201c\u201d\u2018\u2019\u2022\u00b7\u2192\u2190\u00a0\u2588\u25b8",
    "--=||~uux-----\"\"''**>< #>",
) | {0x2264: "<=", 0x2265: ">=", 0x00B1: "+-", 0x2260: "!=", 0x2248: "~"}


def write_output(text: str, output: str | None, *, form: str = "text") -> None:
    """Write the text to the file, or to standard output when ``output`` is None or ``-``.

    A file is written next to its place and then moved there, so that a failure leaves the old one whole; a link's
    target is written, and a device or pipe is written to, never replaced. ``form`` is the output format: JSON that
    standard output cannot encode stays JSON, and a log that it becomes holds no command for the runner of the job.
    Raises OptionError when it cannot be written.
    """
    text = text if text.endswith("\n") else text + "\n"
    if output is None or output == "-":
        json = form in ("json", "sarif")
        if json and not _takes(text):
            text = _NOT_ASCII.sub(_json_escape, text)
        if form not in _NOT_FOR_LOGS:
            text = log(text, json=json)
        _write_stdout(text)
        return
    target = Path(output)
    try:
        if target.is_dir():
            raise OptionError("cannot_write", f"'{output}' is a folder", hint="give a file name to -o")
        target = target.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            _replace(target, text)
    except OSError as error:
        raise OptionError("cannot_write", f"'{output}': {error.strerror}", hint="check what was given to -o") from None


def _takes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json_escape(match: re.Match[str]) -> str:
    # outside of strings JSON is ASCII; a character beyond the first plane is two escapes
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def refuse_input_as_output(output: str | None, *sources: str) -> None:
    """Raise OptionError when the output is one of the inputs, by whatever name, link or mount, or a folder.

    A trace that took an hour to record must not turn into its report; and that is said before the work is done.
    """
    if output is None or output == "-":
        return
    try:
        target = Path(output)
        if target.is_dir():
            raise OptionError("cannot_write", f"'{output}' is a folder", hint="give a file name to -o")
        if target.exists() and any(s != "-" and Path(s).exists() and target.samefile(s) for s in sources):
            raise OptionError("would_overwrite", f"'{output}' is the input itself", hint="give another file to -o")
    except (OSError, ValueError):
        return  # what is wrong with the paths is said by whoever opens them


def _pieces(text: str) -> Iterator[str]:
    # a stream of text encodes what it is given as a whole: a long report would be held twice
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _replace(target: Path, text: str) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    # "x": a file of that name is somebody else's
    with cleaning_up(), partial.open("x", encoding="utf-8") as file:
        try:
            file.writelines(_pieces(text))
            file.close()
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _write_stdout(text: str) -> None:
    try:
        for piece in _pieces(text):
            sys.stdout.write(piece)
        sys.stdout.flush()
    except OSError as error:
        # what stays in the buffer would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return  # a reader like `head` has enough: no fault, and a gate still decides the exit code
        raise OptionError(
            "cannot_write", f"standard output: {error.strerror}", hint="make room, or write elsewhere with -o"
        ) from None


def utf8_stdout() -> None:
    """Make standard output take any name of a trace, whatever the locale: what it cannot show is spelled out in ASCII."""
    codecs.register_error(_SPELLED, _spell)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_SPELLED)


def screen(output: str | None = None) -> tuple[int, bool]:
    """Return the columns of a text and whether it may have colours.

    The width is that of the terminal, or of COLUMNS, within 60 and 200; :data:`~traceanalyzer.render.base.WIDTH` where there is
    neither. NO_COLOR, TERM=dumb and whatever is no terminal take the colours away.
    """
    to_terminal = output in (None, "-") and sys.stdout.isatty()
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if to_terminal else _columns_given()
    return max(_NARROWEST, min(columns, _WIDEST)), to_terminal and not plain


def _columns_given() -> int:
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 and int(text) else WIDTH


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Spell out what an encoding lacks: lines and punctuation by their like in ASCII, one for one, so that tables stay aligned."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end
