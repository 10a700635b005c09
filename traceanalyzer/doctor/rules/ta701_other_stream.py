"""TA701 other-stream: work runs on a stream that the timer does not wait for.

What it checks
    Whether launches between two event records go to several streams that nothing joins.

Why it matters
    An event sees its own stream. Work sent to another stream and never joined is not timed at all.

How it is decided
    Between pairs of event record calls, launches on two streams or more; no stream waits for an event and
    no synchronise lies between the records, in half of the pairs. DERIVED: the trace does not say which
    stream the events are on.

Example
    Events around a 1.5 us fill on stream 7, the 500 us matmul on stream 13: the pair reads 9 us.

What to do
    Make the timed stream wait for the other (wait_stream, an event), or synchronise before the stop event.

When it is wrong
    Side-stream copies that are joined later.

References
    ScalingIntelligence/KernelBench#82.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.example import (
    call,
    kernel,
    launch,
)
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    call_evidence,
    show_us,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE
from traceanalyzer.options import Threshold
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.tables import NO_ROW

UNJOINED_SHARE = Threshold(
    "unjoined_share", 0.5, "share of event pairs", "half of the pairs: it is how the loop is built"
)
UNJOINED_PAIRS = Threshold("unjoined_pairs", 2, "event pairs", "one pair may be an accident of the start")


class OtherStream(Rule):
    """Work runs on a stream that the timer does not wait for."""

    code = "TA701"
    name = "other-stream"
    family = "cheating"
    thresholds = (UNJOINED_SHARE, UNJOINED_PAIRS)
    positive: ClassVar[tuple[Example, ...]] = (
        Example(
            "a fill between the events, the matmul beside them",
            tuple(
                e
                for i in range(4)
                for e in (
                    call(20 * i, 1, "cudaEventRecord", 10 * i + 901),
                    launch(20 * i + 2, 10 * i + 1),
                    kernel(20 * i + 6, 1.5, 10 * i + 1, "fill"),
                    launch(20 * i + 5, 10 * i + 2),
                    kernel(12 + 501 * i, 500, 10 * i + 2, "matmul", stream=13),
                    call(20 * i + 9, 1, "cudaEventRecord", 10 * i + 902),
                )
            ),
            allows=("TA202", "TA406", "TA504", "TA205"),
        ),
    )
    negative: ClassVar[tuple[Example, ...]] = (
        Example(
            "the other stream is joined",
            tuple(
                e
                for i in range(4)
                for e in (
                    call(20 * i, 1, "cudaEventRecord", 10 * i + 901),
                    launch(20 * i + 2, 10 * i + 1),
                    kernel(20 * i + 6, 1.5, 10 * i + 1, "fill"),
                    launch(20 * i + 5, 10 * i + 2),
                    kernel(12 + 501 * i, 500, 10 * i + 2, "matmul", stream=13),
                    call(20 * i + 8, 0.5, "cudaStreamWaitEvent", 10 * i + 903),
                    call(20 * i + 9, 1, "cudaEventRecord", 10 * i + 902),
                )
            ),
        ),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        calls, rows = analysis.trace.calls, analysis.trace.activities
        limit, least = analysis.options.threshold(UNJOINED_SHARE), analysis.options.threshold(UNJOINED_PAIRS)
        records = np.flatnonzero(calls.api_class == ApiClass.EVENT_RECORD)
        if len(records) < 2 * least or len(analysis.streams) < 2:
            return []
        if np.isin(calls.api_class, [ApiClass.STREAM_WAIT]).any():
            return []
        lane_of_call = np.full(len(calls), -1, dtype=np.int64)
        linked = rows.call != NO_ROW
        lane_of_call[rows.call[linked]] = rows.lane[linked]
        owning = np.flatnonzero(analysis.host.owns & analysis.chosen.calls)
        pairs = 0
        escaped = 0
        shares: dict[int, int] = {}
        for low, high in zip(records[::2].tolist(), records[1::2].tolist(), strict=False):
            if calls.thread[low] != calls.thread[high]:
                continue
            inside = owning[(owning > low) & (owning < high)]
            if not len(inside):
                continue
            pairs += 1
            lanes = np.unique(lane_of_call[inside])
            if len(lanes) < 2 or analysis.host.syncs[low:high].any():
                continue
            escaped += 1
            mine = np.isin(rows.call, inside)
            for lane in lanes.tolist():
                shares[lane] = shares.get(lane, 0) + int(rows.dur_ns[mine & (rows.lane == lane)].sum())
        if not escaped or escaped / pairs < limit or escaped < least:
            return []
        ordered = sorted(shares.items(), key=lambda x: x[1])
        total = sum(shares.values())
        streams = ", ".join(
            f"stream {analysis.trace.lanes[lane].stream} {show_us(ns / escaped)}" for lane, ns in ordered
        )
        return [
            self.finding(
                Severity.WARNING,
                Grade.DERIVED,
                WHOLE_TRACE,
                "work runs on a stream the timer does not watch",
                f"In {escaped} of {pairs} event pairs the work goes to {len(shares)} streams that nothing joins (per pair: {streams}). Events see one stream: at best "
                f"{ordered[-1][1] / total:.1%} of the work, at worst {ordered[0][1] / total:.1%}. The honest cost is at least {show_us(ordered[-1][1] / escaped)} per call.",
                {
                    "pairs": pairs,
                    "pairs_with_unjoined_streams": escaped,
                    "least_share": round(ordered[0][1] / total, 6),
                    "at_least_us_per_call": us(ordered[-1][1] / escaped),
                    "threshold_share_of_pairs": limit,
                },
                [call_evidence(analysis, int(r)) for r in records[:2].tolist()],
                [
                    "let the timed stream wait for the other: torch.cuda.current_stream().wait_stream(other)",
                    "or synchronise before the stop event",
                ],
            )
        ]
