"""``torch.cuda`` over the queue simulator: the real CUDA adapter and triton's real do_bench run against it, end to end.

``install(monkeypatch)`` puts a module in place of ``torch.cuda`` whose clock is the simulator's: streams, events, graphs, the
sleep kernel, an allocator with a limit, the profiler. What is wrong on a real device is an error here too: an event that is
read before it was reached, a synchronise while a graph is captured, the default stream captured.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine, Op

DEFAULT_STREAM = 7
CYCLES_PER_NS = 1.5


class OutOfMemory(RuntimeError):
    """What the allocator raises at its limit."""


class Buffer:
    """Device memory; zeroing it is a fill on the current stream."""

    def __init__(self, cuda: FakeCuda, size: int) -> None:
        self.cuda, self.nbytes = cuda, 0
        cuda.allocate(size)
        self.nbytes = size

    def __del__(self) -> None:
        self.cuda.held -= self.nbytes

    def zero_(self) -> None:
        self.cuda.launch("fill", max(1000, int(self.nbytes / 3.2e12 * 1e9)), 6000, kind="memset", api="cudaMemsetAsync")


class FakeCuda(types.SimpleNamespace):
    """The module. ``overhead_ns``: what the profiler adds to each launch; ``limit_bytes``: what the allocator gives."""

    def __init__(
        self, machine: Machine | None = None, *, limit_bytes: int = 8 << 30, node_gap: int = 900, overhead_ns: int = 0
    ):
        super().__init__()
        self.machine = machine or Machine()
        self.limit_bytes, self.node_gap, self.overhead_ns = limit_bytes, node_gap, overhead_ns
        self.held = self.peak = 0
        self.profiling = False
        self.capturing: list[tuple[str, int]] | None = None
        self.mode = 0
        self._streams = DEFAULT_STREAM
        self._current = Stream(self, DEFAULT_STREAM)
        cuda = self

        class _Event(Event):
            def __init__(self, enable_timing: bool = False) -> None:
                super().__init__(cuda)

        class _Stream(Stream):
            def __init__(self) -> None:
                cuda._streams += 1
                super().__init__(cuda, cuda._streams)

        class _Graph(Graph):
            def __init__(self) -> None:
                super().__init__(cuda)

        self.Event, self.Stream, self.CUDAGraph = _Event, _Stream, _Graph

    # -- work -----------------------------------------------------------------------------------------

    def op(
        self, parts: Op, *, stream: Stream | None = None, sync: bool = False, result: Any = None
    ) -> Callable[[], Any]:
        """Return a call of kernels, (dispatch, kernel) in ns each, on the current or a given stream; ``sync`` waits inside."""

        def call() -> Any:
            for number, (dispatch, kernel) in enumerate(parts):
                self.launch(f"kernel_{number}", kernel, dispatch, stream=stream)
            if sync:
                if self.mode == "error" or self.capturing is not None:
                    raise RuntimeError("called a synchronizing CUDA operation")
                self.machine.sync("cudaStreamSynchronize")
            return result

        return call

    def launch(self, name: str, kernel: int, dispatch: int, *, stream: Stream | None = None, **row: Any) -> None:
        if self.capturing is not None:
            if stream is not None and stream != self._current:
                raise RuntimeError("operation would make the legacy stream depend on a capturing stream")
            self.capturing.append((name, kernel))
            return
        extra = self.overhead_ns if self.profiling else 0
        where = (stream or self._current).number
        self.machine.launch(name, kernel, host_cost=dispatch + extra, call=min(3000, dispatch), stream=where, **row)

    def allocate(self, size: int) -> None:
        if self.held + size > self.limit_bytes:
            raise OutOfMemory(f"CUDA out of memory. Tried to allocate {size} bytes")
        self.held += size
        self.peak = max(self.peak, self.held)

    # -- torch.cuda -----------------------------------------------------------------------------------

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def set_device(self, index: int) -> None:
        assert index == 0

    def get_device_properties(self, index: int) -> Any:
        return types.SimpleNamespace(
            name="Simulated GPU (traceanalyzer)",
            major=9,
            minor=0,
            total_memory=self.limit_bytes,
            multi_processor_count=132,
            uuid="",
        )

    def synchronize(self, index: int | None = None) -> None:
        if self.capturing is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.machine.sync()

    def current_stream(self, index: int | None = None) -> Stream:
        return self._current

    def default_stream(self, index: int | None = None) -> Stream:
        return Stream(self, DEFAULT_STREAM)

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def _sleep(self, cycles: int) -> None:
        self.launch("spin_kernel", max(1000, round(cycles / CYCLES_PER_NS)), 5000)

    def graph_pool_handle(self) -> str:
        return "pool"

    def get_sync_debug_mode(self) -> Any:
        return self.mode

    def set_sync_debug_mode(self, mode: Any) -> None:
        self.mode = mode

    def reset_peak_memory_stats(self, index: int) -> None:
        self.peak = self.held

    def max_memory_allocated(self, index: int) -> int:
        return self.peak


class Stream:
    def __init__(self, cuda: FakeCuda, number: int) -> None:
        self.cuda, self.number = cuda, number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return self.number

    def wait_stream(self, other: Stream) -> None:
        free = self.cuda.machine._free
        free[self.number] = max(free.get(self.number, 0), free.get(other.number, 0))


class Event:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.stamp = cuda, -1

    def record(self, stream: Stream | None = None) -> None:
        self.cuda.machine.record((stream or self.cuda._current).number)
        self.stamp = self.cuda.machine.stamps[-1]

    def query(self) -> bool:
        return self.cuda.machine.now >= self.stamp

    def elapsed_time(self, stop: Event) -> float:
        if max(self.stamp, stop.stamp) > self.cuda.machine.now or min(self.stamp, stop.stamp) < 0:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return (stop.stamp - self.stamp) / 1e6


class Graph:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.nodes: list[tuple[str, int]] = []

    def capture_begin(self, pool: Any = None) -> None:
        if self.cuda._current.number == DEFAULT_STREAM:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        self.cuda.capturing = self.nodes

    def capture_end(self) -> None:
        self.cuda.capturing = None

    def reset(self) -> None:
        self.nodes = []

    def replay(self) -> None:
        self.cuda.machine.graph(
            self.nodes, host_cost=10_000, call=5000, node_gap=self.cuda.node_gap, stream=self.cuda._current.number
        )


class Profile:
    """torch.profiler.profile with the schedule of the adapter: what runs before the first step is dropped."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def __enter__(self) -> Profile:
        self.cuda.profiling = True
        return self

    def __exit__(self, *_: object) -> None:
        self.cuda.profiling = False

    def step(self) -> None:
        self.cuda.machine.host.clear()
        self.cuda.machine.device.clear()

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text(to_json(document(self.cuda.machine)), encoding="utf-8")


