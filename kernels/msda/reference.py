"""The reference of msda: ``grid_sample`` per level, differentiable by autograd.

Half-precision inputs are computed in fp32 and the result is rounded once, as the kernels do and as autocast does
for grid_sample. In fp16 a location on a level 167 pixels wide would be off by up to 0.04 pixel, in bf16 by 0.3:
that is another operator, not a rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    wide = _wide(value)
    samples = [
        grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        for image, grid in _images_and_grids(value, sizes, sampling_locations)
    ]
    weights = attention_weights.to(wide).transpose(1, 2).reshape(batch * heads, 1, queries, len(sizes) * points)
    summed = (torch.stack(samples, dim=-2).flatten(-2) * weights).sum(-1)
    return summed.view(batch, heads * channels, queries).transpose(1, 2).to(value.dtype).contiguous()


def gradients_by_sizes(
    grad_result: torch.Tensor,
    value: torch.Tensor,
    sizes: tuple[tuple[int, int], ...],
    sampling_locations: torch.Tensor,
    attention_weights: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of value, locations and weights that autograd finds for :func:`by_sizes`, without autograd.

    An operator of torch computes its backward below autograd, where the reference cannot be differentiated.
    """
    batch, _, heads, channels = value.shape
    queries = sampling_locations.shape[1]
    wide = _wide(value)
    gradient = grad_result.to(wide).view(batch, queries, heads, channels).permute(0, 2, 3, 1)
    gradient = gradient.reshape(batch * heads, channels, queries, 1)
    grad_values, grad_locations, grad_weights = [], [], []
    for level, (image, grid) in enumerate(_images_and_grids(value, sizes, sampling_locations)):
        weight = attention_weights[:, :, :, level].to(wide).transpose(1, 2).reshape(batch * heads, 1, queries, -1)
        sample = grid_sample(image, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        grad_image, grad_grid = torch.ops.aten.grid_sampler_2d_backward(
            (gradient * weight).contiguous(), image, grid, _BILINEAR, _ZEROS, False, [True, True]
        )
        grad_values.append(grad_image.reshape(batch, heads, channels, -1).permute(0, 3, 1, 2))
        grad_locations.append(2 * grad_grid.view(batch, heads, queries, -1, 2).transpose(1, 2))
        grad_weights.append((gradient * sample).sum(1).view(batch, heads, queries, -1).transpose(1, 2))
    return (
        torch.cat(grad_values, dim=1).to(value.dtype).contiguous(),
        torch.stack(grad_locations, dim=3).to(sampling_locations.dtype).contiguous(),
        torch.stack(grad_weights, dim=3).to(attention_weights.dtype).contiguous(),
    )


_BILINEAR, _ZEROS = 0, 0  # the numbers torch gives to these modes


def _wide(value: torch.Tensor) -> torch.dtype:
    return torch.float64 if value.dtype == torch.float64 else torch.float32


def _images_and_grids(
    value: torch.Tensor, sizes: tuple[tuple[int, int], ...], locations: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield each level as ``[B * N, D, H, W]`` and its locations as grid_sample counts them, ``[B * N, Q, P, 2]``."""
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    wide = _wide(value)
    grids = 2 * locations.to(wide) - 1  # grid_sample counts from -1 to 1
    for level, pixels in enumerate(torch.split(value.to(wide), [h * w for h, w in sizes], dim=1)):
        height, width = sizes[level]
        image = pixels.permute(0, 2, 3, 1).reshape(batch * heads, channels, height, width)
        yield image, grids[:, :, :, level].transpose(1, 2).reshape(batch * heads, queries, points, 2)
