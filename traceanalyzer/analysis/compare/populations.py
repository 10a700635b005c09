"""Times that fall into two populations: a median between them says nothing, and an interval over both says less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis.compare.statistics import Times

WIDEST = 3.0
"""An interval whose ends are further apart than this is not printed: no reader can use it."""
LEAST_GAP = 1.5
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Populations:
    """Two levels of one side's times, in nanoseconds, and the share of values on the upper one."""

    low_ns: float
    high_ns: float
    high_share: float


def populations(times: Times) -> Populations | None:
    """Return the two levels that the widest relative gap parts; None where there is none of :data:`LEAST_GAP`."""
    values = np.sort(np.asarray(times.values, dtype=np.float64))
    values = values[values > 0]
    if len(values) < 4:
        return None
    ratios = values[1:] / values[:-1]
    # a gap that leaves fewer than a tenth of the values on one side parts outliers, not populations
    edge = max(1, int(np.ceil(LEAST_SHARE * len(values))))
    inner = ratios[edge - 1 : len(ratios) - edge + 1]
    if not len(inner):
        return None
    at = int(np.argmax(inner)) + edge
    if ratios[at - 1] < LEAST_GAP:
        return None
    return Populations(float(np.median(values[:at])), float(np.median(values[at:])), (len(values) - at) / len(values))
