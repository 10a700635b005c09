"""TA202 event-reading-misleads: an event pair in this run would not have read the kernel.

What it checks
    For each kernel, what a pair of CUDA events around its call would have shown, against its self-time.

Why it matters
    An event stamp is taken when the stream reaches it. On an empty stream the start stamp lies before the
    host has launched, so the pair holds host time: the dispatch interval in an unsynced loop, dispatch plus
    kernel after a synchronise.

How it is decided
    reading_i = end_i - max(record_i + L, end of the previous work), with the record issued when the previous
    launch call (or the synchronise behind it) returned, and L measured on starved launches. It fires for a
    kernel whose median reading is over 1.10 times its median self-time and over 1 us more, and for whose
    typical launch the same holds (a name with several configurations mixes their times) though it came too
    late for a backlog, in which a pair reads the kernel and the stream's own gap. A warning when
    such kernels hold half of all kernel time, else a note. Kernels with fewer than 3 readings are left to
    the table. DERIVED: L is an estimate.

Example
    A 4 us kernel launched every 12 us reads 12 us: three times the kernel.

What to do
    Read the self-time column. For an independent check replay an unrolled graph or fill the queue first.

When it is wrong
    If no launch is starved, L is unknown and taken as 0; readings are then the kernel's own time anyway.

References
    docs/methodology.md, the model; flashinfer-ai/flashinfer-bench#195.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.kernels import KernelFacts, populations
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import without_dispatch_of
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, show_us, us
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import Threshold

READING_RATIO = Threshold("reading_ratio", 1.10, "event reading / self-time", "10 % is beyond timer noise")
READING_EXCESS_US = Threshold("reading_excess_us", 1.0, "us", "event stamps resolve about 0.5 us")
READING_LEAST = Threshold("reading_least", 3, "readings", "a median of fewer than three is one launch's chance")
READING_LATE_SHARE = Threshold(
    "reading_late_share",
    0.5,
    "share of the kernel's launches",
    "more than half: the typical launch came too late for a backlog",
)
READING_GRAVE_SHARE = Threshold(
    "reading_grave_share",
    0.5,
    "share of kernel time",
    "kernels with half of all kernel time decide what a benchmark says: a warning",
)


READS = "an event pair would read {reading_ns:time} for {self_ns:time} of kernel ({inflation:factor})"
LIMITS = ", over the limits of {least_ratio:times} and {least_ns:time}. It would measure the host, not the kernel."


class EventReadingMisleads(Rule):
    """The event reading of a kernel is not its self-time."""

    code = "TA202"
    name = "event-reading-misleads"
    family = "queue"
    thresholds = (READING_RATIO, READING_EXCESS_US, READING_LEAST, READING_LATE_SHARE, READING_GRAVE_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "one-kernel": Message("event readings mislead. For {name:name} " + READS, "For {name:name} " + READS + LIMITS),
        "several-kernels": Message(
            "event readings mislead. For {name:name} " + READS,
            "{kernels:plural kernel} ({kernel_share:share} of kernel time) are concerned; the largest: for {name:name} "
            + READS
            + LIMITS,
        ),
    }
    positive = Examples(
        lambda: (
            Example("a 4 us kernel every 12 us", loop(12, 12, 4), allows=("TA201",)),
            Example("a synchronise before each call makes it the sum", loop(12, 20, 10, sync=6.0), allows=("TA301",)),
        )
    )
    negative = Examples(lambda: (Example("a backlog sets the reading to the kernel", loop(40, 10, 35)),))

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire once, for all kernels whose reading misleads."""
        if not analysis.kernels:
            return self.abstain("there is no kernel row")
        if analysis.clocks.state is ClockState.DISAGREE:
            return self.abstain("host and device clocks disagree; a reading subtracts one from the other")
        judged = [k for k in populations(analysis.kernels) if k.reading_p50_ns is not None and k.inflation is not None]
        if not judged:
            return self.abstain(
                "no kernel has an event reading (no launch with a predecessor on its stream and thread)"
            )
        ratio, excess = (analysis.options.threshold(t) for t in (READING_RATIO, READING_EXCESS_US))
        misled = [k for k in judged if self._misleads(analysis, k, ratio, excess)]
        if not misled:
            return []
        misled.sort(key=lambda k: -k.time.total_ns)
        share = sum(k.time.share for k in misled)
        # nobody times the kernels of a training step with event pairs: there it is worth knowing, no more
        tested = bool(measured(analysis))
        lead = misled[0]
        full = analysis.trace.names[lead.name]
        assert lead.reading_p50_ns is not None and lead.inflation is not None
        at = lead.rows[analysis.readings.known[lead.rows] & analysis.waits.opens_call[lead.rows]]
        middle = at[np.argsort(np.abs(analysis.readings.reading_ns[at] - lead.reading_p50_ns), kind="stable")][:3]
        latency = analysis.readings.latency_ns.get(lead.device)
        if latency is not None and latency < 0:
            latency = None  # offset clocks: what is measured is not the latency alone
        return [
            self.say(
                "several-kernels" if len(misled) > 1 else "one-kernel",
                Severity.WARNING if tested and share >= analysis.options.threshold(READING_GRAVE_SHARE) else Severity.NOTE, Grade.DERIVED,
                Subject(SubjectKind.KERNEL, name=full),
                {
                    "name": full, "kernels": len(misled), "kernel_share": share, "reading_ns": lead.reading_p50_ns, "self_ns": lead.time.p50_ns,
                    "inflation": lead.inflation, "least_ratio": ratio, "least_ns": excess * 1000,
                },
                numbers={
                    "kernels": len(misled), "share_of_kernel_time": round(share, 6),
                    "event_reading_us": us(lead.reading_p50_ns), "self_time_p50_us": us(lead.time.p50_ns),
                    "inflation": round(lead.inflation, 3), "threshold_ratio": ratio, "threshold_excess_us": excess,
                    "launch_latency_us": us(latency),
                }, evidence=[
                    activity_evidence(analysis, row, f"would read {show_us(int(analysis.readings.reading_ns[row]))}")
                    for row in np.sort(middle).tolist()
                ], remedy=["quote the self-time column", f"cross-check: {without_dispatch_of(analysis)}"])
        ]  # fmt: skip

    @staticmethod
    def _misleads(analysis: Analysis, kernel: KernelFacts, ratio: float, excess_us: float) -> bool:
        reading, inflation = kernel.reading_p50_ns, kernel.inflation
        if (
            reading is None
            or inflation is None
            or inflation <= 0
            or kernel.time.count - kernel.in_graph < analysis.options.threshold(READING_LEAST)
        ):
            return False
        own = reading / inflation
        if not (inflation > ratio and reading - own > excess_us * 1000):
            return False
        rows, known = analysis.trace.activities, analysis.readings.known
        at = kernel.rows[known[kernel.rows] & analysis.waits.opens_call[kernel.rows]]
        # compared launch by launch, as products: a whole-microsecond trace has kernels of 0 us
        over = analysis.readings.reading_ns[at] > ratio * rows.dur_ns[at]
        # in a backlog the rest is the stream's own gap, not the host
        arrival_ns = analysis.trace.calls.end_ns[rows.call[at]] + analysis.readings.latency_ns.get(kernel.device, 0.0)
        return float(np.mean(over & (arrival_ns > analysis.waits.previous_end_ns[at]))) > analysis.options.threshold(
            READING_LATE_SHARE
        )
