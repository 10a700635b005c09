"""When a median is known narrowly enough, and how many calls the next run should make where it is not."""

from __future__ import annotations

import math

MOST_RUNS = 6
"""Runs of more and more calls that a wanted precision may take."""
MOST_CALLS = 100_000
_MOST_FACTOR = 16
_ROOM = 1.2
_USEFUL = 0.9
"""A run that narrows the interval to no less than this share of it before is not worth another."""

Interval = tuple[float, float]


def half_width(time_us: float | None, interval_us: Interval | None) -> float | None:
    """Return half of the 95 % interval as a share of the time; None where there is no time or no interval."""
    if not time_us or interval_us is None:
        return None
    return (interval_us[1] - interval_us[0]) / 2 / time_us


def next_calls(calls: int, half: float | None, before: float | None, wanted: float) -> int | None:
    """Return the calls of the next run, None where ``half`` is narrow enough or another run would not help.

    The interval of a median goes with one over the root of the calls. ``before`` is the half width of the run before.
    """
    if half is not None and half <= wanted:
        return None
    if calls >= MOST_CALLS or (half is not None and before is not None and half > _USEFUL * before):
        return None
    factor = 4.0 if half is None else math.ceil(_ROOM * (half / wanted) ** 2)
    return min(MOST_CALLS, calls * int(min(_MOST_FACTOR, max(2, factor))))
