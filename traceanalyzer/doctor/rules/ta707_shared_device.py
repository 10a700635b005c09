"""TA707 shared-device: something else computed on the device while it was measured.

What it checks
    Whether other processes held the device during the capture, and whether calls of one kernel and configuration were
    stretched far beyond their median.

Why it matters
    Two programs on one device take turns or share it; each sees kernels that sometimes take twice as long.

How it is decided
    Other compute processes on the device are a fact of the sidecar (NVML). With over 5 % of a kernel's calls above
    twice its median it is a warning, as a HINT: the stretch may have another cause. Other processes without a stretch
    are a note.

Example
    A display server and a second training job on the device, and one call in ten twice as long.

What to do
    Measure on a device of its own (exclusive compute mode).

When it is wrong
    Processes that hold memory and compute nothing.

References
    NVML's list of compute processes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.captured import NO_SIDECAR
from traceanalyzer.doctor.example import captured, clock, kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, SeenRow, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.ordering import distinct

STRETCHED_SHARE = Threshold("stretched_share", 0.05, "share of calls", "one call in twenty is more than chance")
STRETCH = Threshold("stretch", 2.0, "duration / median", "two programs that take turns double a kernel's time")
STRETCHED_CALLS = Threshold("stretched_calls", 20, "calls", "fewer calls show no share of one in twenty")


class SharedDevice(Rule):
    """Something else computed on the device while it was measured."""

    code = "TA707"
    name = "shared-device"
    family = "comparison"
    thresholds = (STRETCHED_SHARE, STRETCH, STRETCHED_CALLS)
    messages: ClassVar[dict[str, Message]] = {
        "shared": Message(
            "the device was shared with another process",
            "{others:plural other compute process} held the device during the capture. Their work can take turns with the kernels measured here.",
        ),
        "stretched": Message(
            "the device was shared with another process",
            "{others:plural other compute process} held the device during the capture, and {share:share} of the calls of {name:name} took over {factor:number} times its "
            "median. Their work can take turns with the kernels measured here.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "a second process, and every tenth call three times as long",
                tuple(
                    e
                    for i in range(40)
                    for e in (launch(100 * i, i + 1), kernel(100 * i + 5, 60 if i % 10 == 5 else 20, i + 1))
                ),
                allows=("TA201", "TA202", "TA507", "TA602", "TA403"),
                sidecar=lambda: captured(clocks=[clock("during", 1900, 1980, others=1)]),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "the device to itself",
                loop(40, 10, 30),
                sidecar=lambda: captured(clocks=[clock("during", 1900, 1980, others=0)]),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        sidecar = analysis.trace.meta.sidecar
        if sidecar is None:
            return self.abstain(NO_SIDECAR)
        counts = [c.other_processes for c in sidecar.clocks if c.other_processes is not None]
        if not counts:
            return self.abstain(
                f"other processes were not counted: {sidecar.clocks_missing or 'the device does not tell'}"
            )
        others = max(counts)
        if not others:
            return []
        limit, factor = analysis.options.threshold(STRETCHED_SHARE), analysis.options.threshold(STRETCH)
        name, share, rows = self._most_stretched(analysis, factor)
        stretched = share > limit
        evidence: list[SeenRow] = []
        if stretched:
            evidence = [activity_evidence(analysis, row, "stretched") for row in rows[:3]]
        return [
            self.say(
                "stretched" if stretched else "shared", Severity.WARNING if stretched else Severity.NOTE, Grade.HINT if stretched else Grade.PROVEN, WHOLE_TRACE,
                {"others": others, "share": share, "name": name, "factor": factor},
                numbers={
                    "other_processes": others, "stretched_share": round(share, 6), "threshold_share": limit, "threshold_stretch": factor,
                },
                evidence=evidence, remedy=["measure on a device of its own (exclusive compute mode)"])
        ]  # fmt: skip

    @staticmethod
    def _most_stretched(analysis: Analysis, factor: float) -> tuple[str, float, list[int]]:
        """Return the kernel with the largest share of stretched calls within one configuration, that share and the rows."""
        rows = analysis.trace.activities
        at = np.flatnonzero(analysis.chosen.rows & (rows.kind == RowKind.KERNEL))
        best: tuple[str, float, list[int]] = ("", 0.0, [])
        least = analysis.options.threshold(STRETCHED_CALLS)
        keys = rows.name[at].astype(np.int64) * (int(rows.config.max(initial=0)) + 1) + rows.config[at]
        for key in distinct(keys).tolist():
            part = at[keys == key]
            if len(part) < least:
                continue
            long = part[rows.dur_ns[part] > factor * np.median(rows.dur_ns[part])]
            if len(long) / len(part) > best[1]:
                best = analysis.trace.names[rows.name[part[0]]], len(long) / len(part), long.tolist()
        return best
