"""Is a series of self-times steady? Slow head, changepoint, drift, two modes, noise, dependence.

scipy, which costs more to import than a whole report, is loaded only where a series may hold a finding that needs it.
Each function names its method.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats
from traceanalyzer.options import HEAD_RATIO, LEVEL_SHIFT, MODE_GAP
from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Int64

LEAST_SEGMENT = 5
_DRIFT_POINTS = 200
_CERTAINTY = 0.999
"""A report tests many series: at 95 %, steady runs with scatter would be called drifting one time in twenty."""


@record(frozen=True)
class Head:
    """A slow head: ``iterations`` at the start, the ``first`` value and the ``steady`` median behind them (ns)."""

    iterations: int
    first: float
    steady: float


@record(frozen=True)
class Change:
    """A level that changes: at which index, the medians before and after (ns)."""

    at: int
    before: float
    after: float

    @property
    def shift(self) -> float:
        """Relative change of the level, e.g. 0.15 for 15 % slower."""
        return self.after / self.before - 1


@record(frozen=True)
class Drift:
    """A steady slope: relative change over the whole series and its 99.9 % interval (Theil-Sen, Sen's interval)."""

    total: float
    low: float
    high: float


@record(frozen=True)
class Steadiness:
    """A series of self-times (ns, one per call) and what it does; each answer is worked out once, when first asked for.

    Several rules ask the same of the same series; the functions of this module say how each is decided.
    """

    values: Int64
    head_ratio: float = HEAD_RATIO.default
    level_shift: float = LEVEL_SHIFT.default
    mode_gap: float = MODE_GAP.default

    @cached_property
    def head(self) -> Head | None:
        """The slow head, or None."""
        return slow_head(self.values, self.head_ratio)

    @cached_property
    def change(self) -> Change | None:
        """The change of level in the whole series, or None."""
        return changepoint(self.values, self.level_shift)

    @cached_property
    def change_behind_head(self) -> Change | None:
        """The change of level in the series without its slow head (``at`` counts from there), or None."""
        if self.head is None:
            return self.change
        return changepoint(self.values[self.head.iterations :], self.level_shift)

    def drift(self, least: float) -> Drift | None:
        """Return the slope of the series, None of too few values or where it surely is under ``least``."""
        if least not in self._drifts:
            self._drifts[least] = drift(self.values, least)
        return self._drifts[least]

    @cached_property
    def _drifts(self) -> dict[float, Drift | None]:
        return {}

    @cached_property
    def modes(self) -> tuple[float, float, float] | None:
        """Lower mode, upper mode and share of the upper one, or None."""
        return two_modes(self.values, self.mode_gap)

    @cached_property
    def robust_cv(self) -> float | None:
        """1.4826 MAD / median, or None."""
        return robust_cv(self.values)

    @cached_property
    def lag_one(self) -> float | None:
        """The lag-1 autocorrelation, or None."""
        return lag_one(self.values)


def robust_cv(values: Int64) -> float | None:
    """Return 1.4826 MAD / median, the coefficient of variation that outliers do not move; None of nothing or zero."""
    middle, spread = stats.median(values), stats.mad(values)
    return 1.4826 * spread / middle if middle and spread is not None else None


def slow_head(values: Int64, ratio: float = HEAD_RATIO.default) -> Head | None:
    """Return the head of a series whose first value is over ``ratio`` times the later median plus 3 MAD, or None."""
    n = len(values)
    if n < LEAST_SEGMENT:
        return None
    later = values[n // 2 :]
    steady, spread = float(np.median(later)), float(stats.mad(later) or 0.0)
    if values[0] <= ratio * steady + 3 * spread:
        return None
    above = values > 1.05 * steady + 3 * spread
    head = int(np.argmin(above[: n // 2])) if not above[: n // 2].all() else n // 2
    return Head(max(head, 1), float(values[0]), steady)


def changepoint(values: Int64, least_shift: float = LEVEL_SHIFT.default) -> Change | None:
    """Return the change of level that explains most of the scatter; None without one that stands out.

    The split with the least squared error of log times (the first step of binary segmentation); both sides hold
    at least :data:`LEAST_SEGMENT` values, their medians differ by ``least_shift`` and by four times the scatter
    around them, and the split takes away half of the squared error. Our own: one split with these conditions is
    asked for, of every operation in every report, and ruptures brings scipy along.
    """
    n = len(values)
    if n < 2 * LEAST_SEGMENT or int(values.min()) <= 0:
        return None
    logs = np.log(values.astype(np.float64))
    sums, squares = np.cumsum(logs), np.cumsum(logs * logs)
    left = np.arange(1, n)
    right_sum, right_square = sums[-1] - sums[:-1], squares[-1] - squares[:-1]
    error = (squares[:-1] - sums[:-1] ** 2 / left) + (right_square - right_sum**2 / (n - left))
    error[: LEAST_SEGMENT - 1] = np.inf
    error[n - LEAST_SEGMENT :] = np.inf
    at = int(np.argmin(error)) + 1
    whole = float(squares[-1] - sums[-1] ** 2 / n)
    before, after = values[:at], values[at:]
    levels = float(np.median(before)), float(np.median(after))
    scatter = max(stats.mad(before) or 0.0, stats.mad(after) or 0.0)
    stands_out = abs(levels[1] - levels[0]) > 4 * scatter and float(error[at - 1]) < 0.5 * whole
    if abs(levels[1] / levels[0] - 1) <= least_shift or not stands_out:
        return None
    return Change(at, *levels)


def drift(values: Int64, least: float) -> Drift | None:
    """Return the Theil-Sen slope over the series, with its 99.9 % interval (scipy.stats.theilslopes).

    None under ten values, and where the medians of the two halves differ by under two fifths of ``least`` (a straight
    drift moves them apart by half of it): scipy, which takes longer to load than a report to make, is loaded for what
    may be a finding only. Long series are thinned to 200 points, evenly.
    """
    n = len(values)
    if n < 10:
        return None
    early, late = float(np.median(values[: n // 2])), float(np.median(values[n // 2 :]))
    if not early or abs(late / early - 1) < 0.4 * least:
        return None
    from scipy.stats import theilslopes

    at = distinct(np.linspace(0, n - 1, min(n, _DRIFT_POINTS)).astype(np.int64))
    y = values[at].astype(np.float64)
    slope, _, low, high = theilslopes(y, at, _CERTAINTY)
    scale = (n - 1) / float(np.median(y)) if np.median(y) else 0.0
    return Drift(float(slope) * scale, float(low) * scale, float(high) * scale)


def two_modes(values: Int64, least_gap: float = MODE_GAP.default) -> tuple[float, float, float] | None:
    """Return (lower mode, upper mode, share of the upper) of a series with two separate levels; None otherwise.

    Two means on log times; the modes lie ``least_gap`` apart, each holds a tenth, and an empty valley of four times
    the scatter lies between them.
    """
    if len(values) < 20 or int(values.min()) <= 0:
        return None
    ordered = np.sort(values)
    logs: npt.NDArray[np.float64] = np.log(ordered.astype(np.float64))
    n = len(logs)
    sums, squares = np.cumsum(logs), np.cumsum(logs * logs)
    left = np.arange(1, n)
    error = (squares[:-1] - sums[:-1] ** 2 / left) + (
        squares[-1] - squares[:-1] - (sums[-1] - sums[:-1]) ** 2 / (n - left)
    )
    at = int(np.argmin(error)) + 1
    if min(at, n - at) < 0.1 * n:
        return None
    low, high = ordered[:at], ordered[at:]
    levels = float(np.median(low)), float(np.median(high))
    scatter = max(stats.mad(low) or 0.0, stats.mad(high) or 0.0)
    valley = float(high[0] - low[-1])
    if (
        levels[1] / levels[0] - 1 <= least_gap
        or levels[1] - levels[0] < 6 * scatter
        or valley < 0.3 * (levels[1] - levels[0])
    ):
        return None
    return levels[0], levels[1], (n - at) / n


def lag_one(values: Int64) -> float | None:
    """Return the lag-1 autocorrelation; None under ten values or without any scatter."""
    if len(values) < 10:
        return None
    centred = values - values.mean()
    power = float((centred * centred).sum())
    return float((centred[1:] * centred[:-1]).sum()) / power if power else None


def effective_n(n: int, rho: float | None) -> float:
    """Return n (1 - rho) / (1 + rho): the independent values a dependent series is worth."""
    return n * (1 - rho) / (1 + rho) if rho is not None and rho > 0 else float(n)


def kendall(x: Int64, y: Int64) -> tuple[float, float]:
    """Return Kendall's tau-b of two series and its two-sided p under independence (scipy.stats.kendalltau).

    Long series are thinned to 400 points, evenly.
    """
    from scipy.stats import kendalltau

    if len(x) > 400:
        at = np.linspace(0, len(x) - 1, 400).astype(np.int64)
        x, y = x[at], y[at]
    found = kendalltau(x, y)
    tau, p = float(found.statistic), float(found.pvalue)
    return (tau, p) if math.isfinite(tau) and math.isfinite(p) else (0.0, 1.0)
