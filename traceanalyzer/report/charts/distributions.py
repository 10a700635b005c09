"""How self-times, dispatch intervals and event readings are distributed, per operation and for the largest kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.graphs import ReplayFacts, in_graph
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.report.charts.model import Band, Distribution, Mark
from traceanalyzer.report.operations import shown_operations
from traceanalyzer.report.units import KernelRow, OpRow
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64

OPERATIONS, KERNELS = 12, 12
BINS = 60
SAMPLES = 400
LOG_FROM = 20.0
"""From this ratio of the largest to the smallest value on, the axis is logarithmic."""

Values = list[tuple[str, npt.NDArray[np.int64] | npt.NDArray[np.float64]]]


def distributions(analysis: Analysis, ops: list[OpRow], kernels: list[KernelRow]) -> tuple[list[Distribution], int]:
    """Return one distribution per operation and per large kernel, and how many of either have none."""
    judged = analysis.clocks.state is not ClockState.DISAGREE
    found: list[Distribution | None] = []
    facts: list[OpFacts | ReplayFacts] = [*shown_operations(analysis), *analysis.replays]
    for row, op in list(zip(ops, facts, strict=True))[:OPERATIONS]:
        values: Values = [("self-time", op.self_ns), ("dispatch", op.dispatch_ns)]
        reading = row.readings.get("event_pair")
        marks = [] if reading is None else [Mark("event pair reads", reading * 1000)]
        found.append(distribution(row.name, "operation", values, marks))
    rows, calls = analysis.trace.activities, analysis.trace.calls
    graph = in_graph(analysis.trace)
    for kernel, facts_of in list(zip(kernels, analysis.kernels, strict=True))[:KERNELS]:
        at = facts_of.rows
        opens = at[analysis.waits.opens_call[at] & ~graph[at]]
        previous = analysis.host.before[rows.call[opens]]
        dispatch = (calls.start_ns[rows.call[opens]] - calls.start_ns[previous])[previous != NO_ROW]
        values = [("self-time", rows.dur_ns[at]), ("dispatch", dispatch)]
        marks = []
        if judged and kernel.event_reading_us is not None:
            values.append(("event pair", analysis.readings.reading_ns[opens[analysis.readings.known[opens]]]))
            marks = [Mark("event pair reads", kernel.event_reading_us * 1000)]
        found.append(distribution(kernel.short_name, "kernel", values, marks))
    made = [d for d in found if d is not None]
    return made, max(0, len(ops) - OPERATIONS) + max(0, len(kernels) - KERNELS)


def distribution(title: str, kind: str, values: Values, marks: list[Mark]) -> Distribution | None:
    """Return populations of nanoseconds on one axis, None where all are empty. Negative values count below the first edge."""
    values = [(label, v) for label, v in values if len(v)]
    if not values:
        return None
    everything = np.concatenate([*(v for _, v in values), [m.at_ns for m in marks]])
    above = everything[everything > 0]
    high = float(everything.max())
    low = float(above.min()) if len(above) else 0.0
    logarithmic = bool(len(above)) and high / low >= LOG_FROM
    if not logarithmic:
        low = float(max(0.0, everything.min()))
    spread = max(high - low, 0.02 * high, 1.0)
    if logarithmic:
        edges = np.geomspace(low / 1.05, high * 1.05, BINS + 1)
    else:
        edges = np.linspace(max(0.0, low - 0.05 * spread), max(high, low) + 0.05 * spread, BINS + 1)
    return Distribution(
        title=title,
        kind="operation" if kind == "operation" else "kernel",
        logarithmic=logarithmic,
        edges_ns=[round(e, 4) for e in edges.tolist()],
        bands=[_band(label, v, edges) for label, v in values],
        marks=marks,
    )


def _band(label: str, values: Int64 | npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> Band:
    below = int(np.count_nonzero(values < edges[0]))
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
    ordered = np.sort(values)
    at = distinct(np.linspace(0, len(ordered) - 1, min(SAMPLES, len(ordered))).round().astype(np.int64))
    return Band(
        label=label,
        n=len(values),
        p50_ns=stats.median(values) or 0.0,
        counts=np.bincount(place, minlength=BINS).tolist(),
        samples_ns=ordered[at].astype(np.int64).tolist(),
        below=below,
    )
