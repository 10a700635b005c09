"""When a cost falls due: at the start only, once, in every k-th step, at a steady rate, or here and there.

The remedy hangs on it: what is paid once is a warm-up, what is paid in every step limits the run.
"""

from __future__ import annotations

import numpy as np

from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Int64

MOST = 0.8
"""Share of a cost that must fall where the answer says; the rest is noise."""
_HEAD = 0.1
_PARTS = 10
_FEW_STEPS = 4
_REPEATS = 3
_LARGE = 0.5
_JITTER = 0.1


class When(StrEnum):
    """The answer's code; text is made of it where it is printed."""

    START = "start"
    END = "end"
    ONCE = "once"
    STEADY = "steady"
    EVERY_STEP = "every_step"
    KTH_STEP = "kth_step"
    PERIODIC = "periodic"
    IRREGULAR = "irregular"


@record(frozen=True)
class Recurrence:
    """``every`` is k of every k-th step (0 otherwise); ``period_ns`` the median distance of periodic occurrences (else 0)."""

    when: When
    every: int = 0
    period_ns: int = 0


def recurrence(at_ns: Int64, ns: Int64, start_ns: int, end_ns: int, steps_ns: Int64) -> Recurrence:
    """Return when a cost falls due in a window.

    Args:
        at_ns, ns: start and length of each occurrence, in order of time.
        start_ns, end_ns: the window.
        steps_ns: where the steps of the window begin, in order; may be empty. The last step ends with the window.
    """
    total = int(ns.sum())
    span = end_ns - start_ns
    if total <= 0 or span <= 0:
        return Recurrence(When.IRREGULAR)
    if int(ns.max()) >= MOST * total:
        return Recurrence(When.ONCE)
    if int(ns[at_ns - start_ns < _HEAD * span].sum()) >= MOST * total:
        return Recurrence(When.START)
    if int(ns[end_ns - at_ns <= _HEAD * span].sum()) >= MOST * total:
        return Recurrence(When.END)
    if len(steps_ns) >= _FEW_STEPS and (found := _by_step(at_ns, ns, steps_ns, total)) is not None:
        return found
    parts = np.minimum((at_ns - start_ns) * _PARTS // span, _PARTS - 1)
    per_part = np.bincount(parts, weights=ns, minlength=_PARTS)
    if np.count_nonzero(per_part >= total / _PARTS / 4) >= MOST * _PARTS:
        return Recurrence(When.STEADY)
    large = ns >= _LARGE * ns.max()
    if np.count_nonzero(large) > _REPEATS and int(ns[large].sum()) >= MOST * total:
        apart = np.diff(at_ns[large])
        middle = int(np.median(apart))
        if np.abs(apart - middle).max() <= _JITTER * middle:
            return Recurrence(When.PERIODIC, period_ns=middle)
    return Recurrence(When.IRREGULAR)


def _by_step(at_ns: Int64, ns: Int64, steps_ns: Int64, total: int) -> Recurrence | None:
    """Return the answer in steps, None where the cost does not follow them."""
    step = np.searchsorted(steps_ns, at_ns, side="right") - 1
    inside = step >= 0
    if int(ns[inside].sum()) < MOST * total:
        return None
    cost = np.bincount(step[inside], weights=ns[inside], minlength=len(steps_ns))
    # what a nanosecond of the cost has as its step's cost, in the median: neither a rare peak nor many small steps move it
    ordered = np.sort(cost)
    typical = ordered[np.searchsorted(np.cumsum(ordered), cost.sum() / 2)]
    large = np.flatnonzero(cost >= _LARGE * typical)
    if len(large) < _REPEATS or cost[large].sum() < MOST * total:
        return None
    if len(large) >= MOST * len(cost):
        return Recurrence(When.EVERY_STEP, every=1)
    apart = distinct(np.diff(large))
    return Recurrence(When.KTH_STEP, every=int(apart[0])) if len(apart) == 1 and apart[0] > 1 else None
