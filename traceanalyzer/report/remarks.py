"""Sentences for what a decoder has to say of a file."""

from __future__ import annotations

from traceanalyzer.trace.remarks import Remark, RemarkCode

_SENTENCES = {
    RemarkCode.GRAPHS_WHOLE: (
        "{rows} graph launches were recorded as a whole, without the kernels in them; to see those, record with "
        "--cuda-graph-trace=node"
    ),
    RemarkCode.MIGRATIONS: (
        "{rows} page migrations of unified memory ({total_us:.1f} us) are left out: the driver made them, they are no copies "
        "of the program"
    ),
    RemarkCode.NO_DEVICE_TABLE: (
        "the recording holds {calls} CUDA calls and no device row at all: its device records were not collected or not exported"
    ),
    RemarkCode.NO_CUDA: "the recording holds no CUDA rows at all: was it made with --trace=cuda?",
    RemarkCode.ANNOTATIONS_ONLY: (
        "the recording holds {ranges} NVTX ranges and no CUDA rows at all: record with --trace=cuda,nvtx"
    ),
    RemarkCode.DIAGNOSTIC: "the profiler reported: {text}",
    RemarkCode.TRIMMED: (
        "{rows} device rows were launched before the first recorded call: the recording was cut or started late; nothing of it is lost"
    ),
    RemarkCode.DERIVED_LANES: "{rows} rows that the exporter derived from others (overlap, idle time) are left out: they are no device rows",
    RemarkCode.NO_HOST_CALLS: "the recording holds no host calls: {how}",
}


def sentence_of(remark: Remark) -> str:
    """Return the sentence of a remark."""
    params = dict(remark.params)
    if "total_ns" in params:
        params["total_us"] = int(params["total_ns"]) / 1000
    return _SENTENCES[remark.code].format(**params)
