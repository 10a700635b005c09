"""TA308 host-pause: one pause of the host, far longer than all others, holds the device up.

What it checks
    The few longest idle intervals of a run that repeats, where no row says what the host did.

Why it matters
    A garbage collection, a page fault, another process on the core, a single slow call: means over the
    window hold it, the typical call does not.

How it is decided
    At most three idle intervals of a millisecond or more, each twenty times the next longest, in which the
    host has no operator, allocation, load or synchronise. PROVEN that it paused; what it did is unknown. A
    note: it does not repeat.

Example
    One pause of 248 ms between steps of 958 us.

What to do
    Quote the median; in Python, gc.freeze() and gc.disable() in the loop, and pin the process to cores.

When it is wrong
    A pause at each epoch repeats outside of the window.

References
    pytorch/pytorch (garbage collection in training loops).
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding, Severity
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy, cost_numbers, cost_params
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import MENTION_SHARE
from traceanalyzer.trace.tables import Bool


def _paused(pause: float) -> tuple[dict[str, Any], ...]:
    """Return 60 kernels of 95 us, launched every 100 us, with a pause in the middle."""
    events: list[dict[str, Any]] = []
    for i in range(60):
        at = 100 * i + (pause if i >= 30 else 0)
        events += [launch(at, i + 1), kernel(at + 4, 95, i + 1)]
    return tuple(events)


class HostPause(LedgerRule):
    """One pause of the host, far longer than all others, holds the device up."""

    code = "TA308"
    name = "host-pause"
    family = "sync"
    since = "0.2.0"
    thresholds = (MENTION_SHARE,)
    remedies: ClassVar[tuple[Remedy, ...]] = (
        "quote the median, not the mean",
        "in Python, call gc.collect() and gc.disable() before the loop and record again",
    )
    messages: ClassVar[dict[str, Message]] = {
        "one-pause": Message(
            "one pause of the host, with nothing recorded in it, holds {cost_ns:time}, {share:share} of the device's span",
            "[[Device {device}: ]]one idle interval of {top_longest_ns:time} ({share:share} of {span_ns:time}) is far longer than all others, and no row says "
            "what the host did in it ({top}): a garbage collection or a preempted thread looks like this. A median is sound, a mean is not.",
        ),
        "one-stall": Message(
            "one launch call takes {top_longest_ns:time}, {share:share} of the device's span ({top:cause})",
            "[[Device {device}: ]]one call of {top:cause} takes {top_longest_ns:time} ({share:share} of {span_ns:time}), in which the device has nothing to do; the "
            "other calls are far shorter, so a median is sound and a mean is not.",
        ),
        "few-pauses": Message(
            "{pauses:count} pauses of the host, with nothing recorded in them, hold {cost_ns:time}, {share:share} of the device's span",
            "[[Device {device}: ]]{pauses:plural idle interval} of up to {top_longest_ns:time} hold {cost_ns:time} ({share:share} of {span_ns:time}), are far longer "
            "than all others, and no row says what the host did in them ({top}): a garbage collection or a preempted thread looks like this. A median is "
            "sound, a mean is not.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "one pause of 50 ms among short gaps",
                _paused(50_000),
                allows=(
                    "TA201",
                    "TA202",
                ),
            ),
        )
    )
    negative = Examples(lambda: (Example("gaps that are alike", _paused(0)),))

    def mask(self, device: DeviceCauses) -> Bool:
        """Return the segments of the few long pauses."""
        return device.paused

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return a note: what happens once is no property of the run."""
        params = cost_params(device, mask) | {"pauses": len(device.pauses)}
        stalled = device.ns(mask & (device.ledger.cls == LedgerClass.LAUNCH_STALL)) * 2 > device.ns(mask)
        code = "few-pauses" if len(device.pauses) > 1 else "one-stall" if stalled else "one-pause"
        return self.say(
            code, Severity.NOTE, self.grade, device.subject, params, numbers=cost_numbers(analysis, params),
            evidence=device.evidence(mask, "nothing is recorded on the host"), remedy=self.remedy(analysis), cost=device.cost(mask),
        )  # fmt: skip
