"""msda as an operator of torch: ``torch.ops.traceanalyzer.msda``, for ``torch.compile``, ``torch.export`` and FakeTensor.

The kernels are opaque to the compiler: it keeps the call as one node and traces around it. On a device that Triton
cannot run on (a CPU) the operator computes the same by ``grid_sample``, so that a compiled model can be tried there.
Under autocast the operator takes each tensor in the dtype it has; nothing is cast (docs/kernels.md).
"""

from __future__ import annotations

from typing import Any

import torch

from traceanalyzer.kernels.device_code import why_not_triton
from traceanalyzer.kernels.msda.accumulator import accumulator_dtype
from traceanalyzer.kernels.msda.backward import backward
from traceanalyzer.kernels.msda.fits import check_shapes
from traceanalyzer.kernels.msda.forward import forward
from traceanalyzer.kernels.msda.reference import by_sizes, gradients_by_sizes

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _msda(
    value: torch.Tensor, shapes: torch.Tensor, starts: torch.Tensor, locations: torch.Tensor, weights: torch.Tensor, accumulator: str = "auto"
) -> torch.Tensor:  # fmt: skip
    value, locations, weights = value.contiguous(), locations.contiguous(), weights.contiguous()
    check_shapes(value, shapes, locations, weights)
    accumulator_dtype(value.dtype, value.device, accumulator)  # an unknown one is refused before any work
    if _by_triton(value):
        return forward(value, shapes, starts, locations, weights)
    return by_sizes(value, _sizes(shapes), locations, weights)


def _msda_backward(
    grad_result: torch.Tensor, value: torch.Tensor, shapes: torch.Tensor, starts: torch.Tensor, locations: torch.Tensor,
    weights: torch.Tensor, accumulator: str = "auto",
) -> Three:  # fmt: skip
    grad_result, value, locations, weights = (t.contiguous() for t in (grad_result, value, locations, weights))
    if _by_triton(value):
        chosen = accumulator_dtype(value.dtype, value.device, accumulator)
        return backward(grad_result, value, shapes, starts, locations, weights, chosen)
    return gradients_by_sizes(grad_result, value, _sizes(shapes), locations, weights)


def _by_triton(value: torch.Tensor) -> bool:
    return why_not_triton(str(value.device), "", False) is None


def _sizes(shapes: torch.Tensor) -> tuple[tuple[int, int], ...]:
    return tuple((int(h), int(w)) for h, w in shapes.tolist())


# custom_op reads the annotations themselves, which this file's future import makes strings: the schemas are here.
msda = torch.library.custom_op(
    "traceanalyzer::msda",
    _msda,
    mutates_args=(),
    schema="(Tensor value, Tensor shapes, Tensor starts, Tensor locations, Tensor weights, str accumulator='auto') -> Tensor",
)
msda_backward = torch.library.custom_op(
    "traceanalyzer::msda_backward",
    _msda_backward,
    mutates_args=(),
    schema="(Tensor grad_result, Tensor value, Tensor shapes, Tensor starts, Tensor locations, Tensor weights, "
    "str accumulator='auto') -> (Tensor, Tensor, Tensor)",
)


@msda.register_fake
def _(*given: Any) -> torch.Tensor:
    value, _, _, locations = given[:4]
    result: torch.Tensor = value.new_empty((value.shape[0], locations.shape[1], value.shape[2] * value.shape[3]))
    return result


@msda_backward.register_fake
def _(*given: Any) -> Three:
    _, value, _, _, locations, weights = given[:6]
    like = torch.contiguous_format
    return (
        torch.empty_like(value, memory_format=like),
        torch.empty_like(locations, memory_format=like),
        torch.empty_like(weights, memory_format=like),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001 - the signature torch calls
    value, shapes, starts, locations, weights, accumulator = inputs
    ctx.save_for_backward(value, shapes, starts, locations, weights)
    ctx.accumulator = accumulator


def _differentiate(ctx: Any, grad_result: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    value, shapes, starts, locations, weights = ctx.saved_tensors
    grads = torch.ops.traceanalyzer.msda_backward(
        grad_result, value, shapes, starts, locations, weights, ctx.accumulator
    )
    return grads[0], None, None, grads[1], grads[2], None


msda.register_autograd(_differentiate, setup_context=_keep)
