"""Rows of the report for the steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.steps import StepFacts
from traceanalyzer.doctor.rule import us
from traceanalyzer.report.units import SlowStep, StepRow
from traceanalyzer.trace.tables import NO_ROW

MOST_STEPS = 2000


def step_rows(analysis: Analysis, clean: Callable[[str], str]) -> list[StepRow]:
    """Return one row for each kind of step."""
    return [_row(analysis, found, clean) for found in analysis.steps]


def _row(analysis: Analysis, found: StepFacts, clean: Callable[[str], str]) -> StepRow:
    length, n = found.dur_ns, len(found.dur_ns)
    interval = stats.median_interval(length)
    device = analysis.trace.devices[found.device] if found.device != NO_ROW else None
    shown = length if n <= MOST_STEPS else length[np.linspace(0, n - 1, MOST_STEPS).astype(np.int64)]
    return StepRow(
        name=clean(found.name),
        method=found.method,
        device=device.number if device else None,
        owner=device.owner if device else "",
        rank=analysis.origin.rank_of_process(found.process) if found.process is not None else None,
        n=n,
        p50_us=_us(found.p50_ns),
        p50_ci95_us=(_us(interval[0]), _us(interval[1])) if interval else None,
        mean_us=_us(float(length.mean())),
        min_us=_us(int(length.min())),
        max_us=_us(int(length.max())),
        wait_p50_us=_us(float(np.median(found.wait_ns))),
        busy_p50_us=us(stats.median(found.busy_ns)) if device else None,
        before_first_p50_us=us(stats.median(found.head_ns)) if device else None,
        after_last_p50_us=us(stats.median(found.tail_ns)) if device else None,
        slowest=_slowest(analysis, found, clean),
        steps_us=[_us(v) for v in shown.tolist()],
    )


def _slowest(analysis: Analysis, found: StepFacts, clean: Callable[[str], str]) -> SlowStep:
    length, cause = int(found.dur_ns[found.slowest]), found.cause
    label = ""
    if cause is not None:
        label = cause.cls.label if cause.cls is not None else "outside"
    return SlowStep(
        index=found.slowest,
        at_us=_us(int(found.start_ns[found.slowest]) - analysis.trace.meta.origin_ns),
        us=_us(length),
        over_p50_us=_us(length - found.p50_ns),
        cause=label,
        cause_name=clean(cause.name) if cause else "",
        cause_within=clean(cause.within) if cause else "",
        cause_us=_us(cause.more_ns) if cause else None,
    )


def _us(ns: float) -> float:
    return round(float(ns) / 1000, 6)
