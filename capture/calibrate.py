"""What the machine's own steps cost: the symbols of the timing model that no operation shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer.capture.device import Capability, Device
from traceanalyzer.trace.sidecar import Calibration

_REPEATS = 20
_BURST = 10
_BACKLOG_NS = 2_000_000


def calibrate(device: Device) -> Calibration:
    """Return medians over twenty repeats, each from an idle device."""
    device.synchronize()
    sync_ns = _host_ns(device, device.synchronize, 1)
    if device.lacks(Capability.EVENTS):
        return Calibration(sync_us=_us(sync_ns))
    record_ns = _host_ns(device, device.record, _BURST)
    floor = clear = clear_host = None
    if not device.lacks(Capability.BLOCKER):
        floor = _device_ns(device, lambda: None)
    if not device.lacks(Capability.CLEAR):
        device.clear()
        clear_host = _host_ns(device, device.clear, 1)
        if not device.lacks(Capability.BLOCKER):
            clear = _device_ns(device, device.clear)
    return Calibration(_us(sync_ns), _us(record_ns), _us(floor), _us(clear), _us(clear_host))


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


def _us(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1000, 4)
