"""The operator that a host call lies in: the outermost of its thread that is no wrapper."""

from __future__ import annotations

import re

import numpy as np

from traceanalyzer.analysis.ledger.classes import is_wrapper
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

_OPERATOR = re.compile(r"::|Backward\d*\Z|\A(?:enumerate|Optimizer)")
"""What names of operators look like; the user's ranges are others."""


class CallOperators:
    """The operators of a trace, by thread, as they are asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._operators: dict[int, tuple[Int64, Int64, Int64]] = {}

    def names(self, calls: Int64) -> list[str]:
        """Return the outermost operator that each call lies in and that is no wrapper, empty for none."""
        return [self._trace.names[n] if n != NO_ROW else "" for n in self.codes(calls).tolist()]

    def codes(self, calls: Int64) -> Int64:
        """Return the name (row of ``trace.names``) of the outermost operator that each call lies in, NO_ROW for none."""
        table = self._trace.calls
        result = np.full(len(calls), NO_ROW, dtype=np.int64)
        threads = table.thread[calls]
        for thread in distinct(threads).tolist():
            start, end, name = self._outermost(thread)
            if not len(start):
                continue
            here = np.flatnonzero(threads == thread)
            when = table.start_ns[calls[here]]
            last = np.searchsorted(start, when, side="right") - 1
            inside = (last >= 0) & (end[np.maximum(last, 0)] >= when)
            result[here[inside]] = name[last[inside]]
        return result

    def _is_no_operator(self, name: str) -> bool:
        """Return whether a row of an operator is a wrapper, or in traces of 2021, which have no rows for them, a range of the user's."""
        if is_wrapper(name):
            return True
        return not len(self._trace.ranges) and _OPERATOR.search(name) is None

    def _outermost(self, thread: int) -> tuple[Int64, Int64, Int64]:
        """Return start, end and name of the outermost operators of a thread that are no wrappers."""
        if thread not in self._operators:
            ops = self._trace.host_ops
            rows = np.flatnonzero(ops.thread == thread)
            names = distinct(ops.name[rows])
            wraps = {n for n in names.tolist() if self._is_no_operator(self._trace.names[n])}
            if wraps:
                rows = rows[~np.isin(ops.name[rows], list(wraps))]
            start, end = ops.start_ns[rows], ops.end_ns[rows]
            if len(start) > 1 and ((start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))).any():
                order = np.lexsort((-end, start))
                rows, start, end = rows[order], start[order], end[order]
            reach = np.maximum.accumulate(end)
            top = np.concatenate([np.ones(min(1, len(rows)), dtype=bool), start[1:] >= reach[:-1]])
            self._operators[thread] = start[top], end[top], ops.name[rows[top]].astype(np.int64)
        return self._operators[thread]
