"""The reference of msda: ``grid_sample`` per level, differentiable by autograd.

Half-precision inputs are computed in fp32 and the result is rounded once, as the kernels do and as autocast does
for grid_sample. In fp16 a location on a level 167 pixels wide would be off by up to 0.04 pixel, in bf16 by 0.3:
that is another operator, not a rounding.
"""

from __future__ import annotations

import torch
from torch.nn.functional import grid_sample

from traceanalyzer.kernels.msda.levels import Levels


def reference(
    value: torch.Tensor, levels: Levels, sampling_locations: torch.Tensor, attention_weights: torch.Tensor
) -> torch.Tensor:
    """Return ``[B, Q, N * D]`` as the package describes, in the dtype of ``value``."""
    return by_sizes(value, levels.sizes, sampling_locations, attention_weights)


def by_sizes(
    value: torch.Tensor,
    sizes: tuple[tuple[int, int], ...],
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
) -> torch.Tensor:
    """Compute the reference from plain sizes, which is what ``torch.compile`` can specialise on."""
    batch, _, heads, channels = value.shape
    queries, points = sampling_locations.shape[1], sampling_locations.shape[4]
    wide = torch.float64 if value.dtype == torch.float64 else torch.float32
    grids = 2 * sampling_locations.to(wide) - 1  # grid_sample counts from -1 to 1
    samples = []
    for level, pixels in enumerate(torch.split(value.to(wide), [h * w for h, w in sizes], dim=1)):
        height, width = sizes[level]
        image = pixels.permute(0, 2, 3, 1).reshape(batch * heads, channels, height, width)
        grid = grids[:, :, :, level].transpose(1, 2).reshape(batch * heads, queries, points, 2)
        samples.append(grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False))
    weights = attention_weights.to(wide).transpose(1, 2).reshape(batch * heads, 1, queries, len(sizes) * points)
    summed = (torch.stack(samples, dim=-2).flatten(-2) * weights).sum(-1)
    return summed.view(batch, heads * channels, queries).transpose(1, 2).to(value.dtype).contiguous()
