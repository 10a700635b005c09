"""Protocol buffers' wire format, as far as XPlane needs it: fields of a message within a span of bytes.

Nothing is built for fields that nobody asks for. Lengths are checked against the span, so that no field reaches beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator

Span = tuple[int, int]
"""Begin and end of a message in the bytes."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST = 10
_SIGN, _WRAP = 1 << 63, 1 << 64


class CutOffError(ValueError):
    """The bytes end within a field, or hold something that is no field; ``at`` is where."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """Return an unsigned number and the place behind it. Raises CutOffError."""
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (_WRAP - 1), place + 1
        shift += 7
    raise CutOffError(at)


def signed(value: int) -> int:
    """Return what an int64 field means by an unsigned number."""
    return value - _WRAP if value >= _SIGN else value


def fields(data: bytes | memoryview, span: Span) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, value or begin, end) of each field; numbers have their value, the others their span.

    Raises CutOffError at the first field that does not fit.
    """
    at, end = span
    while at < end:
        began = at
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at, end)
            yield number, kind, value, at
            continue
        if kind == BYTES:
            length, at = varint(data, at, end)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise CutOffError(began)
        if length > end - at:
            raise CutOffError(began)
        yield number, kind, at, at + length
        at += length
