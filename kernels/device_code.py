"""Triton where it is installed, and the reason where a kernel cannot run.

Operator files write ``from traceanalyzer.kernels.device_code import jit, tl`` in place of importing triton, so
that their references still work on a machine without it. Whether kernels are compiled or interpreted is decided
by Triton when ``jit`` decorates them, from ``TRITON_INTERPRET``; nothing here sets that variable.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.kernels.operator import Unavailable

INSTALLED = find_spec("triton") is not None

if TYPE_CHECKING or INSTALLED:
    import triton
    import triton.language as tl
else:
    tl = None

__all__ = ["INSTALLED", "gpu_of", "interpreted", "jit", "next_power_of_2", "require_runnable", "tl", "why_not_triton"]


def jit(function: Callable[..., Any]) -> Any:
    """Return ``triton.jit(function)``; the function itself where triton is absent, as nothing will launch it."""
    return triton.jit(function) if INSTALLED else function


def interpreted() -> bool:
    """Return whether Triton runs kernels through its interpreter: right results, meaningless times."""
    return INSTALLED and bool(triton.knobs.runtime.interpret)


def why_not_triton(device: str, dtype: str, timing: bool) -> Unavailable | None:  # noqa: ARG001
    """Return why a Triton kernel cannot run (or, with ``timing``, be measured) on ``device``; None if it can."""
    if not INSTALLED:
        return Unavailable(
            "no_triton", "triton is not installed: pip install -e '.[capture]' on a platform it supports"
        )
    if interpreted():
        if timing:
            return Unavailable("interpreted", "TRITON_INTERPRET is set: interpreter time is not a measurement")
        return None
    kind = torch.device(device).type
    if kind not in ("cuda", "xpu"):
        return Unavailable(
            "no_gpu", f"Triton needs a GPU and the device is {kind}: interpreter time is not a measurement"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        return Unavailable("no_gpu", "torch sees no CUDA or ROCm device on this machine")
    return None


def require_runnable(tensor: torch.Tensor) -> None:
    """Raise :class:`~traceanalyzer.errors.CaptureUnavailable` where a Triton kernel cannot take ``tensor``."""
    if tensor.is_cuda and INSTALLED:
        return  # the path that is timed: no more host work than this
    problem = why_not_triton(str(tensor.device), "", False)
    if problem is not None:
        raise CaptureUnavailable(problem.kind, problem.reason)


def gpu_of(tensor: torch.Tensor) -> AbstractContextManager[Any]:
    """Return a context in which a launch goes to the tensor's GPU: Triton launches on the *current* device."""
    if not tensor.is_cuda or tensor.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(tensor.device)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is at least ``n``: block sizes must be one."""
    return 1 << max(0, n - 1).bit_length()
