"""The simple operators as operators of torch: ``torch.ops.traceanalyzer.vector_add``, ``softmax``, ``rms_norm`` and ``matmul``.

For ``torch.compile``, ``torch.export`` and FakeTensor a call is one node. The kernels run where Triton can; elsewhere (a CPU) the
reference computes the same, so that a compiled model can be tried there. Gradients are the closed forms, in torch: these kernels
have no backward of their own. Importing this module registers them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from traceanalyzer.kernels import matmul as product
from traceanalyzer.kernels import rms_norm as norm
from traceanalyzer.kernels import softmax as rows
from traceanalyzer.kernels import vector_add as adding
from traceanalyzer.kernels.device_code import why_not_triton

Two = tuple[torch.Tensor, torch.Tensor]


def _chosen(kernel: Callable[..., torch.Tensor], reference: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a function that computes by the kernel where it can run, else by the reference."""

    def computed(*tensors: torch.Tensor) -> torch.Tensor:
        if why_not_triton(str(tensors[0].device), "", False) is None:
            return kernel(*tensors)
        return reference(*(t.contiguous() for t in tensors))

    return computed


def _registered(
    name: str,
    schema: str,
    kernel: Callable[..., torch.Tensor],
    reference: Callable[..., torch.Tensor],
    fake: Callable[..., torch.Tensor],
) -> Any:
    made = torch.library.custom_op(
        f"traceanalyzer::{name}", _chosen(kernel, reference), mutates_args=(), schema=f"{schema} -> Tensor"
    )
    made.register_fake(fake)
    return made


def _like_the_first(x: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


vector_add = _registered("vector_add", "(Tensor x, Tensor y)", adding.vector_add, adding.reference, _like_the_first)
softmax = _registered("softmax", "(Tensor x)", rows.softmax, rows.reference, _like_the_first)
rms_norm = _registered("rms_norm", "(Tensor x, Tensor weight)", norm.rms_norm, norm.reference, _like_the_first)
matmul = _registered(
    "matmul",
    "(Tensor a, Tensor b)",
    product.matmul,
    product.reference,
    lambda a, b: a.new_empty((a.shape[0], b.shape[1])),
)


def _nothing(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep nothing: the gradient of a sum is that of its result."""


def _keep_result(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001 - the signature torch calls
    ctx.save_for_backward(output)


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _add_gradient(ctx: Any, gradient: torch.Tensor) -> Two:  # noqa: ARG001
    return gradient, gradient


def _softmax_gradient(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
    """Return ``y (g - sum(g y))``, in fp32 and rounded once."""
    (result,) = ctx.saved_tensors
    y, g = _wide(result), _wide(gradient)
    return (y * (g - (g * y).sum(dim=-1, keepdim=True))).to(result.dtype)


def _rms_norm_gradient(ctx: Any, gradient: torch.Tensor) -> Two:
    """Return the gradients of ``x r w`` with ``r = rsqrt(mean(x^2) + eps)``: ``r (g w - x r^2 mean(g w x))`` and the sum of ``g x r``."""
    given, factor = ctx.saved_tensors
    x, w, g = _wide(given), _wide(factor), _wide(gradient)
    r = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + norm.EPSILON)
    scaled = g * w
    of_x = r * (scaled - x * r.square() * (scaled * x).mean(dim=-1, keepdim=True))
    of_weight = (g * x * r).flatten(0, -2).sum(dim=0) if x.dim() > 1 else g * x * r
    return of_x.to(given.dtype), of_weight.to(factor.dtype)


def _matmul_gradient(ctx: Any, gradient: torch.Tensor) -> Two:
    a, b = ctx.saved_tensors
    return gradient @ b.t(), a.t() @ gradient


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()


vector_add.register_autograd(_add_gradient, setup_context=_nothing)
softmax.register_autograd(_softmax_gradient, setup_context=_keep_result)
rms_norm.register_autograd(_rms_norm_gradient, setup_context=_keep_inputs)
matmul.register_autograd(_matmul_gradient, setup_context=_keep_inputs)
