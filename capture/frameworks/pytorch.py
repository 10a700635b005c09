"""PyTorch on CUDA, ROCm, XPU, MPS and the CPU."""

from __future__ import annotations

import contextlib
import gc
import gzip
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter, Profiled
from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.trace.sidecar import DeviceFacts

_CLEAR_BYTES = 256 << 20
"""The buffer of triton's do_bench, for a clear that compares with it."""
_EDGE_BYTES = 1 << 16
_HOST_NAME = re.compile(rb'"host_name":\s*"(?:[^"\\]|\\.)*"')
_TRACE_NAME = re.compile(rb'"traceName":\s*"(?:[^"\\]|\\.)*"')


class TorchCpu(DeviceAdapter):
    """The CPU through PyTorch: the call is done when it returns."""

    framework = "pytorch"
    kind = "cpu"

    def __init__(self, index: int = 0) -> None:
        import torch

        self._torch = torch
        self._index = index

    def facts(self) -> DeviceFacts:
        """Return the kind alone: a CPU's model name is no part of what is measured here."""
        return DeviceFacts(self.kind, f"cpu, {self._torch.get_num_threads()} threads")

    def lacks(self, capability: Capability) -> str:
        """Return the reason: the CPU runs a call while it is made, so there is no queue to time."""
        if capability is Capability.PROFILER:
            return ""
        return {
            Capability.EVENTS: "the CPU has no events: a call is done when it returns",
            Capability.BLOCKER: "the CPU has no queue",
            Capability.CLEAR: "the CPU has no device cache to clear",
            Capability.GRAPH: "the CPU has no graphs",
        }[capability]

    def synchronize(self, outputs: Any = None) -> None:
        """Do nothing: a call has run when it returns."""

    def versions(self) -> dict[str, str]:
        """Return torch's version."""
        return {"torch": str(self._torch.__version__)}

    def _activities(self) -> list[Any]:
        return [self._torch.profiler.ProfilerActivity.CPU]

    def profile(self, call: Call, calls: int, annotation: str, trace: Path) -> Profiled:
        """Run calls under torch.profiler. The first cycle is dropped: its records may be lost or damaged."""
        from torch.profiler import profile, record_function, schedule

        host: list[int] = []
        with profile(
            activities=self._activities(), schedule=schedule(wait=0, warmup=1, active=1, repeat=1), **self._extra()
        ) as profiler:
            self.synchronize([call() for _ in range(min(calls, 3))])
            profiler.step()
            outputs = None
            for _ in range(calls):
                start = self.now_ns()
                with record_function(annotation):
                    outputs = call()
                host.append(self.now_ns() - start)
            self.synchronize(outputs)
        export_trace(profiler, trace)
        return Profiled(host, trace)

    def _extra(self) -> dict[str, Any]:
        # records of events and synchronises on the device; the option is young and private, so it may be missing
        try:
            from torch._C._profiler import _ExperimentalConfig

            return {"experimental_config": _ExperimentalConfig(enable_cuda_sync_events=True)}
        except (ImportError, TypeError):
            return {}


