"""The implementations every operator shares: its Triton launch, its reference, the reference under torch.compile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from traceanalyzer.kernels.arguments import upcast
from traceanalyzer.kernels.device_code import INSTALLED, why_not_triton
from traceanalyzer.kernels.operator import Implementation, Inputs, Operator, Unavailable


def triton_launch(launch: Callable[..., Any]) -> Implementation:
    """Return the implementation that launches a Triton kernel: a GPU, or the interpreter where nothing is timed."""
    return Implementation(lambda: launch, why_not_triton)


def eager(reference: Callable[..., Any]) -> Implementation:
    """Return the reference as an implementation: it runs wherever torch has the device."""
    return Implementation(lambda: reference, _why_not_torch)


def compiled(reference: Callable[..., Any]) -> Implementation:
    """Return the reference under ``torch.compile``, compiled for each shape at its first call."""

    @cache
    def make() -> Callable[..., Any]:
        from torch._functorch import config

        # Timing backward alone runs it many times over one forward, which donated buffers forbid.
        config.donated_buffer = False
        made: Callable[..., Any] = torch.compile(reference, dynamic=False, fullgraph=True)
        return made

    return Implementation(make, _why_not_compiled)


def _why_not_torch(device: str, dtype: str, timing: bool) -> Unavailable | None:  # noqa: ARG001
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        return Unavailable("no_gpu", "torch sees no CUDA or ROCm device on this machine")
    return None


def _why_not_compiled(device: str, dtype: str, timing: bool) -> Unavailable | None:
    kind = torch.device(device).type
    if kind in ("cuda", "xpu") and not INSTALLED:
        return Unavailable("no_triton", "torch.compile needs triton for this device, and it is not installed")
    if kind == "cpu" and (reason := why_not_compiler()) is not None:
        return Unavailable("no_compiler", reason)
    return _why_not_torch(device, dtype, timing)


def why_not_compiler() -> str | None:
    """Return why torch.compile cannot compile for the CPU of this machine; None if it can."""
    compilers = (os.environ.get("CXX", "g++"), "g++", "clang++", "cl")
    if any(shutil.which(c) for c in compilers):
        return None
    return "torch.compile needs a C++ compiler for the CPU, and none was found"


def expected(operator: Operator, inputs: Inputs) -> torch.Tensor:
    """Return the reference's result in fp64: on the inputs' device where it has fp64, else computed on the CPU."""
    with torch.no_grad():
        result: torch.Tensor = operator.reference(*precise(inputs))
        return result


def precise(inputs: Inputs) -> tuple[Any, ...]:
    """Return the arguments with floating tensors as fp64; moved to the CPU for devices that may lack fp64."""
    target = torch.device(inputs.device)
    if target.type in ("cpu", "cuda"):
        return tuple(upcast(a) for a in inputs.args)
    return tuple(upcast(a, torch.device("cpu")) for a in inputs.args)
