"""Remedies in the words of the tool that made the run: PyTorch's names for a PyTorch trace, JAX's for JAX, the vendor's for the rest."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.graphs import in_graph
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.ledger.classes import is_communication
from traceanalyzer.analysis.ledger.membership import of_classes
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.advice import Advice
from traceanalyzer.doctor.causes import DeviceCauses, Family, causes
from traceanalyzer.trace.tables import Bool, Int64


def framework(analysis: Analysis) -> str:
    """Return whose names a remedy takes: torch, triton, jax, cupy, numba, ascend, xpu or rocm; empty for unknown."""
    trace = analysis.trace
    sidecar = trace.meta.sidecar
    if sidecar is not None and sidecar.framework:
        name = sidecar.framework.lower()
        return {"pytorch": "torch"}.get(name, name)
    flavour = trace.meta.flavour.lower()
    for known, name in _OF_FLAVOUR.items():
        if known in flavour:
            return name
    if (
        len(trace.host_ops)
        or trace.meta.flags
        or any(v.startswith("2.") for k, v in trace.meta.versions.items() if "torch" in k.lower())
    ):
        return "torch"
    if any(api.startswith("hip") for api in trace.apis):
        return "rocm"
    return ""


_OF_FLAVOUR = {
    "jax": "jax", "ascend": "ascend", "rocprof": "rocm", "rpd": "rocm", "rocpd": "rocm", "unitrace": "xpu", "nsight": "cuda", "nsys": "cuda",
}  # fmt: skip
"""What the recorder tells of the framework: nothing of the program, but which vendor's names its reader knows."""

_SYNCHRONISE = {
    "torch": "torch.cuda.synchronize()", "triton": "torch.cuda.synchronize()", "jax": "jax.block_until_ready(result)",
    "cupy": "cupy.cuda.Device().synchronize()", "numba": "numba.cuda.synchronize()", "ascend": "torch.npu.synchronize()",
    "xpu": "torch.xpu.synchronize(), or wait() of the queue", "rocm": "hipDeviceSynchronize()", "cuda": "cudaDeviceSynchronize()",
}  # fmt: skip


def synchronise_of(analysis: Analysis) -> str:
    """Return how a program waits for its device."""
    return _SYNCHRONISE.get(framework(analysis), "the runtime's synchronise (torch.cuda.synchronize() in PyTorch)")


def graph_of(analysis: Analysis) -> str:
    """Return how a program launches many kernels with one call."""
    return {
        "torch": Advice(
            "capture the step in a CUDA graph", " (torch.cuda.graph, or torch.compile with mode='reduce-overhead')"
        ),
        "jax": "put the whole step under one jax.jit",
        "ascend": Advice("capture the step as one graph", " (torchair, or aclgraph)"),
        "xpu": "submit the step as one SYCL graph, or fuse its kernels",
        "rocm": Advice("capture the step in a HIP graph", " (hipStreamBeginCapture)"),
        "cupy": Advice("capture the step in a graph", " (cupy.cuda.Stream.begin_capture)"),
        "numba": "launch fewer, larger kernels",
    }.get(framework(analysis), "capture the step in a CUDA graph, or fuse its kernels")


def loader_of(analysis: Analysis) -> str:
    """Return how input is made ready ahead of the device."""
    if framework(analysis) == "jax":
        return Advice("prefetch batches to the device", " (tf.data prefetch, or grain with worker processes)")
    return "raise num_workers and prefetch_factor of the DataLoader, and keep persistent_workers=True"


def allocator_of(analysis: Analysis) -> str:
    """Return how allocation is kept out of the steady run."""
    return {
        "torch": "warm the caching allocator up with the same shapes, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "jax": Advice("leave preallocation on", " (XLA_PYTHON_CLIENT_PREALLOCATE)"),
        "ascend": "warm the caching allocator up, or set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
        "cupy": Advice("keep the memory pool on", " (cupy.get_default_memory_pool())"),
        "rocm": Advice("allocate before the loop, from a pool", " (hipMallocAsync)"),
        "xpu": "allocate before the loop",
    }.get(framework(analysis), Advice("allocate before the loop, from a pool", " (cudaMallocAsync)"))


def started_before_of(analysis: Analysis) -> str:
    """Return how one-time work of libraries is kept out of the recording."""
    what = "the jitted function" if framework(analysis) == "jax" else "the step"
    return Advice(
        f"run {what} a few times before recording",
        ", with the same shapes: a library (cuDNN, cuBLAS, a context) starts in its first call, which often shows as an allocation or a free",
    )


