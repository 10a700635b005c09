"""Bytes of a trace: a path or standard input, plain or gzip, in bounded pieces.

Nothing here knows JSON. A gzip stream may have several members; a damaged one gives its sound part and
says where it broke. The expanded size is bounded by :class:`~traceanalyzer.options.ReadLimits`.
"""

from __future__ import annotations

import errno
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits

Progress = Callable[[int, int | None], None]
"""Called with (bytes of the file read so far, size of the file or None for a pipe)."""

_STEP_BYTES = 1 << 18
_MEMBER_KEPT_BYTES = 1 << 19

SQLITE_MAGIC = b"SQLite format 3\0"
XSPACE_BYTE = b"\x0a"
"""First byte of protocol buffers whose first field is a message; a decoder has to look further."""
_GZIP_MAGIC = b"\x1f\x8b"


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _new_inflater() -> _Inflater:
    """Return a gzip inflater: isal's where it is installed (about twice as fast), else zlib's."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.decompressobj(wbits=31)
    inflater: _Inflater = isal_zlib.decompressobj(wbits=31)
    return inflater


def _inflate_errors() -> tuple[type[Exception], ...]:
    try:
        from isal import isal_zlib
    except ImportError:
        return (zlib.error, EOFError)
    isal_error: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stubs say instance
    return (zlib.error, EOFError, isal_error)


def is_endless(path: Path) -> bool:
    """Return whether reading may never end: a device, or a file of the kernel that is no file of a disk (``/proc/kmsg``).

    Those of the kernel have no length and content all the same. Raises OSError as :meth:`pathlib.Path.stat` does.
    """
    found = path.stat()
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size == 0 and _of_the_kernel(path)


def _of_the_kernel(path: Path) -> bool:
    return any(path.resolve().is_relative_to(folder) for folder in ("/proc", "/sys", "/dev"))


class Source:
    """One input, read once from start to end.

    Attributes:
        name: base name of the file, or ``<stdin>``; never the folder, which may name its owner: this one is for reports.
        given: the path as it was given, for messages to whoever gave it.
        damaged_at: compressed byte offset where a gzip stream broke off, or ``None``.
        cut_short: the gzip stream ends before its trailer, and what there is of it is not damaged.
        bytes_out: expanded bytes handed out so far.
    """

    def __init__(
        self, path: str | Path, limits: ReadLimits, progress: Progress | None = None, file: IO[bytes] | None = None
    ) -> None:
        self._limits = limits
        self._progress = progress
        self.damaged_at: int | None = None
        self.cut_short = False
        self.bytes_out = 0
        self.compressed = False
        self.path: Path | None = None
        self._head: bytes | None = None
        if str(path) == "-":
            self.name = self.given = "<stdin>"
            self.size = None
            if sys.stdin is None:
                raise TraceFormatError(
                    "cannot_open", "standard input is closed", hint="pipe the trace in, or give a file"
                )
            self._file: IO[bytes] = sys.stdin.buffer
            return
        self.given = str(path)
        path = self.path = Path(path)
        self.name = path.name or str(path)  # "." and "/" have no name of their own
        if file is not None:
            self._file, self.size = file, None
            return
        try:
            if path.is_dir():
                captured = (path / "trace.json.gz").is_file()
                hint = f"the capture in it is {path / 'trace.json.gz'}" if captured else "give one trace file"
                raise TraceFormatError("not_a_file", f"'{self.given}' is a folder", hint=hint)
            if is_endless(path):
                raise TraceFormatError(
                    "not_a_file", f"'{self.given}' is a device, not a file", hint="give one trace file"
                )
            self._file = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            what = {
                errno.ENOENT: "there is no such file",
                errno.EACCES: "there is no permission to read it",
            }.get(error.errno or 0, error.strerror or "it cannot be opened")
            raise TraceFormatError("cannot_open", f"'{self.given}': {what}", hint="check the path") from None
        except ValueError:
            raise TraceFormatError("cannot_open", "the path holds a null byte", hint="check the path") from None

    def pieces(self) -> Iterator[bytes]:
        """Yield the expanded bytes in pieces of about ``limits.chunk_bytes``."""
        with self._file:
            for piece in self._inflated() if self._is_gzip() else self._raw():
                if piece:
                    self.bytes_out += len(piece)
                    if self.bytes_out > self._limits.max_bytes:
                        raise TraceFormatError(
                            "too_large",
                            f"'{self.given}' holds more than {self._limits.max_bytes} bytes",
                            hint="a real trace? then raise the limit with --max-bytes",
                        )
                    yield piece

    def head(self) -> bytes:
        """Return the first 64 KiB as they lie in the file; they stay to be read."""
        if self._head is None:
            self._head = self._read(1 << 16)
        return self._head

    def close(self) -> None:
        """Close the file without reading on."""
        self._file.close()

    def _is_gzip(self) -> bool:
        head = self.head()
        self.compressed = head.startswith(_GZIP_MAGIC)
        return self.compressed

    def _read(self, n: int) -> bytes:
        try:
            data = self._file.read(n)
        except OSError as error:
            raise TraceFormatError(
                "cannot_read", f"'{self.given}': {error.strerror}", hint="check the file or the pipe"
            ) from None
        self._bytes_in = getattr(self, "_bytes_in", 0) + len(data)
        if self._progress is not None:
            self._progress(self._bytes_in, self.size)
        return data

    def _raw(self) -> Iterator[bytes]:
        yield self.head()
        while data := self._read(self._limits.chunk_bytes):
            yield data

    def _inflated(self) -> Iterator[bytes]:
        errors = _inflate_errors()
        inflater, member = _new_inflater(), _Member()
        position = 0
        gathered: list[bytes] = []
        size = 0
        data = self.head()
        while data:
            position += len(data)
            while data:
                member.saw(data)
                try:
                    # Bounded output: a bomb gives one step at a time and meets max_bytes early.
                    out = inflater.decompress(data, _STEP_BYTES)
                except errors:
                    self.damaged_at = position - len(data)
                    gathered.append(member.rest())
                    break
                member.gave(out, len(data) - len(inflater.unconsumed_tail))
                data = inflater.unconsumed_tail
                if inflater.eof:
                    # Zero bytes after a member are padding; anything but another member is damage.
                    data = inflater.unused_data.lstrip(b"\0")
                    inflater, member = _new_inflater(), _Member()
                gathered.append(out)
                size += len(out)
                if size >= self._limits.chunk_bytes:
                    yield b"".join(gathered)
                    gathered, size = [], 0
            if self.damaged_at is not None:
                break
            data = self._read(1 << 17)
        yield b"".join(gathered)
        if member.inside and self.damaged_at is None:
            self.damaged_at = position
            self.cut_short = True


class _Member:
    """The gzip member being inflated: its beginning is kept for a while, to get at what an error swallows.

    An inflater that meets damage raises and keeps the output of that call to itself. A member that is still
    short is inflated again in small steps up to the damage; of a long one the last step is lost.
    """

    def __init__(self) -> None:
        self.inside = False
        self._head = b""
        self._taken = 0
        self._out = 0

    def saw(self, data: bytes) -> None:
        self.inside = True
        if self._taken == len(self._head) and self._taken < _MEMBER_KEPT_BYTES:
            self._head += data

    def gave(self, out: bytes, taken: int) -> None:
        self._out += len(out)
        self._taken += taken
        self._head = self._head[: self._taken] if self._taken < len(self._head) else self._head

    def rest(self) -> bytes:
        if self._taken > len(self._head):
            return b""
        inflater, parts, data = zlib.decompressobj(wbits=31), [], self._head
        try:
            while data and not inflater.eof:
                parts.append(inflater.decompress(data, 1024))
                data = inflater.unconsumed_tail
        except zlib.error:
            pass
        return b"".join(parts)[self._out :]
