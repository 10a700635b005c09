"""mmcv's CUDA operator, where it is installed, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.operator import Unavailable


def why_not_mmcv(device: str, dtype: str, timing: bool) -> Unavailable | None:  # noqa: ARG001
    """Return why mmcv's operator cannot run: not installed, installed without its kernels, no GPU, or bf16."""
    if find_spec("mmcv") is None:
        return Unavailable("no_mmcv", "mmcv is not installed")
    try:
        built = find_spec("mmcv._ext") is not None
    except Exception as error:  # finding a submodule imports mmcv, which fails in many ways when it does not fit torch
        return Unavailable("broken_mmcv", f"mmcv is installed but cannot be imported: {type(error).__name__}")
    if not built:
        return Unavailable("mmcv_lite", "mmcv is installed without its compiled operators (mmcv-lite)")
    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        return Unavailable("no_gpu", "mmcv's operator needs a CUDA device")
    if dtype == "bf16":
        return Unavailable("no_bf16", "mmcv has no bf16 kernel")
    return None


@cache
def make_mmcv() -> Callable[..., Any]:
    """Return mmcv's operator under our arguments."""
    from mmcv.ops.multi_scale_deform_attn import MultiScaleDeformableAttnFunction

    def call(value: torch.Tensor, levels: Levels, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        # im2col_step is how many images one launch takes, and must divide the batch; the whole batch is one launch.
        batch = value.shape[0]
        result: torch.Tensor = MultiScaleDeformableAttnFunction.apply(
            value, levels.shapes, levels.starts, locations, weights, batch
        )
        return result

    return call
