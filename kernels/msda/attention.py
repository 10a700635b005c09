"""The Triton kernels as one differentiable function."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from traceanalyzer.kernels.device_code import require_runnable
from traceanalyzer.kernels.msda.accumulator import accumulator_dtype
from traceanalyzer.kernels.msda.backward import backward
from traceanalyzer.kernels.msda.fits import check_shapes
from traceanalyzer.kernels.msda.forward import forward
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.library import msda


class MultiScaleDeformableAttention(torch.autograd.Function):
    """Forward and backward kernels under autograd; once differentiable. Call :func:`attention` instead."""

    @staticmethod
    def forward(
        ctx: Any,
        value: torch.Tensor,
        levels: Levels,
        sampling_locations: torch.Tensor,
        attention_weights: torch.Tensor,
        accumulator: torch.dtype,
    ) -> torch.Tensor:
        """Run the forward kernel and keep its inputs."""
        ctx.save_for_backward(value, sampling_locations, attention_weights)
        ctx.levels, ctx.accumulator = levels, accumulator
        return forward(value, levels.shapes, levels.starts, sampling_locations, attention_weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_result: torch.Tensor) -> tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, None]:
        """Run the backward kernel; it computes all three gradients at once, whichever are needed."""
        value, locations, weights = ctx.saved_tensors
        levels = ctx.levels
        grads = backward(
            grad_result.contiguous(), value, levels.shapes, levels.starts, locations, weights, ctx.accumulator
        )
        return grads[0], None, grads[1], grads[2], None


def attention(
    value: torch.Tensor,
    levels: Levels,
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
    *,
    accumulator: str = "auto",
) -> torch.Tensor:
    """Return multi-scale deformable attention ``[B, Q, N * D]``, differentiable in value, locations and weights.

    ``accumulator`` overrides where the backward sums the gradient of ``value``: ``auto``, ``native`` or ``fp32``
    (:mod:`~traceanalyzer.kernels.msda.accumulator`). Locations and weights may be wider than ``value``. Tensors that
    are not contiguous are copied. A location that is NaN or infinite makes the result of its query and head NaN.

    Called directly the kernels are launched from an autograd function, which costs the host less than an operator of
    torch; while ``torch.compile`` traces it, it is the operator ``torch.ops.traceanalyzer.msda``.

    Raises :class:`~traceanalyzer.errors.OptionError` for shapes that do not fit together,
    :class:`~traceanalyzer.errors.CaptureUnavailable` where Triton cannot run on the tensors' device.
    """
    if torch.compiler.is_compiling():
        called: torch.Tensor = msda(
            value, levels.shapes, levels.starts, sampling_locations, attention_weights, accumulator
        )
        return called
    require_runnable(value)
    value, sampling_locations, attention_weights = (
        value.contiguous(),
        sampling_locations.contiguous(),
        attention_weights.contiguous(),
    )
    check_shapes(value, levels.shapes, sampling_locations, attention_weights, levels.pixels)
    chosen = accumulator_dtype(value.dtype, value.device, accumulator)
    result: torch.Tensor = MultiScaleDeformableAttention.apply(  # type: ignore[no-untyped-call]
        value, levels, sampling_locations, attention_weights, chosen
    )
    return result
