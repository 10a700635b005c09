"""Sorting rows so that the order of the events in the file decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
N = TypeVar("N", bound=np.generic)


def distinct(values: npt.NDArray[N]) -> npt.NDArray[N]:
    """Return the distinct values in ascending order, as ``np.unique`` does, which hashes first: slower than sorting."""
    found = np.sort(values, axis=None)
    changes = np.ones(len(found), dtype=bool)
    changes[1:] = found[1:] != found[:-1]
    return found[changes]


def sorted_order(keys: Sequence[Array], ties: Sequence[Array]) -> npt.NDArray[np.intp]:
    """Return row numbers sorted by the keys, the first one first; rows equal in all of them by the ties.

    Ties are looked at only where there are some, which in most traces is nowhere.
    """
    order = np.lexsort(tuple(reversed(keys)))
    if len(order) < 2:
        return order
    equal = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        ordered = key[order]
        equal &= ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    places = np.flatnonzero(tied)
    group = np.cumsum(~np.concatenate([[False], equal]))[places]
    among = order[places]
    order[places] = among[np.lexsort((*(t[among] for t in reversed(ties)), group))]
    return order
