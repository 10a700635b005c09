"""Presets of msda and the inputs they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from traceanalyzer.kernels.arguments import DTYPES, described, normal, seeded
from traceanalyzer.kernels.msda.levels import Levels, pyramid
from traceanalyzer.kernels.operator import Inputs

_IMAGE: Mapping[str, Any] = {"height": 800, "width": 1_333, "strides": (8, 16, 32, 64)}
_HEADS: Mapping[str, Any] = {"heads": 8, "channels": 32, "points": 4}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # odd on purpose: levels of 3x5 and 2x3, a head of 6 channels, 3 points
    "tiny": {"batch": 2, "queries": 5, "heads": 2, "channels": 6, "points": 3}
    | {"height": 23, "width": 37, "strides": (8, 16)},
    # object queries of a detector: a short kernel, of the order of one dispatch
    "decoder": {"batch": 4, "queries": 300, **_HEADS, **_IMAGE},
    # every pixel asks: long enough to hide any dispatch
    "encoder": {"batch": 2, "queries": "all", **_HEADS, **_IMAGE},
}
GRID = 1 << 12
"""Sampling locations are multiples of 1 / GRID."""
SPREAD_PIXELS = 2.0
"""Standard deviation of samples around their reference point, in pixels of the level sampled."""


def make_inputs(preset: str, dtype: str, device: str, seed: int) -> Inputs:
    """Return value, levels, sampling locations and attention weights of a preset.

    Samples lie around a reference point per query (uniform over the image; the pixel centres where every pixel
    asks) at :data:`SPREAD_PIXELS`, so neighbours share cache lines as they do in a network, and some fall
    outside. Locations are rounded to a grid on which ``location * size - 0.5`` is exact in fp32: otherwise a
    sample on the edge of a pixel cell falls on either side by precision, and the gradient of its location, which
    jumps there, would differ from the reference's without an error in either.
    """
    sizes = PRESETS[preset]
    generator = seeded(seed)
    levels = Levels.of(pyramid(sizes["height"], sizes["width"], sizes["strides"]), device)
    batch, heads, depth, points = sizes["batch"], sizes["heads"], len(levels.sizes), sizes["points"]
    if sizes["queries"] == "all":
        anchors = _pixel_centres(levels).expand(batch, -1, -1)
    else:
        anchors = torch.rand((batch, sizes["queries"], 2), generator=generator)
    queries = anchors.shape[1]
    value = normal((batch, levels.pixels, heads, sizes["channels"]), dtype, device, generator)
    width_height = torch.tensor([(w, h) for h, w in levels.sizes], dtype=torch.float32)[:, None, :]
    spread = torch.randn((batch, queries, heads, depth, points, 2), generator=generator) * SPREAD_PIXELS / width_height
    locations = ((anchors[:, :, None, None, None, :] + spread) * GRID).round() / GRID
    weights = torch.randn((batch, queries, heads, depth * points), generator=generator).softmax(-1)
    tensors = {
        "value": value,
        "sampling_locations": locations.to(device=device, dtype=DTYPES[dtype]),
        "attention_weights": weights.view(batch, queries, heads, depth, points).to(device=device, dtype=DTYPES[dtype]),
    }
    names = described(tensors) | {"levels": " ".join(f"{h}x{w}" for h, w in levels.sizes)}
    args = (value, levels, tensors["sampling_locations"], tensors["attention_weights"])
    return Inputs(args, names, preset, dtype, device, seed)


def _pixel_centres(levels: Levels) -> torch.Tensor:
    """Return the (x, y) of every pixel's centre, 0 to 1, ``[S, 2]``, in the order of ``value``."""
    centres = []
    for height, width in levels.sizes:
        y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
        centres.append(torch.stack((x.flatten() / width, y.flatten() / height), dim=-1))
    return torch.cat(centres)
