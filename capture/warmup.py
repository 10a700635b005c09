"""Warm-up until the level is steady; compilation, autotuning and loading are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer.analysis.steadiness import changepoint, slow_head
from traceanalyzer.capture.device import Call, Device
from traceanalyzer.trace.sidecar import WarmUp

_WINDOW = 10
_SLOW = 2.0
"""A call over twice the steady level did something else beside: it compiled, tuned or loaded."""


def warm_up(
    device: Device,
    call: Call,
    least: int,
    budget_ns: int,
    first_ns: int | None = None,
    tick: Callable[[], None] = lambda: None,
) -> tuple[WarmUp, float]:
    """Call until the last ten calls show neither a slow head nor a change of level; return the record and a call's time (ns).

    At least ``least`` calls, then until steady or until ``budget_ns`` have passed. ``first_ns`` is the time of a call
    that was made before, which counts. Each call ends with a barrier: nothing piles up.
    """
    times: list[int] = [] if first_ns is None else [first_ns]
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
    window = np.array(times[-_WINDOW:], dtype=np.int64)
    level = float(np.median(window))
    head = 0
    while head < len(times) - 1 and times[head] > _SLOW * level:
        head += 1
    return WarmUp(len(times), head, sum(times[:head]) / 1000, steady, reason), level


def _steady(times: list[int]) -> tuple[bool, str]:
    if len(times) < _WINDOW:
        return False, f"only {len(times)} calls fitted into the time for warm-up; {_WINDOW} are needed to tell"
    window = np.array(times[-_WINDOW:], dtype=np.int64)
    level = float(np.median(window))
    # host clocks jitter by microseconds, so that short calls need more than a twentieth of their time
    if (head := slow_head(window)) is not None and head.first - head.steady > 2000:
        return False, f"the level still falls: {head.first / 1000:.1f} us, then {head.steady / 1000:.1f} us"
    change = changepoint(window, 0.1)
    if change is not None and abs(change.after - change.before) > 2000:
        return False, f"the level still changes: {change.before / 1000:.1f} us, then {change.after / 1000:.1f} us"
    half = _WINDOW // 2
    if len(times) >= 3 * _WINDOW:
        return True, ""
    early, late = float(np.median(window[:half])), float(np.median(window[half:]))
    if abs(early - late) > max(0.2 * level, 2000):
        return False, f"the level still changes: {early / 1000:.1f} us, then {late / 1000:.1f} us"
    return True, ""
