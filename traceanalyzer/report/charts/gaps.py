"""What the device waited for before a row: of each idle interval of the ledger, the class that took most of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.trace.tables import Int64

NAME_LENGTH = 120


@dataclass(frozen=True)
class Gaps:
    """Per device row: the idle time in ns that it ended (0: none), and the place of its largest cause in ``causes``.

    ``causes`` holds the label of a ledger class and what it was busy with. ``known`` is False where the clocks disagree.
    """

    ns: Int64
    cause: Int64
    causes: list[tuple[str, str]]
    known: bool


def gaps(analysis: Analysis, rows: Int64, clean: Callable[[str], str]) -> Gaps:
    """Return the idle intervals that these device rows ended; causes of other rows are left out."""
    total = len(analysis.trace.activities)
    ns, cause = np.zeros(total, dtype=np.int64), np.full(total, -1, dtype=np.int64)
    if analysis.clocks.state is ClockState.DISAGREE:
        return Gaps(ns, cause, [], False)
    wanted = np.zeros(total, dtype=bool)
    wanted[rows] = True
    place: dict[tuple[str, str], int] = {}
    for ledger in analysis.ledgers:
        idle = np.flatnonzero((ledger.interval >= 0) & wanted[ledger.row])
        if not len(idle):
            continue
        # of each interval the largest segment: the last in order of (interval, length)
        order = idle[np.lexsort((ledger.ns[idle], ledger.interval[idle]))]
        last = np.append(np.diff(ledger.interval[order]) != 0, True)
        largest = order[last]
        ns[ledger.row[largest]] = (ledger.idle.end - ledger.idle.start)[ledger.interval[largest]]
        keys = np.stack([ledger.cls[largest].astype(np.int64), ledger.name[largest]])
        known, which = np.unique(keys, axis=1, return_inverse=True)
        numbers = np.array(
            [
                place.setdefault((LedgerClass(c).label, clean(ledger.names.text(n)[:4096])[:NAME_LENGTH]), len(place))
                for c, n in known.T.tolist()
            ],
            dtype=np.int64,
        )
        cause[ledger.row[largest]] = numbers[which.ravel()]
    return Gaps(ns, cause, list(place), True)
