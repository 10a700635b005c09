"""The backward kernel: gathers the corners again, and scatters into the gradient of ``value`` with atomic adds."""

from __future__ import annotations

import torch

from traceanalyzer.kernels.device_code import gpu_of, jit, tl
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.sampling import compute_type, pixel_cell, tile_config


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
    rows: tl.tensor,
    rows_per_image: tl.tensor,
    pixels: tl.tensor,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    LEVELS: tl.constexpr,
    POINTS: tl.constexpr,
    COMPUTE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CHANNELS: tl.constexpr,
) -> None:
    """Compute the gradients of ``BLOCK_ROWS`` rows; offsets are 64-bit, see :mod:`.sampling`.

    Each row owns its locations and weights, so those are plain stores. Rows share pixels, so ``grad_value``
    (zeroed before) takes atomic adds in its own dtype; they need no order among themselves: relaxed.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    real = row < rows
    channel = tl.arange(0, BLOCK_CHANNELS)
    first = (row // rows_per_image * pixels * HEADS + row % HEADS) * CHANNELS
    whole = real[:, None] & (channel < CHANNELS)[None, :]
    gradient = tl.load(grad_result + row[:, None] * CHANNELS + channel[None, :], mask=whole, other=0.0).to(COMPUTE)
    for level in range(LEVELS):
        height, width = tl.load(shapes + 2 * level), tl.load(shapes + 2 * level + 1)
        start = tl.load(starts + level)
        for point in tl.static_range(POINTS):
            sample = (row * LEVELS + level) * POINTS + point
            x, past_x = pixel_cell(tl.load(locations + 2 * sample, mask=real, other=0.0), width, COMPUTE)
            y, past_y = pixel_cell(tl.load(locations + 2 * sample + 1, mask=real, other=0.0), height, COMPUTE)
            weight = tl.load(weights + sample, mask=real, other=0.0).to(COMPUTE)
            sampled = tl.zeros((BLOCK_ROWS,), dtype=COMPUTE)  # gradient . sample
            slope_x = tl.zeros((BLOCK_ROWS,), dtype=COMPUTE)  # its derivative by the pixel coordinate
            slope_y = tl.zeros((BLOCK_ROWS,), dtype=COMPUTE)
            for corner in tl.static_range(4):
                cx, cy = x + corner % 2, y + corner // 2
                share_x = past_x if corner % 2 else 1 - past_x
                share_y = past_y if corner // 2 else 1 - past_y
                inside = real & (cx >= 0) & (cx < width) & (cy >= 0) & (cy < height)
                at = first + (start + cy * width + cx) * (HEADS * CHANNELS)
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


def backward(
    grad_result: torch.Tensor,
    value: torch.Tensor,
    levels: Levels,
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
    accumulator: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of value, locations and weights, each in the dtype of what it belongs to.

    The sums over rows are kept in ``accumulator``; where that is not value's dtype, they stand in a scratch
    buffer (4 bytes an element for fp32) and are rounded once at the end.
    """
    batch, pixels, heads, channels = value.shape
    _, queries, _, depth, points, _ = sampling_locations.shape
    grad_value = torch.zeros(value.shape, device=value.device, dtype=accumulator)
    grad_locations = torch.empty_like(sampling_locations)
    grad_weights = torch.empty_like(attention_weights)
    rows = batch * queries * heads
    if rows:
        config = tile_config(channels)
        with gpu_of(value):
            msda_backward_kernel[(-(-rows // config["BLOCK_ROWS"]),)](
                grad_value,
                grad_locations,
                grad_weights,
                grad_result,
                value,
                levels.shapes,
                levels.starts,
                sampling_locations,
                attention_weights,
                rows,
                queries * heads,
                pixels,
                HEADS=heads,
                CHANNELS=channels,
                LEVELS=depth,
                POINTS=points,
                COMPUTE=compute_type(value.dtype),
                **config,
            )
    return grad_value.to(value.dtype), grad_locations, grad_weights
