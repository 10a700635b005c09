"""TA310 exposed-communication: communication runs while the device computes nothing.

What it checks
    Time in which kernels of collectives (NCCL, RCCL, HCCL and the like) run and no other kernel does.

Why it matters
    Exposed communication adds to the step; hidden behind compute it does not. A collective also holds the
    time in which it waits for the slowest rank.

How it is decided
    Union of the communication kernels less every instant at which another kernel runs on the device.
    PROVEN; whether it transfers or waits for another rank needs the other ranks' traces.

Example
    An all-gather of 5 s, the first of the run, waits for the other ranks.

What to do
    Overlap it with compute (bucketed gradients, prefetched shards), or send less; compare ranks with
    `traceanalyze ranks`.

When it is wrong
    A kernel whose name only looks like a collective.

References
    NVIDIA/nccl#370; HolisticTraceAnalysis (communication and computation overlap).
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.causes import DeviceCauses
from traceanalyzer.doctor.example import kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import overlap_of
from traceanalyzer.doctor.rule import Example
from traceanalyzer.options import MENTION_SHARE, Threshold
from traceanalyzer.trace.tables import Bool

EXPOSED_SHARE = Threshold(
    "exposed_share", 0.2, "share of the span", "a fifth of the run: no kernel of the model is worth as much"
)

FEW_CALLS = 3


def _with_all_reduce(behind: float) -> tuple[dict[str, Any], ...]:
    """Return ten steps of a kernel of 400 us with an all-reduce of 80 us on another stream, ``behind`` us from the kernel's end."""
    events: list[dict[str, Any]] = []
    length = 400 + max(0.0, behind) + 90
    for i in range(10):
        at = length * i
        comm = at + 5 + 400 + behind if behind < 0 else at + 5 + 400
        events += [launch(at, 10 * i + 1), kernel(at + 5, 400, 10 * i + 1, "gemm"), launch(at + 4, 10 * i + 2)]
        events.append(
            kernel(comm, 80 if behind < 0 else length - 402, 10 * i + 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 13)
        )
    return tuple(events)


class ExposedCommunication(LedgerRule):
    """Communication runs while the device computes nothing."""

    code = "TA310"
    name = "exposed-communication"
    family = "sync"
    since = "0.2.0"
    thresholds = (MENTION_SHARE, EXPOSED_SHARE)
    warns_from = EXPOSED_SHARE
    needs_host = False
    remedies: ClassVar[tuple[Remedy, ...]] = (
        overlap_of,
        "see who waits for whom: traceanalyze ranks FOLDER",
    )
    messages: ClassVar[dict[str, Message]] = {
        "one-collective": Message(
            "one collective holds the device: {top:cause} runs alone for {top_longest_ns:time} of {span_ns:time}; a wait for another rank looks like this",
            "[[Device {device}: ]]one call of {top:cause} takes {top_longest_ns:time} of {span_ns:time}, in which nothing else runs; all collectives together run alone "
            "for {cost_ns:time} ({share:share}). A transfer of that length is unlikely: it waits for another rank. Only the ranks' traces together tell for which.",
        ),
        "exposed-communication": Message(
            "communication is exposed: for {cost_ns:time}, {share:share} of the device's span, only collectives run, most of it {top:cause}",
            "[[Device {device}: ]]for {cost_ns:time} ({share:share}) of {span_ns:time} the device runs communication and computes nothing: "
            "{top:cause} {top_ns:time} in {top_count:plural stretch} of up to {top_longest_ns:time}[[, {second:cause} {second_ns:time}]]. How "
            "much of it waits for another rank, only the ranks' traces together tell.",
        ),
    }
    causes = (LedgerClass.COMMUNICATION,)
    positive = Examples(lambda: (Example("an all-reduce after each step", _with_all_reduce(200), allows=("TA202",)),))
    negative = Examples(lambda: (Example("the all-reduce runs during compute", _with_all_reduce(-90)),))

    def judged(self, analysis: Analysis, device: DeviceCauses, mask: Bool) -> Finding:
        """Return the finding of one device; where one call is most of the cost, of that call."""
        found = super().judged(analysis, device, mask)
        longest, cost, count = found.params["top_longest_ns"], found.params["cost_ns"], found.params["top_count"]
        if (
            not isinstance(longest, int)
            or not isinstance(cost, int)
            or not isinstance(count, int)
            or count < FEW_CALLS
            or 2 * longest < cost
        ):
            return found
        return self.say(
            "one-collective", found.severity, found.grade, found.subject, found.params, numbers=found.numbers, evidence=found.evidence,
            remedy=["synchronise the ranks and run one collective before recording", found.remedy[-1]], cost=found.cost,
        )  # fmt: skip
