"""Rows for the examples in rule files: Chrome trace events as Kineto writes them, times in microseconds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceanalyzer.doctor.comparison_rule import PairExample
    from traceanalyzer.doctor.rule import Example
    from traceanalyzer.trace.sidecar import ClockSample, Correctness, Inflation, Sidecar

Event = dict[str, Any]


def launch(at: float, corr: int, dur: float = 2.0, api: str = "cudaLaunchKernel", tid: int = 1) -> Event:
    """A launch call of process 100."""
    category = "cuda_driver" if api.startswith("cu") and not api.startswith("cuda") else "cuda_runtime"
    return call(at, dur, api, corr, category, tid)


def call(at: float, dur: float, api: str, corr: int = 0, category: str = "cuda_runtime", tid: int = 1) -> Event:
    """Any host call of process 100; without a correlation id when ``corr`` is 0."""
    args = {"correlation": corr} if corr else {}
    return {"ph": "X", "cat": category, "name": api, "pid": 100, "tid": tid, "ts": at, "dur": dur, "args": args}


def kernel(at: float, dur: float, corr: int, name: str = "example_kernel", stream: int = 7) -> Event:
    """A kernel on device 0."""
    args = {"device": 0, "stream": stream, "correlation": corr, "grid": [64, 1, 1], "block": [128, 1, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": at, "dur": dur, "args": args}


def loop(
    n: int, dispatch: float, duration: float, latency: float = 4.0, sync: float | None = None
) -> tuple[Event, ...]:
    """``n`` launches ``dispatch`` apart of kernels that queue up in order; ``sync`` ends each with a synchronise."""
    events: list[Event] = []
    at, free = 1000.0, 0.0
    for i in range(n):
        start = max(at + latency, free)
        free = start + duration
        events += [launch(at, i + 1), kernel(start, duration, i + 1)]
        if sync is not None:
            events.append(call(at + 3, free - at - 3 + sync, "cudaDeviceSynchronize", 1000 + i))
            at = free + sync
        at += dispatch
    return tuple(events)


def host_range(name: str, at: float, dur: float, tid: int = 1) -> Event:
    """A record_function range of process 100."""
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 100, "tid": tid, "ts": at, "dur": dur, "args": {}}


def device_range(name: str, at: float, dur: float, stream: int = 7) -> Event:
    """The projection of a range on the device."""
    return {
        "ph": "X",
        "cat": "gpu_user_annotation",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": at,
        "dur": dur,
        "args": {},
    }


def cpu_op(name: str, at: float, dur: float, tid: int = 1) -> Event:
    """A framework operator of process 100."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": tid, "ts": at, "dur": dur, "args": {}}


def overhead(name: str, at: float, dur: float) -> Event:
    """A record of the profiler's own work."""
    return {"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0, "ts": at, "dur": dur}


def fill(at: float, device_at: float, dur: float, corr: int) -> tuple[Event, Event]:
    """A fill with its call, as a cache clear makes it."""
    row = kernel(device_at, dur, corr, "Memset (Device)")
    return call(at, 2, "cudaMemsetAsync", corr), row | {"cat": "gpu_memset"}


def memcpy(
    at: float, device_at: float, dur: float, corr: int, call_dur: float = 3, kind: str = "HtoD (Pageable -> Device)"
) -> tuple[Event, Event]:
    """A copy with its call."""
    row = kernel(device_at, dur, corr, f"Memcpy {kind}")
    return call(at, call_dur, "cudaMemcpyAsync", corr), row | {"cat": "gpu_memcpy"}


def captured(
    *, clocks: list[ClockSample] | None = None, correctness: Correctness | None = None, environment: dict[str, str] | None = None,
    inflation: Inflation | None = None,
) -> Sidecar:  # fmt: skip
    """A sidecar of one operation whose result was not compared, unless said otherwise."""
    from traceanalyzer.trace.sidecar import (
        SCHEMA,
        Agreement,
        Correctness,
        DeviceFacts,
        Flush,
        OperationRecord,
        Sidecar,
        WarmUp,
    )

    record = OperationRecord(
        "example", {}, WarmUp(10, 0, 0.0, True), Flush(), correctness or Correctness(None, "no reference was given"), [],
        Agreement(None, None, "the unrolled graph was not asked for"), inflation, "" if inflation else "not measured",
    )  # fmt: skip
    return Sidecar(
        SCHEMA, "traceanalyzer", None, "pytorch", DeviceFacts("cuda", "Example GPU"), {}, environment or {}, clocks or [],
        "" if clocks else "nobody asked", [record],
    )  # fmt: skip


def clock(when: str, mhz: int, highest_mhz: int, *reasons: str, others: int | None = None) -> ClockSample:
    """A sample of clocks, with what held them down and how many other processes there were."""
    from traceanalyzer.trace.sidecar import ClockSample

    return ClockSample(when, mhz, highest_mhz, throttle_reasons=list(reasons), other_processes=others)


def result(
    passed: bool | None, reason: str = "", error: float | None = None, allowed: float | None = None
) -> Correctness:
    """A comparison of a result with its reference."""
    from traceanalyzer.trace.sidecar import Correctness

    return Correctness(passed, reason, "reference", error, error, 0.0, allowed)


def write_example(example: Example, trace: Path) -> None:
    """Write an example's trace, and its sidecar."""
    _write(trace, {}, example.events, example.sidecar)


def write_pair(example: PairExample, folder: Path) -> tuple[Path, Path]:
    """Write both traces of a pair with their sidecars; returns base and head."""
    base, head = folder / "base.json", folder / "head.json"
    _write(base, example.base_fields, example.base, example.base_sidecar)
    _write(head, example.head_fields, example.head, example.head_sidecar)
    return base, head


def _write(
    trace: Path, fields: dict[str, Any], events: tuple[Event, ...], sidecar: Callable[[], Sidecar] | None
) -> None:
    from traceanalyzer.trace.sidecar import encode_sidecar, sidecar_path

    trace.write_text(json.dumps({**fields, "traceEvents": list(events)}), encoding="utf-8")
    if sidecar is not None:
        sidecar_path(trace).write_bytes(encode_sidecar(sidecar()))
    else:
        sidecar_path(trace).unlink(missing_ok=True)
