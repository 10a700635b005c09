"""msda as an operator: its work, its tolerances and who can compute it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from traceanalyzer.kernels.alternatives import compiled, eager, triton_launch
from traceanalyzer.kernels.arguments import size_bytes
from traceanalyzer.kernels.msda.attention import attention
from traceanalyzer.kernels.msda.inputs import PRESETS, make_inputs
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.mmcv_op import make_mmcv, why_not_mmcv
from traceanalyzer.kernels.msda.reference import by_sizes, reference
from traceanalyzer.kernels.operator import Backward, Bounds, Implementation, Inputs, Operator

CORNERS = 4


def gathered_bytes(inputs: Inputs) -> int:
    """Return the bytes of ``value`` that must be read: all of it, or what the corners take if that is less."""
    value, _, _, weights = inputs.args
    return min(size_bytes(value), int(weights.numel()) * CORNERS * int(value.shape[3]) * int(value.element_size()))


def result_bytes(inputs: Inputs) -> int:
    """Return the bytes of the result: one head's channels per (batch, query, head)."""
    value, _, _, weights = inputs.args
    return int(weights[..., 0, 0].numel()) * int(value.shape[3]) * int(value.element_size())


def bytes_moved(inputs: Inputs) -> int:
    """Return ``min(value, corners)`` + locations + weights + result."""
    return gathered_bytes(inputs) + size_bytes(*inputs.args[2:]) + result_bytes(inputs)


def backward_bytes(inputs: Inputs) -> int:
    """Return what forward reads + the result's gradient + three gradients written.

    The gradient of value counts twice over (zeroed, then added to); a scratch buffer is the implementation's own
    cost and is not counted.
    """
    return bytes_moved(inputs) + 2 * size_bytes(inputs.args[0]) + size_bytes(*inputs.args[2:])


def flops(inputs: Inputs) -> int:
    """Return 8 per sample and channel: a multiply-add for each of four corners, their shares folded per row."""
    return 2 * CORNERS * _sampled_channels(inputs)


def backward_flops(inputs: Inputs) -> int:
    """Return 16 per sample and channel: for each corner a dot product (2), a product (1) and an atomic add (1)."""
    return 4 * CORNERS * _sampled_channels(inputs)


def _sampled_channels(inputs: Inputs) -> int:
    return int(inputs.args[3].numel()) * int(inputs.args[0].shape[3])


@cache
def _compiled() -> Callable[..., Any]:
    made = compiled(by_sizes).make()

    def call(value: torch.Tensor, levels: Levels, locations: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = made(value, levels.sizes, locations, weights)
        return result

    return call


_HALF: dict[str, float] = {"fp16": 2.0**-10, "bf16": 2.0**-7}
"""Twice the rounding of a result to the dtype, relative."""

TOLERANCE: dict[str, Bounds] = {
    # fp32 sums of 16 samples of size 1 with weights that sum to 1; positions are exact (see make_inputs).
    "fp32": (1e-5, 1e-6),
    # inputs are exact in fp32 and sums are fp32, so only the result is rounded
    "fp16": (_HALF["fp16"], 1e-6),
    "bf16": (_HALF["bf16"], 1e-6),
}
BACKWARD_TOLERANCE: dict[str, tuple[Bounds, ...]] = {
    # value: fp32 sums of up to some thousand terms under 1 in any order. locations: channel sums times the
    # level's width (up to 167), which cancel. weights: sums of 32 products.
    "fp32": ((1e-5, 1e-5), (1e-5, 2e-3), (1e-5, 2e-5)),
    # value: the atomic adds round each time, a random walk whose step is the rounding of the sum so far.
    "fp16": ((_HALF["fp16"], 1e-2), (_HALF["fp16"], 2e-3), (_HALF["fp16"], 2e-5)),
    "bf16": ((_HALF["bf16"], 8e-2), (_HALF["bf16"], 2e-3), (_HALF["bf16"], 2e-5)),
}

OPERATOR = Operator(
    name="msda",
    summary="multi-scale deformable attention: a gather forward, a scatter backward",
    presets=PRESETS,
    dtypes=("fp32", "fp16", "bf16"),
    make_inputs=make_inputs,
    implementations={
        "triton": triton_launch(attention),
        "triton_fp32_accumulator": triton_launch(partial(attention, accumulator="fp32")),
        "reference": eager(reference),
        "compiled": Implementation(_compiled, compiled(by_sizes).why_not),
        "mmcv": Implementation(make_mmcv, why_not_mmcv),
    },
    reference=reference,
    bytes_moved=bytes_moved,
    flops=flops,
    tolerance=TOLERANCE,
    backward=Backward(
        arguments=(0, 2, 3),
        names=("value", "sampling_locations", "attention_weights"),
        bytes_moved=backward_bytes,
        flops=backward_flops,
        tolerance=BACKWARD_TOLERANCE,
    ),
)
