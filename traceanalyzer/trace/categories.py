"""Row categories of every PyTorch generation and what each row is to us.

Categories are compared lower-cased: PyTorch up to 1.11 wrote ``Kernel``, ``Memcpy``, ``Runtime``,
``Operator``; later versions write ``kernel``, ``gpu_memcpy``, ``cuda_runtime``, ``cpu_op``.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache


class RowKind(IntEnum):
    """What a row is; rows of kind SKIP are counted and not kept, those of kind OURS an annotate of ours has added.

    PYTHON frames are counted among the skipped and kept as bare columns: they only name what nothing else names.
    """

    SKIP = 0
    KERNEL = 1
    MEMCPY = 2
    MEMSET = 3
    CALL = 4
    HOST_OP = 5
    RANGE = 6
    DEVICE_RANGE = 7
    OVERHEAD = 8
    DEVICE_SYNC = 9
    SPAN = 10
    UNKNOWN = 11
    OURS = 12
    PYTHON = 13
    GRAPH = 14


DEVICE_KINDS = (RowKind.KERNEL, RowKind.MEMCPY, RowKind.MEMSET, RowKind.GRAPH)
"""Kinds of device rows. A GRAPH row is a whole graph launch, recorded without the kernels in it."""

OWN_CATEGORY = "traceanalyzer"
"""Category of every event that ``traceanalyze annotate`` adds; the reader counts such events and leaves them out."""

KIND_OF_CATEGORY: dict[str, RowKind] = {
    "kernel": RowKind.KERNEL,
    "mtia_ccp_events": RowKind.KERNEL,
    "gpu_memcpy": RowKind.MEMCPY,
    "memcpy": RowKind.MEMCPY,
    "gpu_memset": RowKind.MEMSET,
    "memset": RowKind.MEMSET,
    "cuda_runtime": RowKind.CALL,
    "cuda_driver": RowKind.CALL,
    "hip_runtime": RowKind.CALL,
    "hip_driver": RowKind.CALL,
    "xpu_runtime": RowKind.CALL,
    "xpu_driver": RowKind.CALL,
    "mtia_runtime": RowKind.CALL,
    "glow_runtime": RowKind.CALL,
    "hpu_op": RowKind.CALL,
    "privateuse1_runtime": RowKind.CALL,
    "privateuse1_driver": RowKind.CALL,
    "musa_runtime": RowKind.CALL,
    "musa_driver": RowKind.CALL,
    "runtime": RowKind.CALL,
    "driver": RowKind.CALL,
    "cpu_op": RowKind.HOST_OP,
    "operator": RowKind.HOST_OP,
    "user_annotation": RowKind.RANGE,
    "gpu_user_annotation": RowKind.DEVICE_RANGE,
    "overhead": RowKind.OVERHEAD,
    "cuda_sync": RowKind.DEVICE_SYNC,
    "xpu_sync": RowKind.DEVICE_SYNC,
    "trace": RowKind.SPAN,
    "python_function": RowKind.PYTHON,
    # Rows of no use here: never looked into, only counted.
    "python": RowKind.SKIP,
    "cpu_instant_event": RowKind.SKIP,
    "ac2g": RowKind.SKIP,
    "async": RowKind.SKIP,
    "async_cpu_to_gpu": RowKind.SKIP,
    "async_gpu": RowKind.SKIP,
    "async_npu": RowKind.SKIP,
    "async_task_queue": RowKind.SKIP,
    "enqueue": RowKind.SKIP,
    "dequeue": RowKind.SKIP,
    "fwdbwd": RowKind.SKIP,
    "forward_backward": RowKind.SKIP,
    "cpu_to_cuda": RowKind.SKIP,
    "cuda_event": RowKind.SKIP,
    "cuda_profiler_range": RowKind.SKIP,
    "collective_comm": RowKind.SKIP,
    "mtia_insight": RowKind.SKIP,
    "mtia_counters": RowKind.SKIP,
    "gpu_pm_counter": RowKind.SKIP,
    OWN_CATEGORY: RowKind.OURS,
}
"""Lower-cased category to kind. Anything else that ends in ``_runtime`` or ``_driver`` is a host call."""


@lru_cache(maxsize=1024)
def kind_of(category: str) -> RowKind:
    """Return what rows of this category are; UNKNOWN when nobody has told us."""
    lowered = category.lower()
    found = KIND_OF_CATEGORY.get(lowered)
    if found is None:
        found = RowKind.CALL if lowered.endswith(("_runtime", "_driver")) else RowKind.UNKNOWN
    return found
