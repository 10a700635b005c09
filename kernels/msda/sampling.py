"""What the forward and backward kernels share: where a row lies, and in which pixel cell a location falls.

A *row* is one (batch, query, head); heads vary fastest. All offsets are 64-bit. A row's first location lies at
``row * L * P * 2`` elements, which passes 2**31 at 67 million rows (L = P = 4; ``encoder`` at B = 378), and a
value offset passes it at ``B * S * N * D`` elements, already reached by a batch of 378 such pyramids. 32-bit
offsets would wrap there and read other memory without an error; the tests look beyond that bound.
"""

from __future__ import annotations

from typing import Any

import torch

from traceanalyzer.kernels.device_code import jit, next_power_of_2, tl

TILE = 512
"""Elements (rows x channels) of a program; a choice by reasoning (enough programs for `decoder`), not measured."""


def tile_config(channels: int) -> dict[str, int]:
    """Return the block sizes and warps for a head of ``channels``: 8 elements a thread, 16 bytes in half precision."""
    block = next_power_of_2(channels)
    rows = max(1, TILE // block)
    return {"BLOCK_ROWS": rows, "BLOCK_CHANNELS": block, "num_warps": max(1, min(8, rows * block // 256))}


def compute_type(dtype: torch.dtype) -> Any:
    """Return the type sums are kept in: fp32, and fp64 for fp64 inputs, which exist to check gradients."""
    return tl.float64 if dtype == torch.float64 else tl.float32


@jit
def pixel_cell(location: tl.tensor, size: tl.tensor, COMPUTE: tl.constexpr) -> Any:
    """Return along one axis the pixel at or below a location and how far the location is past it, 0 to 1.

    Positions are first clamped to one beyond the outermost corner: all of those read zeros anyway, and a float
    out of the integer's range has no defined conversion.
    """
    position = location.to(COMPUTE) * size.to(COMPUTE) - 0.5
    position = tl.minimum(tl.maximum(position, -2.0), size.to(COMPUTE) + 1.0)
    below = tl.floor(position)
    return below.to(tl.int64), position - below
