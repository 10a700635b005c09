"""The forward kernel: a gather of four corners per sample, summed in fp32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from traceanalyzer.kernels.device_code import gpu_of, jit, tl
from traceanalyzer.kernels.msda.sampling import compute_type, grid, offset_type, pixel_cell, size_class
from traceanalyzer.kernels.msda.tuning import configuration, tuned


@jit
def msda_forward_kernel(
    result: tl.tensor,
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
    """Compute one head of one image for ``BLOCK_QUERIES`` queries; see :mod:`.sampling` for the tiling.

    ``size_class`` is a key of the tuner and is not read.
    """
    head = tl.program_id(0) % HEADS
    first = tl.program_id(0) // HEADS * BLOCK_QUERIES
    image = tl.program_id(1).to(tl.int64)
    query = tl.arange(0, BLOCK_QUERIES)
    real = first + query < queries
    channel = tl.arange(0, BLOCK_CHANNELS)
    row = query * HEADS + head  # counted from the block's first query
    before = (image * queries + first) * HEADS  # rows before the block: 64 bits, once
    locations += before * (LEVELS * POINTS * 2)
    weights += before * (LEVELS * POINTS)
    value += image * pixels * (HEADS * CHANNELS) + head * CHANNELS
    total = tl.zeros((BLOCK_QUERIES, BLOCK_CHANNELS), dtype=COMPUTE)
    for level in range(LEVELS):
        height, width = tl.load(shapes + 2 * level).to(OFFSET), tl.load(shapes + 2 * level + 1).to(OFFSET)
        start = tl.load(starts + level).to(OFFSET)
        for point in tl.static_range(POINTS):
            sample = (row * LEVELS + level) * POINTS + point
            x, past_x = pixel_cell(tl.load(locations + 2 * sample, mask=real, other=0.0), width, COMPUTE, OFFSET)
            y, past_y = pixel_cell(tl.load(locations + 2 * sample + 1, mask=real, other=0.0), height, COMPUTE, OFFSET)
            weight = tl.load(weights + sample, mask=real, other=0.0).to(COMPUTE)
            for corner in tl.static_range(4):
                cx, cy = x + corner % 2, y + corner // 2
                share_x = past_x if corner % 2 else 1 - past_x
                share_y = past_y if corner // 2 else 1 - past_y
                inside = real & (cx >= 0) & (cx < width) & (cy >= 0) & (cy < height)
                at = (start + cy * width + cx) * (HEADS * CHANNELS)
                mask = inside[:, None] & (channel < CHANNELS)[None, :]
                corner_value = tl.load(value + (at[:, None] + channel[None, :]), mask=mask, other=0.0).to(COMPUTE)
                total += corner_value * (weight * share_x * share_y)[:, None]
    tl.store(
        result + before * CHANNELS + (row[:, None] * CHANNELS + channel[None, :]),
        total,
        mask=real[:, None] & (channel < CHANNELS)[None, :],
    )


tuned_forward_kernel = tuned(msda_forward_kernel)


def forward(
    value: torch.Tensor,
    shapes: torch.Tensor,
    starts: torch.Tensor,
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
) -> torch.Tensor:
    """Return ``[B, Q, N * D]`` in the dtype of ``value``; the arguments are contiguous and fit together."""
    batch, pixels, heads, channels = value.shape
    _, queries, _, depth, points, _ = sampling_locations.shape
    result = torch.empty((batch, queries, heads * channels), device=value.device, dtype=value.dtype)
    if result.numel() == 0:
        return result
    kernel, fixed = launch_of(value, msda_forward_kernel, tuned_forward_kernel)

    def programs(chosen: Mapping[str, Any]) -> tuple[int, int]:
        return grid(batch, queries, heads, chosen["BLOCK_QUERIES"])

    with gpu_of(value):
        kernel[programs](
            result,
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
    return result


def launch_of(value: torch.Tensor, kernel: Any, tuned_kernel: Any) -> tuple[Any, dict[str, int]]:
    """Return what to launch and the block sizes to give it: the tuned kernel brings its own on a GPU."""
    if value.is_cuda or value.device.type == "xpu":
        return tuned_kernel, {}
    return kernel, configuration(value.shape[3])
