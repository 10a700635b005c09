"""The Triton kernels as one differentiable function."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.device_code import require_runnable
from traceanalyzer.kernels.msda.accumulator import accumulator_dtype
from traceanalyzer.kernels.msda.backward import backward
from traceanalyzer.kernels.msda.forward import forward
from traceanalyzer.kernels.msda.levels import Levels


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
        return forward(value, levels, sampling_locations, attention_weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_result: torch.Tensor) -> tuple[torch.Tensor, None, torch.Tensor, torch.Tensor, None]:
        """Run the backward kernel; it computes all three gradients at once, whichever are needed."""
        value, locations, weights = ctx.saved_tensors
        grads = backward(grad_result.contiguous(), value, ctx.levels, locations, weights, ctx.accumulator)
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
    (:mod:`~traceanalyzer.kernels.msda.accumulator`). Locations and weights may be wider than ``value``. A
    non-finite location gives an undefined result, as it does in grid_sample.

    Raises :class:`~traceanalyzer.errors.OptionError` for shapes that do not fit together or tensors that are not
    contiguous, :class:`~traceanalyzer.errors.CaptureUnavailable` where Triton cannot run on the tensors' device.
    """
    require_runnable(value)
    _check(value, levels, sampling_locations, attention_weights)
    chosen = accumulator_dtype(value.dtype, value.device, accumulator)
    result: torch.Tensor = MultiScaleDeformableAttention.apply(  # type: ignore[no-untyped-call]
        value, levels, sampling_locations, attention_weights, chosen
    )
    return result


def _check(value: torch.Tensor, levels: Levels, locations: torch.Tensor, weights: torch.Tensor) -> None:
    # A wrong shape would read outside the tensors: no device error is certain to follow.
    batch, pixels, heads = value.shape[:3]
    if value.dim() != 4 or pixels != levels.pixels:
        raise OptionError(
            "bad_shape", f"value is {list(value.shape)}; expected [B, {levels.pixels}, N, D] for levels {levels.sizes}"
        )
    want = (batch, weights.shape[1], heads, len(levels.sizes), weights.shape[-1])
    if weights.shape != want or locations.shape != (*want, 2):
        raise OptionError(
            "bad_shape",
            f"locations are {list(locations.shape)} and weights {list(weights.shape)}; "
            f"expected [{batch}, Q, {heads}, {len(levels.sizes)}, P, 2] and the same without the 2",
        )
    if not (value.is_contiguous() and locations.is_contiguous() and weights.is_contiguous()):
        raise OptionError(
            "not_contiguous", "value, locations and weights must be contiguous", hint="call .contiguous()"
        )
    if not value.device == locations.device == weights.device == levels.shapes.device:
        raise OptionError("mixed_devices", "value, levels, locations and weights must lie on one device")
