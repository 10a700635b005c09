"""Calls of the thing being measured: which device rows belong to one iteration, and how that was found out.

In this order: capture's own annotations, the range asked for, ranges that repeat, ProfilerStep, else the
repeating pattern of launches on the busiest stream. Work belongs to a range by where its launch call lies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.selection import Chosen
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import is_fill
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import NO_ROW, Int32, Int64, Trace

LEAST_REPEATS = 3
LONGEST_PATTERN = 512
_NUMBERED = re.compile(r"[\s#:_(\[-]*\d+[)\]]?\Z")
_FRAMEWORK = (
    "Optimizer.", "nccl:", "c10d::", "enumerate(DataLoader)", "## Call CompiledFxGraph", "Torch-Compiled Region", "TorchDynamo",
    "AOTDispatcher", "Inductor", "DistributedDataParallel", "FullyShardedDataParallel", "FSDP", "autograd::", "aten::",
)  # fmt: skip
"""Beginnings of range names that PyTorch writes by itself: they mark no benchmark."""
_CONVINCING = 0.9


@dataclass(frozen=True)
class Iterations:
    """One operation's iterations.

    ``rows`` holds the device rows of each iteration in order of start, ``calls`` its launch calls; both may be
    empty for an iteration without work. ``windows`` are the host ranges (start, end in ns) where ranges told
    iterations apart, else None. ``left_out`` launches belong to no iteration. ``how`` and ``certainty`` are for
    people.
    """

    name: str
    method: str
    how: str
    certainty: str
    rows: list[Int64]
    calls: list[Int64]
    windows: list[tuple[int, int]] | None
    left_out: int = 0


def user_ranges(trace: Trace) -> dict[str, Int64]:
    """Return the host ranges a user set, by name without trailing number: row numbers in order of start.

    Capture's own keep their number: it belongs to the operation's name.
    """
    groups: dict[str, list[int]] = {}
    for row in np.flatnonzero(~trace.ranges.on_device).tolist():
        name = trace.names[trace.ranges.name[row]]
        if name.startswith("ProfilerStep") or name.startswith(_FRAMEWORK):
            continue
        plain = name if name.startswith(CAPTURE_PREFIX) else _NUMBERED.sub("", name) or name
        groups.setdefault(plain, []).append(row)
    return {name: np.array(rows, dtype=np.int64) for name, rows in groups.items()}


def find_iterations(trace: Trace, host: Launching, chosen: Chosen, range_name: str | None) -> list[Iterations] | str:
    """Return the operations of a trace with their iterations, or why none is convincing."""
    if not chosen.rows.any():
        return "there is no device row"
    groups = user_ranges(trace)
    captured = {n.removeprefix(CAPTURE_PREFIX): r for n, r in groups.items() if n.startswith(CAPTURE_PREFIX)}
    if captured:
        return [_by_ranges(trace, host, chosen, n, r, "capture annotation", "certain") for n, r in captured.items()]
    if range_name is not None:
        rows = np.flatnonzero(~trace.ranges.on_device & (trace.ranges.name == trace.names.index(range_name)))
        return [_by_ranges(trace, host, chosen, range_name, rows, "range", "as asked for")]
    repeating = {n: r for n, r in groups.items() if len(r) >= LEAST_REPEATS}
    if repeating:
        found = [
            _by_ranges(trace, host, chosen, n, r, "repeating range", "likely")
            for n, r in _outermost(trace, repeating).items()
        ]
        if any(len(x) for op in found for x in op.calls):
            return found
    steps = np.array([n.startswith("ProfilerStep#") for n in trace.names], dtype=bool)
    at = (
        np.flatnonzero(steps[trace.ranges.name] & ~trace.ranges.on_device)
        if len(trace.ranges)
        else np.empty(0, np.int64)
    )
    if len(at) >= LEAST_REPEATS:
        return [_by_ranges(trace, host, chosen, "ProfilerStep", at, "ProfilerStep", "likely")]
    return _by_pattern(trace, chosen)


def _outermost(trace: Trace, groups: dict[str, Int64]) -> dict[str, Int64]:
    """Leave out groups that lie inside the ranges of another: the outer one is the call."""
    ranges = trace.ranges
    result = {}
    for name, rows in groups.items():
        inside = False
        for other, others in groups.items():
            if other == name:
                continue
            s, e = intervals.union(ranges.start_ns[others], ranges.end_ns[others])
            at = np.searchsorted(s, ranges.start_ns[rows], side="right") - 1
            within = (at >= 0) & (e[np.maximum(at, 0)] >= ranges.end_ns[rows])
            longer = (ranges.end_ns[others] - ranges.start_ns[others]).sum() > (
                ranges.end_ns[rows] - ranges.start_ns[rows]
            ).sum()
            inside |= bool(within.all() and longer)
        if not inside:
            result[name] = rows
    return result


def _by_ranges(
    trace: Trace, host: Launching, chosen: Chosen, name: str, ranges: Int64, method: str, certainty: str
) -> Iterations:
    table, calls = trace.ranges, trace.calls
    processes = np.array([t.process for t in trace.threads], dtype=object)
    launching = np.flatnonzero(host.launches & chosen.calls)
    owned = _Owned(trace, chosen)
    windows, rows, call_rows = [], [], []
    begins = set(table.start_ns[ranges].tolist())
    for r in ranges.tolist():
        low, high = int(table.start_ns[r]), int(table.end_ns[r])
        inside = launching[(calls.start_ns[launching] >= low) & (calls.start_ns[launching] <= high)]
        if high > low and high in begins:  # where one range ends as the next begins, the launch is the next one's
            inside = inside[calls.start_ns[inside] < high]
        inside = inside[processes[calls.thread[inside]] == processes[table.thread[r]]]
        windows.append((low, high))
        call_rows.append(inside[np.argsort(calls.start_ns[inside], kind="stable")])
        rows.append(owned.started(inside))
    used = sum(len(c) for c in call_rows)
    how = f"{len(windows)} ranges called {name!r}"
    return Iterations(name, method, how, certainty, rows, call_rows, windows, len(launching) - used)


class _Owned:
    """The chosen device rows of each launch call."""

    def __init__(self, trace: Trace, chosen: Chosen) -> None:
        call = trace.activities.call
        at = np.flatnonzero(chosen.rows & (call != NO_ROW))
        self._rows = at[np.argsort(call[at], kind="stable")]
        self._calls = call[self._rows]
        self._start_ns = trace.activities.start_ns

    def of(self, call: int) -> Int64:
        """Return the rows of one call in the table's order."""
        low, high = np.searchsorted(self._calls, (call, call + 1))
        return self._rows[int(low) : int(high)]

    def started(self, calls: Int64) -> Int64:
        """Return the rows of some calls in order of start."""
        low, high = np.searchsorted(self._calls, calls), np.searchsorted(self._calls, calls, side="right")
        counts = high - low
        rows: Int64 = self._rows[np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        return rows[np.argsort(self._start_ns[rows], kind="stable")]

    def shapes(self, calls: Int64, name: Int32) -> Int64:
        """Return a number for each call, equal where the names of its rows are equal in order."""
        low, high = np.searchsorted(self._calls, calls), np.searchsorted(self._calls, calls, side="right")
        names = name[self._rows]
        seen: dict[bytes, int] = {}
        bounds = zip(low.tolist(), high.tolist(), strict=True)
        return np.array([seen.setdefault(names[x:y].tobytes(), len(seen)) for x, y in bounds], dtype=np.int64)


def _by_pattern(trace: Trace, chosen: Chosen) -> list[Iterations] | str:
    """Find the shortest pattern of launches that repeats on the busiest stream."""
    rows, calls = trace.activities, trace.calls
    usable = np.flatnonzero(chosen.rows & (rows.call != NO_ROW))
    if not len(usable):
        return "no device row is linked to a launch, so no pattern of launches can be read"
    lanes = rows.lane[usable]
    busiest = int(np.argmax(np.bincount(lanes, weights=rows.dur_ns[usable].astype(float) + 1)))
    owned = _Owned(trace, chosen)
    at = np.unique(rows.call[usable[lanes == busiest]])
    at = at[np.argsort(calls.start_ns[at], kind="stable")]
    tokens = owned.shapes(at, rows.name)
    n = len(tokens)
    if n < LEAST_REPEATS:
        return f"only {n} launch{'' if n == 1 else 'es'} on the busiest stream"
    period = next(
        (
            p
            for p in range(1, min(n // LEAST_REPEATS, LONGEST_PATTERN) + 1)
            if np.mean(tokens[p:] == tokens[:-p]) >= _wanted(n, p)
        ),
        None,
    )
    if period is None:
        return f"no pattern of launches repeats through the {n} launches of the busiest stream"
    if period == 1:
        return _single_launch_ops(trace, owned, at, tokens)
    return _pattern_op(trace, owned, at, tokens, period)


def _wanted(n: int, period: int) -> float:
    # one irregular iteration in a short trace breaks two comparisons of each of its launches
    return min(_CONVINCING, 1 - 2.5 * period / n) if n < 40 * period else _CONVINCING


def _single_launch_ops(trace: Trace, owned: _Owned, at: Int64, tokens: Int64) -> list[Iterations] | str:
    """Each launch is a call; every shape that occurs often enough is an operation."""
    found = []
    for token in np.unique(tokens).tolist():
        mine = at[tokens == token]
        if len(mine) < LEAST_REPEATS:
            continue
        rows = [owned.started(c) for c in mine[:, None]]
        name = trace.names[trace.activities.name[rows[0][0]]]
        how = f"the same launch {len(mine)} times"
        found.append(
            Iterations(
                name,
                "repeating kernels",
                how,
                "likely",
                rows,
                [np.array([c]) for c in mine.tolist()],
                None,
                len(at) - len(mine),
            )
        )
    return found or "no launch repeats three times"


def _pattern_op(trace: Trace, owned: _Owned, at: Int64, tokens: Int64, period: int) -> list[Iterations] | str:
    calls = trace.calls
    wait = np.diff(calls.start_ns[at], prepend=calls.start_ns[at[0]])
    # a call begins where the host took longest, seen over all repeats
    phase = int(
        np.argmax(
            [
                np.median(wait[np.arange(p if p else period, len(at), period)]) if len(at) > (p or period) else 0
                for p in range(period)
            ]
        )
    )
    # a cache clear, or the copy of the inputs, opens the call it was made for, however quickly it was launched
    fills = {t for t in np.unique(tokens).tolist() if _opens_with_fill(trace, owned, at, tokens, t)}
    clearing = [p for p in range(period) if int(np.bincount(tokens[p::period]).argmax()) in fills]
    if len(clearing) == 1 and period > 1:
        phase = clearing[0]
    folded = [tokens[p::period] for p in ((phase + i) % period for i in range(period))]
    pattern = np.array([np.bincount(f).argmax() for f in folded])
    groups, i, skipped = [], 0, 0
    while i + period <= len(at):
        if (tokens[i : i + period] == pattern).all():
            groups.append(at[i : i + period])
            i += period
        else:
            i += 1
            skipped += 1
    if len(groups) <= LEAST_REPEATS or 2 * len(groups) * period < len(at):
        return f"a pattern of {period} launches does not repeat whole often enough"
    rows = [owned.started(g) for g in groups]
    covered = sum(int(trace.activities.dur_ns[r].sum()) for r in rows)
    if 2 * covered < int(trace.activities.dur_ns[owned.started(at)].sum()):
        return f"the pattern of {period} launches that repeats holds little of the stream's work"
    name = trace.names[trace.activities.name[_main_row(trace, rows[0])]]
    how = f"a pattern of {period} launches, {len(groups)} times"
    certainty = "likely" if 4 * skipped < len(at) else "uncertain"
    return [Iterations(name, "repeating kernels", how, certainty, rows, groups, None, len(at) - len(groups) * period)]


def _main_row(trace: Trace, rows: Int64) -> int:
    """Return the row that gives a call its name: the longest kernel that is no fill, else the longest row."""
    table = trace.activities
    work = [
        r for r in rows.tolist() if table.kind[r] == RowKind.KERNEL and not is_fill(trace.names[table.name[r]])
    ] or rows.tolist()
    return int(max(work, key=lambda r: int(table.dur_ns[r])))


def _opens_with_fill(trace: Trace, owned: _Owned, at: Int64, tokens: Int64, token: int) -> bool:
    first = owned.of(int(at[np.flatnonzero(tokens == token)[0]]))
    row = int(first[0])
    kind, name = trace.activities.kind[row], trace.names[trace.activities.name[row]]
    inputs = kind == RowKind.MEMCPY and "HtoD" in name
    return len(first) == 1 and (inputs or kind == RowKind.MEMSET or (kind == RowKind.KERNEL and is_fill(name)))
