"""TA711 reading-contradicts-run: a measured reading lies outside of what the same run allows.

What it checks
    Each protocol that a capture measured, against the device's own stamps of the same operation and against the other
    protocols. A reading that waits for the device cannot be below the device time of a call; one that is more than
    twice what the model makes of this run's own dispatch and kernels holds something that is no part of the call.

Why it matters
    Such a reading is a number of something else. It looks like any other in a table, and often like the best one.

How it is decided
    Proven where the reading of a protocol that waits for the call is below nine tenths of the device's busy time per call
    and further below it than a microsecond. Derived where a wall clock reads more than twice the prediction, and more
    than 20 us above it. On a CPU under PyTorch, where a call has ended when it returns, the wall clocks are compared
    with each other; JAX runs its work behind the call there too, and nothing in the trace says how much that is.

Example
    A function that works on a stream of its own: do_bench reads 0.2 us for a kernel of 500 us.

What to do
    Events on the current stream do not see work on another one: make the function wait for its stream, or record there.
    Readings that are too long: repeat the capture on a machine without other load.

When it is wrong
    A function that does less work in some calls than in others, so that the profiler's loop and the protocol's loop
    timed different work.

References
    docs/methodology.md, the closed forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.predicted import predicted
from traceanalyzer.analysis.protocols import TITLES
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.captured import NO_SIDECAR
from traceanalyzer.doctor.example import captured, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.rule import Example, Rule
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import Threshold

if TYPE_CHECKING:
    from traceanalyzer.trace.sidecar import OperationRecord, Sidecar

BELOW = Threshold(
    "reading_below_share", 0.9, "share of the device time",
    "clocks and caches move a kernel by some percent between two protocols; a tenth is no such difference (TA711)",
)  # fmt: skip
ABOVE = Threshold(
    "reading_above_times", 2.0, "times the prediction",
    "the model is within a tenth on sound runs; twice its prediction holds something else (TA711)",
)  # fmt: skip
_FLOOR_US, _EXCESS_US = 1.0, 20.0
_WAITING = (
    "wall_sync_each",
    "wall_sync_once",
    "event_pair",
    "event_pair_sync",
    "event_loop",
    "do_bench",
    "backlog",
    "graph_unrolled",
)
_EVENTS = ("event_pair", "event_pair_sync", "event_loop", "do_bench", "backlog")
_WALL = ("wall_nosync", "wall_sync_each", "wall_sync_once")


class ReadingContradictsRun(Rule):
    """A measured reading lies outside of what the same run allows."""

    code = "TA711"
    name = "reading-contradicts-run"
    family = "comparison"
    thresholds = (BELOW, ABOVE)
    messages: ClassVar[dict[str, Message]] = {
        "below-other-stream": Message(
            "{protocol} reads {reading_ns:time} for {device_ns:time} of device work in {operation:name}: the work runs on another stream",
            "{protocol} reads {reading_ns:time} per call of {operation:name}, the device worked {device_ns:time} per call. All event protocols "
            "read too little and the wall clock that waits does not: the kernels run on another stream than the events.",
        ),
        "below": Message(
            "{protocol} reads {reading_ns:time} for {device_ns:time} of device work in {operation:name}",
            "{protocol} reads {reading_ns:time} per call of {operation:name}, the device worked {device_ns:time} per call. A reading that "
            "waits for the call cannot be shorter.",
        ),
        "above": Message(
            "{protocol} reads {reading_ns:time} where this run's dispatch and kernels make {expected_ns:time} in {operation:name}",
            "{protocol} reads {reading_ns:time} per call of {operation:name}; its own dispatch and kernels make {expected_ns:time}. The rest is "
            "no part of the call: other load on the machine, or a function that waits for something else.",
        ),
    }  # fmt: skip
    positive = Examples(lambda: (
        Example(
            "a pair of 0.2 us around a kernel of 30 us on another stream", loop(40, 10, 30),
            sidecar=lambda: _measured(event_pair=0.2, event_pair_sync=0.2, event_loop=0.2, wall_sync_each=60),
        ),
        Example("do_bench of zero", loop(40, 10, 30), sidecar=lambda: _measured(do_bench=0.0, event_pair=30)),
    ))  # fmt: skip
    negative = Examples(lambda: (
        Example("pairs that read the kernel", loop(40, 10, 30), sidecar=lambda: _measured(event_pair=30, do_bench=30.1)),
        Example("a wall clock of half as much again as its prediction", loop(40, 10, 30), sidecar=lambda: _measured(wall_sync_once=75)),
        Example("nothing was measured", loop(40, 10, 30), sidecar=captured),
    ))  # fmt: skip

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        sidecar = analysis.trace.meta.sidecar
        if sidecar is None:
            return self.abstain(NO_SIDECAR)
        found: list[Finding] = []
        for record in sidecar.operations:
            op = next((o for o in analysis.operations if o.iterations.name == record.name), None)
            found += self._below(analysis, record, op) or self._above(analysis, sidecar, record, op)
        return found

    def _below(self, analysis: Analysis, record: OperationRecord, op: OpFacts | None) -> list[Finding]:
        device_ns = stats.median(op.busy_ns) if op is not None else None
        if not device_ns:
            return []
        limit_us = min(analysis.options.threshold(BELOW) * device_ns / 1000, device_ns / 1000 - _FLOOR_US)
        readings = {p.protocol: p.p50_us for p in record.protocols if p.p50_us is not None}
        low = [p for p in _WAITING if p in readings and readings[p] < limit_us]
        if not low:
            return []
        events = [p for p in _EVENTS if p in readings]
        wall = readings.get("wall_sync_each", readings.get("wall_sync_once"))
        elsewhere = len(events) > 1 and set(events) <= set(low) and wall is not None and wall >= limit_us
        worst = min(low, key=lambda p: readings[p])
        return [
            self.say(
                "below-other-stream" if elsewhere else "below", Severity.WARNING, Grade.PROVEN,
                Subject(SubjectKind.OPERATION, name=record.name),
                {"protocol": TITLES.get(worst, worst), "reading_ns": readings[worst] * 1000, "device_ns": device_ns, "operation": record.name},
                numbers={f"{p}_us": readings[p] for p in low} | {"device_us": device_ns / 1000, "limit_us": round(limit_us, 3)},
                remedy=[
                    "let the function end with a wait for its own stream (torch.cuda.current_stream().wait_stream(side))"
                    if elsewhere else "look at what the function does in that loop: does it skip the work?",
                    "quote the profiler's self-time, which sees every stream",
                ],
            )
        ]  # fmt: skip

    def _above(
        self, analysis: Analysis, sidecar: Sidecar, record: OperationRecord, op: OpFacts | None
    ) -> list[Finding]:
        readings = {p.protocol: p.p50_us for p in record.protocols if p.p50_us is not None}
        if op is not None and op.symbols is not None:
            expected = {n: v / 1000 for n, v in predicted(op.symbols, record, sidecar.calibration).items()}
        elif sidecar.device.kind == "cpu" and sidecar.framework == "pytorch" and record.inflation is not None:
            # a call has ended when it returns: every wall clock reads the same
            expected = dict.fromkeys(_WALL, record.inflation.unprofiled_us)
        else:
            return []
        times = analysis.options.threshold(ABOVE)
        high = [
            p for p in _WALL
            if p in readings and expected.get(p, 0) > 0
            and readings[p] > times * expected[p] and readings[p] - expected[p] > _EXCESS_US
        ]  # fmt: skip
        if not high:
            return []
        worst = max(high, key=lambda p: readings[p] / expected[p])
        return [
            self.say(
                "above", Severity.WARNING, Grade.DERIVED, Subject(SubjectKind.OPERATION, name=record.name),
                {"protocol": TITLES[worst], "reading_ns": readings[worst] * 1000, "expected_ns": expected[worst] * 1000, "operation": record.name},
                numbers={f"{p}_us": readings[p] for p in high} | {"expected_us": round(expected[worst], 3), "threshold_times": times},
                remedy=["repeat the capture on a machine without other load", "compare the samples of that protocol in the sidecar"],
            )
        ]  # fmt: skip


def _measured(**readings_us: float) -> Sidecar:
    from dataclasses import replace

    from traceanalyzer.trace.sidecar import Inflation, ProtocolResult

    made = captured(inflation=Inflation(10.0, 10.0))
    protocols = [ProtocolResult(n, "neither", {}, 30, us, (us, us), 0.0, [us] * 30) for n, us in readings_us.items()]
    return replace(made, operations=[replace(made.operations[0], protocols=protocols, name="example_kernel")])