def read_back_of(analysis: Analysis) -> str:
    """Return how results are kept on the device until they are needed."""
    if framework(analysis) == "jax":
        return Advice("keep results as device arrays", "; convert (float, np.asarray) only where you log them")
    if framework(analysis) in ("", "cuda", "rocm", "xpu"):
        return "keep results on the device and copy them back after the loop, or asynchronously into page-locked memory"
    return Advice("keep the value on the device: no .item(), .cpu() or print in the loop", "; read it every n-th step")


def pinned_of(analysis: Analysis) -> str:
    """Return how an input copy is made not to block."""
    if framework(analysis) in ("torch", ""):
        return Advice("copy from pinned memory with non_blocking=True", " (DataLoader(pin_memory=True))")
    return "copy from page-locked host memory, asynchronously"


def compiled_before_of(analysis: Analysis) -> str:
    """Return how compilation is kept out of the window."""
    if framework(analysis) == "jax":
        return Advice(
            "call the jitted function once, with the same shapes, before recording",
            " (jax_log_compiles names recompilations)",
        )
    return Advice(
        "call everything once, with the same shapes, before recording", "; TORCH_LOGS=recompiles names recompilations"
    )


def more_per_launch_of(analysis: Analysis) -> str:
    """Return how one launch is made to do more, where a graph or a compiled program is launched already."""
    if framework(analysis) == "jax":
        return "let one call do more steps: jax.lax.scan or jax.lax.fori_loop inside of jax.jit"
    return "unroll more calls into one graph"


def without_dispatch_of(analysis: Analysis) -> str:
    """Return how an operation is timed so that its dispatch does not count."""
    name = framework(analysis)
    if name == "jax":
        return Advice("time many calls in one jitted loop", " (jax.lax.fori_loop) and divide")
    if name in ("ascend", "xpu"):
        return "time many calls one after another, with one wait at the end, on inputs large enough to fill the queue"
    graph = "HIP" if name == "rocm" else "CUDA"
    return Advice(
        f"time it as an unrolled {graph} graph, or behind a backlog", " (a blocking kernel) that covers the dispatch"
    )


def graph_once_of(analysis: Analysis) -> str:
    """Return how graphs are not made again and again."""
    if framework(analysis) == "jax":
        return (
            "keep shapes and buffers the same from call to call, so that XLA does not record its command buffers again"
        )
    return Advice(
        "capture and instantiate once, before the loop, and replay", "; copy new inputs into the graph's own buffers"
    )


def slow_graph_launch_of(analysis: Analysis) -> str:
    """Return what helps where the launch of a graph itself is slow."""
    name = framework(analysis)
    if name == "jax":
        return Advice(
            "compare with command buffers off", " (XLA_FLAGS=--xla_gpu_enable_command_buffer=), and with another driver"
        )
    upload = "hipGraphUpload" if name == "rocm" else "cudaGraphUpload"
    return Advice(
        "make the graph smaller, or upload it ahead", f" ({upload}); compare with another driver or framework version"
    )


def join_of(analysis: Analysis) -> str:
    """Return how one stream is made to wait for another."""
    if framework(analysis) in ("torch", "triton", ""):
        return "let the timed stream wait for the other: torch.cuda.current_stream().wait_stream(other)"
    return "let the timed stream wait for the other, by an event"


def eager_loading_of(analysis: Analysis) -> str:
    """Return how code is loaded before it is used."""
    if framework(analysis) in ("rocm", "ascend", "xpu"):
        return "run every code path once before the measurement, in the same process"
    return "or load all code at start: CUDA_MODULE_LOADING=EAGER"


def copy_ahead_of(analysis: Analysis) -> str:
    """Return how a copy is covered by compute."""
    if framework(analysis) == "jax":
        return Advice("put the next batch on the device while this one computes", " (jax.device_put one step ahead)")
    return "copy the next input on a stream of its own while the device computes"


def overlap_of(analysis: Analysis) -> str:
    """Return how the collective that takes longest in all is covered by compute."""
    trace = analysis.trace
    rows = trace.activities
    at = np.flatnonzero(analysis.chosen.rows)
    total = np.bincount(rows.name[at], weights=rows.dur_ns[at]) if len(at) else np.zeros(1)
    named = sorted(
        (
            (total[n], trace.names[n].lower())
            for n in np.flatnonzero(total).tolist()
            if is_communication(trace.names[n])
        ),
        reverse=True,
    )
    largest = named[0][1].replace("_", "") if named else ""
    if "sendrecv" in largest:
        return "shorten the waits for the neighbouring stage: more micro-batches, an interleaved schedule, equal stages"
    if "allgather" in largest or "reducescatter" in largest:
        return Advice(
            "start it earlier, so that it overlaps compute",
            " (FSDP: forward_prefetch, backward_prefetch), or send less",
        )
    if "alltoall" in largest:
        return "overlap it with the compute of another micro-batch, or balance the experts"
    return Advice("overlap it with compute", " (larger or earlier buckets), or send less")


