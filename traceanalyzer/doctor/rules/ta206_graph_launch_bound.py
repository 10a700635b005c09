"""TA206 graph-launch-bound: replays of a short graph are bound by their launch.

What it checks
    Whether graph launches meet an empty stream although a graph is replayed.

Why it matters
    A replay still costs the host a launch. A graph shorter than that interval measures it, not the kernels.

How it is decided
    Half of the replays starved and the kernels of a replay shorter than the interval between launches.
    PROVEN by starvation.

Example
    Four kernels of 11 us in a graph replayed every 100 us.

What to do
    Unroll more calls into one graph, so that its kernels outlast its launch.

When it is wrong
    Replaying end to end may be the product's real mode.

References
    triton-lang/triton#9480.
"""

from __future__ import annotations

from typing import ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade, QueueState
from traceanalyzer.doctor.example import (
    kernel,
    launch,
)
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import more_per_launch_of
from traceanalyzer.doctor.rule import (
    Example,
    Rule,
    activity_evidence,
    us,
)
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import STARVED_FRACTION


class GraphLaunchBound(Rule):
    """Replays of a short graph are bound by their launch."""

    code = "TA206"
    name = "graph-launch-bound"
    family = "queue"
    thresholds = (STARVED_FRACTION,)
    messages: ClassVar[dict[str, Message]] = {
        "graph-launch-bound": Message(
            "graph launches come too slowly to keep the device busy",
            "{met:count} of {counted:plural replay} of a graph of {kernels:plural kernel} "
            "met an empty stream: the kernels take {own_ns:time}, the next launch comes every {dispatch_ns:time}. "
            "Events around the loop read the launch.",
        ),
    }
    positive = Examples(
        lambda: (
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
                allows=("TA201", "TA202", "TA205"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "a graph longer than its launch interval",
                tuple(
                    e
                    for i in range(6)
                    for e in (
                        launch(100 * i, i + 1, 9, "cudaGraphLaunch"),
                        *(kernel(20 + 482 * i + 120 * j, 119, i + 1, f"node_{j}") for j in range(4)),
                    )
                ),
            ),
        )
    )

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if not analysis.replays:
            return []
        found = []
        for replay, queue in zip(analysis.replays, analysis.replay_queues, strict=True):
            own, dispatch = stats.median(replay.self_ns), stats.median(replay.dispatch_ns)
            if queue.state is not QueueState.CPU_BOUND or own is None or dispatch is None or own >= dispatch:
                continue
            met = queue.starved + queue.dry
            found.append(
                self.say(
                    "graph-launch-bound",
                    Severity.WARNING if measured(analysis) else Severity.NOTE,
                    queue.grade or Grade.HINT,
                    Subject(SubjectKind.API, name=replay.api),
                    {
                        "met": met,
                        "counted": queue.counted,
                        "kernels": replay.kernels,
                        "own_ns": own,
                        "dispatch_ns": dispatch,
                    },
                    numbers={
                        "replays": len(replay.opening),
                        "starved_replays": met,
                        "counted": queue.counted,
                        "threshold_starved_fraction": analysis.options.threshold(STARVED_FRACTION),
                        "self_time_p50_us": us(own),
                        "dispatch_p50_us": us(dispatch),
                        "nodes": replay.nodes,
                    },
                    evidence=[
                        activity_evidence(analysis, int(r), "opens a replay") for r in replay.opening[:3].tolist()
                    ],
                    remedy=[more_per_launch_of(analysis), "quote the kernels' self-time"],
                )
            )
        return found
