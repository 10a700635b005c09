"""A counterfactual timeline as a Chrome trace, in the form in which Kineto writes one; marked as simulated."""

from __future__ import annotations

import json
from collections.abc import Iterator

from traceanalyzer.report.counterfactual import Counterfactual

_PID = 1
_AT_A_TIME = 2000


def render_counterfactual(found: Counterfactual) -> Iterator[bytes]:
    """Yield the trace as JSON text."""
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": found.device_name}],
        "displayTimeUnit": "ms",
        "simulated": True,
        "counterfactual": found.change,
    }
    yield (json.dumps(head)[:-1] + ', "traceEvents": [\n').encode("ascii")
    yield _event("M", "process_name", _PID, 0, args={"name": f"host, with {found.change}"})
    devices = sorted({row.device for row in found.device})
    for number in devices:
        yield b",\n" + _event(
            "M", "process_name", number + 2, 0, args={"name": f"device {number}, with {found.change}"}
        )
    gathered: list[bytes] = []
    for text in _rows(found):
        gathered.append(text)
        if len(gathered) >= _AT_A_TIME:
            yield b"".join(gathered)
            gathered = []
    yield b"".join(gathered) + b"\n]}\n"


def _rows(found: Counterfactual) -> Iterator[bytes]:
    for row in found.host:
        args = {"correlation": row.corr} if row.corr else {}
        yield b",\n" + _event("X", row.name, _PID, row.thread, row.category, row.start_ns, row.dur_ns, args)
    for kernel in found.device:
        args = {"device": kernel.device, "stream": kernel.stream, "correlation": kernel.corr}
        yield b",\n" + _event(
            "X", kernel.name, kernel.device + 2, kernel.stream, kernel.category, kernel.start_ns, kernel.dur_ns, args
        )


def _event(
    ph: str, name: str, pid: int, tid: int | str, category: str = "", start_ns: int = 0, dur_ns: int = 0,
    args: dict[str, int | str] | dict[str, int] | dict[str, str] | None = None,
) -> bytes:  # fmt: skip
    fields = {"ph": ph, "cat": category, "name": name, "pid": pid, "tid": tid, "args": args or {}}
    if ph == "M":
        del fields["cat"]
        return json.dumps(fields).encode("ascii")
    # times as decimal text: no digit is lost
    return f'{json.dumps(fields)[:-1]}, "ts": {_us(start_ns)}, "dur": {_us(dur_ns)}}}'.encode("ascii")


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