def look_at_host_of(analysis: Analysis, device: DeviceCauses) -> str:
    """Return how to find out what a program does where no row of the host names it."""
    recorded = device.operators_recorded
    found = f"look at what the program does there between its {'operators' if recorded else 'launches'}"
    name = framework(analysis)
    if name in ("torch", "triton") and not recorded:
        return Advice(found, "; record with CPU activity (ProfilerActivity.CPU) to see its operators")
    if name == "jax":
        return Advice(found, "; jax.profiler.TraceAnnotation names its parts")
    if name in ("torch", "triton", "ascend"):
        return Advice(found, "; record with stacks (with_stack=True) to see the lines")
    return Advice(found, f"; {'roctx' if name == 'rocm' else 'ITT' if name == 'xpu' else 'NVTX'} ranges name its parts")


def dispatch_of(analysis: Analysis, device: DeviceCauses, mask: Bool) -> list[str]:
    """Return what to do about a host that launches too late, by what costs most of the segments: its own code between the operators, or its launches.

    A stretch of own code far longer than the run's usual time from launch to launch is no overhead of one: fewer launches do not shorten it.
    """
    fewer = [fewer_launches_of(analysis), "fuse operators, so that there are fewer launches"]
    own = mask & of_classes(device.ledger.cls, (LedgerClass.BETWEEN_OPS, LedgerClass.PYTHON))
    if (
        2 * device.ns(own) >= device.ns(mask)
        and device.mostly_long(own, _long_stretch_ns(analysis))
        and not _by_graphs(analysis)
    ):
        return [look_at_host_of(analysis, device), *fewer]
    return fewer


def fewer_launches_of(analysis: Analysis) -> str:
    """Return how a program launches less often; one that launches graphs already has to be quicker between them.

    A graph is advised only where it can be captured: something repeats, with the same launches, and does not wait in the midst.
    """
    if _by_graphs(analysis):
        if framework(analysis) == "jax":
            return more_per_launch_of(analysis)
        return Advice(
            "do less on the host between the graph launches",
            " (scheduling, sampling, Python), or prepare the next step while the device works",
        )
    if framework(analysis) in ("jax", "numba", "xpu"):
        return graph_of(analysis)
    compiled = " (torch.compile)" if framework(analysis) == "torch" else ""
    busiest = max(causes(analysis), key=lambda d: d.ledger.span_ns, default=None)
    starts = busiest.ledger.unit_starts_ns if busiest is not None else np.empty(0, dtype=np.int64)
    if busiest is None or len(starts) < _REPEATS:
        return Advice("launch fewer, larger kernels: fuse operators", compiled)
    waits = busiest.count(busiest.families[Family.WAITS] & busiest.is_idle)
    if waits >= _WAITS_PER_UNIT * len(starts):
        return Advice("take the waits out of the step first", f" (each ends a graph), then {graph_of(analysis)}")
    if _changing(analysis, busiest.ledger.device, starts):
        return Advice(
            "fuse operators",
            f"{compiled}; the launches change from step to step, so that a graph needs inputs padded to few shapes",
        )
    return graph_of(analysis)


LEAST_STRETCH_NS, MOST_STRETCH_NS = 20_000, 100_000
STRETCH_FACTOR = 10
"""Own code of the host that takes so many times the usual interval of the launches, within these limits, is no overhead of one."""
_REPEATS = 3
_WAITS_PER_UNIT = 2
_CHANGING = 0.5
"""Where more than this share of neighbouring steps differ in how many rows they start, no graph of one fits the next."""


def _long_stretch_ns(analysis: Analysis) -> int:
    """Return from which length on a stretch of the host's own code is longer than the run's own pace explains."""
    calls = analysis.trace.calls
    at = np.flatnonzero(analysis.host.owns & analysis.chosen.calls)
    same = calls.thread[at[1:]] == calls.thread[at[:-1]]
    apart = np.diff(calls.start_ns[at])[same]
    return int(min(MOST_STRETCH_NS, max(LEAST_STRETCH_NS, STRETCH_FACTOR * (stats.median(apart) or 0.0))))


def _by_graphs(analysis: Analysis) -> bool:
    inside = in_graph(analysis.trace)[analysis.chosen.rows]
    return len(inside) > 0 and 2 * int(np.count_nonzero(inside)) > len(inside)


def _changing(analysis: Analysis, device: int, starts: Int64) -> bool:
    rows = analysis.trace.activities
    of_lane = np.array([lane.device for lane in analysis.trace.lanes], dtype=np.int64)
    at = np.sort(rows.start_ns[of_lane[rows.lane] == device])
    counts = np.diff(np.searchsorted(at, starts))
    return len(counts) >= _REPEATS and float(np.mean(np.diff(counts) != 0)) > _CHANGING
