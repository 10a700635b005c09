"""Which segments are of some classes, by a table: on the short columns of many devices numpy's isin costs ten times as much."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.ledger.classes import LedgerClass
from traceanalyzer.trace.tables import Bool


def of_classes(cls: npt.NDArray[np.integer], classes: Collection[LedgerClass]) -> Bool:
    """Return for each segment whether its class is one of ``classes``."""
    found: Bool = _table(tuple(classes))[cls]
    return found


@lru_cache(maxsize=64)
def _table(classes: tuple[LedgerClass, ...]) -> Bool:
    table = np.zeros(len(LedgerClass), dtype=bool)
    table[[int(c) for c in classes]] = True
    return table
