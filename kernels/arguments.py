"""Seeded tensors for input makers, and their description for the sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from traceanalyzer.kernels.operator import Inputs

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Our names of the floating dtypes; fp64 is for checking gradients and expected values, never a benchmark row."""
_INTEGERS = {torch.int32: "i32", torch.int64: "i64"}
_NAMES = {dtype: name for name, dtype in DTYPES.items()} | _INTEGERS


def seeded(seed: int) -> torch.Generator:
    """Return a CPU generator: values are drawn on the host so that every device gets the same ones."""
    return torch.Generator().manual_seed(seed)


def normal(shape: tuple[int, ...], dtype: str, device: str, generator: torch.Generator) -> torch.Tensor:
    """Return standard normal values, drawn in fp32 and then rounded to ``dtype``."""
    return torch.randn(shape, generator=generator).to(device=device, dtype=DTYPES[dtype])


def described(tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Return name -> ``dtype[shape]``, such as ``fp16[4, 300, 256]``."""
    return {name: f"{_NAMES[t.dtype]}{list(t.shape)}" for name, t in tensors.items()}


def tensor_inputs(tensors: Mapping[str, torch.Tensor], preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return :class:`Inputs` whose arguments are the given tensors, in order."""
    return Inputs(tuple(tensors.values()), described(tensors), preset, dtype, device, seed)


def size_bytes(*tensors: torch.Tensor) -> int:
    """Return the bytes the tensors' elements take, each counted once."""
    return sum(t.numel() * t.element_size() for t in tensors)


def upcast(value: Any, device: torch.device | None = None) -> Any:
    """Return a floating tensor as fp64 (on ``device`` where given); anything else as it is."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().to(device=device or value.device, dtype=torch.float64)
    return value
