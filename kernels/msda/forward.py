"""The forward kernel: a gather of four corners per sample, summed in fp32."""

from __future__ import annotations

import torch

from traceanalyzer.kernels.device_code import gpu_of, jit, tl
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.sampling import compute_type, pixel_cell, tile_config


@jit
def msda_forward_kernel(
    result: tl.tensor,
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
    """Compute ``BLOCK_ROWS`` rows of the result; offsets are 64-bit, see :mod:`.sampling`."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    real = row < rows
    channel = tl.arange(0, BLOCK_CHANNELS)
    image = value + (row // rows_per_image * pixels * HEADS + row % HEADS) * CHANNELS
    total = tl.zeros((BLOCK_ROWS, BLOCK_CHANNELS), dtype=COMPUTE)
    for level in range(LEVELS):
        height, width = tl.load(shapes + 2 * level), tl.load(shapes + 2 * level + 1)
        start = tl.load(starts + level)
        for point in tl.static_range(POINTS):
            sample = (row * LEVELS + level) * POINTS + point
            x, past_x = pixel_cell(tl.load(locations + 2 * sample, mask=real, other=0.0), width, COMPUTE)
            y, past_y = pixel_cell(tl.load(locations + 2 * sample + 1, mask=real, other=0.0), height, COMPUTE)
            weight = tl.load(weights + sample, mask=real, other=0.0).to(COMPUTE)
            for corner in tl.static_range(4):
                cx, cy = x + corner % 2, y + corner // 2
                share_x = past_x if corner % 2 else 1 - past_x
                share_y = past_y if corner // 2 else 1 - past_y
                inside = real & (cx >= 0) & (cx < width) & (cy >= 0) & (cy < height)
                at = image + (start + cy * width + cx) * (HEADS * CHANNELS)
                mask = inside[:, None] & (channel < CHANNELS)[None, :]
                corner_value = tl.load(at[:, None] + channel[None, :], mask=mask, other=0.0).to(COMPUTE)
                total += corner_value * (weight * share_x * share_y)[:, None]
    tl.store(
        result + row[:, None] * CHANNELS + channel[None, :],
        total,
        mask=real[:, None] & (channel < CHANNELS)[None, :],
    )


def forward(
    value: torch.Tensor, levels: Levels, sampling_locations: torch.Tensor, attention_weights: torch.Tensor
) -> torch.Tensor:
    """Return ``[B, Q, N * D]`` in the dtype of ``value``; the arguments are contiguous and fit together."""
    batch, pixels, heads, channels = value.shape
    _, queries, _, depth, points, _ = sampling_locations.shape
    result = torch.empty((batch, queries, heads * channels), device=value.device, dtype=value.dtype)
    rows = batch * queries * heads
    if rows == 0:
        return result
    config = tile_config(channels)
    with gpu_of(value):
        msda_forward_kernel[(-(-rows // config["BLOCK_ROWS"]),)](
            result,
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
    return result
