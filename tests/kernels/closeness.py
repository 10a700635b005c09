"""How far a result is outside its tolerance."""

from __future__ import annotations

import torch


def worst_excess(got: torch.Tensor, expected: torch.Tensor, bounds: tuple[float, float]) -> float:
    """Return the largest error beyond ``atol + rtol * |expected|``; at most 0 when all is within; NaN is infinite."""
    rtol, atol = bounds
    assert got.shape == expected.shape
    excess = (got.double() - expected).abs() - atol - rtol * expected.abs()
    return float(torch.nan_to_num(excess, nan=float("inf")).max())
