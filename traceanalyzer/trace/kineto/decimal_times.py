"""Decimal microseconds to integer nanoseconds, exactly.

Kineto writes microseconds as decimal text. At 1.7e15 us a 64-bit float has steps of 0.25 us, so the text
is read, never a float (docs/methodology.md, "Reading times without loss").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.store import BAD_TIME

# Beyond this a nanosecond count no longer fits 64 bits; no clock shows it (292 years).
_MAX_NS = 9_000_000_000_000_000_000
_NUMBER = re.compile(rb"\s*\"?\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*\"?\s*\Z")
_MAX_TEXT = 64

_COMMA, _DOT = 44, 46
_PLAIN = b"0123456789.,"


def to_ns(text: bytes) -> int:
    """Return the nanoseconds of one decimal microsecond text, quoted or not.

    Fractions of a nanosecond round half to even. :data:`BAD_TIME` for anything that is not a finite
    number of at most 292 years.
    """
    match = _NUMBER.match(text) if len(text) <= _MAX_TEXT else None
    if match is None:
        return BAD_TIME
    try:
        value = (Decimal(match[1].decode("ascii")) * 1000).to_integral_value(ROUND_HALF_EVEN)
    except InvalidOperation:
        return BAD_TIME
    return int(value) if -_MAX_NS < value < _MAX_NS else BAD_TIME


def column_to_ns(texts: Sequence[bytes | memoryview]) -> npt.NDArray[np.int64]:
    """Return the nanoseconds of many microsecond texts; :data:`BAD_TIME` where one has none.

    The common shape, digits with at most three decimals, is parsed in numpy; the rest one by one.
    """
    n = len(texts)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    joined = b",".join(texts) + b","
    raw = np.frombuffer(joined, dtype=np.uint8)
    ends = np.flatnonzero(raw == _COMMA)
    if len(ends) == n and not joined.translate(None, _PLAIN):
        starts = np.empty(n, dtype=np.int64)
        starts[0] = 0
        starts[1:] = ends[:-1] + 1
        dots = np.flatnonzero(raw == _DOT)
        if len(dots) == n and bool(((dots >= starts) & (dots < ends)).all()):
            decimals = ends - dots - 1
            digits = dots - starts + decimals
            one_dot = True
        else:
            owner = np.searchsorted(ends, dots)
            decimals = np.zeros(n, dtype=np.int64)
            decimals[owner] = ends[owner] - dots - 1
            digits = ends - starts
            digits[owner] -= 1
            one_dot = bool((np.diff(owner) > 0).all())
        regular = (
            one_dot
            and int(decimals.max()) <= 3
            and int(digits.min()) >= 1
            and bool(np.all(digits + 3 - decimals <= 18))
        )
        if regular:
            values = np.fromstring(joined.replace(b".", b"").decode("ascii"), dtype=np.int64, sep=",")
            if len(values) == n:
                scale = np.array([1000, 100, 10, 1], dtype=np.int64)
                return np.asarray(values * scale[decimals], dtype=np.int64)
    return np.fromiter((to_ns(bytes(t)) for t in texts), dtype=np.int64, count=n)


def finest_step_ns(texts: Sequence[bytes | memoryview]) -> int:
    """Return the finest decimal step written among the texts: 1000 (whole us), 100, 10 or 1 ns.

    ``8.000`` is written to the nanosecond; a lone ``.0`` is how a script writes a whole number as a float.
    """
    most = 0
    for text in texts:
        _, dot, fraction = bytes(text).strip(b' "').partition(b".")
        if dot and fraction != b"0":
            most = max(most, len(fraction))
            if most >= 3:
                return 1
    return int(10 ** (3 - most))
