"""Ratios of few values: where there are under six on a side no interval of a median means anything.

The ratio is given with its range: the least and the greatest that a value of the head is of a value of the base. A
difference is called only where every value of one side lies beyond every value of the other, by more than the border,
and where that is no chance.

Where both sides launch the same work in as many calls on the same kind of device, only chance or what the host does tells them apart: Student's t on the
logarithms has to call it no chance, with a scatter taken :data:`DEPENDENCE` times as large, since repeats in a row depend
on one another and so few do not show it. Where the launches or the work differ there is a reason for a difference: it is
enough that so many values separate by chance in under one of twenty cases (the count of orders, as in the rank-sum test),
or that plain t says so. A single value per side has no scatter of its own: it is taken to be what steps of one run have
been seen to differ by, long steps (logging, data) included where the launches are the same.
"""

from __future__ import annotations

import math

import numpy as np

from traceanalyzer.analysis.compare.statistics import Ratio, Times

FEW = 6
PRIOR_SCATTER = 0.05
LONG_STEPS = 0.42
"""The scatter of single periods of the same work in the same launches: a step three times as long (logging, a pause) is nothing rare."""
LEAST_SCATTER = 0.01
CHANCE = 0.05
DEPENDENCE = 2.4
_T = (12.706, 4.303, 3.896, 3.298, 3.003, 2.829, 2.715, 2.634, 2.574, 2.527)
"""Student's t by degrees of freedom: two-sided 5 % for the first two, 3 % from there on, so that under 5 % are false after rounding."""


def compare_few(
    base: Times, head: Times, same_within: float, same_launches: bool = True, prior: float = LONG_STEPS
) -> tuple[Ratio, str]:
    """Return the ratio of the medians with the range of all ratios as its interval, and the verdict.

    ``same_launches``: both sides launch the same work in as many calls. ``prior``: the scatter of single values, where each side has one.
    """
    x, y = (np.asarray(t.values, dtype=np.float64) for t in (base, head))
    nothing = np.empty(0)
    counts = (float(base.count), float(head.count))
    if base.p50_ns <= 0 or head.p50_ns <= 0 or not len(x) or not len(y) or min(x.min(), y.min()) <= 0:
        return Ratio(None, None, nothing, counts, False, False, None, "a side has no time to compare"), "UNDECIDED"
    ratio = head.p50_ns / base.p50_ns
    low, high = float(y.min() / x.max()), float(y.max() / x.min())
    found = Ratio(ratio, (min(low, ratio), max(high, ratio)), nothing, counts, False, False, None, _reason(base, head))
    if high < 1 - same_within or low > 1 + same_within:
        return found, ("FASTER" if high < 1 else "SLOWER") if _no_chance(
            np.log(x), np.log(y), same_launches, prior
        ) else "UNDECIDED"
    same = low >= 1 - same_within and high <= 1 + same_within and min(len(x), len(y)) > 1
    return found, "SAME" if same else "UNDECIDED"


def _no_chance(
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    y: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    same_launches: bool,
    prior: float,
) -> bool:
    n, m = len(x), len(y)
    if not same_launches and 2 / math.comb(n + m, n) <= CHANCE:
        return True
    free = n + m - 2
    squares = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    # so few values know their scatter badly: it is taken for no less than what a quiet run has
    scatter = max(math.sqrt(squares / free), LEAST_SCATTER) if free else prior
    scatter *= DEPENDENCE if same_launches and free else 1.0
    t = _T[min(free, len(_T)) - 1] if free else 1.96
    return abs(float(y.mean() - x.mean())) > t * scatter * math.sqrt(1 / n + 1 / m)


def _reason(base: Times, head: Times) -> str:
    return f"n {base.count} and {head.count}: the range of all values is given instead of an interval"
