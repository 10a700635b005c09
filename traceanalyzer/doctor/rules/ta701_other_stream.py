"""TA701 other-stream: work runs on a stream that the timer does not wait for.

What it checks
    Whether launches between two event records go to several streams that nothing joins.

Why it matters
    An event sees its own stream. Work sent to another stream and never joined is not timed at all.

How it is decided
    Between pairs of event record calls, launches on two streams or more; no stream waits for an event and
    no synchronise lies between the records, in half of the pairs. Without event records: calls that look like a measurement
    whose rows run on two streams, in a trace in which no stream waits for another and the host does not synchronise in each
    call. DERIVED: the trace does not say which stream a timer is on.

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
    host_range,
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import join_of
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    call_evidence,
    us,
)
from traceanalyzer.doctor.subject import WHOLE_TRACE, on_operation
from traceanalyzer.options import MEASURED_LAUNCHES, MEASURED_SHARE, Threshold
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW

UNJOINED_SHARE = Threshold(
    "unjoined_share", 0.5, "share of event pairs", "half of the pairs: it is how the loop is built"
)
ESCAPED_SHARE = Threshold(
    "escaped_share", 0.1, "share of a call's work", "a tenth of the work that a timer misses decides most comparisons"
)
UNJOINED_PAIRS = Threshold("unjoined_pairs", 2, "event pairs", "one pair may be an accident of the start")


class OtherStream(Rule):
    """Work runs on a stream that the timer does not wait for."""

    code = "TA701"
    name = "other-stream"
    family = "cheating"
    thresholds = (UNJOINED_SHARE, UNJOINED_PAIRS, ESCAPED_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "pairs": Message(
            "work runs on a stream the timer does not watch",
            "In {escaped:count} of {pairs:plural event pair} the work goes to {streams:plural stream} that nothing joins (per pair: stream {most_stream} "
            "{most_ns:time}, stream {least_stream} {least_ns:time}). Events see one stream: at best {most_share:share} of the work, at worst {least_share:share}. The "
            "honest cost is at least {most_ns:time} per call.",
        ),
        "calls": Message(
            "each call of {op:name} works on two streams that nothing joins: a timer on stream {seen_stream} sees {seen_ns:time} of {total_ns:time}",
            "Calls of {op:name} put {seen_ns:time} of work on stream {seen_stream} and {other_ns:time} on stream {other_stream}; no stream waits for another and the "
            "host does not synchronise in each call. A timer on stream {seen_stream} sees {seen_ns:time} of {total_ns:time}.",
        ),
    }
    positive = Examples(
        lambda: (
            Example(
                "each call launches on two streams and waits for neither",
                tuple(
                    e
                    for i in range(12)
                    for e in (
                        host_range("timed", 50 * i, 50),
                        launch(50 * i + 20, 10 * i + 1),
                        kernel(50 * i + 26, 6, 10 * i + 1, "visible"),
                        launch(50 * i + 40, 10 * i + 2),
                        kernel(46 + 80 * i, 79, 10 * i + 2, "escaped", 13),
                    )
                ),
                allows=("TA202", "TA304", "TA604"),
            ),
            Example(
                "a fill between the events, the matmul on another stream",
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
    )
    negative = Examples(
        lambda: (
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
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        calls, rows = analysis.trace.calls, analysis.trace.activities
        limit, least = analysis.options.threshold(UNJOINED_SHARE), analysis.options.threshold(UNJOINED_PAIRS)
        records = np.flatnonzero(calls.api_class == ApiClass.EVENT_RECORD)
        if len(analysis.streams) < 2 or np.isin(calls.api_class, [ApiClass.STREAM_WAIT]).any():
            return []
        if len(records) < 2 * least:
            return [] if len(records) else self._calls_on_two_streams(analysis)
        lane_of_call = np.full(len(calls), -1, dtype=np.int64)
        linked = rows.call != NO_ROW
        lane_of_call[rows.call[linked]] = rows.lane[linked]
        owning = np.flatnonzero(analysis.host.owns & analysis.chosen.calls)
        pairs = 0
        escaped = 0
        sizes: list[int] = []
        shares: dict[int, int] = {}
        for low, high in zip(records[::2].tolist(), records[1::2].tolist(), strict=False):
            if calls.thread[low] != calls.thread[high]:
                continue
            inside = owning[(owning > low) & (owning < high)]
            if not len(inside):
                continue
            pairs += 1
            sizes.append(len(inside))
            lanes = distinct(lane_of_call[inside])
            if len(lanes) < 2 or analysis.host.syncs[low:high].any():
                continue
            escaped += 1
            mine = np.isin(rows.call, inside)
            for lane in lanes.tolist():
                shares[lane] = shares.get(lane, 0) + int(rows.dur_ns[mine & (rows.lane == lane)].sum())
        # event records that are a program's own lie anywhere; a timer's hold what the trace is of, a call at a time
        few = analysis.options.threshold(MEASURED_LAUNCHES)
        if sum(sizes) < analysis.options.threshold(MEASURED_SHARE) * len(owning) or (
            sizes and float(np.median(sizes)) > few
        ):
            return []
        if not escaped or escaped / pairs < limit or escaped < least:
            return []
        ordered = sorted(shares.items(), key=lambda x: x[1])
        total = sum(shares.values())
        fewest, most = ordered[0], ordered[-1]
        stream_of = analysis.trace.lanes
        return [
            self.say(
                "pairs",
                Severity.WARNING,
                Grade.DERIVED,
                WHOLE_TRACE,
                {
                    "escaped": escaped,
                    "pairs": pairs,
                    "streams": len(shares),
                    "most_stream": stream_of[most[0]].stream,
                    "most_ns": most[1] / escaped,
                    "most_share": most[1] / total,
                    "least_stream": stream_of[fewest[0]].stream,
                    "least_ns": fewest[1] / escaped,
                    "least_share": fewest[1] / total,
                },
                numbers={
                    "pairs": pairs,
                    "pairs_with_unjoined_streams": escaped,
                    "least_share": round(ordered[0][1] / total, 6),
                    "at_least_us_per_call": us(ordered[-1][1] / escaped),
                    "threshold_share_of_pairs": limit,
                },
                evidence=[call_evidence(analysis, int(r)) for r in records[:2].tolist()],
                remedy=[
                    join_of(analysis),
                    "or synchronise before the stop event",
                ],
            )
        ]

    def _calls_on_two_streams(self, analysis: Analysis) -> list[Finding]:
        """Return the measured operations of which a timer on one stream would see a part only."""
        rows, found = analysis.trace.activities, []
        limit, least = analysis.options.threshold(ESCAPED_SHARE), analysis.options.threshold(UNJOINED_PAIRS)
        for op in measured(analysis):
            if op.iterations.method == "capture annotation" or len(op.worked) < least:
                continue
            threads = distinct(
                np.concatenate([analysis.trace.calls.thread[op.iterations.calls[int(i)]] for i in op.worked])
            )
            syncs = np.count_nonzero(analysis.host.syncs & np.isin(analysis.trace.calls.thread, threads))
            parts = [op.iterations.rows[int(i)] for i in op.worked]
            lanes = distinct(rows.lane[np.concatenate(parts)])
            if len(lanes) < 2 or 2 * syncs >= len(parts):
                continue
            per_call = {
                int(lane): float(np.median([int(rows.dur_ns[p[rows.lane[p] == lane]].sum()) for p in parts]))
                for lane in lanes
            }
            ordered = sorted(per_call.items(), key=lambda x: x[1])
            total = sum(per_call.values())
            if not total or ordered[0][1] / total > 1 - limit or ordered[0][1] <= 0:
                continue
            seen, most = ordered[0], ordered[-1]
            params: dict[str, Param] = {
                "op": op.iterations.name, "seen_stream": analysis.trace.lanes[seen[0]].stream, "seen_ns": seen[1],
                "other_stream": analysis.trace.lanes[most[0]].stream, "other_ns": most[1], "total_ns": total,
            }  # fmt: skip
            found.append(
                self.say(
                    "calls", Severity.WARNING, Grade.DERIVED, on_operation(analysis, op), params,
                    numbers={
                        "calls": len(parts), "least_share": round(seen[1] / total, 6), "at_least_us_per_call": us(most[1]), "total_us_per_call": us(total),
                        "threshold_escaped_share": limit,
                    },
                    evidence=[activity_evidence(analysis, int(r)) for r in parts[len(parts) // 2][:3].tolist()],
                    remedy=[join_of(analysis), "or synchronise before the stop event"],
                )
            )  # fmt: skip
        return found
