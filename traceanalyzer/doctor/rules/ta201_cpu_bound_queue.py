"""TA201 cpu-bound-queue: the device waits for the host to launch.

What it checks
    Whether most launches meet an empty stream, on a device that is idle for a good part of its time.

Why it matters
    The device finishes each kernel before the host has dispatched the next. Wall clocks and unsynced event
    pairs then read the *dispatcher*, about max(dispatch, kernel), and a change to the kernel is invisible.

How it is decided
    Per device: the share of launches that met an empty stream (or only the running kernel, and reached it
    too late) without a synchronise before them. It fires at 50 % and 10 % idle. Starvation decides, never the
    medians of a mixed trace: a queue that stays full is not CPU-bound however short its kernels are. A device
    mostly busy with copies, a handful of irregular launches, and launches recorded into a graph do not count.
    PROVEN for this run when the starved launches alone reach the share; DERIVED when launch latency, a clock
    offset, missing links or a heavily instrumented host stand between.

Example
    A Triton op of 10 us dispatched every 40 us: an event pair reads 40 us, four times the kernel.

What to do
    Quote self-time for the kernel. Time it behind a backlog, as an unrolled graph, or with the profiler; for
    the call, quote saturated-queue wall time and say that it is dispatch.

When it is wrong
    The profiler slows the host: a kernel of 0.7 to 1 times the dispatch interval may keep the queue full without it.
    Pauses between phases that are no benchmark make launches look starved; narrow with ``--range``.

References
    The chapter "Benchmarking without fooling yourself" of roulbac/msda-triton; NVIDIA/nvbench#184; triton-lang/triton#459.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis, DeviceAnalysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.captured import unprofiled_dispatch_ns
from traceanalyzer.doctor.causes import DeviceCauses, Family, causes
from traceanalyzer.doctor.example import kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, SeenRow, Severity
from traceanalyzer.doctor.ledger_rule import WORTH, cost_params
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.pace import NO_PACE, Pace, pace_of
from traceanalyzer.doctor.remedies import dispatch_of, fewer_launches_of, more_per_launch_of, without_dispatch_of
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, show_us, us
from traceanalyzer.doctor.subject import on_device
from traceanalyzer.options import COPY_SHARE, IDLE_SHARE, MENTION_SHARE, STARVED_FRACTION, Threshold

DERIVED_RATIO = Threshold(
    "derived_ratio",
    0.7,
    "kernel / dispatch",
    "the profiler inflates dispatch; below this ratio the unprofiled run is CPU-bound too",
)


_FOUND = (
    "[[On device {device}, ]]{late} of {counted} launches ({late_share:share}) found the stream empty[[ ({empty} of them) or only a kernel about to end ({ending})]] "
    "and the device was idle {idle:share} of its time: it waits for the host."
)
_BEHIND = (
    "[[ Without the profiler the capture measured {unprofiled_ns:time} of host time per call for {unprofiled_busy_ns:time} of device time, so {unprofiled_bound}.]]"
    "[[ Without the profiler it very likely is CPU-bound too: kernel / dispatch is {ratio_under}, under {ratio_limit}.]]"
    "[[ Without the profiler, which slows the host, it may not be: kernel / dispatch is {ratio_over}.]][[ Graded {grade}: {doubt}.]]"
)


class CpuBoundQueue(Rule):
    """Most launches meet an empty stream."""

    code = "TA201"
    name = "cpu-bound-queue"
    family = "queue"
    thresholds = (STARVED_FRACTION, IDLE_SHARE, COPY_SHARE, DERIVED_RATIO, MENTION_SHARE)
    messages: ClassVar[dict[str, Message]] = {
        "kernel": Message(
            "CPU-bound queue. {what:name} takes {kernel_ns:time} on the device but is dispatched every {dispatch_ns:time}"
            "[[; an unsynced event pair would read about {headline_reading_ns:time} ({inflation:factor})]]",
            _FOUND
            + " {what:name} takes {kernel_ns:time} on the device but is dispatched every {dispatch_ns:time}[[; an unsynced event pair would read about "
            "{reading_ns:time} ({inflation:factor})]]." + _BEHIND,
            "CPU-bound queue",
        ),
        "call": Message(
            "CPU-bound queue. A call of {what:name} ({kernels} kernels) takes {kernel_ns:time} on the device but is dispatched every {dispatch_ns:time}",
            _FOUND
            + " A call of {what:name} ({kernels} kernels) takes {kernel_ns:time} on the device but is dispatched every {dispatch_ns:time}"
            "[[; an unsynced event pair would read about {reading_ns:time}]]." + _BEHIND,
            "CPU-bound queue",
        ),
        "program": Message(
            "the host launches too late (CPU-bound queue): the device waits {cost_ns:time}, {share:share} of its span, for it, most in {top:cause} ({top_ns:time})",
            _FOUND
            + " It waits {cost_ns:time} ({share:share} of {span_ns:time}) for its next launch: {top:cause} {top_ns:time} in {top_count:plural place}"
            "[[, {second:cause} {second_ns:time}]][[, {third:cause} {third_ns:time}]]."
            + WORTH
            + "[[ Graded {grade}: {doubt}.]]",
        ),
        "pace-unknown": Message(
            "CPU-bound queue. The host launches too slowly to keep the device busy",
            _FOUND + "[[ Graded {grade}: {doubt}.]]",
            "CPU-bound queue",
        ),
    }
    positive = Examples(
        lambda: (
            Example("a 10 us kernel every 40 us", loop(12, 40, 10), allows=("TA202",)),
            Example(
                "replays of a short graph every 100 us",
                tuple(
                    e
                    for i in range(4)
                    for e in (
                        launch(100 * i, i + 1, 9, "cudaGraphLaunch"),
                        *(kernel(100 * i + 20 + 12 * j, 11, i + 1, f"node_{j}") for j in range(4)),
                    )
                ),
                allows=("TA202", "TA206"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("a 3 us kernel on a queue that stays full", loop(40, 2, 3)),
            Example(
                "a synchronise in every iteration empties the queue: another cause",
                loop(12, 20, 10, sync=6.0),
                allows=("TA202",),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on each device whose queue is CPU-bound."""
        if not analysis.devices:
            return self.abstain("there is no device row")
        unknown = [d.queue.reason for d in analysis.devices if d.queue.state is QueueState.UNKNOWN]
        if len(unknown) == len(analysis.devices):
            return self.abstain("queue state unknown: " + "; ".join(dict.fromkeys(unknown)))
        found = [self._finding(analysis, d) for d in analysis.devices if d.queue.state is QueueState.CPU_BOUND]
        # a queue that polling or waiting empties is starved too; what it costs is theirs
        least = analysis.options.threshold(MENTION_SHARE)
        return [f for f in found if f.cost is None or f.cost.matters >= least]

    def _finding(self, analysis: Analysis, device: DeviceAnalysis) -> Finding:
        queue, idle = device.queue, device.idle
        ledger = next((c for c in causes(analysis) if c.ledger.device == device.device), None)
        lost = ledger.families[Family.DISPATCH] if ledger else None
        tested = bool(measured(analysis))
        pace = pace_of(analysis, device) if tested else NO_PACE
        late = queue.starved + queue.dry
        idle_share = 1 - idle.busy_ns / idle.span_ns
        unprofiled = self._unprofiled(analysis)
        limit = analysis.options.threshold(DERIVED_RATIO)
        known = pace.kernel_ns is not None and pace.dispatch_ns and unprofiled["unprofiled_ns"] is None
        ratio = (
            round(pace.kernel_ns / pace.dispatch_ns, 2)
            if known and pace.kernel_ns is not None and pace.dispatch_ns
            else None
        )
        params: dict[str, Param] = {
            "device": analysis.trace.devices[device.device].label if len(analysis.devices) > 1 else "", "late": late, "counted": queue.counted,
            "late_share": round(late / queue.counted, 6), "empty": queue.starved if queue.dry else None, "ending": queue.dry if queue.dry else None,
            "idle": round(idle_share, 6), "what": pace.what, "kernels": pace.kernels, "kernel_ns": pace.kernel_ns, "dispatch_ns": pace.dispatch_ns,
            "reading_ns": pace.reading_ns if pace.inflation is not None else None, "inflation": pace.inflation,
            "headline_reading_ns": pace.reading_ns if pace.inflation is not None and len(analysis.devices) == 1 else None,
            "ratio_under": ratio if ratio is not None and ratio < limit else None, "ratio_over": ratio if ratio is not None and ratio >= limit else None,
            "ratio_limit": limit, "grade": str(queue.grade), "doubt": queue.reason,
            **unprofiled,
        }  # fmt: skip
        if ledger is not None and lost is not None:
            params |= cost_params(ledger, lost, "launches_free") | {"device": params["device"]}
        return self.say(
            self._code(pace, tested, params), Severity.WARNING, queue.grade or Grade.HINT, on_device(analysis, device.device), params,
            numbers={
                "launches": queue.counted, "starved": queue.starved, "too_late": queue.dry,
                "starved_fraction": round(late / queue.counted, 6),
                "threshold_starved_fraction": analysis.options.threshold(STARVED_FRACTION),
                "idle_share": round(idle_share, 6), "threshold_idle_share": analysis.options.threshold(IDLE_SHARE),
                "dispatch_p50_us": us(pace.dispatch_ns), "kernel_p50_us": us(pace.kernel_ns),
                "event_reading_us": us(pace.reading_ns), "inflation": pace.inflation,
            },
            evidence=self._typical(analysis, device),
            remedy=self._remedy(analysis, pace) if tested else _of_program(analysis, ledger),
            cost=ledger.cost(lost, "launches_free") if ledger is not None and lost is not None else None,
        )  # fmt: skip

    @staticmethod
    def _code(pace: Pace, tested: bool, params: dict[str, Param]) -> str:
        if not tested:
            return "program" if params.get("top") else "pace-unknown"
        if pace.kernel_ns is None or pace.dispatch_ns is None:
            return "pace-unknown"
        return "call" if pace.kernels > 1 else "kernel"

    @staticmethod
    def _typical(analysis: Analysis, device: DeviceAnalysis) -> list[SeenRow]:
        """Return three launches that found the stream empty for a typical time."""
        rows = device.rows[analysis.starved[device.rows] & ~analysis.waits.after_sync[device.rows]]
        gaps = analysis.waits.gap_ns[rows]
        if len(rows):
            rows = rows[np.argsort(np.abs(gaps - np.median(gaps)), kind="stable")][:3]
        return [
            activity_evidence(
                analysis, int(row), f"the stream had been empty for {show_us(int(analysis.waits.gap_ns[row]))}"
            )
            for row in np.sort(rows).tolist()
        ]

    @staticmethod
    def _unprofiled(analysis: Analysis) -> dict[str, Param]:
        """Return what a capture measured of the host without the profiler; None where none did, or for several operations."""
        missing: dict[str, Param] = {"unprofiled_ns": None, "unprofiled_busy_ns": None, "unprofiled_bound": None}
        if len(analysis.operations) != 1:
            return missing
        op = analysis.operations[0]
        host, own = unprofiled_dispatch_ns(analysis, op.iterations.name), stats.median(op.busy_ns)
        if not host or not own:
            return missing
        bound = "the queue is CPU-bound without it too" if own < host else "without it the device has the longer part"
        return {"unprofiled_ns": host, "unprofiled_busy_ns": own, "unprofiled_bound": bound}

    @staticmethod
    def _remedy(analysis: Analysis, pace: Pace) -> list[str]:
        remedy = ["quote profiler self-time for the kernel, and call the wall time what it is: dispatch"]
        if pace.in_graph:
            remedy.append(f"{more_per_launch_of(analysis)}: the launch itself is what the host cannot make fast enough")
        else:
            remedy.append(without_dispatch_of(analysis))
        if analysis.doubts.host:
            remedy.append("record once more without stacks, shapes and memory before quoting the dispatch interval")
        return remedy


def _of_program(analysis: Analysis, device: DeviceCauses | None) -> list[str]:
    """Return what to do about a program that launches too late, by what costs most."""
    if device is None:
        return [fewer_launches_of(analysis)]
    return dispatch_of(analysis, device, device.families[Family.DISPATCH])
