"""Numbers as people read them. Every unit is either in the cell or in the column's title."""

from __future__ import annotations

from math import isfinite
from typing import TypeGuard

NA = "n/a"


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
    if not _known(value_us):
        return NA
    if value_us == 0:
        return "0 us"
    for limit_us, divisor_us, unit in ((0.9995, 0.001, "ns"), (999.5, 1, "us"), (999_500, 1_000, "ms")):
        if abs(value_us) < limit_us:
            return f"{_three(value_us / divisor_us)} {unit}"
    return f"{_three(value_us / 1e6)} s"


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


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
    if not _known(share):
        return NA
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def ratio(value: float | None) -> str:
    """Return a ratio: ``4.2x``."""
    return NA if not _known(value) else f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def count(value: float | None) -> str:
    """Return a whole number with thousands separators, or one decimal where it is not whole."""
    if not _known(value):
        return NA
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def plural(n: int, word: str) -> str:
    """Return ``1 launch``, ``3 launches``."""
    ending = "es" if word.endswith(("ch", "sh", "s")) else "s"
    return f"{n:,} {word}{'' if n == 1 else ending}"


def nth(n: int) -> str:
    """Return ``1st``, ``2nd``, ``11th``."""
    return f"{n:,}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"
