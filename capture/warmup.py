"""Warm-up until the level is steady; compilation, autotuning and loading are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from traceanalyzer import number_text
from traceanalyzer.analysis.steadiness import changepoint, drift, slow_head
from traceanalyzer.capture.device import Call, DeviceAdapter
from traceanalyzer.trace.sidecar import WarmUp

_WINDOW = 10
_LONG = 30
_FEW = 4
_FEW_APART = 0.25
_TREND = 0.1
_SLOW = 2.0
"""A call over twice the steady level did something else as well: it compiled, tuned or loaded."""


def warm_up(
    device: DeviceAdapter,
    call: Call,
    least: int,
    budget_ns: int,
    earlier_ns: Sequence[int] = (),
    tick: Callable[[], None] = lambda: None,
) -> tuple[WarmUp, float]:
    """Call until the last ten calls show neither a slow head nor a change of level; return the record and a call's time (ns).

    At least ``least`` calls, then until steady or until ``budget_ns`` have passed. ``earlier_ns`` are the times of calls
    that were made before, which count. Each call ends with a barrier: nothing piles up.
    """
    times: list[int] = list(earlier_ns)
    begun = device.now_ns()
    steady, reason = False, ""
    while True:
        start = device.now_ns()
        device.synchronize(call())
        times.append(device.now_ns() - start)
        tick()
        spent = device.now_ns() - begun
        if len(times) >= max(least, 1) and (len(times) >= _WINDOW or spent > budget_ns):
            steady, reason = _steady(times)
            if steady or spent > budget_ns:
                break
    level = float(np.median(times[-_WINDOW:]))
    head = _head(times, level)
    return WarmUp(len(times), head, sum(times[:head]) / 1000, steady, reason), level


def _head(times: Sequence[int], level: float) -> int:
    """Return how many calls at the start were over twice the level."""
    return next((i for i, t in enumerate(times[:-1]) if t <= _SLOW * level), len(times) - 1)


def _steady(times: list[int]) -> tuple[bool, str]:
    if len(times) < _WINDOW:
        # slow calls: a few that agree have to do, without those that compiled
        rest = times[_head(times, float(np.median(times[-_FEW:]))) :]
        if len(rest) < _FEW:
            return (
                False,
                f"only {len(rest)} calls after the slow ones fitted into the time for warm-up; {_FEW} are needed to tell",
            )
        apart = max(rest) / min(rest) - 1
        return (
            (True, "")
            if apart <= _FEW_APART
            else (False, f"the last {len(rest)} calls lie {number_text.percent(apart)} apart")
        )
    window = np.array(times[-_WINDOW:], dtype=np.int64)
    level = float(np.median(window))
    # host clocks jitter by microseconds, so that short calls need more than a twentieth of their time
    if (head := slow_head(window)) is not None and head.first - head.steady > 2000:
        return (
            False,
            f"the level still falls: {number_text.duration(head.first)}, then {number_text.duration(head.steady)}",
        )
    change = changepoint(window, 0.1)
    if change is not None and abs(change.after - change.before) > 2000:
        return (
            False,
            f"the level still changes: {number_text.duration(change.before)}, then {number_text.duration(change.after)}",
        )
    half = _WINDOW // 2
    early, late = float(np.median(window[:half])), float(np.median(window[half:]))
    if len(times) < _LONG and abs(early - late) > max(0.2 * level, 2000):
        return False, f"the level still changes: {number_text.duration(early)}, then {number_text.duration(late)}"
    # many calls whose short windows scatter are steady, unless they go one way
    slope = trend(np.array(times[-_LONG:], dtype=np.int64))
    return (
        (False, f"the level still {slope} over the last {_LONG} calls") if slope and len(times) >= _LONG else (True, "")
    )


def trend(times_ns: npt.NDArray[np.int64]) -> str:
    """Return how a series goes one way, ``rises by 40 %``; empty where it does not, by a tenth at 99.9 % certainty."""
    found = drift(times_ns, _TREND)
    if found is None or (found.low < _TREND and found.high > -_TREND):
        return ""
    if found.total <= -1:
        # a straight line would end below nothing: the fall is steep, then flat
        quarter = len(times_ns) // 4
        first, last = float(np.median(times_ns[:quarter])), float(np.median(times_ns[-quarter:]))
        return f"falls from {number_text.duration(first)} to {number_text.duration(last)}"
    return f"{'rises' if found.total > 0 else 'falls'} by {number_text.percent(abs(found.total))}"
