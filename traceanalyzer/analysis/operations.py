"""Operations: statistics per iteration, the symbols of the model, and the ladder of readings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceanalyzer.analysis import intervals, protocols, stats
from traceanalyzer.analysis.iterations import Iterations
from traceanalyzer.analysis.launching import Launching
from traceanalyzer.analysis.protocols import Symbols
from traceanalyzer.analysis.queue import QueueVerdict
from traceanalyzer.analysis.replay import replayed
from traceanalyzer.analysis.steadiness import Steadiness
from traceanalyzer.analysis.symbols import MachineSymbols, operation_symbols
from traceanalyzer.options import HEAD_RATIO, LEVEL_SHIFT, MODE_GAP, AnalysisOptions
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import is_fill
from traceanalyzer.trace.tables import NO_ROW, Bool, Int64, Trace

LEAST_CLEAR_NS = 4000
"""A fill shorter than this clears no cache (7 us for 50 MiB on the fastest memory)."""


@dataclass(frozen=True)
class OpFacts:
    """One operation; arrays hold one value per iteration that has device work, in nanoseconds.

    ``clear`` marks device rows that clear a cache before the work: they are shown apart and count in no
    self-time. ``self_ns`` sums the kernels, ``busy_ns`` is the union of the rows, ``span_ns`` first start to
    last end, ``period_ns`` start to start on the device, ``dispatch_ns`` first launch to first launch on the
    host. ``worked`` numbers the iterations that have work; ``steady`` says whether ``self_ns`` is. Without symbols (no regular shape) there is no
    ladder and ``no_ladder`` says why.
    """

    iterations: Iterations
    worked: Int64
    clear: Bool
    self_ns: Int64
    busy_ns: Int64
    span_ns: Int64
    clear_ns: Int64
    period_ns: Int64
    dispatch_ns: Int64
    kernels_per_iteration: float
    symbols: Symbols | None
    readings: dict[str, float | None]
    replays: dict[str, float | None]
    no_ladder: str
    queue: QueueVerdict
    steady: Steadiness


def operation(
    trace: Trace, host: Launching, machine: MachineSymbols, found: Iterations, queue_of: Callable[[Int64], QueueVerdict], clocks_disagree: bool,
    options: AnalysisOptions,
) -> OpFacts:  # fmt: skip
    """Return the facts of one operation."""
    rows = trace.activities
    worked = np.array([i for i, r in enumerate(found.rows) if len(r)], dtype=np.int64)
    parts = [found.rows[i] for i in worked.tolist()]
    clear = _clears(trace, parts)
    work = [p[~clear[p]] if (~clear[p]).any() else p for p in parts]
    is_kernel = rows.kind == RowKind.KERNEL
    self_ns = np.array([int(rows.dur_ns[p[is_kernel[p]]].sum()) for p in work], dtype=np.int64)
    starts = np.array([int(rows.start_ns[p[0]]) for p in work], dtype=np.int64)
    first_calls = np.array(
        [int(trace.calls.start_ns[rows.call[p[0]]]) for p in parts if rows.call[p[0]] != NO_ROW], dtype=np.int64
    )
    symbols, times, why = _symbols(trace, host, machine, work)
    if clocks_disagree:
        symbols, why = None, "host and device clocks disagree; launch latency cannot be measured"
    readings: dict[str, float | None] = dict.fromkeys(protocols.PROTOCOLS)
    replays: dict[str, float | None] = dict.fromkeys(protocols.PROTOCOLS)
    if symbols is not None:
        readings |= protocols.ladder(symbols)
        replays |= {p: replayed(p, times, symbols) for p in protocols.PROTOCOLS}
    readings["profiler_self_time"] = stats.median(self_ns)
    everything = np.concatenate(work) if work else np.empty(0, dtype=np.int64)
    return OpFacts(
        iterations=found,
        worked=worked,
        clear=clear,
        self_ns=self_ns,
        busy_ns=np.array(
            [intervals.length(*intervals.union(rows.start_ns[p], rows.end_ns[p])) for p in work], dtype=np.int64
        ),
        span_ns=np.array([int(rows.end_ns[p].max() - rows.start_ns[p].min()) for p in work], dtype=np.int64),
        clear_ns=np.array([int(rows.dur_ns[p[clear[p]]].sum()) for p in parts], dtype=np.int64),
        period_ns=np.diff(starts),
        dispatch_ns=np.diff(first_calls),
        kernels_per_iteration=float(np.median([np.count_nonzero(is_kernel[p]) for p in work])) if work else 0.0,
        symbols=symbols,
        readings=readings,
        replays=replays,
        no_ladder=why if symbols is None else "",
        queue=queue_of(everything),
        steady=Steadiness(self_ns, *(options.threshold(t) for t in (HEAD_RATIO, LEVEL_SHIFT, MODE_GAP))),
    )


def _clears(trace: Trace, parts: list[Int64]) -> Bool:
    """Return which rows clear a cache: a fill that leads an iteration with other kernels behind it, in most of them."""
    rows = trace.activities
    clear = np.zeros(len(rows), dtype=bool)
    fills = np.array([is_fill(n) for n in trace.names], dtype=bool)
    leading = [
        int(p[0])
        for p in parts
        if len(p) > 1
        and rows.dur_ns[p[0]] >= LEAST_CLEAR_NS
        and (fills[rows.name[p[0]]] or rows.kind[p[0]] == RowKind.MEMSET)
        and (rows.kind[p[1:]] == RowKind.KERNEL).any()
    ]
    if parts and len(leading) >= 0.9 * len(parts):
        clear[leading] = True
    return clear


def _symbols(
    trace: Trace, host: Launching, machine: MachineSymbols, work: list[Int64]
) -> tuple[Symbols | None, list[list[tuple[float, float]]], str]:
    """Estimate dispatch and kernel of each launch from iterations of the commonest shape."""
    rows, calls = trace.activities, trace.calls
    if len(work) < 2:
        return None, [], f"only {len(work)} iteration with device work"
    shapes: dict[tuple[bytes, bytes], list[int]] = {}
    leads = _first_of_call(rows.call, work)
    for i, (part, lead) in enumerate(zip(work, leads, strict=True)):
        if (rows.call[part] != NO_ROW).all():
            shapes.setdefault((rows.name[part].tobytes(), lead.tobytes()), []).append(i)
    if not shapes:
        return None, [], "no iteration is linked to launches throughout"
    regular = max(shapes.values(), key=len)
    if 2 * len(regular) < len(work):
        return None, [], "iterations differ in their kernels, so no launch stands for a typical one"
    # rows of iterations x places of a row in its iteration; launches in order of their first row
    table = np.stack([work[i] for i in regular])
    lead = leads[regular[0]]
    by_launch = np.argsort(lead, kind="stable")
    places, begins = np.unique(lead[by_launch], return_index=True)
    kernels = np.add.reduceat(rows.dur_ns[table[:, by_launch]], begins, axis=1)
    owners = rows.call[table[:, places]]
    previous = host.previous[owners]
    dispatch = calls.start_ns[owners] - calls.start_ns[previous]
    # behind a synchronise the host starts anew when it returns; the launch is submitted when its call ends
    dispatch = np.where(host.after_sync[owners], calls.end_ns[owners] - host.sync_end_ns[owners], dispatch)
    whole = (previous != NO_ROW).all(axis=1)
    if not whole.any():
        return None, [], "no iteration has a launch before it to measure dispatch from"
    times = [
        [(d, k) for d, k in i] for i in np.stack([dispatch[whole], kernels[whole]], axis=-1).astype(float).tolist()
    ]
    typical = (np.median(dispatch[whole], axis=0).tolist(), np.median(kernels, axis=0).tolist())
    return operation_symbols(machine, *typical), times, ""


def _first_of_call(call: Int64, parts: list[Int64]) -> list[Int64]:
    """Return, for each row of each part, the place in the part of the first row of the same call."""
    lengths = np.array([len(p) for p in parts])
    begins = np.cumsum(lengths) - lengths
    part = np.repeat(np.arange(len(parts)), lengths)
    keys = part * (int(call.max()) + 2) + call[np.concatenate(parts)] + 1
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    places = first[which] - begins[part]
    return [places[b : b + n] for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
