"""Running the backward side of an operator: alone over one forward, or both together, and what it should return.

Works on any implementation, as each is differentiable by autograd; so the same call times all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from traceanalyzer.kernels.alternatives import precise
from traceanalyzer.kernels.operator import Backward, Inputs, Operator

Gradients = tuple[torch.Tensor, ...]


def output_gradient(inputs: Inputs, output: torch.Tensor) -> torch.Tensor:
    """Return standard normal values shaped as ``output``, the same for every implementation of one seed."""
    generator = torch.Generator().manual_seed(inputs.seed + 1)  # + 1: not the values of the inputs again
    drawn = torch.randn(output.shape, generator=generator)
    return drawn.to(device=output.device, dtype=output.dtype)


def backward_call(operator: Operator, call: Callable[..., Any], inputs: Inputs) -> Callable[[], Gradients]:
    """Run ``call`` forward once and return a function that runs only its backward, as often as wanted.

    The function returns one gradient per :attr:`Backward.names`.
    """
    arguments, leaves = _with_leaves(_side(operator), inputs.args)
    output = call(*arguments)
    gradient = output_gradient(inputs, output)
    return lambda: torch.autograd.grad(output, leaves, gradient, retain_graph=True)


def forward_backward_call(operator: Operator, call: Callable[..., Any], inputs: Inputs) -> Callable[[], Gradients]:
    """Return a function that runs ``call`` forward and backward, as a training step does."""
    arguments, leaves = _with_leaves(_side(operator), inputs.args)
    with torch.no_grad():
        gradient = output_gradient(inputs, call(*arguments))
    return lambda: torch.autograd.grad(call(*arguments), leaves, gradient)


def expected_gradients(operator: Operator, inputs: Inputs) -> Gradients:
    """Return the reference's gradients in fp64 for the same output gradient, rounded to the inputs' dtype first."""
    arguments, leaves = _with_leaves(_side(operator), precise(inputs))
    output = operator.reference(*arguments)
    dtype = inputs.args[_side(operator).arguments[0]].dtype
    gradient = output_gradient(inputs, output).to(dtype).to(output.dtype)
    return torch.autograd.grad(output, leaves, gradient)


def _side(operator: Operator) -> Backward:
    if operator.backward is None:
        raise ValueError(f"{operator.name} has no backward")
    return operator.backward


def _with_leaves(side: Backward, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Gradients]:
    leaves = {i: args[i].detach().clone().requires_grad_() for i in side.arguments}
    return tuple(leaves.get(i, a) for i, a in enumerate(args)), tuple(leaves.values())
