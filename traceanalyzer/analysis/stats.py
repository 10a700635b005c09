"""Order statistics that need no distribution, on integer nanoseconds.

Quantiles interpolate linearly between order statistics (docs/methodology.md). scipy is not imported here: importing
scipy.stats costs over a second, and the interval of a median is a closed form.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

MIN_N_FOR_INTERVAL = 6
"""Below six values no two-sided 95 % interval of the median exists."""


def quantile(values: Numbers, q: float) -> float | None:
    """Return the q-quantile, or None of nothing."""
    if not len(values):
        return None
    # as np.quantile does, which takes several times as long for few values
    place = (len(values) - 1) * q
    low = min(int(place), len(values) - 1)
    high = min(low + 1, len(values) - 1)
    part = np.partition(values, (low, high))
    a, b, t = part[low], part[high], place - low
    between = b - a
    return float(b - between * (1 - t) if t >= 0.5 else a + between * t)


def median(values: Numbers) -> float | None:
    """Return the median, or None of nothing."""
    return middle(values) if len(values) else None


def middle(values: Numbers) -> float:
    """Return the median of one value or more, as ``np.median`` does: that takes several times as long for few, and loads ``numpy.ma``."""
    n = len(values)
    half = n // 2
    if n % 2:
        return float(np.partition(values, half)[half])
    part = np.partition(values, (half - 1, half))
    return (float(part[half - 1]) + float(part[half])) / 2


def mad(values: Numbers) -> float | None:
    """Return the median absolute deviation from the median, unscaled; None of nothing."""
    return middle(np.abs(values - middle(values))) if len(values) else None


def median_interval(values: Numbers) -> tuple[float, float] | None:
    """Return the 95 % order-statistic interval of the median; None under six values.

    The interval is [x_(k), x_(n+1-k)] with the largest k for which P(Binomial(n, 1/2) < k) <= 2.5 %, so it
    covers the median of any continuous distribution with at least 95 %.
    """
    n = len(values)
    k = median_rank(n)
    if k is None:
        return None
    part = np.partition(values, (k - 1, n - k))
    return float(part[k - 1]), float(part[n - k])


@lru_cache(maxsize=4096)
def median_rank(n: int) -> int | None:
    """Return the rank k of :func:`median_interval` for n values, or None under six."""
    if n < MIN_N_FOR_INTERVAL:
        return None
    k = int(n / 2 - 0.98 * math.sqrt(n)) + 2
    k = min(k, n // 2)
    while k > 1 and _lower_tail(n, k - 1) > 0.025:
        k -= 1
    return k


def _lower_tail(n: int, k: int) -> float:
    """Return P(Binomial(n, 1/2) <= k), summed from its largest term down."""
    term = math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
    total, i = 0.0, k
    while i >= 0 and term > 1e-18 * max(total, 1e-300):
        total += term
        term *= i / (n - i + 1)
        i -= 1
    return total
