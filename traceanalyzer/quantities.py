"""Durations, shares and numbers that somebody writes on a command line or in a settings file: one reader for each.

A value that is no finite number, or that no run can have, is refused here and nowhere else.
"""

from __future__ import annotations

import re
from math import isfinite

UNIT_NS = {"ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}
"""Units of time in nanoseconds; both characters that stand for micro are known."""
MOST_NS = 1e15
"""Longest duration that means something: eleven days."""

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_DURATION = re.compile(rf"\s*({_NUMBER})\s*(ns|us|\u00b5s|\u03bcs|ms|s)?\s*\Z")
_SHARE = re.compile(rf"\s*({_NUMBER})\s*(%)?\s*\Z")
_LONGEST = 64


class QuantityError(ValueError):
    """What is wrong with a text, as the end of a sentence that begins with it."""


def duration_ns(text: str, bare: str = "") -> float:
    """Return nanoseconds of ``9.8us``, ``40 ns``, ``1.5ms`` or ``2s``; a number alone is of the unit ``bare`` if there is one.

    Raises QuantityError for anything else, for a negative time and for one beyond :data:`MOST_NS`.
    """
    match = _DURATION.match(text) if len(text) <= _LONGEST else None
    units = "ns, us, ms or s"
    if match is None:
        raise QuantityError(f"is no time; write a number and a unit ({units})")
    unit = match[2] or bare
    if not unit:
        raise QuantityError(f"has no unit; add {units}")
    found = float(match[1]) * UNIT_NS[unit]
    if not 0 <= found <= MOST_NS:
        raise QuantityError("is no time that a run can have; give one from 0 to 11 days")
    return found


def percent(text: str) -> float:
    """Return a percentage of ``5`` or ``5%``, from 0 up. Raises QuantityError for anything else."""
    match = _SHARE.match(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError("is no percentage; write e.g. 5 or 5%")
    found = float(match[1])
    if not 0 <= found <= 1e9:
        raise QuantityError("is no percentage from 0 up")
    return found


def number(text: str) -> float:
    """Return a finite number from 0 up, or a share written in percent. Raises QuantityError for anything else."""
    match = _SHARE.match(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError("is no number")
    found = float(match[1]) / (100 if match[2] else 1)
    if not isfinite(found) or found < 0:
        raise QuantityError("is no finite number from 0 up")
    return found


UNIT_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(rf"\s*({_NUMBER})\s*(?:([kmgt])i?b?|b)?\s*\Z", re.I)


def size_bytes(text: str) -> float:
    """Return bytes of a size such as ``4GiB``, ``512M`` or ``1000``; the units are binary. Raises QuantityError."""
    found = _SIZE.match(text) if len(text) <= _LONGEST else None
    value = float(found[1]) * UNIT_BYTES[(found[2] or "").lower()] if found else 0.0
    if not 1 <= value <= 1 << 60:
        raise QuantityError("is no size: give e.g. 4GiB")
    return value
