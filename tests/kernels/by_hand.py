"""msda from its definition, pixel by pixel in Python floats: shares nothing with the reference or the kernels."""

from __future__ import annotations

import math

import torch

from traceanalyzer.kernels.msda.levels import Levels


def by_hand(value, levels, locations, weights) -> torch.Tensor:
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    result = torch.zeros(batch, queries, heads, channels, dtype=torch.float64)
    starts = levels.starts.tolist()
    for b in range(batch):
        for q in range(queries):
            for n in range(heads):
                for level, (height, width) in enumerate(levels.sizes):
                    for p in range(points):
                        x = float(locations[b, q, n, level, p, 0]) * width - 0.5
                        y = float(locations[b, q, n, level, p, 1]) * height - 0.5
                        for row in (math.floor(y), math.floor(y) + 1):
                            for column in (math.floor(x), math.floor(x) + 1):
                                if 0 <= row < height and 0 <= column < width:
                                    share = (1 - abs(x - column)) * (1 - abs(y - row))
                                    pixel = value[b, starts[level] + row * width + column, n].double()
                                    result[b, q, n] += float(weights[b, q, n, level, p]) * share * pixel
    return result.flatten(2)


BORDER = [
    (0.5, 0.5),
    (0.0, 0.0),  # the outer corner of the first pixel: a quarter of it
    (1.0, 1.0),
    (0.0, 0.4),  # on an edge
    (1.0, 0.6),
    (-0.05, 0.5),  # less than a pixel outside
    (1.04, 1.04),
    (-3.0, 0.5),  # far outside: nothing
    (0.5, 40_000.0),  # a position no 32-bit pixel index could hold after scaling by a large level
    (0.25, 0.75),
]
"""Sampling points on, near and outside the border, as (x, y) of the level."""


def border_case(dtype=torch.float32, channels=5, sizes=((3, 5), (2, 1), (7, 4))):
    """Return arguments whose samples are the points of BORDER, at every level, with distinct weights."""
    generator = torch.Generator().manual_seed(3)
    levels = Levels.of(sizes)
    value = torch.randn((1, levels.pixels, 1, channels), generator=generator).to(dtype)
    points = torch.tensor(BORDER)
    locations = points[:, None, None, None, :].expand(-1, 1, len(sizes), 1, -1)[None].contiguous().to(dtype)
    weights = torch.rand((1, len(BORDER), 1, len(sizes), 1), generator=generator).to(dtype)
    return value, levels, locations, weights
