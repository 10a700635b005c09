"""TA402 module-load-in-window: code was loaded while the benchmark ran.

What it checks
    Calls and profiler records of module or lazy function loading during the launches.

Why it matters
    The first call of a kernel loads its code, which takes up to milliseconds. A mean over few calls is then
    the loader.

How it is decided
    Idle time of the device inside module loads and the profiler's records of lazy loading. For calls that look like a
    measurement also loading before their first row: over 10 % of the time from there to the last row is a warning, less, behind the
    first iteration, a note. PROVEN.

Example
    cuModuleLoadData 1.5 ms before six kernels of 18 us: 278 us per call by a wall clock.

What to do
    Run every code path once before recording.

When it is wrong
    Loading before a warm-up that is discarded does no harm.

References
    NVIDIA/nvbench#340, meta-pytorch/tritonbench#1056.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
    kernel,
    launch,
    loop,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import eager_loading_of
from traceanalyzer.doctor.rule import (
    Example,
    call_evidence,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold
from traceanalyzer.trace.launch_names import ApiClass

LOAD_SHARE = Threshold("load_share", 0.1, "share of the window", "a tenth of the window moves a mean by as much")


def _loaded(length: float) -> tuple[dict[str, Any], ...]:
    """Return 20 kernels of 90 us, with a module load between two of them."""
    events: list[dict[str, Any]] = [call(1005, length, "cuModuleLoadData", 900, "cuda_driver")]
    for i in range(20):
        at = 100 * i + (length + 10 if i >= 10 else 0)
        events += [launch(at, i + 1), kernel(at + 6, 90, i + 1)]
    return tuple(events)


class ModuleLoad(LedgerRule):
    """Code was loaded while the benchmark ran."""

    code = "TA402"
    name = "module-load-in-window"
    family = "warm-up"
    thresholds = (*LedgerRule.thresholds, LOAD_SHARE)
    causes = (LedgerClass.CODE_LOAD,)
    remedies: ClassVar[tuple[Remedy, ...]] = (
        "run every code path once before the measurement",
        eager_loading_of,
    )
    messages: ClassVar[dict[str, Message]] = {
        "no-warm-up": Message(
            "no warm-up: code was loaded while it ran",
            "Loading code took {spent_ns:time}, {share:share} of the {window_ns:time} from the first call to the last device row; "
            "{late:plural load} came after the second launch. A mean over the window measures the loader.",
        ),
        "module-load-in-window": Message(
            "code was loaded while the device waits: {cost_ns:time}, {share:share} of its span ({top:cause})",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while code is loaded: {top:cause} {top_ns:time}"
            "[[, {second:cause} {second_ns:time}]], in {intervals:plural idle interval}.",
        ),
    }
    positive = Examples(
        lambda: (
            Example("a module load in the middle", _loaded(1500), allows=("TA201", "TA202", "TA211")),
            Example(
                "a module load before six launches",
                (
                    call(0, 1500, "cuModuleLoadData", 900, "cuda_driver"),
                    *(e for i in range(6) for e in (launch(1510 + 20 * i, i + 1), kernel(1516 + 20 * i, 18, i + 1))),
                ),
                allows=("TA202",),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a load long before, short", (call(0, 5, "cuModuleLoadData", 900, "cuda_driver"), *loop(40, 30, 28))
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = super().check(analysis)
        if isinstance(found, Abstained) or found or not measured(analysis):
            return found
        return self._before_the_calls(analysis)

    def _before_the_calls(self, analysis: Analysis) -> list[Finding]:
        """Return that the calls under test begin with loading, which a clock around them holds."""
        calls, rows, over = analysis.trace.calls, analysis.trace.activities, analysis.trace.overheads
        loads = np.flatnonzero(calls.api_class == ApiClass.MODULE_LOAD)
        lazy = np.array(
            [
                ("lazy" in n.lower() or "module" in n.lower())
                for n in (analysis.trace.names[i] for i in over.name.tolist())
            ],
            dtype=bool,
        )
        starts = np.concatenate([calls.start_ns[loads], over.start_ns[lazy]])
        ends = np.concatenate([calls.end_ns[loads], over.end_ns[lazy]])
        if not len(starts):
            return []
        first = min(int(rows.start_ns[analysis.chosen.rows].min()), int(starts.min()))
        last = int(rows.end_ns[analysis.chosen.rows].max())
        window = last - first
        inside = (starts < last) & (ends > first)
        starts, ends = starts[inside], np.minimum(ends[inside], last)
        if not len(starts):
            return []
        spent = intervals.length(*intervals.union(starts, ends))
        share = spent / window if window else 0.0
        launched = calls.start_ns[analysis.host.launches]
        second = int(np.sort(launched)[1]) if len(launched) > 1 else int(ends.max())
        late = int(np.count_nonzero(starts > second))
        if share <= analysis.options.threshold(LOAD_SHARE) and not late:
            return []
        return [
            self.say(
                "no-warm-up",
                Severity.WARNING if share > analysis.options.threshold(LOAD_SHARE) else Severity.NOTE,
                Grade.PROVEN,
                WHOLE_TRACE,
                {"spent_ns": spent, "share": share, "window_ns": window, "late": late},
                numbers={
                    "load_us": us(spent),
                    "share": round(share, 6),
                    "threshold_share": analysis.options.threshold(LOAD_SHARE),
                    "loads": len(starts),
                    "loads_behind_second_launch": late,
                },
                evidence=[call_evidence(analysis, int(r)) for r in loads[:3].tolist()],
                remedy=["run every code path once before the measurement", "quote the median of later calls"],
            )
        ]
