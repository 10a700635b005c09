"""TA502 gap-dependent-duration: kernels take longer after a longer pause.

What it checks
    Whether self-times go with the idle time before them.

Why it matters
    Clocks fall and caches cool while the device waits; the kernel then runs slower than back to back.

How it is decided
    Kendall rank correlation of self-time and gap over 0.3 with p under 0.01, and the upper half of the gaps
    over 3 % slower than the lower, thirty calls or more. DERIVED; it needs gaps that differ.

Example
    Pauses of 5 and 200 us in turn: 20 us after a short one, 23 after a long one.

What to do
    Quote a back-to-back run, or lock the clocks.

When it is wrong
    Both vary with the input.

References
    ROCm/vllm PR 928.
"""

from __future__ import annotations

from itertools import accumulate
from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import steadiness
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
)
from traceanalyzer.doctor.subject import on_operation
from traceanalyzer.options import Threshold
from traceanalyzer.trace.ordering import distinct

_PAUSES = [50 + 10 * ((7 * i) % 20) for i in range(40)]
_STARTS = list(accumulate(_PAUSES))

GAP_TAU = Threshold("gap_tau", 0.3, "Kendall tau", "a rank correlation that one in three pairs carries")
GAP_EFFECT = Threshold("gap_effect", 0.03, "relative change", "3 % is more than the interval of most medians")
GAP_P = Threshold("gap_p", 0.01, "p, two-sided", "one chance in a hundred, for an effect of this size besides")
GAP_CALLS = Threshold("gap_calls", 30, "calls", "fewer show no rank correlation of this size")
GAP_VALUES = Threshold("gap_values", 5, "different gaps", "gaps that hardly differ explain nothing")


class GapDependentDuration(Rule):
    """Kernels take longer after a longer pause."""

    code = "TA502"
    name = "gap-dependent-duration"
    family = "clocks"
    thresholds = (GAP_TAU, GAP_EFFECT, GAP_P, GAP_CALLS, GAP_VALUES)
    messages: ClassVar[dict[str, Message]] = {
        "gap-dependent-duration": Message(
            "{operation:name} is slower after a pause",
            "{operation:name} takes {low_ns:time} after short gaps and {high_ns:time} after long ones ({effect:change}, "
            "rank correlation {tau:number}): clocks or caches do not keep through the pause.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "longer after longer pauses",
                tuple(
                    e
                    for i in range(40)
                    for e in (
                        launch(_STARTS[i], i + 1),
                        kernel(_STARTS[i] + 4, 20 + _PAUSES[i] * 0.03, i + 1),
                    )
                ),
                allows=("TA201", "TA202", "TA601", "TA602", "TA507", "TA404", "TA605"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "steady whatever the pause",
                tuple(
                    e
                    for i in range(40)
                    for e in (
                        launch(_STARTS[i], i + 1),
                        kernel(_STARTS[i] + 4, 20, i + 1),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        found = []
        rows = analysis.trace.activities
        tau_limit, effect_limit = analysis.options.threshold(GAP_TAU), analysis.options.threshold(GAP_EFFECT)
        p_limit, least, values = (analysis.options.threshold(t) for t in (GAP_P, GAP_CALLS, GAP_VALUES))
        for op in measured(analysis):
            if len(op.worked) < least or op.kernels_per_iteration != 1:
                continue
            first = np.array([int(op.iterations.rows[int(i)][-1]) for i in op.worked[1:]])
            gaps, own = analysis.waits.gap_ns[first], rows.dur_ns[first]
            if len(distinct(gaps)) < values or np.median(gaps) <= 0:
                continue
            middle = np.median(gaps)
            low, high = own[gaps <= middle], own[gaps > middle]
            if not len(low) or not len(high) or not np.median(low):
                continue
            effect = float(np.median(high)) / float(np.median(low)) - 1
            if effect <= effect_limit:
                continue
            tau, p = steadiness.kendall(gaps, own)
            if tau <= tau_limit or p >= p_limit:
                continue
            found.append(
                self.say(
                    "gap-dependent-duration",
                    Severity.NOTE,
                    Grade.DERIVED,
                    on_operation(analysis, op),
                    {
                        "operation": op.iterations.name,
                        "low_ns": float(np.median(low)),
                        "high_ns": float(np.median(high)),
                        "effect": effect,
                        "tau": tau,
                    },
                    numbers={
                        "tau": round(tau, 6),
                        "threshold_tau": tau_limit,
                        "p": float(f"{p:.3g}"),
                        "threshold_p": p_limit,
                        "effect": round(effect, 6),
                        "threshold_effect": effect_limit,
                        "calls": len(own),
                    },
                    evidence=[],
                    remedy=["quote a back-to-back run, or lock the clocks"],
                )
            )
        return found
