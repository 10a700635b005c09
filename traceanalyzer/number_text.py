"""Numbers as sentences and tables print them: the one place where a share or a duration becomes text.

Rules, reasons and renderers use these, so that a number reads the same wherever it is printed.
"""

from __future__ import annotations


def percent(share: float) -> str:
    """Return a part of one as percent: ``0.4 %``, ``47 %``, ``99.7 %``; 0 % and 100 % only of what is 0 or rounds to 100.0."""
    size = abs(share)
    if 0 < size < 0.0005:
        return "<0.1 %" if share > 0 else "-<0.1 %"
    whole = size == 0 or 0.0995 <= size < 0.995 or size >= 0.9995
    return f"{share * 100:.0f} %" if whole else f"{share * 100:.1f} %"


def change(share: float) -> str:
    """Return a relative change as percent with its sign: ``+3.0 %``, ``-42 %``."""
    return f"{'+' if share >= 0 else ''}{percent(share)}" if abs(share) < 0.995 else f"{share * 100:+.0f} %"


def duration(ns: float | None) -> str:
    """Return nanoseconds to three digits with the unit of their size: ``64 ns``, ``9.8 us``, ``1.21 ms``, ``2.5 s``; ``n/a`` of None."""
    if ns is None:
        return "n/a"
    if ns == 0:
        return "0 us"
    # what rounds to 1000 is one of the next unit
    for limit, divisor, unit in ((999.5, 1.0, "ns"), (999_500.0, 1e3, "us"), (999_500_000.0, 1e6, "ms")):
        if abs(ns) < limit:
            return f"{_three(ns / divisor)} {unit}"
    return f"{_three(ns / 1e9)} s"


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def plural(n: int, word: str) -> str:
    """Return ``1 launch``, ``3 launches``."""
    ending = "es" if word.endswith(("ch", "sh", "s")) else "s"
    return f"{n:,} {word}{'' if n == 1 else ending}"
