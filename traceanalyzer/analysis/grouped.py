"""Order statistics of many groups at once: one sort for all of them, however many there are."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats
from traceanalyzer.record import record
from traceanalyzer.trace.tables import Bool, Int64

Floats = npt.NDArray[np.float64]
_FEW = 64
"""Groups of so many rows are sorted one by one, which is faster than all at once."""


@record(frozen=True)
class Groups:
    """Row numbers sorted by group (``rows``); group i has those from ``begins[i]`` up to the next."""

    rows: Int64
    begins: Int64

    @cached_property
    def counts(self) -> Int64:
        """How many rows each group has."""
        return np.diff(np.concatenate([self.begins, [len(self.rows)]]))

    @cached_property
    def of(self) -> Int64:
        """The group of each of ``rows``."""
        return np.repeat(np.arange(len(self.begins)), self.counts)

    def members(self, group: int) -> Int64:
        """Return the row numbers of one group."""
        return self.rows[int(self.begins[group]) : int(self.begins[group]) + int(self.counts[group])]

    def sum(self, values: Int64) -> Int64:
        """Return the sum of each group over per-row values (indexed by row number)."""
        total: Int64 = np.add.reduceat(values[self.rows], self.begins) if len(self.begins) else values[:0]
        return total

    def count(self, mask: Bool) -> Int64:
        """Return how many rows of each group are in a mask over row numbers."""
        return self.sum(mask.astype(np.int64))

    def ordered(self, values: Int64 | Floats, mask: Bool | None = None) -> Ordered:
        """Return the values of each group in ascending order; of those in a mask over row numbers only, if given."""
        keep = slice(None) if mask is None else mask[self.rows]
        group, value = self.of[keep], values[self.rows[keep]]
        counts = np.bincount(group, minlength=len(self.begins)).astype(np.int64)
        ends = np.cumsum(counts)
        if len(counts) * _FEW < len(value):
            for begin, end in zip((ends - counts).tolist(), ends.tolist(), strict=True):
                value[begin:end].sort()
        else:
            value = value[np.lexsort((value, group))]
        return Ordered(value, ends - counts, counts)


@record(frozen=True)
class Ordered:
    """Values of each group in ascending order."""

    values: Int64 | Floats
    begins: Int64
    counts: Int64

    def quantile(self, q: float) -> Floats:
        """Return the q-quantile of each group, linear between order statistics; NaN of an empty group."""
        at = q * np.maximum(self.counts - 1, 0)
        low = np.floor(at).astype(np.int64)
        found = np.full(len(self.counts), np.nan)
        has = self.counts > 0
        first = (self.begins + low)[has]
        last = (self.begins + np.minimum(low + 1, np.maximum(self.counts - 1, 0)))[has]
        a, b = self.values[first].astype(np.float64), self.values[last].astype(np.float64)
        share = (at - low)[has]
        # as numpy interpolates: from the nearer end, exact at both
        step = b - a
        found[has] = np.where(share >= 0.5, b - step * (1 - share), a + step * share)
        return found

    def medians(self) -> list[float | None]:
        """Return the median of each group, None of an empty one."""
        return [None if np.isnan(v) else v for v in self.quantile(0.5).tolist()]

    def first(self) -> Int64 | Floats:
        """Return the smallest value of each group; there must be one."""
        found: Int64 | Floats = self.values[self.begins]
        return found

    def last(self) -> Int64 | Floats:
        """Return the largest value of each group; there must be one."""
        found: Int64 | Floats = self.values[self.begins + self.counts - 1]
        return found

    def median_intervals(self) -> list[tuple[float, float] | None]:
        """Return the 95 % order-statistic interval of the median of each group, None under six values."""
        result: list[tuple[float, float] | None] = []
        for begin, n in zip(self.begins.tolist(), self.counts.tolist(), strict=True):
            k = stats.median_rank(n)
            result.append(None if k is None else (float(self.values[begin + k - 1]), float(self.values[begin + n - k])))
        return result
