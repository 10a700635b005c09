"""Bytes to a file as they are made: written next to its place and moved there when whole, never over the input."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from traceanalyzer.errors import OptionError
from traceanalyzer.interrupts import cleaning_up

_GATHERED_BYTES = 1 << 20


def write_stream(pieces: Iterable[bytes], output: str) -> int:
    """Write the pieces, compressed if the name ends in ``.gz``; return the number of bytes in the file.

    On any failure the file that was there before stays as it was. Raises OptionError when it cannot be written.
    """
    target = Path(output)
    name = target.name
    if name.endswith(".gz"):
        pieces = _compressed(pieces)
    try:
        target = target.resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as file:  # a device or pipe is written to, never replaced
                return sum(map(file.write, pieces))
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        # "x": a file of that name is somebody else's
        with cleaning_up(), partial.open("xb") as file:
            try:
                written = sum(map(file.write, pieces))
                file.close()
                partial.replace(target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        return written
    except OSError as error:
        raise OptionError("cannot_write", f"'{output}': {error.strerror}", hint="check what was given to -o") from None


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a gzip stream without name or time in it, so that the same input gives the same bytes."""
    try:
        from isal import isal_zlib

        packer = isal_zlib.compressobj(level=2, wbits=31)
    except ImportError:
        packer = zlib.compressobj(level=4, wbits=31)  # type: ignore[assignment]
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _GATHERED_BYTES:
            yield packer.compress(b"".join(gathered))
            gathered, size = [], 0
    yield packer.compress(b"".join(gathered))
    yield packer.flush()
