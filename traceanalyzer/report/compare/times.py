"""Numbers of a report, checked: a saved report is a file like any other."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.trace.tables import Int64

LIMIT_US = 1e12


def number(value: float | None) -> float | None:
    """Return the value, None where it is no time that can be."""
    return value if value is not None and isfinite(value) and abs(value) <= LIMIT_US else None


def nanoseconds(samples: Sequence[float]) -> Int64:
    """Return times in whole nanoseconds, without those that cannot be."""
    found = np.asarray(samples, dtype=np.float64)
    found = found[np.isfinite(found) & (found >= 0) & (found <= LIMIT_US)]
    return np.rint(found * 1000).astype(np.int64)


def times(
    count: int,
    p50_us: float | None,
    samples: Sequence[float],
    lag: float | None,
    interval: tuple[float, float] | None,
    step_ns: int = 1,
) -> Times:
    """Return the times of one piece of work."""
    values = nanoseconds(samples)
    middle = number(p50_us)
    p50 = middle * 1000 if middle is not None and middle >= 0 else float(np.median(values)) if len(values) else 0.0
    low, high = (number(v) for v in interval) if interval is not None else (None, None)
    # an interval that does not hold its median is no interval of it
    bounds = (
        (low * 1000, high * 1000)
        if low is not None and high is not None and 0 <= low * 1000 <= p50 <= high * 1000
        else None
    )
    known = lag if lag is not None and isfinite(lag) and -1 <= lag <= 1 else None
    return Times(max(count, len(values), 0), p50, values, known, bounds, step_ns)
