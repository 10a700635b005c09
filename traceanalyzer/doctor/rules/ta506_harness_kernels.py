"""TA506 harness-kernels: input making or checking runs inside the measured calls.

What it checks
    Whether iterations hold kernels that make random inputs or compare results.

Why it matters
    A harness that makes its inputs or checks its outputs inside the timed region counts that work.

How it is decided
    Random-number and comparison kernels over 2 % of the self-time of an operation of two kernels or more. A
    HINT: it is a name match.

Example
    randn fills the input in each call: 12 us next to a GEMM of 100 us.

What to do
    Make inputs before the loop, compare results after it.

When it is wrong
    Operations that draw random numbers themselves, as dropout does.

References
    docs/methodology.md, kernel self-time.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message, numbered
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold
from traceanalyzer.trace.categories import RowKind

_HARNESS = re.compile(
    r"distribution_(?:normal|uniform|random)|curand|philox.*(?:normal|uniform)|randn?_|isclose|allclose|CompareEq|random_from_to",
    re.I,
)

HARNESS_SHARE = Threshold("harness_share", 0.02, "share of self-time", "2 % of foreign work decides close comparisons")
HARNESS_CALLS = Threshold(
    "harness_calls", 0.5, "harness kernels per call", "one in every second call: it belongs to the loop"
)


class HarnessKernels(Rule):
    """Input making or checking runs inside the measured calls."""

    code = "TA506"
    name = "harness-kernels"
    family = "cache"
    thresholds = (HARNESS_SHARE, HARNESS_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "harness-kernels": Message(
            "the harness works inside the calls of {operation:name}",
            "{first:name}[[, {second:name}]][[, {third:name}]] hold {share:share} of the kernel time of {operation:name}: input making or checking seems to be "
            "inside the measured call.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "random inputs in each call",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        host_range("step", 200 * i, 60),
                        launch(200 * i + 2, 10 * i + 1),
                        kernel(200 * i + 8, 12, 10 * i + 1, "distribution_normal_kernel"),
                        launch(200 * i + 6, 10 * i + 2),
                        kernel(200 * i + 21, 100, 10 * i + 2, "gemm"),
                    )
                ),
                allows=(
                    "TA201",
                    "TA202",
                    "TA211",
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "two kernels of the operation",
                tuple(
                    e
                    for i in range(8)
                    for e in (
                        host_range("step", 200 * i, 60),
                        launch(200 * i + 2, 10 * i + 1),
                        kernel(200 * i + 8, 12, 10 * i + 1, "cast"),
                        launch(200 * i + 6, 10 * i + 2),
                        kernel(200 * i + 21, 100, 10 * i + 2, "gemm"),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        rows = analysis.trace.activities
        limit = analysis.options.threshold(HARNESS_SHARE)
        named = np.array(
            [_HARNESS.search(n) is not None and "dropout" not in n.lower() for n in analysis.trace.names] or [False],
            dtype=bool,
        )
        for op in measured(analysis):
            if op.kernels_per_iteration < 2 or not op.self_ns.sum():
                continue
            mine = np.concatenate([op.iterations.rows[int(i)] for i in op.worked])
            harness = mine[named[rows.name[mine]] & (rows.kind[mine] == RowKind.KERNEL)]
            share = float(rows.dur_ns[harness].sum()) / float(op.self_ns.sum())
            if share <= limit or len(harness) < analysis.options.threshold(HARNESS_CALLS) * len(op.worked):
                continue
            others = [analysis.trace.names[i] for i in rows.name[harness[:20]].tolist()]
            found.append(
                self.say(
                    "harness-kernels",
                    Severity.NOTE,
                    Grade.HINT,
                    on_operation(analysis, op),
                    {"operation": op.iterations.name, "share": share, **numbered(others)},
                    numbers={
                        "harness_share": round(share, 6),
                        "threshold_share": limit,
                        "harness_kernels": len(harness),
                    },
                    evidence=[activity_evidence(analysis, int(r)) for r in harness[:3].tolist()],
                    remedy=["make inputs before the loop and compare results after it"],
                )
            )
        return found
