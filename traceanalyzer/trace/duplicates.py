"""Rows that are in the file twice, word for word: a file that was merged with itself, an exporter that wrote a buffer again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.tables import Bool

Array = npt.NDArray[Any]


def repeated(columns: Sequence[Array]) -> Bool:
    """Return which rows are equal to an earlier one in all columns; the first column should tell most rows apart."""
    n = len(columns[0])
    again = np.zeros(n, dtype=bool)
    if n < 2:
        return again
    first = np.sort(columns[0])
    if not (first[1:] == first[:-1]).any():  # as in nearly every trace
        return again
    counts = np.searchsorted(first, columns[0], "right") - np.searchsorted(first, columns[0], "left")
    at = np.flatnonzero(counts > 1)
    order = at[np.lexsort([c[at] for c in columns[::-1]])]
    same = np.ones(len(order) - 1, dtype=bool)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    again[order[1:][same]] = True
    return again
