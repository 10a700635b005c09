"""Columns of numbers out of others: joins by key, lengths of spans, codes of texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.store import Interner
from traceanalyzer.trace.tables import NO_ID

Int64 = npt.NDArray[np.int64]


class Lookup:
    """Finds the value of each key; of equal keys the first counts."""

    def __init__(self, keys: Int64, values: Int64) -> None:
        order = np.argsort(keys, kind="stable")
        self._keys, self._values = keys[order], values[order]

    def find(self, wanted: Int64) -> Int64:
        """Return the value of each wanted key, :data:`NO_ID` where there is none."""
        if not len(self._keys):
            return np.full(len(wanted), NO_ID, dtype=np.int64)
        at = np.searchsorted(self._keys, wanted)
        at[at == len(self._keys)] = 0
        hit = (self._keys[at] == wanted) & (wanted != NO_ID)
        return np.where(hit, self._values[at], NO_ID)


def lengths(start: Int64, end: Int64) -> Int64:
    """Return ``end - start``; :data:`NO_ID`, no usable length, where one is missing or the difference has no 64 bits."""
    far = np.abs(end.astype(np.float64) - start.astype(np.float64)) > float(1 << 62)
    known = (start != NO_ID) & (end != NO_ID) & ~far
    return np.where(known, np.where(known, end, 0) - np.where(known, start, 0), NO_ID)


def coded(values: Int64, table: Interner) -> npt.NDArray[np.int32]:
    """Return the code of each number's text."""
    used, place = np.unique(values, return_inverse=True)
    return table.codes([str(v) for v in used.tolist()])[place.reshape(-1)]
