"""The names of the ledger: classes of time, why the device ran dry, families of causes, and what an API name means."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache


class LedgerClass(IntEnum):
    """What an instant of a device's span went to; the first four are busy time. ``label`` is the name in reports."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    FILL = 3
    PROFILER = 4
    CODE_LOAD = 5
    GRAPH_SETUP = 6
    DATA_LOADING = 7
    COMPILE = 8
    SYNCHRONISE = 9
    COPY_CALL = 10
    ALLOCATION = 11
    LAUNCH_CALL = 12
    OTHER_CALL = 13
    HOST_OP = 14
    PYTHON = 15
    BETWEEN_OPS = 16
    FIRST_USE = 17
    LAUNCH_STALL = 18
    DEVICE_GAP = 19
    LAUNCH_LATENCY = 20
    BEFORE_WINDOW = 21
    DEVICE_WAIT = 22
    INSIDE_LAUNCH = 23
    UNRECORDED = 24
    UNLINKED = 25

    @property
    def label(self) -> str:
        """The class as JSON and text name it."""
        return self.name.lower()


BUSY = frozenset({LedgerClass.COMPUTE, LedgerClass.COMMUNICATION, LedgerClass.COPY, LedgerClass.FILL})
"""Classes in which the device works."""


class DrainedBy(IntEnum):
    """Why the device had nothing to do when an idle interval began; ``BUSY`` marks the segments that are not idle."""

    BUSY = 0
    DEVICE = 1
    WAIT = 2
    LATE = 3
    UNLINKED = 4

    @property
    def label(self) -> str:
        """The reason as JSON and text name it."""
        return self.name.lower()


_FAMILIES: dict[str, tuple[LedgerClass, ...]] = {
    "busy": (LedgerClass.COMPUTE,),
    "communication": (LedgerClass.COMMUNICATION,),
    "copies": (LedgerClass.COPY, LedgerClass.FILL, LedgerClass.COPY_CALL),
    "dispatch": (
        LedgerClass.HOST_OP, LedgerClass.PYTHON, LedgerClass.BETWEEN_OPS, LedgerClass.LAUNCH_CALL,
        LedgerClass.LAUNCH_LATENCY, LedgerClass.OTHER_CALL, LedgerClass.LAUNCH_STALL,
    ),
    "waits": (LedgerClass.SYNCHRONISE,),
    "data": (LedgerClass.DATA_LOADING,),
    "code": (LedgerClass.COMPILE, LedgerClass.CODE_LOAD, LedgerClass.FIRST_USE, LedgerClass.GRAPH_SETUP),
    "memory": (LedgerClass.ALLOCATION,),
    "device": (LedgerClass.DEVICE_GAP, LedgerClass.INSIDE_LAUNCH, LedgerClass.DEVICE_WAIT),
    "profiler": (LedgerClass.PROFILER,),
    "unknown": (LedgerClass.UNLINKED, LedgerClass.UNRECORDED, LedgerClass.BEFORE_WINDOW),
}  # fmt: skip
_FAMILY_OF = {c: family for family, classes in _FAMILIES.items() for c in classes}


def family_of(cls: LedgerClass) -> str:
    """Return the family a class is compared in.

    One of busy, communication, copies, dispatch, waits, data, code, memory, device, profiler, unknown. ``unknown`` is
    never named as a cause.
    """
    return _FAMILY_OF[cls]


_API_TABLE: tuple[tuple[LedgerClass, str], ...] = (
    (LedgerClass.SYNCHRONISE, "Synchronize|StreamQuery|urEventWait|urQueueFinish|zeEventHostSynchronize"),
    (LedgerClass.COPY_CALL, "memcpy|memset"),
    (
        LedgerClass.CODE_LOAD,
        "ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload|ModuleGetFunction|LibraryGet|KernelGetFunction"
        "|RegisterFatBinary|LinkCreate|LinkAdd|LinkComplete",
    ),
    (
        LedgerClass.GRAPH_SETUP,
        "GraphInstantiate|BeginCapture|EndCapture|GraphCreate|GraphDestroy|GraphExecUpdate|GraphExecDestroy|GraphAdd"
        "|GraphUpload|GraphClone",
    ),
    (
        LedgerClass.ALLOCATION,
        "malloc|free(?!ze)|hostalloc|hostregister|hostunregister|MemPool|MemCreate|MemMap|MemUnmap|MemAddress"
        "|MemRelease|MemSetAccess",
    ),
    (
        LedgerClass.LAUNCH_CALL,
        "LaunchKernel|LaunchCooperative|LaunchHostFunc|GraphLaunch|ModuleLaunch|ExtLaunch|LaunchMultiKernel"
        "|EnqueueKernelLaunch|runFunction|^Launch$",
    ),
)
_API_PATTERNS = tuple((cls, re.compile(pattern, re.I)) for cls, pattern in _API_TABLE)


@lru_cache(maxsize=4096)
def api_class(name: str) -> LedgerClass:
    """Return the class of the time that the host spends in a call of this name; OTHER_CALL for any other name."""
    for cls, pattern in _API_PATTERNS:
        if pattern.search(name[:512]):
            return cls
    return LedgerClass.OTHER_CALL


_COMMUNICATION = re.compile(
    r"nccl|rccl|oneccl|hccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|nvshmem|multimem|deep_?ep", re.I
)


def is_communication(kernel: str) -> bool:
    """Return whether a kernel of this name moves data between devices."""
    return _COMMUNICATION.search(kernel[:4096]) is not None


_COMPILER = re.compile(
    r"dynamo_timed|TorchDynamo Cache Lookup|CachingAutotuner|async_compile|compile_fx|_compile\b|triton_compile"
)
DATA_LOADER = "enumerate(DataLoader)"


def is_compiler(name: str) -> bool:
    """Return whether a range or operator of this name is a compiler at work."""
    return _COMPILER.search(name[:1024]) is not None


OVERHEAD_NAMES = frozenset({"Activity Buffer Request", "Buffer Flush", "Instrumentation"})
"""Rows of the profiler's own work that old versions wrote under other categories than ``overhead``."""

_WRAPPERS = (
    "ProfilerStep", "autograd::engine", "Torch-Compiled Region", "CompiledFunction", "DistributedDataParallel", "FSDP",
    "FullyShardedDataParallel", "DataParallel.", "Optimizer.", "## Call CompiledFxGraph",
)  # fmt: skip


def is_wrapper(operator: str) -> bool:
    """Return whether an operator of this name only wraps others, so that its name says nothing about the work."""
    return operator.startswith(_WRAPPERS)


_NOT_THE_USERS = (
    "ProfilerStep", "Optimizer.", "nccl:", "c10d::", "gloo:", "mpi:", DATA_LOADER, "## Call CompiledFxGraph",
    "Torch-Compiled Region", "TorchDynamo", "AOTDispatcher", "Inductor", "DistributedDataParallel", "DataParallel.",
    "FullyShardedDataParallel", "FSDP", "autograd::", "aten::", "CompiledFunction", "PyTorch Profiler",
    "record_param_comms", "Iteration Start: PyTorch Profiler",
)  # fmt: skip


def is_user_range(name: str) -> bool:
    """Return whether a range of this name was set by the user, not by the framework or a compiler."""
    return not name.startswith(_NOT_THE_USERS) and not is_compiler(name)
