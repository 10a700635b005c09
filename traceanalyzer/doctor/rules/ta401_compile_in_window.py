"""TA401 compile-in-window: code was compiled or tuned while the benchmark ran.

What it checks
    Operators, ranges and profiler records that name compilation or autotuning beside the launches.

Why it matters
    The first call of a Triton or compiled function takes up to seconds. A mean over a window that holds it
    says nothing.

How it is decided
    Names that contain autotune, compile or similar, over 1 % of the launches' window. A HINT: it is a name
    match.

Example
    CachingAutotuner benchmarks a dozen configurations in the first iteration.

What to do
    Call everything once before recording.

When it is wrong
    Operators that are merely called so.

References
    triton-lang/triton, torch._inductor.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    cpu_op,
    loop,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    show_us,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold

_COMPILES = re.compile(
    r"autotun|\bcompile_fx|async_compile|triton_?compile|jit_?compile|torch\._inductor.*compile|Compil(?:er|ing)\b",
    re.I,
)

COMPILE_SHARE = Threshold("compile_share", 0.01, "share of the window", "1 % of compilation moves a mean by as much")


class CompileInWindow(Rule):
    """Code was compiled or tuned while the benchmark ran."""

    code = "TA401"
    name = "compile-in-window"
    family = "warm-up"
    thresholds = (COMPILE_SHARE,)
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "an autotuner in the middle",
            (*loop(12, 40, 50), cpu_op("CachingAutotuner.benchmark_all_configs autotune", 1100, 200)),
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
        Example("an operator of another name", (*loop(40, 40, 50), cpu_op("aten::add", 1100, 200))),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        trace, calls = analysis.trace, analysis.trace.calls
        at = calls.start_ns[analysis.host.launches & analysis.chosen.calls]
        if len(at) < 2:
            return []
        low, high = int(at.min()), int(at.max())
        named = np.array([_COMPILES.search(n) is not None for n in trace.names] or [False], dtype=bool)
        starts, ends = [], []
        for table in (trace.host_ops, trace.overheads):
            mine = np.flatnonzero(named[table.name]) if len(table) else np.empty(0, dtype=np.int64)
            starts.append(table.start_ns[mine])
            ends.append(table.end_ns[mine])
        s, e = np.concatenate(starts), np.concatenate(ends)
        inside = (e > low) & (s < high)
        if not inside.any():
            return []
        spent = intervals.length(*intervals.union(np.maximum(s[inside], low), np.minimum(e[inside], high)))
        share = spent / max(1, high - low)
        if share <= analysis.options.threshold(COMPILE_SHARE):
            return []
        return [
            self.finding(
                Severity.WARNING,
                Grade.HINT,
                WHOLE_TRACE,
                "code was compiled or tuned inside the window",
                f"{int(inside.sum())} rows whose names say compile or autotune take {show_us(spent)} ({share:.0%}) of the launches' window.",
                {
                    "rows": int(inside.sum()),
                    "spent_us": us(spent),
                    "share": round(share, 6),
                    "threshold_share": analysis.options.threshold(COMPILE_SHARE),
                },
                [],
                ["call everything once before recording", "quote the median of later calls"],
            )
        ]