def install(monkeypatch: Any, cuda: FakeCuda) -> FakeCuda:
    """Put the module in place of torch.cuda, its clock in place of the host's, and a driver in place of triton's."""
    import torch

    from traceanalyzer.capture import device

    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(torch, "OutOfMemoryError", OutOfMemory)
    empty = torch.empty

    def allocated(*size: Any, device: Any = None, dtype: Any = None, **rest: Any) -> Any:
        if str(device).startswith("cuda"):
            return Buffer(cuda, 4 * int(size[0]))
        return empty(*size, device=device, dtype=dtype, **rest)

    monkeypatch.setattr(torch, "empty", allocated)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", lambda *_: None, raising=False)
    monkeypatch.setattr(device, "_clock_ns", lambda: cuda.machine.now)

    @contextlib.contextmanager
    def record_function(name: str) -> Iterator[None]:
        start = cuda.machine.now
        yield
        cuda.machine.annotate(name, start)

    monkeypatch.setattr(torch.profiler, "profile", lambda **_: Profile(cuda))
    monkeypatch.setattr(torch.profiler, "record_function", record_function)
    with contextlib.suppress(ImportError):
        import triton.testing

        driver = types.SimpleNamespace(
            get_device_interface=lambda: cuda,
            get_empty_cache_for_benchmark=lambda: Buffer(cuda, 256 << 20),
            clear_cache=lambda cache: cache.zero_(),
        )
        monkeypatch.setattr(triton.testing.runtime, "driver", types.SimpleNamespace(active=driver))
    return cuda
