"""The backward kernel: gathers the corners again, and scatters into the gradient of ``value`` with atomic adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from traceanalyzer.kernels.device_code import gpu_of, jit, tl
from traceanalyzer.kernels.msda.forward import launch_of
from traceanalyzer.kernels.msda.sampling import compute_type, grid, offset_type, pixel_cell, size_class
from traceanalyzer.kernels.msda.tuning import tuned


@jit
def msda_backward_kernel(
    grad_value: tl.tensor,
    grad_locations: tl.tensor,
    grad_weights: tl.tensor,
    grad_result: tl.tensor,
    value: tl.tensor,
    shapes: tl.tensor,
    starts: tl.tensor,
    locations: tl.tensor,
    weights: tl.tensor,
    queries: tl.tensor,
    pixels: tl.tensor,
    size_class: tl.tensor,  # noqa: ARG001 - a key of the tuner
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    LEVELS: tl.constexpr,
    POINTS: tl.constexpr,
    COMPUTE: tl.constexpr,
    OFFSET: tl.constexpr,
    BLOCK_QUERIES: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    """Compute the gradients of one head of one image for ``BLOCK_QUERIES`` queries; tiled as the forward kernel.

    Each row owns its locations and weights, so those are plain stores. Rows share pixels, so ``grad_value``
    (zeroed before) takes atomic adds in its own dtype; they need no order among themselves: relaxed.
    """
    head = tl.program_id(0) % HEADS
    first = tl.program_id(0) // HEADS * BLOCK_QUERIES
    image = tl.program_id(1).to(tl.int64)
    query = tl.arange(0, BLOCK_QUERIES)
    real = first + query < queries
    channel = tl.arange(0, BLOCK_CHANNELS)
    row = query * HEADS + head
    before = (image * queries + first) * HEADS
    locations += before * (LEVELS * POINTS * 2)
    grad_locations += before * (LEVELS * POINTS * 2)
    weights += before * (LEVELS * POINTS)
    grad_weights += before * (LEVELS * POINTS)
    pixel_zero = image * pixels * (HEADS * CHANNELS) + head * CHANNELS
    value += pixel_zero
    grad_value += pixel_zero
    whole = real[:, None] & (channel < CHANNELS)[None, :]
    element = row[:, None] * CHANNELS + channel[None, :]
    gradient = tl.load(grad_result + before * CHANNELS + element, mask=whole, other=0.0).to(COMPUTE)
    for level in range(LEVELS):
        height, width = tl.load(shapes + 2 * level).to(OFFSET), tl.load(shapes + 2 * level + 1).to(OFFSET)
        start = tl.load(starts + level).to(OFFSET)
        for point in tl.static_range(POINTS):
            sample = (row * LEVELS + level) * POINTS + point
            x, past_x = pixel_cell(tl.load(locations + 2 * sample, mask=real, other=0.0), width, COMPUTE, OFFSET)
            y, past_y = pixel_cell(tl.load(locations + 2 * sample + 1, mask=real, other=0.0), height, COMPUTE, OFFSET)
            weight = tl.load(weights + sample, mask=real, other=0.0).to(COMPUTE)
            sampled = tl.zeros((BLOCK_QUERIES,), dtype=COMPUTE)  # gradient . sample
            slope_x = tl.zeros((BLOCK_QUERIES,), dtype=COMPUTE)  # its derivative by the pixel coordinate
            slope_y = tl.zeros((BLOCK_QUERIES,), dtype=COMPUTE)
            for corner in tl.static_range(4):
                cx, cy = x + corner % 2, y + corner // 2
                share_x = past_x if corner % 2 else 1 - past_x
                share_y = past_y if corner // 2 else 1 - past_y
                inside = real & (cx >= 0) & (cx < width) & (cy >= 0) & (cy < height)
                at = (start + cy * width + cx) * (HEADS * CHANNELS)
                at = at[:, None] + channel[None, :]
                mask = inside[:, None] & (channel < CHANNELS)[None, :]
                corner_value = tl.load(value + at, mask=mask, other=0.0).to(COMPUTE)
                agreement = tl.sum(gradient * corner_value, axis=1)
                sampled += share_x * share_y * agreement
                slope_x += share_y * agreement if corner % 2 else -share_y * agreement
                slope_y += share_x * agreement if corner // 2 else -share_x * agreement
                scattered = gradient * (weight * share_x * share_y)[:, None]
                tl.atomic_add(grad_value + at, scattered.to(grad_value.dtype.element_ty), mask=mask, sem="relaxed")
            tl.store(grad_weights + sample, sampled, mask=real)
            tl.store(grad_locations + 2 * sample, slope_x * weight * width.to(COMPUTE), mask=real)
            tl.store(grad_locations + 2 * sample + 1, slope_y * weight * height.to(COMPUTE), mask=real)


tuned_backward_kernel = tuned(msda_backward_kernel, zeroed=["grad_value"])


def backward(
    grad_result: torch.Tensor,
    value: torch.Tensor,
    shapes: torch.Tensor,
    starts: torch.Tensor,
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
    accumulator: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of value, locations and weights, each in the dtype of what it belongs to.

    The sums over rows are kept in ``accumulator``; where that is not value's dtype, they lie in a scratch
    buffer (4 bytes an element for fp32) and are rounded once at the end. The arguments are contiguous.
    """
    batch, pixels, heads, channels = value.shape
    _, queries, _, depth, points, _ = sampling_locations.shape
    grad_value = torch.zeros(value.shape, device=value.device, dtype=accumulator)
    if grad_result.numel() == 0:
        return grad_value.to(value.dtype), torch.zeros_like(sampling_locations), torch.zeros_like(attention_weights)
    grad_locations = torch.empty_like(sampling_locations)
    grad_weights = torch.empty_like(attention_weights)
    kernel, fixed = launch_of(value, msda_backward_kernel, tuned_backward_kernel)

    def programs(chosen: Mapping[str, Any]) -> tuple[int, int]:
        return grid(batch, queries, heads, chosen["BLOCK_QUERIES"])

    with gpu_of(value):
        kernel[programs](
            grad_value,
            grad_locations,
            grad_weights,
            grad_result,
            value,
            shapes,
            starts,
            sampling_locations,
            attention_weights,
            queries,
            pixels,
            size_class(batch, queries, heads),
            HEADS=heads,
            CHANNELS=channels,
            LEVELS=depth,
            POINTS=points,
            COMPUTE=compute_type(value.dtype),
            OFFSET=offset_type(pixels * heads * channels),
            **fixed,
        )
    return grad_value.to(value.dtype), grad_locations, grad_weights
