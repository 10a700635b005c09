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
from traceanalyzer.analysis.pipeline import Analysis, DeviceFacts
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.captured import unprofiled_dispatch_ns
from traceanalyzer.doctor.example import kernel, launch, loop
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.pace import Pace, pace_of
from traceanalyzer.doctor.rule import Example, Rule, activity_evidence, short, show_us, us
from traceanalyzer.doctor.subject import on_device
from traceanalyzer.options import COPY_SHARE, IDLE_SHARE, STARVED_FRACTION, Threshold

DERIVED_RATIO = Threshold(
    "derived_ratio",
    0.7,
    "kernel / dispatch",
    "the profiler inflates dispatch; below this ratio the unprofiled run is CPU-bound too",
)


class CpuBoundQueue(Rule):
    """Most launches meet an empty stream."""

    code = "TA201"
    name = "cpu-bound-queue"
    family = "queue"
    thresholds = (STARVED_FRACTION, IDLE_SHARE, COPY_SHARE, DERIVED_RATIO)
    positive: ClassVar[tuple[Example, ...]] = (
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
    negative: ClassVar[tuple[Example, ...]] = (
        Example("a 3 us kernel on a queue that stays full", loop(40, 2, 3)),
        Example(
            "a synchronise in every iteration empties the queue: another cause",
            loop(12, 20, 10, sync=6.0),
            allows=("TA202",),
        ),
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Fire on each device whose queue is CPU-bound."""
        if not analysis.devices:
            return self.abstain("there is no device row")
        unknown = [d.queue.reason for d in analysis.devices if d.queue.state is QueueState.UNKNOWN]
        if len(unknown) == len(analysis.devices):
            return self.abstain("queue state unknown: " + "; ".join(dict.fromkeys(unknown)))
        return [self._finding(analysis, d) for d in analysis.devices if d.queue.state is QueueState.CPU_BOUND]

    def _finding(self, analysis: Analysis, device: DeviceFacts) -> Finding:
        queue, idle = device.queue, device.idle
        pace = pace_of(analysis, device)
        late = queue.starved + queue.dry
        idle_share = 1 - idle.busy_ns / idle.span_ns
        ratio_limit = analysis.options.threshold(DERIVED_RATIO)
        found = (
            f"nothing queued ({queue.starved} an empty stream, {queue.dry} only a kernel about to end)"
            if queue.dry
            else "the stream empty"
        )
        label = analysis.trace.devices[device.device].label
        where = f"On device {label}, " if len(analysis.devices) > 1 else ""
        message = (
            f"{where}{late} of {queue.counted} launches ({late / queue.counted:.0%}) found {found} and the device was "
            f"idle {idle_share:.0%} of its time: it waits for the host. {self._sentence(pace)}"
        )
        unprofiled = pace.kernel_ns is not None and pace.dispatch_ns and pace.kernel_ns / pace.dispatch_ns
        if measured := self._unprofiled(analysis):
            message += f" {measured}"
        elif unprofiled and unprofiled < ratio_limit:
            message += f" Without the profiler it very likely is CPU-bound too: kernel / dispatch is {unprofiled:.2f}, under {ratio_limit}."
        elif unprofiled:
            message += (
                f" Without the profiler, which slows the host, it may not be: kernel / dispatch is {unprofiled:.2f}."
            )
        if queue.reason:
            message += f" Graded {queue.grade}: {queue.reason}."
        rows = device.rows[analysis.starved[device.rows] & ~analysis.waits.after_sync[device.rows]]
        typical = (
            rows[
                np.argsort(np.abs(analysis.waits.gap_ns[rows] - np.median(analysis.waits.gap_ns[rows])), kind="stable")
            ][:3]
            if len(rows)
            else rows
        )
        return self.finding(
            Severity.WARNING, queue.grade or Grade.HINT, on_device(analysis, device.device),
            f"CPU-bound queue. {self._sentence(pace)}",
            message,
            {
                "launches": queue.counted, "starved": queue.starved, "too_late": queue.dry,
                "starved_fraction": round(late / queue.counted, 6),
                "threshold_starved_fraction": analysis.options.threshold(STARVED_FRACTION),
                "idle_share": round(idle_share, 6), "threshold_idle_share": analysis.options.threshold(IDLE_SHARE),
                "dispatch_p50_us": us(pace.dispatch_ns), "kernel_p50_us": us(pace.kernel_ns),
                "event_reading_us": us(pace.reading_ns), "inflation": pace.inflation,
            },
            [
                activity_evidence(analysis, int(row), f"the stream had been empty for {show_us(int(analysis.waits.gap_ns[row]))}")
                for row in np.sort(typical).tolist()
            ],
            self._remedy(analysis, pace),
        )  # fmt: skip

    @staticmethod
    def _unprofiled(analysis: Analysis) -> str:
        """Return what a capture measured of the host without the profiler; empty where none did, or for several operations."""
        if len(analysis.operations) != 1:
            return ""
        op = analysis.operations[0]
        host, own = unprofiled_dispatch_ns(analysis, op.iterations.name), stats.median(op.busy_ns)
        if not host or not own:
            return ""
        says = (
            "so the queue is CPU-bound without it too" if own < host else "so without it the device has the longer part"
        )
        return f"Without the profiler the capture measured {show_us(host)} of host time per call for {show_us(own)} of device time, {says}."

    @staticmethod
    def _sentence(pace: Pace) -> str:
        if pace.kernel_ns is None or pace.dispatch_ns is None:
            return "The host launches too slowly to keep the device busy."
        what = f"`{short(pace.what)}`" if pace.what else "The typical kernel"
        text = (
            f"{what} takes {show_us(pace.kernel_ns)} on the device but is dispatched every {show_us(pace.dispatch_ns)}"
        )
        if pace.reading_ns is not None and pace.inflation is not None:
            text += f"; an unsynced event pair would read about {show_us(pace.reading_ns)} ({pace.inflation:.1f}x)"
        return text + "."

    @staticmethod
    def _remedy(analysis: Analysis, pace: Pace) -> list[str]:
        remedy = ["quote profiler self-time for the kernel, and call the wall time what it is: dispatch"]
        if pace.in_graph:
            remedy.append(
                "unroll more calls into one graph: the replay itself is what the host cannot launch fast enough"
            )
        else:
            remedy.append(
                "time it as an unrolled CUDA graph, or behind a backlog (a blocking kernel) that covers the dispatch"
            )
        if analysis.doubts.host:
            remedy.append("record once more without stacks, shapes and memory before quoting the dispatch interval")
        return remedy
