"""Numbers of names, processes and configurations that do not depend on the order of the events in the file.

A store numbers them in order of first sight. Where a tie is broken by such a number, or devices are listed by it, a file
with the same rows in another order would give another report.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.frames import joined
from traceanalyzer.trace.store import Interner, Store
from traceanalyzer.trace.tables import Config

_OTHER_NAMES = (RowKind.CALL,)
_NUMBER = re.compile(r"[0-9]{1,18}\Z")


def make_canonical(store: Store) -> None:
    """Number everything interned in the order of its text: processes and threads as numbers where they are some."""
    _renumber(store, store.names, "name", tuple(k for k in RowKind if k not in _OTHER_NAMES), str)
    _renumber(store, store.apis, "name", (RowKind.CALL,), str)
    names = _renumber(store, store.frame_names, "", (), str)
    _renumber(store, store.configs, "config", tuple(RowKind), _config_key)
    tids = _renumber(store, store.tids, "tid", tuple(RowKind), natural)
    pids = _renumber(store, store.pids, "pid", tuple(RowKind), natural, also="owner")
    store.frames = [batch.coded(names, pids, tids) for batch in joined(store.frames)]


def natural(text: str) -> tuple[int, int, str]:
    """Return a key that sorts numbers by value, before any other text."""
    return (0, int(text), text) if _NUMBER.match(text) else (1, 0, text)


def _config_key(config: Config) -> tuple[Any, ...]:
    dims = tuple(() if d is None else d for d in (config.grid, config.block))
    return dims + tuple(-1 if v is None else v for v in (config.registers, config.shared_bytes))


def _renumber(
    store: Store, table: Interner, column: str, kinds: tuple[RowKind, ...], key: Callable[[Any], Any], also: str = ""
) -> npt.NDArray[np.int32]:
    """Return the new number of each old one."""
    values = table.values_in_order
    order = sorted(range(len(values)), key=lambda i: key(values[i]))
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    rank[-1] = -1  # no process
    if order == list(range(len(values))):
        return rank
    for kind in kinds:
        for name in (column, also):
            if name and len(codes := store.column(kind, name)):
                store.replace(kind, name, rank[codes])
    table.renumber(order)
    return rank
