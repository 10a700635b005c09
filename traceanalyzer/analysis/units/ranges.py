"""Units from ranges: ProfilerStep, the user's own, and the marks that begin a step of a training loop."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from traceanalyzer.analysis.ranges import of_library
from traceanalyzer.analysis.selection import Chosen
from traceanalyzer.analysis.units.model import MARK, NAMED, STEP, Places
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

_NUMBERED = re.compile(r"[\s#:_(\[-]*\d+[)\]]?\Z")
_MARKS = ("enumerate(DataLoader)", "Optimizer.zero_grad", "Optimizer.step")
"""PyTorch's own ranges that come once per step."""
_FRAMEWORK = (
    *_MARKS, "Optimizer.", "nccl:", "c10d::", "## Call CompiledFxGraph", "Torch-Compiled Region", "TorchDynamo", "AOTDispatcher", "Inductor",
    "DistributedDataParallel", "FullyShardedDataParallel", "FSDP", "autograd::", "aten::", "torch::", "PyTorch Profiler",
)  # fmt: skip
MOST_NAMES = 60


def range_units(trace: Trace, chosen: Chosen) -> list[Places]:
    """Return the units that ranges on the host name, and the steps that their recurrence marks."""
    groups = _groups(trace)
    if not groups:
        return []
    begun = _BegunRows(trace, chosen)
    found = []
    for (name, process), at in groups.items():
        low, high = trace.ranges.start_ns[at], trace.ranges.end_ns[at]
        if name.startswith(_MARKS):
            if len(at) > 1:
                found.append(_marked(name.partition("#")[0], process, low, begun))
            continue
        method = STEP if name == STEP else NAMED
        low, high = _outermost(low, high)
        windows = list(zip(low.tolist(), high.tolist(), strict=True))
        found.append(Places(name, method, begun.inside(process, low, high), windows))
        if method == NAMED and len(low) > 1:
            found.append(_marked(name, process, low, begun))
    return found


def _groups(trace: Trace) -> dict[tuple[str, str], Int64]:
    """Return ranges by name (numbers at its end taken off) and process, in order of start; the longest in all first."""
    ranges = trace.ranges
    processes = [t.process for t in trace.threads]
    plain: dict[int, str] = {}
    members: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(~ranges.on_device).tolist():
        number = int(ranges.name[row])
        if number not in plain:
            plain[number] = _plain(trace.names[number])
        if plain[number]:
            members.setdefault((plain[number], processes[ranges.thread[row]]), []).append(row)
    arrays = {key: np.array(rows, dtype=np.int64) for key, rows in members.items()}
    length: Callable[[Int64], int] = lambda at: int((ranges.end_ns[at] - ranges.start_ns[at]).sum())  # noqa: E731
    kept = sorted(arrays.items(), key=lambda item: -length(item[1]))[:MOST_NAMES]
    return {key: at[np.argsort(ranges.start_ns[at], kind="stable")] for key, at in kept}


def _plain(name: str) -> str:
    if name.startswith("ProfilerStep"):
        return STEP
    if name.startswith(CAPTURE_PREFIX):
        return ""
    if name.startswith(_MARKS):
        return name
    return "" if name.startswith(_FRAMEWORK) or of_library(name) else _NUMBERED.sub("", name) or name


def _outermost(low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Return the ranges of one name without those inside another of that name (recursion)."""
    reach = np.maximum.accumulate(high)
    outer = np.concatenate([[True], low[1:] >= reach[:-1]])
    return low[outer], high[outer]


def _marked(name: str, process: str, low: Int64, begun: _BegunRows) -> Places:
    """Return steps from one mark to the next; what follows the last mark is no whole step."""
    starts = distinct(low)
    windows = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    return Places(name, MARK, begun.inside(process, starts[:-1], starts[1:]), windows)


class _BegunRows:
    """The chosen device rows by the start of the call that launched them, for each process."""

    def __init__(self, trace: Trace, chosen: Chosen) -> None:
        rows, calls = trace.activities, trace.calls
        at = np.flatnonzero(chosen.rows & (rows.call != NO_ROW))
        launched = calls.start_ns[rows.call[at]]
        names = sorted({t.process for t in trace.threads})
        numbers = {p: n for n, p in enumerate(names)}
        of_thread = np.array([numbers[t.process] for t in trace.threads], dtype=np.int64)
        process = of_thread[calls.thread[rows.call[at]]]
        self._starts = rows.start_ns
        self._of: dict[str, tuple[Int64, Int64]] = {}
        for n, p in enumerate(names):
            mine = process == n
            order = np.argsort(launched[mine], kind="stable")
            self._of[p] = (at[mine][order], launched[mine][order])

    def inside(self, process: str, low: Int64, high: Int64) -> list[Int64]:
        """Return, per window, the rows launched in it, in order of start; where one ends as the next begins, the next has them."""
        rows, launched = self._of.get(process, (np.empty(0, np.int64), np.empty(0, np.int64)))
        begins = np.searchsorted(launched, low, side="left")
        ends = np.searchsorted(launched, high, side="left")
        found = []
        for x, y in zip(begins.tolist(), ends.tolist(), strict=True):
            part = rows[x:y]
            found.append(part[np.argsort(self._starts[part], kind="stable")])
        return found
