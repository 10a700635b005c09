"""What the machine's own steps cost: the symbols of the timing model that no operation shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from traceanalyzer.capture.device import Capability, Device
from traceanalyzer.trace.sidecar import Calibration

_REPEATS = 20
_BURST = 10
_BACKLOG_NS = 2_000_000


def calibrate(device: Device) -> Calibration:
    """Return medians over twenty repeats, each from an idle device; None for what the device lacks or fails at.

    A failure is not raised: the operation is called next, and says more of a device that does not work.
    """
    found: dict[str, float | None] = {}
    with contextlib.suppress(Exception):
        _measure(device, found)
    return Calibration(**found)


def _measure(device: Device, found: dict[str, float | None]) -> None:
    device.synchronize()
    found["sync_us"] = _us(_host_ns(device, device.synchronize, 1))
    if device.lacks(Capability.EVENTS):
        return
    found["record_us"] = _us(_host_ns(device, device.record, _BURST))
    blocker = not device.lacks(Capability.BLOCKER)
    if blocker:
        found["event_floor_us"] = _us(_device_ns(device, lambda: None))
    if not device.lacks(Capability.CLEAR):
        device.clear()
        found["clear_dispatch_us"] = _us(_host_ns(device, device.clear, 1))
        if blocker:
            found["clear_us"] = _us(_device_ns(device, device.clear))


def _host_ns(device: Device, step: Callable[[], object], burst: int) -> float:
    times = []
    for _ in range(_REPEATS):
        device.synchronize()
        start = device.now_ns()
        for _ in range(burst):
            step()
        times.append((device.now_ns() - start) / burst)
    return float(np.median(times))


def _device_ns(device: Device, step: Callable[[], object]) -> float:
    """Return the device time between two records around a step, all enqueued behind a blocker."""
    times = []
    for _ in range(_REPEATS):
        device.synchronize()
        device.block(_BACKLOG_NS)
        start = device.record()
        step()
        stop = device.record()
        device.synchronize()
        times.append(device.elapsed_ns(start, stop))
    return float(np.median(times))


def _us(ns: float) -> float:
    return round(ns / 1000, 4)