def export_trace(profiler: Any, trace: Path) -> None:
    """Write a profiler's trace as gzip JSON, without the host's name and the folder that Kineto writes into it."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(plain))
        partial = trace.with_name(f".{trace.name}.part")
        size = plain.stat().st_size
        with plain.open("rb") as source, gzip.GzipFile(partial, "wb", compresslevel=6, mtime=0) as target:
            # both names are outside of the events: before them or behind them
            target.write(_nameless(source.read(_EDGE_BYTES), trace.name))
            _copy(source, target, size - 2 * _EDGE_BYTES)
            target.write(_nameless(source.read(), trace.name))
        partial.replace(trace)


def _nameless(edge: bytes, name: str) -> bytes:
    edge = _TRACE_NAME.sub(lambda _: b'"traceName": "' + name.encode() + b'"', edge)
    return _HOST_NAME.sub(b'"host_name": ""', edge)


def _copy(source: Any, target: Any, length: int) -> None:
    while length > 0:
        piece = source.read(min(length, 1 << 20))
        if not piece:
            return
        target.write(piece)
        length -= len(piece)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector off: a tensor that it frees while a graph is captured breaks the capture."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Queued(TorchCpu):
    """What CUDA, ROCm and XPU share: a module with streams, events and a synchronise."""

    _module: Any

    def lacks(self, capability: Capability) -> str:
        """Return the reason, where one is known."""
        return ""

    def synchronize(self, outputs: Any = None) -> None:
        """Wait for every stream of the device."""
        self._module.synchronize(self._index)

    def record(self) -> Any:
        """Enqueue an event record on the current stream."""
        event = self._module.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, start: Any, stop: Any) -> float:
        """Return the time between two events; the framework gives milliseconds as a float."""
        return round(float(start.elapsed_time(stop)) * 1e6, 1)

    def reached(self, event: Any) -> bool:
        """Return whether the device has come to the event."""
        return bool(event.query())

    def forget_peak_memory(self) -> None:
        """Begin to count peak memory anew."""
        self._module.reset_peak_memory_stats(self._index)

    def peak_memory_bytes(self) -> int | None:
        """Return the allocator's peak."""
        return int(self._module.max_memory_allocated(self._index))

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether the allocator gave up."""
        kind = getattr(self._torch, "OutOfMemoryError", MemoryError)
        return isinstance(error, kind) or super().is_out_of_memory(error)


class TorchCuda(_Queued):
    """CUDA, and ROCm, which PyTorch calls cuda as well."""

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._module = self._torch.cuda
        if index != self._torch.cuda.current_device():
            self._torch.cuda.set_device(index)  # events and kernels go to the current device
        self.kind = "rocm" if self._torch.version.hip else "cuda"
        self._cache: Any = None
        self._cycles_per_ns = 0.0

    def facts(self) -> DeviceFacts:
        """Return the device's properties."""
        p = self._torch.cuda.get_device_properties(self._index)
        capability = p.gcnArchName.split(":")[0] if self.kind == "rocm" else f"{p.major}.{p.minor}"
        return DeviceFacts(
            self.kind, p.name, capability, int(p.total_memory), getattr(p, "L2_cache_size", None), p.multi_processor_count,
            _peak_gbytes_per_s(self.kind, getattr(p, "memory_clock_rate", None), getattr(p, "memory_bus_width", None)),
        )  # fmt: skip

    def uuid(self) -> str:
        """Return the device's UUID as the driver writes it, empty where torch does not know it."""
        value = getattr(self._torch.cuda.get_device_properties(self._index), "uuid", "")
        return f"GPU-{value}" if value else ""

    def versions(self) -> dict[str, str]:
        """Return torch, CUDA or HIP, cuDNN."""
        found = super().versions()
        for name, value in (("cuda", self._torch.version.cuda), ("hip", self._torch.version.hip)):
            if value:
                found[name] = str(value)
        if (cudnn := self._torch.backends.cudnn.version()) is not None:
            found["cudnn"] = str(cudnn)
        return found

    def _activities(self) -> list[Any]:
        return [*super()._activities(), self._torch.profiler.ProfilerActivity.CUDA]

    def block(self, duration_ns: int) -> None:
        """Enqueue torch's sleep kernel, calibrated by events once."""
        if not self._cycles_per_ns:
            self._calibrate()
        self._torch.cuda._sleep(max(1, int(duration_ns * self._cycles_per_ns)))

    def _calibrate(self) -> None:
        cycles = 20_000_000
        # as long as the timed one: an idle GPU needs some milliseconds to raise its clock
        self._torch.cuda._sleep(cycles)
        self.synchronize()
        start = self.record()
        self._torch.cuda._sleep(cycles)
        stop = self.record()
        self.synchronize()
        self._cycles_per_ns = cycles / max(1.0, self.elapsed_ns(start, stop))

    def idle_kernel(self) -> None:
        """Enqueue torch's sleep kernel with nothing to wait for."""
        self._torch.cuda._sleep(0)

    def clear(self) -> None:
        """Zero a 256 MiB buffer, as do_bench does."""
        if self._cache is None:
            self._cache = self._torch.empty(_CLEAR_BYTES // 4, dtype=self._torch.int32, device=f"cuda:{self._index}")
        self._cache.zero_()

    def clear_bytes(self) -> int:
        """Return the buffer's size."""
        return _CLEAR_BYTES

    def peak_memory_bytes(self) -> int | None:
        """Return the allocator's peak without the buffer that this class clears: it is none of the function's."""
        peak = super().peak_memory_bytes()
        return peak if peak is None or self._cache is None else max(0, peak - _CLEAR_BYTES)

    def do_bench(self, call: Call) -> list[float] | None:
        """Return do_bench's own readings where triton is installed."""
        try:
            from triton.testing import do_bench

            return [float(ms) * 1e6 for ms in do_bench(call, warmup=5, rep=20, return_mode="all")]
        except Exception:
            # no triton, one without this mode, or without a driver here; a call that fails will do so again
            return None

    def graph(self, call: Call, calls: int) -> Callable[[], None]:
        """Capture calls on the current stream, or on a side stream where that is the default one, which cannot be captured.

        Not through ``torch.cuda.graph``: when a capture fails, its exit raises before the stream is restored and leaves the
        allocator in the graph's pool, and whatever is measured next would run there.
        """
        torch = self._torch
        current = torch.cuda.current_stream()
        stream = torch.cuda.Stream() if current == torch.cuda.default_stream() else current
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            for _ in range(2):
                call()
            self._refuse_synchronising(call)
        current.wait_stream(stream)
        self.synchronize()
        graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
        with torch.cuda.stream(stream), no_collection():
            try:
                graph.capture_begin(pool=pool)
                for _ in range(calls):
                    call()
                graph.capture_end()
            except BaseException:
                self._give_up(graph, pool)
                raise

        def replay() -> None:
            graph.replay()

        return replay

    def _refuse_synchronising(self, call: Call) -> None:
        """Call once with torch's synchronising operations forbidden: they raise here, where no capture is left half done."""
        torch = self._torch
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the mode is a prototype
            torch.cuda.set_sync_debug_mode("error")
            try:
                call()
            finally:
                torch.cuda.set_sync_debug_mode(before)

    def _give_up(self, graph: Any, pool: Any) -> None:
        """End a failed capture: each step may fail in turn, and the error that led here is the one to report."""
        for step in (
            graph.capture_end,
            lambda: self._torch._C._cuda_endAllocateToPool(self._index, pool),
            graph.reset,
            self.synchronize,
        ):
            with contextlib.suppress(Exception):
                step()


class TorchXpu(_Queued):
    """Intel GPUs."""

    kind = "xpu"

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._module = self._torch.xpu

    def facts(self) -> DeviceFacts:
        """Return the device's properties."""
        p = self._torch.xpu.get_device_properties(self._index)
        return DeviceFacts("xpu", p.name, "", int(p.total_memory))

    def _activities(self) -> list[Any]:
        return [*super()._activities(), self._torch.profiler.ProfilerActivity.XPU]

    def lacks(self, capability: Capability) -> str:
        """Return what torch does not offer on XPU."""
        return {
            Capability.BLOCKER: "torch has no sleep kernel for XPU",
            Capability.CLEAR: "the size of an XPU's cache is not known to torch",
            Capability.GRAPH: "" if hasattr(self._module, "XPUGraph") else "this torch has no graphs for XPU",
        }.get(capability, "")

    def graph(self, call: Call, calls: int) -> Callable[[], None]:
        """Capture calls on a side stream through torch's own context, which restores the stream when a capture fails."""
        xpu = self._module
        side = xpu.Stream()
        side.wait_stream(xpu.current_stream())
        with xpu.stream(side):
            for _ in range(2):
                call()
        xpu.current_stream().wait_stream(side)
        self.synchronize()
        graph = xpu.XPUGraph()
        with no_collection(), xpu.graph(graph, stream=side):
            for _ in range(calls):
                call()

        def replay() -> None:
            graph.replay()

        return replay


class TorchMps(_Queued):
    """Apple GPUs through Metal."""

    kind = "mps"

    def __init__(self, index: int = 0) -> None:
        super().__init__(index)
        self._module = self._torch.mps

    def facts(self) -> DeviceFacts:
        """Return the kind; torch knows no more of it."""
        return DeviceFacts("mps", "Apple GPU (mps)")

    def lacks(self, capability: Capability) -> str:
        """Return what torch does not offer on MPS."""
        return {
            Capability.BLOCKER: "torch has no sleep kernel for MPS",
            Capability.CLEAR: "the size of an Apple GPU's cache is not known to torch",
            Capability.GRAPH: "Metal has no graphs that torch could replay",
        }.get(capability, "")

    def synchronize(self, outputs: Any = None) -> None:
        """Wait for all kernels on all streams of the device."""
        self._torch.mps.synchronize()

    def record(self) -> Any:
        """Enqueue an event record."""
        event = self._torch.mps.event.Event(enable_timing=True)
        event.record()
        return event

    def forget_peak_memory(self) -> None:
        """Do nothing: torch counts no peak on MPS."""

    def peak_memory_bytes(self) -> int | None:
        """Return None: torch counts no peak on MPS."""
        return None


_KINDS: dict[str, type[TorchCpu]] = {"cuda": TorchCuda, "xpu": TorchXpu, "mps": TorchMps, "cpu": TorchCpu}


def available(kind: str) -> bool:
    """Return whether torch sees a device of this kind."""
    import torch

    asks: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "xpu": lambda: hasattr(torch, "xpu") and torch.xpu.is_available(),
        "mps": torch.backends.mps.is_available,
        "cpu": lambda: True,
    }
    return bool(asks[kind]())


def torch_device(kind: str = "auto") -> TorchCpu:
    """Return the adapter of a device kind (``cuda``, ``cuda:1``, ...); ``auto`` takes the first that is there.

    Without a number it is the device that torch has as its current one. Raises CaptureUnavailable.
    """
    if kind == "auto":
        kind = next(k for k in _KINDS if available(k))
    kind, _, number = kind.partition(":")
    if kind not in _KINDS or not available(kind):
        raise CaptureUnavailable(
            "no_device",
            f"torch sees no {kind} device on this machine",
            hint="run it where there is one, or use --device cpu for host times that are labelled cpu",
        )
    if number.isdigit():
        return _KINDS[kind](int(number))
    if kind == "cuda":
        import torch

        return _KINDS[kind](torch.cuda.current_device())
    return _KINDS[kind]()


def _peak_gbytes_per_s(kind: str, clock_khz: int | None, bus_bits: int | None) -> float | None:
    """Return the peak memory bandwidth, two transfers a clock; None off CUDA, where the clock means something else by device."""
    if kind != "cuda" or not clock_khz or not bus_bits:
        return None
    return round(2 * clock_khz * 1e3 * bus_bits / 8 / 1e9, 1)
