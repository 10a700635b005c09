"""Numbers as people read them. Every unit is either in the cell or in the column's title."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import TypeGuard

from traceanalyzer import number_text

NA = "n/a"
plural = number_text.plural


def _known(value: float | None) -> TypeGuard[float]:
    # the model promises no NaN; should one come, it must not be shown as if it had been measured
    return value is not None and isfinite(value)


def us(value: float | None) -> str:
    """Return a duration in microseconds without its unit, to four digits: ``12.90``, ``1,078,288``, ``0.064``.

    Tables for people show four digits; JSON and CSV hold every nanosecond. ``n/a`` of None.
    """
    if not _known(value):
        return NA
    size = abs(value)
    digits = 3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0
    return f"{value:,.{digits}f}"


def duration(value_us: float | None) -> str:
    """Return a duration to three digits with the unit that suits it: ``64 ns``, ``9.8 us``, ``1.21 ms``, ``2.5 s``."""
    return number_text.duration(value_us * 1000) if _known(value_us) else NA


def time(value_us: float | None) -> str:
    """Return a duration to four digits with the unit that suits it: ``64 ns``, ``39.95 us``, ``1.078 s``."""
    if not _known(value_us):
        return NA
    size, unit = _unit(value_us)
    return f"{us(value_us / size)} {unit}" if unit != "ns" else f"{value_us / size:,.4g} {unit}"


def in_common(values: Iterable[float | None]) -> tuple[Callable[[float | None], str], str]:
    """Return how durations of one table are shown, to four digits, and the unit for its title: that of the largest.

    Times that are to be compared with one another have one unit, which is microseconds up to 10,000 of them.
    """
    largest = max((abs(v) for v in values if _known(v)), default=0.0)
    size, unit = (1.0, "us") if largest < 1e4 else (1e3, "ms") if largest < 1e7 else (1e6, "s")
    return lambda value: us(value / size) if _known(value) else NA, unit


def time_interval(pair: tuple[float, float] | list[float] | None) -> str:
    """Return an interval in the unit that suits its end, ``12.80-12.90 us``; ``n/a`` of None."""
    if pair is None or not all(map(_known, pair)):
        return NA
    size, unit = _unit(pair[1])
    return f"{us(pair[0] / size)}-{us(pair[1] / size)} {unit}"


def moment(value_us: float | None) -> str:
    """Return a moment to the nanosecond with the unit that suits it: ``1.240549 ms``."""
    if not _known(value_us):
        return NA
    size, unit = _unit(value_us)
    digits = {"ns": 0, "us": 3, "ms": 6, "s": 9}[unit]
    text = f"{value_us / size:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} {unit}"


def _unit(value_us: float) -> tuple[float, str]:
    sizes = ((1e6, "s"), (1e3, "ms"), (1.0, "us"), (1e-3, "ns"))
    return next((found for found in sizes if abs(value_us) >= found[0]), (1e-3, "ns") if value_us else (1.0, "us"))


def interval(pair: tuple[float, float] | list[float] | None) -> str:
    """Return an interval of microseconds, ``12.80-12.90``; ``n/a`` of None."""
    return NA if pair is None else f"{us(pair[0])}-{us(pair[1])}"


def queue(state: str, grade: str | None) -> str:
    """Return a queue state with the initial of its grade, ``cpu-bound P``; ``n/a`` of an unknown one."""
    if state == "unknown":
        return NA
    return f"{state} {grade[0]}" if grade else state


def percent(share: float | None) -> str:
    """Return a share as percent: ``0.4 %``, ``47 %``."""
    return number_text.percent(share) if _known(share) else NA


def ratio(value: float | None) -> str:
    """Return a ratio: ``4.2x``."""
    return NA if not _known(value) else f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def count(value: float | None) -> str:
    """Return a whole number with thousands separators, or one decimal where it is not whole."""
    if not _known(value):
        return NA
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def nth(n: int) -> str:
    """Return ``1st``, ``2nd``, ``11th``."""
    return f"{n:,}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
