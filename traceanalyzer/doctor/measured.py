"""Which operations look like a measurement: rules about timers speak of nothing else.

A range that labels a phase of a model is no timer, and a training step is timed by nobody with an event pair around each kernel. An operation looks
measured where somebody says so (capture's annotations, ``--range``, ``--claim``), where its range is called a timer or a benchmark, or where calls of few
launches repeat and are most of what the host launches.
"""

from __future__ import annotations

import re

import numpy as np

from traceanalyzer.analysis.ledger.classes import is_compiler
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.finding import Severity
from traceanalyzer.options import MEASURED_LAUNCHES, MEASURED_SHARE
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX

LEAST_CALLS = 3
ASKED_FOR = ("capture annotation", "range")
"""Methods by which calls are told apart where somebody named them."""
_TIMER = re.compile(
    r"(?:^|[^a-z])(?:timed|timer|timing|bench(?:mark(?:ed|ing)?)?|measured?|measurement)(?:[^a-z]|$)", re.I
)


def is_timer_name(name: str) -> bool:
    """Return whether a range of this name says that it is a timer."""
    # a compiler times its own stages; its ranges are nobody's benchmark
    return _TIMER.search(name) is not None and not is_compiler(name)


def timed_range(analysis: Analysis, name: str) -> bool:
    """Return whether a range is read as a timer: asked for, capture's, called so, or in a trace with a claim."""
    options = analysis.options
    return (
        name == options.selection.range_name
        or name.startswith(CAPTURE_PREFIX)
        or is_timer_name(name)
        or any(c.operation and c.operation.lower() in name.lower() for c in options.claims)
    )


def measured(analysis: Analysis) -> list[OpFacts]:
    """Return the operations that look like a measurement, in their order."""
    named = [op for op in analysis.operations if op.iterations.method in ASKED_FOR or _named(analysis, op)]
    if named:
        return named
    most = analysis.options.threshold(MEASURED_LAUNCHES)
    short = [op for op in analysis.operations if len(op.iterations.calls) >= LEAST_CALLS and _size(op) <= most]
    launches = int(np.count_nonzero(analysis.host.owns & analysis.chosen.calls))
    mine = sum(len(c) for op in short for c in op.iterations.calls)
    return short if mine >= analysis.options.threshold(MEASURED_SHARE) * launches else []


def is_measured(analysis: Analysis, op: OpFacts) -> bool:
    """Return whether an operation looks like a measurement."""
    return any(op is m for m in measured(analysis))


def graded(analysis: Analysis, op: OpFacts) -> Severity:
    """Return a warning for an operation that looks like a measurement; steps of a program may differ, and are noted."""
    return Severity.WARNING if is_measured(analysis, op) else Severity.NOTE


def _named(analysis: Analysis, op: OpFacts) -> bool:
    claims = analysis.options.claims
    if any(not c.operation or c.operation.lower() in op.iterations.name.lower() for c in claims):
        return True
    return op.iterations.windows is not None and is_timer_name(op.iterations.name)


def _size(op: OpFacts) -> float:
    """Return the launches or kernels of a typical call, whichever are more."""
    launches = float(np.median([len(c) for c in op.iterations.calls]))
    return max(launches, op.kernels_per_iteration)
