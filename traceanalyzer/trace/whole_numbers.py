"""The one reader for whole numbers that come out of a file: ids, ranks, lanes, counts. Bounded, and ASCII digits only."""

from __future__ import annotations

import re

from traceanalyzer.trace.tables import NO_ID

BAD_ID = NO_ID + 1
"""Stands for a device or stream number that cannot be one until the row is excluded; never leaves :mod:`traceanalyzer.trace`."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}\Z")
_MOST = 1 << 64


def whole_number(value: object) -> int | None:
    """Return the whole number that a value is or spells out; None for anything else, and beyond 64 bits.

    Unsigned 64-bit numbers (addresses, hashes) lose their highest bit, so that every result fits a signed one.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip() if len(value) < 64 else ""
        value = int(text) if _WHOLE.match(text) else None
    elif isinstance(value, float):
        value = int(value) if abs(value) < 1 << 62 else None  # NaN compares false
    if not isinstance(value, int) or not -(1 << 63) < value < _MOST:
        return None
    return value if value < 1 << 63 else value & ((1 << 63) - 1)


def lane_number(text: str) -> int:
    """Return the device or stream number that the text spells out; :data:`BAD_ID` for what cannot be one."""
    found = whole_number(text)
    return BAD_ID if found is None else found


def byte_count(text: str) -> int:
    """Return the number of bytes that the text spells out; NO_ID for what cannot be one."""
    found = whole_number(text)
    return NO_ID if found is None else found
