"""Changepoints of a series: where its level shifts for good, by binary segmentation of the logarithms.

A split is taken where the two medians differ by over 1 % and by over four standard errors; the scatter is the median absolute
difference of neighbours (von Neumann), which a shift does not inflate. Each side needs three values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

LEAST_SIDE = 3
LEAST_ERRORS = 4.0
LEAST_CHANGE = 0.01


@dataclass(frozen=True)
class LevelChange:
    """The level changes at ``index`` (the first value of the new one); levels are medians of the stretches around it."""

    index: int
    before: float
    after: float


def changepoints(values: Sequence[float]) -> list[LevelChange]:
    """Return the changepoints of positive values, in order."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    if len(logs) < 2 * LEAST_SIDE:
        return []
    steps = np.abs(np.diff(logs))
    scatter = max(float(np.median(steps)) / (0.6745 * math.sqrt(2)), 1e-4)
    cuts: list[int] = []
    _split(logs, 0, len(logs), scatter, cuts)
    borders = [0, *sorted(cuts), len(logs)]
    levels = [float(np.exp(np.median(logs[a:b]))) for a, b in pairwise(borders)]
    return [LevelChange(at, levels[i], levels[i + 1]) for i, at in enumerate(borders[1:-1])]


def _split(
    logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]], low: int, high: int, scatter: float, cuts: list[int]
) -> None:
    best, where = 0.0, -1
    for at in range(low + LEAST_SIDE, high - LEAST_SIDE + 1):
        gap = abs(float(np.median(logs[at:high]) - np.median(logs[low:at])))
        errors = gap / (1.2533 * scatter * math.sqrt(1 / (at - low) + 1 / (high - at)))
        if gap > math.log1p(LEAST_CHANGE) and errors > max(best, LEAST_ERRORS):
            best, where = errors, at
    if where >= 0:
        cuts.append(where)
        _split(logs, low, where, scatter, cuts)
        _split(logs, where, high, scatter, cuts)
