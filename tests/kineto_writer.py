"""Writes simulated timelines as Kineto writes real ones: decimal microseconds from integer nanoseconds, no floats.

Shared by the tests and by samples/generate.py.
"""

from __future__ import annotations

import json
from typing import Any

from tests.queue_sim import Machine

BASE_NS = 1_767_225_600_000_000_000
PID = 4242
_KERNEL_CATEGORY = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


class Stamp(str):
    """A number that goes into the JSON as its decimal text."""


def stamp(ns: int) -> Stamp:
    """Return nanoseconds as microseconds with three decimals."""
    sign = "-" if ns < 0 else ""
    return Stamp(f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}")


def to_json(document: dict[str, Any]) -> str:
    """Return the document as JSON with one event per line and every stamp as a bare number."""
    marks: dict[str, str] = {}

    def marked(value: Any) -> Any:
        if isinstance(value, Stamp):
            marks[f"\u0001{value}\u0001"] = str(value)
            return f"\u0001{value}\u0001"
        if isinstance(value, dict):
            return {k: marked(v) for k, v in value.items()}
        return [marked(v) for v in value] if isinstance(value, list) else value

    events = [json.dumps(marked(e)) for e in document["traceEvents"]]
    head = json.dumps({k: v for k, v in document.items() if k != "traceEvents"})
    text = head[:-1] + ', "traceEvents": [\n' + ",\n".join(events) + "\n]}\n"
    for mark, plain in marks.items():
        text = text.replace(json.dumps(mark), plain)
    return text


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
    args = {"cbid": 211, "correlation": corr} if corr else {"Ev Idx": 0}
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


def document(machine: Machine, device_name: str = "Simulated GPU (traceanalyzer)", **fields: Any) -> dict[str, Any]:
    """Return the trace of everything that happened on a machine: host rows, then device rows, then metadata."""
    categories = {"op": "cpu_op", "range": "user_annotation", "overhead": "overhead"}
    events: list[dict[str, Any]] = []
    for row in machine.host:
        if row.kind != "call":
            events.append(host_event(categories[row.kind], row.name, row.start, row.end - row.start))
    for row in machine.device:
        extra = {} if row.node is None else {"graph id": 1, "graph node id": row.node + 1}
        events.append(
            device_event(
                row.kind, row.name, row.start, row.end - row.start, row.stream, row.corr, grid=row.grid, **extra
            )
        )
        events.append(
            {
                "ph": "f",
                "id": row.corr,
                "pid": 0,
                "tid": row.stream,
                "ts": stamp(row.start),
                "cat": "ac2g",
                "name": "ac2g",
                "bp": "e",
            }
        )
    for row in machine.host:
        if row.kind == "call":
            events.append(host_event(category_of(row.name), row.name, row.start, row.end - row.start, row.corr))
    for pid, name in ((PID, "python3"), (0, "python3")):
        events.append({"name": "process_name", "ph": "M", "ts": stamp(0), "pid": pid, "tid": 0, "args": {"name": name}})
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": device_name, "numSms": 108}],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        **fields,
        "traceEvents": events,
    }
