"""What the machine's own steps cost: the symbols of the timing model that no operation shows."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import numpy as np

from traceanalyzer.capture.device import Capability, DeviceAdapter
from traceanalyzer.trace.sidecar import Calibration

_REPEATS = 20
_BURST = 10
_BACKLOG_NS = 2_000_000
_FEW, _MANY = 20, 220


def calibrate(device: DeviceAdapter) -> Calibration:
    """Return medians over twenty repeats, each from an idle device; None for what the device lacks or fails at.

    A failure is not raised: the operation is called next, and says more of a device that does not work.
    """
    found: dict[str, float | None] = {}
    with contextlib.suppress(Exception):
        _measure(device, found)
    return Calibration(**found)


def _measure(device: DeviceAdapter, found: dict[str, float | None]) -> None:
    device.synchronize()
    found["sync_us"] = _us(_host_ns(device, device.synchronize, 1))
    if device.lacks(Capability.EVENTS):
        return
    found["record_us"] = _us(_host_ns(device, device.record, _BURST))
    blocker = not device.lacks(Capability.BLOCKER)
    if blocker:
        found["event_floor_us"] = _us(_device_ns(device, lambda: None))
        found["event_step_us"] = _step_us(device)
    if blocker and not device.lacks(Capability.GRAPH):
        with contextlib.suppress(Exception):  # a device without room for the graph still has the rest
            _measure_graph(device, found)
    if not device.lacks(Capability.CLEAR):
        device.clear()
        found["clear_dispatch_us"] = _us(_host_ns(device, device.clear, 1))
        if blocker:
            found["clear_us"] = _us(_device_ns(device, device.clear))


def _measure_graph(device: DeviceAdapter, found: dict[str, float | None]) -> None:
    """Find the gap between two nodes and the cost of the launch, from graphs of :data:`_FEW` and :data:`_MANY` shortest kernels.

    A graph of n kernels takes ``launch + n * (kernel + gap)`` between two records: the slope over n is kernel and gap, and the
    kernel alone is read behind a blocker, less what an event pair reads around nothing.
    """
    few, many = (_replayed_ns(device, n) for n in (_FEW, _MANY))
    node = (many - few) / (_MANY - _FEW)
    floor = (found.get("event_floor_us") or 0.0) * 1000
    kernel = min(node, max(0.0, _device_ns(device, device.idle_kernel) - floor))
    found["node_gap_us"] = _us(node - kernel)
    found["graph_launch_us"] = _us(max(0.0, few - _FEW * node + (node - kernel)))


def _replayed_ns(device: DeviceAdapter, nodes: int) -> float:
    replay = device.graph(device.idle_kernel, nodes)
    replay()
    times = []
    for _ in range(_REPEATS):
        device.synchronize()
        start = device.record()
        replay()
        stop = device.record()
        device.synchronize()
        times.append(device.elapsed_ns(start, stop))
    return float(np.median(times))


def _step_us(device: DeviceAdapter) -> float | None:
    """Return the smallest difference between readings of one step, None where all are alike: the clock is finer than that."""
    readings = sorted({_device_ns(device, lambda: None, repeats=1) for _ in range(_REPEATS)})
    steps = [b - a for a, b in itertools.pairwise(readings)]
    return _us(min(steps)) if steps else None


def _host_ns(device: DeviceAdapter, step: Callable[[], object], burst: int) -> float:
    times = []
    for _ in range(_REPEATS):
        device.synchronize()
        start = device.now_ns()
        for _ in range(burst):
            step()
        times.append((device.now_ns() - start) / burst)
    return float(np.median(times))


def _device_ns(device: DeviceAdapter, step: Callable[[], object], repeats: int = _REPEATS) -> float:
    """Return the device time between two records around a step, all enqueued behind a blocker."""
    times = []
    for _ in range(repeats):
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
