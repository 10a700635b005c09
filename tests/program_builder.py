"""A program and its device, written as Kineto rows: what the host does in order, on queues that start work as a device does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from traceanalyzer.doctor.example import call, cpu_op, host_range, kernel


class Program:
    """Threads of a host with a clock each, and streams of one device that run their work in order; times in microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.now: dict[int, float] = {1: 1000.0}
        self.free: dict[int, float] = {}
        self.thread = 1
        self.corr = 0

    @property
    def at(self) -> float:
        """The time on the host's current thread."""
        return self.now[self.thread]

    def host(self, us: float, op: str = "") -> None:
        """Let the host work for so long, in an operator or in code that no row names."""
        if op:
            self.events.append(cpu_op(op, self.at, us - 0.25, self.thread))
        self.now[self.thread] += us

    @contextmanager
    def range(self, name: str, *, op: bool = False) -> Iterator[None]:
        """Put a range of the user's, or an operator, around what follows."""
        begun = self.at
        self.now[self.thread] += 0.5
        yield
        self.now[self.thread] += 0.5
        row = (cpu_op if op else host_range)(name, begun, self.at - begun - 0.25, self.thread)
        self.events.append(row)

    def api(self, name: str, us: float) -> None:
        """Make a call that starts nothing."""
        self.corr += 1
        self.events.append(call(self.at, us, name, self.corr, tid=self.thread))
        self.now[self.thread] += us

    def launch(
        self, name: str, us: float, stream: int = 7, *, cost: float = 3.0, after: float = 0.0, api: str = "cudaLaunchKernel", nodes: int = 1
    ) -> float:  # fmt: skip
        """Launch a kernel (or the nodes of a graph) that may not start before ``after``; returns when it ends."""
        self.corr += 1
        category = "cuda_driver" if api.startswith("cu") and not api.startswith("cuda") else "cuda_runtime"
        self.events.append(call(self.at, cost, api, self.corr, category, self.thread))
        start = max(self.at + cost + 1, self.free.get(stream, 0.0), after)
        for n in range(nodes):
            self.events.append(kernel(start, us - 0.5, self.corr, name if nodes == 1 else f"{name}_{n % 7}", stream))
            start += us
        self.free[stream] = start
        self.now[self.thread] += cost
        return start

    def copy(self, kind: str, us: float, *, waits: bool, stream: int = 7, api: str = "cudaMemcpyAsync") -> None:
        """Copy; the call returns when the copy is done, or at once."""
        self.corr += 1
        begun = self.at
        start = max(begun + 4, self.free.get(stream, 0.0))
        self.free[stream] = start + us
        row = kernel(start, us - 0.5, self.corr, f"Memcpy {kind}", stream)
        self.events.append(row | {"cat": "gpu_memcpy"})
        self.now[self.thread] = start + us + 2 if waits else begun + 4
        self.events.append(call(begun, self.at - begun - 0.25, api, self.corr, tid=self.thread))

    def synchronise(self, api: str = "cudaDeviceSynchronize", stream: int | None = None) -> None:
        """Wait for a stream, or for all of them."""
        done = max(self.free.values(), default=0.0) if stream is None else self.free.get(stream, 0.0)
        self.corr += 1
        end = max(self.at, done) + 3
        self.events.append(call(self.at, end - self.at, api, self.corr, tid=self.thread))
        self.now[self.thread] = end
