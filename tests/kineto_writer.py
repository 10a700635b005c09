"""Writes simulated timelines as Kineto writes real ones: decimal microseconds from integer nanoseconds, no floats.

Shared by the tests and by samples/generate.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.queue_sim import HostRow, Machine

BASE_NS = 1_767_225_600_000_000_000
PID = 4242
_CBIDS = {
    "cudaEventRecord": 135, "cudaDeviceSynchronize": 165, "cudaGraphLaunch": 311, "cuLaunchKernel": 307, "cudaMemsetAsync": 51,
    "cudaMemcpyAsync": 41, "cudaStreamSynchronize": 131,
}  # fmt: skip
_KERNEL_CATEGORY = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


class Stamp(str):
    """A number that goes into the JSON as its decimal text."""


def stamp(ns: int) -> Stamp:
    """Return nanoseconds as microseconds with three decimals."""
    sign = "-" if ns < 0 else ""
    return Stamp(f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}")


_MARK = re.compile(r'"\\u0001([-0-9.]+)\\u0001"')


def to_json(document: dict[str, Any]) -> str:
    """Return the document as JSON with one event per line and every stamp as a bare number."""

    def marked(value: Any) -> Any:
        if isinstance(value, Stamp):
            return f"\u0001{value}\u0001"
        if isinstance(value, dict):
            return {k: marked(v) for k, v in value.items()}
        return [marked(v) for v in value] if isinstance(value, list) else value

    events = ",\n".join(json.dumps(marked(e)) for e in document["traceEvents"])
    head = json.dumps(marked({k: v for k, v in document.items() if k != "traceEvents"}))
    return _MARK.sub(r"\1", head[:-1] + ', "traceEvents": [\n' + events + "\n]}\n")


def device_event(
    kind: str,
    name: str,
    start: int,
    dur: int,
    stream: int,
    corr: int,
    *,
    device: int = 0,
    grid=(128, 1, 1),
    **args: Any,
):
    """Return a device row as Kineto writes it."""
    found: dict[str, Any] = {"device": device, "context": 1, "stream": stream, "correlation": corr}
    if kind == "kernel":
        found |= {"queued": 0, "registers per thread": 32, "shared memory": 0, "grid": list(grid), "block": [256, 1, 1]}
    else:
        found |= {"bytes": 4096}
    return {
        "ph": "X", "cat": _KERNEL_CATEGORY[kind], "name": name, "pid": device, "tid": stream, "ts": stamp(start), "dur": stamp(dur),
        "args": found | args,
    }  # fmt: skip


def host_event(category: str, name: str, start: int, dur: int, corr: int = 0, *, pid: int = PID, tid: int = PID):
    """Return a host row as Kineto writes it."""
    args = {"cbid": _CBIDS.get(name, 211), "correlation": corr} if corr else {"Ev Idx": 0}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": stamp(start),
        "dur": stamp(dur),
        "args": args,
    }


def category_of(api: str) -> str:
    """Return the category of a host call: driver calls have names without ``cuda``."""
    return "cuda_driver" if api.startswith("cu") and not api.startswith("cuda") else "cuda_runtime"


def _flow(ph: str, corr: int, ts: int, pid: int, tid: int) -> dict[str, Any]:
    return {"ph": ph, "id": corr, "pid": pid, "tid": tid, "ts": stamp(ts), "cat": "ac2g", "name": "ac2g"}


def _tid(row: HostRow) -> int:
    """Return the thread of a host row as written: the first thread of a process has its number."""
    return PID + row.tid - 1


def document(machine: Machine, device_name: str = "Simulated GPU (traceanalyzer)", **fields: Any) -> dict[str, Any]:
    """Return the trace of everything that happened on a machine: host rows, then device rows, then metadata."""
    categories = {"op": "cpu_op", "range": "user_annotation", "overhead": "overhead"}
    events: list[dict[str, Any]] = []
    for row in machine.host:
        if row.kind != "call":
            events.append(host_event(categories[row.kind], row.name, row.start, row.end - row.start, tid=_tid(row)))
    for row in machine.device:
        extra = {} if row.node is None else {"graph id": 1, "graph node id": row.node + 1}
        events.append(
            device_event(
                row.kind, row.name, row.start, row.end - row.start, row.stream, row.corr, grid=row.grid, **extra
            )
        )
        if not row.node:  # a flow ends at the first row of its launch
            events.append(_flow("f", row.corr, row.start, 0, row.stream) | {"bp": "e"})
    launched = {row.corr for row in machine.device}
    for row in machine.host:
        if row.kind == "call":
            events.append(
                host_event(category_of(row.name), row.name, row.start, row.end - row.start, row.corr, tid=_tid(row))
            )
            if row.corr in launched:
                events.append(_flow("s", row.corr, row.start, PID, _tid(row)))
    for pid, name, label in ((PID, "python3", "CPU"), (0, "python3", "GPU 0")):
        where = {"ph": "M", "ts": stamp(0), "pid": pid, "tid": 0}
        events.append({"name": "process_name", **where, "args": {"name": name}})
        events.append({"name": "process_labels", **where, "args": {"labels": label}})
    end = max([row.end for row in (*machine.host, *machine.device)], default=0)
    events.append({"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": stamp(end)})
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": device_name, "numSms": 108}],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        **fields,
        "traceEvents": events,
    }
