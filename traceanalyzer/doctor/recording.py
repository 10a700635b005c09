"""How each profiler is told to record what a trace lacks, and which rules cannot judge without it."""

from __future__ import annotations

from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.tables import Trace

_NAMES = {
    "nsight": "Nsight Systems", "jax": "jax.profiler", "rpd": "rpd", "rocprofv3": "rocprofv3", "rocpd": "rocprofv3",
    "rocprof": "rocprof", "ascend": "the Ascend profiler", "unitrace": "unitrace", "legacy-autograd": "this profiler",
}  # fmt: skip
_HOST = {
    "nsight": "record the CUDA API too: nsys profile --trace=cuda,nvtx",
    "jax": "record host events too: jax.profiler.start_trace with ProfileOptions(host_tracer_level=2)",
    "rpd": "record under runTracer.sh, and export with the host calls",
    "rocprofv3": "record host calls too: rocprofv3 --hip-trace --kernel-trace, or --sys-trace",
    "rocpd": "record host calls too: rocprofv3 --hip-trace --kernel-trace, or --sys-trace",
    "rocprof": "record host calls too: rocprof --hip-trace",
    "ascend": "record the host side too: torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]), profiler_level=Level1",
    "unitrace": "record host calls too: unitrace --chrome-call-logging --chrome-kernel-logging",
}
_DEVICE = {
    "nsight": "record with nsys profile --trace=cuda, and let the program end, or call cudaProfilerStop(), before nsys does",
    "jax": "record a step that runs on the GPU, and call jax.block_until_ready(result) before stop_trace",
    "rpd": "record under runTracer.sh, and synchronise before the program ends",
    "rocprofv3": "record with rocprofv3 --kernel-trace --memory-copy-trace",
    "rocpd": "record with rocprofv3 --kernel-trace --memory-copy-trace",
    "rocprof": "record with rocprof --hip-trace",
    "ascend": "record with torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) and synchronise before the window closes",
    "unitrace": "record with unitrace --chrome-kernel-logging",
}
_WARM = {
    "nsight": "start recording once the program is warm: nsys profile --capture-range=cudaProfilerApi",
    "jax": "call the function a few times before jax.profiler.start_trace",
    "ascend": "record again with a warm profiler: schedule=torch_npu.profiler.schedule(wait=1, warmup=1, active=...)",
}
_CLOSE = {
    "nsight": "call cudaDeviceSynchronize() before the recording stops",
    "jax": "call jax.block_until_ready(result) before jax.profiler.stop_trace",
    "ascend": "call torch.npu.synchronize() before the profiler stops",
    "unitrace": "wait for the queue before the recording stops",
}

NEEDS: dict[str, frozenset[RecordedPart]] = {
    "TA106": frozenset({RecordedPart.OVERHEADS}),
    "TA107": frozenset({RecordedPart.INSTRUMENTATION}),
    "TA204": frozenset({RecordedPart.HOST_CALLS}),
    "TA301": frozenset({RecordedPart.SYNC_CALLS}),
    "TA302": frozenset({RecordedPart.HOST_CALLS}),
    "TA304": frozenset({RecordedPart.SYNC_CALLS}),
    "TA305": frozenset({RecordedPart.ALLOCATIONS}),
    "TA309": frozenset({RecordedPart.SYNC_CALLS}),
    "TA401": frozenset({RecordedPart.OPERATORS}),
    "TA402": frozenset({RecordedPart.MODULE_LOADS}),
}
"""Parts of the recording without which a rule's silence would claim that something is absent which nobody looked for."""


def profiler_of(trace: Trace) -> str:
    """Return the name of the profiler that made the trace."""
    return _NAMES.get(trace.meta.flavour, "the profiler")


def not_recorded(rule: str, trace: Trace) -> str:
    """Return why a rule cannot judge a trace that lacks what it rests on; empty where nothing is lacking."""
    missing = sorted(NEEDS.get(rule, frozenset()) & trace.meta.unrecorded)
    if not missing:
        return ""
    parts = " and ".join(missing)
    if RecordedPart.HOST_CALLS in trace.meta.unrecorded and not {
        RecordedPart.OVERHEADS,
        RecordedPart.INSTRUMENTATION,
        RecordedPart.OPERATORS,
    } & set(missing):
        return f"no {parts} were recorded; {record_host(trace)}"
    return f"{profiler_of(trace)} did not record {parts}, so that their absence says nothing"


def record_host(trace: Trace) -> str:
    """Return how to record the host side."""
    torch = "record with CPU activity too: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
    return _HOST.get(trace.meta.flavour, torch)


def record_device(trace: Trace) -> list[str]:
    """Return how to record device rows."""
    found = _DEVICE.get(trace.meta.flavour)
    if found is not None:
        return [found]
    return [
        "record with CPU and CUDA activities: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        "run the work inside the window and call torch.cuda.synchronize() before it closes",
    ]


def record_warm(trace: Trace) -> str:
    """Return how the profiler's own start is kept out of the recording."""
    if trace.meta.flavour in _NAMES and trace.meta.flavour not in _WARM:
        return "start recording once the program has run for a few iterations"
    return _WARM.get(trace.meta.flavour, "record again with a warm profiler: schedule(wait=1, warmup=1, active=...)")


def skip_first(trace: Trace) -> str:
    """Return how the profiler's first cycle, in which records are lost, is left out."""
    if trace.meta.flavour in _NAMES:
        return record_warm(trace)
    return "drop the first profiler cycle: schedule(wait=1, warmup=1, active=...)"


def close_window(trace: Trace) -> str:
    """Return how work is finished before the recording ends."""
    if trace.meta.flavour in _NAMES and trace.meta.flavour not in _CLOSE:
        return "synchronise the device before the recording stops"
    return _CLOSE.get(trace.meta.flavour, "call torch.cuda.synchronize() before the profiler stops")
