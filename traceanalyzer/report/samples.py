"""Samples of self-times for comparisons: filled into a report's rows only when the options ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traceanalyzer.analysis import steadiness
from traceanalyzer.analysis.graphs import ReplayFacts
from traceanalyzer.analysis.kernels import KernelFacts
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.report.operations import shown_operations
from traceanalyzer.report.units import KernelRow, OpRow
from traceanalyzer.trace.tables import Int64

PER_ROW = 512
"""Most samples of one row: a median's interval from 512 values is within a tenth of that from all."""
PER_REPORT = 100_000
"""Most samples of a whole report, about a megabyte of JSON; operations first, then kernels by total time."""


class _Budget:
    def __init__(self) -> None:
        self.left = PER_REPORT

    def take(self, values: Int64) -> list[float]:
        """Return the values in microseconds, evenly thinned; nothing where the report is full."""
        n = min(len(values), PER_ROW)
        if n > self.left:
            return []
        self.left -= n
        at = np.linspace(0, len(values) - 1, n).round().astype(np.int64) if n else np.empty(0, dtype=np.int64)
        return [v / 1000 for v in values[at].tolist()]


def with_samples(analysis: Analysis, ops: list[OpRow], kernels: list[KernelRow]) -> tuple[list[OpRow], list[KernelRow]]:
    """Return the rows with their samples. ``kernels`` are those of ``analysis.kernels``, in its order."""
    budget = _Budget()
    sources: list[OpFacts | ReplayFacts] = [*shown_operations(analysis), *analysis.replays]
    filled = [
        replace(
            row,
            samples_of=len(source.self_ns),
            samples_us=budget.take(source.self_ns),
            dispatch_samples_us=budget.take(source.dispatch_ns),
            lag_one=_lag(source.self_ns),
        )
        for row, source in zip(ops, sources, strict=True)
    ]
    return filled, _kernels(analysis, kernels, analysis.kernels, budget)


def _kernels(
    analysis: Analysis, rows: Sequence[KernelRow], facts: Sequence[KernelFacts], budget: _Budget
) -> list[KernelRow]:
    starts, durations = analysis.trace.activities.start_ns, analysis.trace.activities.dur_ns
    result = []
    for row, found in zip(rows, facts, strict=True):
        at = found.rows[np.argsort(starts[found.rows], kind="stable")]
        own = durations[at]
        # a name in several configurations is several populations: their samples are there
        samples = [] if found.variants else budget.take(own)
        result.append(
            replace(
                row,
                first_us=(int(starts[at[0]]) - analysis.trace.meta.origin_ns) / 1000,
                samples_us=samples,
                lag_one=_lag(own),
                variants=_kernels(analysis, row.variants, found.variants, budget),
            )
        )
    return result


def _lag(values: Int64) -> float | None:
    found = steadiness.lag_one(values)
    return None if found is None else round(found, 6)
