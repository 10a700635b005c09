"""Builds traces in a few lines, times in microseconds and visible in the test."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.kineto_writer import PID, category_of, device_event, host_event, stamp, to_json

Us = float | int | str


def ns(value: Us) -> int:
    """Return microseconds, given as number or decimal text, in nanoseconds; a fraction of one is a mistake."""
    found = Decimal(str(value)) * 1000
    if found != int(found):
        raise ValueError(f"{value} us is no whole number of nanoseconds")
    return int(found)


class TraceBuilder:
    """Rows in the order they are added; ``call`` is a launch with its kernel."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.fields: dict[str, Any] = {}
        self._corr = 100

    def launch(
        self, at: Us, dur: Us = 2, corr: int | None = None, api: str = "cudaLaunchKernel", **where: Any
    ) -> TraceBuilder:
        """Add a launch call; without ``corr`` it gets the next one."""
        self._corr = corr if corr is not None else self._corr + 1
        self.events.append(
            host_event(where.pop("category", category_of(api)), api, ns(at), ns(dur), self._corr, **where)
        )
        return self

    def kernel(
        self,
        at: Us,
        dur: Us,
        corr: int | None = None,
        name: str = "k",
        stream: int = 7,
        kind: str = "kernel",
        **args: Any,
    ) -> TraceBuilder:
        """Add a device row; without ``corr`` it hangs on the last launch."""
        self.events.append(
            device_event(kind, name, ns(at), ns(dur), stream, self._corr if corr is None else corr, **args)
        )
        return self

    def call(self, at: Us, kernel_at: Us, dur: Us, **kernel: Any) -> TraceBuilder:
        """Add a launch at ``at`` and its kernel."""
        return self.launch(at).kernel(kernel_at, dur, **kernel)

    def memset(self, at: Us, kernel_at: Us, dur: Us, **row: Any) -> TraceBuilder:
        """Add a fill with its call."""
        return self.launch(at, api="cudaMemsetAsync").kernel(
            kernel_at, dur, name="Memset (Device)", kind="memset", **row
        )

    def memcpy(self, at: Us, kernel_at: Us, dur: Us, **row: Any) -> TraceBuilder:
        """Add a copy with its call."""
        return self.launch(at, api="cudaMemcpyAsync").kernel(
            kernel_at, dur, name="Memcpy HtoD (Pageable -> Device)", kind="memcpy", **row
        )

    def sync(self, at: Us, dur: Us, api: str = "cudaDeviceSynchronize", **where: Any) -> TraceBuilder:
        """Add a synchronise."""
        self.events.append(host_event("cuda_runtime", api, ns(at), ns(dur), 900_000 + len(self.events), **where))
        return self

    def host(self, category: str, name: str, at: Us, dur: Us, **where: Any) -> TraceBuilder:
        """Add any host row: cpu_op, user_annotation, overhead."""
        self.events.append(host_event(category, name, ns(at), ns(dur), **where))
        return self

    def range(self, name: str, at: Us, dur: Us, **where: Any) -> TraceBuilder:
        """Add a record_function range."""
        return self.host("user_annotation", name, at, dur, **where)

    def loop(self, n: int, period: Us, latency: Us, dur: Us, start: Us = 1000, **kernel: Any) -> TraceBuilder:
        """Add ``n`` launches ``period`` apart, each kernel ``latency`` after its call."""
        for i in range(n):
            at = ns(start) + i * ns(period)
            self.call(stamp(at), stamp(at + ns(latency)), dur, **kernel)
        return self

    def document(self) -> dict[str, Any]:
        """Return the trace."""
        return {
            "deviceProperties": [{"id": 0, "name": "GPU"}, {"id": 1, "name": "GPU"}],
            **self.fields,
            "traceEvents": self.events,
        }

    def write(self, path: Path) -> Path:
        """Write the trace as JSON."""
        path.write_text(to_json(self.document()), encoding="utf-8")
        return path


def trace() -> TraceBuilder:
    """Return an empty builder."""
    return TraceBuilder()


__all__ = ["PID", "TraceBuilder", "ns", "trace"]
