"""What the forward and backward kernels share: how queries are tiled, and in which pixel cell a location falls.

A program computes one head of one image for a block of queries; heads vary fastest, so that neighbours in the grid
read neighbouring locations. Image and head are scalars of the program: the only division is by the number of heads,
which is known when the kernel is compiled. Where an image and a block of queries begin is computed in 64 bits, once a
program. Inside of an image 32 bits are enough unless ``S * N * D`` reaches 2**31: the kernel is compiled for one or
the other (``OFFSET``), as a 32-bit offset would wrap there and read other memory without an error.
"""

from __future__ import annotations

from typing import Any

import torch

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.device_code import jit, next_power_of_2, tl

MOST_IMAGES = 65_535
"""Images lie along the second axis of the grid, which CUDA limits to this."""


def offset_type(values_of_an_image: int) -> Any:
    """Return the type of offsets inside of an image of that many values (``S * N * D``)."""
    return tl.int32 if values_of_an_image < 2**31 else tl.int64


def grid(batch: int, queries: int, heads: int, block_queries: int) -> tuple[int, int]:
    """Return the grid of a launch. Raises :class:`~traceanalyzer.errors.OptionError` beyond :data:`MOST_IMAGES`."""
    if batch > MOST_IMAGES:
        raise OptionError(
            "too_many_images", f"a batch of {batch} images; at most {MOST_IMAGES} fit", hint="split the batch"
        )
    return -(-queries // block_queries) * heads, batch


def size_class(batch: int, queries: int, heads: int) -> int:
    """Return the rows of a launch, rounded up to a power of two: launches of one class share their configuration."""
    return max(16, next_power_of_2(batch * queries * heads))


def compute_type(dtype: torch.dtype) -> Any:
    """Return the type sums are kept in: fp32, and fp64 for fp64 inputs, which exist to check gradients."""
    return tl.float64 if dtype == torch.float64 else tl.float32


@jit
def pixel_cell(location: tl.tensor, size: tl.tensor, COMPUTE: tl.constexpr, OFFSET: tl.constexpr) -> Any:
    """Return along one axis the pixel at or below a location and how far the location is past it, 0 to 1.

    The pixel is clamped to one beyond the outermost corner: all of those read zeros anyway, and a float out of the
    integer's range has no defined conversion. How far is not clamped: for a location that is NaN or infinite it is
    NaN, and NaN times the zeros read outside stays NaN, so that a diverged model shows in the result.
    """
    position = location.to(COMPUTE) * size.to(COMPUTE) - 0.5
    below = tl.floor(position)
    past = position - below
    near = tl.minimum(tl.maximum(below, -2.0), size.to(COMPUTE) + 1.0)
    return tl.where(past == past, near, -2.0).to(OFFSET), past  # noqa: PLR0124 - false for NaN alone
