"""Queue states: was the stream fed ahead of the device, or did the device wait for the host?

Decided by starvation, launch by launch, never by comparing medians of a mixed trace: a queue that stays full
is GPU-bound however short its kernels are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.clocks import Clocks, ClockState
from traceanalyzer.analysis.grouped import Groups
from traceanalyzer.analysis.streams import Waits
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.tables import Bool, Int64, Trace

LAUNCH_GAP_NS = 2000
"""A gap between queued rows is shorter than this on every device seen (docs/methodology.md)."""


class QueueState(StrEnum):
    """Who waits for whom."""

    CPU_BOUND = "cpu-bound"
    GPU_BOUND = "gpu-bound"
    SYNC_BOUND = "sync-bound"
    MIXED = "mixed"
    UNKNOWN = "unknown"


class Grade(StrEnum):
    """How sure a statement is: shown by rows of the trace, concluded from them, or only suggested."""

    PROVEN = "PROVEN"
    DERIVED = "DERIVED"
    HINT = "HINT"


@record(frozen=True)
class QueueVerdict:
    """A queue state with its evidence.

    ``counted`` launches were looked at (not the first of a stream); ``starved`` of them met an empty stream
    without, ``starved_after_sync`` directly after a synchronise; ``dry`` met only the running row and still
    came too late: the stream fell idle before the launch reached it. ``reason`` says why the state is unknown or
    its grade lowered, and is empty otherwise.
    """

    state: QueueState
    grade: Grade | None
    counted: int
    starved: int
    starved_after_sync: int
    dry: int
    reason: str = ""


@record(frozen=True)
class Doubts:
    """Reasons to grade a state below PROVEN, empty where there is none.

    ``links``: device rows without a launch. ``host``: instrumentation that makes the host slower than it is
    without the profiler; it weighs only on states that blame the host.
    """

    links: str = ""
    host: str = ""


def starved_for_judgement(found: Waits, clocks: Clocks) -> Bool:
    """Return which rows count as starved, with the device clock moved by the skew where clocks are offset."""
    if clocks.state is not ClockState.OFFSET:
        return found.starved
    usable = found.linked & ~found.first
    return usable & (found.launch_start_ns >= found.previous_end_ns + clocks.skew_ns)


def dry_launches(trace: Trace, found: Waits, depth: Int64) -> Bool:
    """Return the rows whose launch was called while only their predecessor ran, and still came too late.

    The call was made before the stream fell idle, so it is not starved, but by less than the launch latency:
    the gap is over :data:`LAUNCH_GAP_NS` all the same. With more work queued such a gap has another cause.
    """
    limit = LAUNCH_GAP_NS + (trace.meta.step_ns if trace.meta.step_ns >= 1000 else 0)
    return found.opens_call & ~found.first & ~found.starved & (found.gap_ns > limit) & (depth <= 1)


@record(frozen=True)
class Judge:
    """Gives the queue state of device rows, given by number.

    One launch with a predecessor on its stream is too few to state anything. ``graph_nodes`` marks rows inside a graph
    launch: where all rows are, and none opens the launch, the replay is judged.
    """

    found: Waits
    starved: Bool
    dry: Bool
    graph_nodes: Bool
    clocks: Clocks
    doubts: Doubts
    options: AnalysisOptions

    @cached_property
    def _counted(self) -> Bool:
        return self.found.opens_call & ~self.found.first

    @cached_property
    def _masks(self) -> tuple[Bool, Bool, Bool]:
        """Rows that met an empty stream, that did so behind a synchronise, and that ran dry."""
        counted, after = self._counted, self.found.after_sync
        return counted & self.starved & ~after, counted & self.starved & after, counted & self.dry & ~self.starved

    @cached_property
    def _linked(self) -> bool:
        return bool(self.found.linked.any())

    def __call__(self, at: Int64) -> QueueVerdict:
        """Return the state of some rows."""
        n, met, after, late = (int(np.count_nonzero(m[at])) for m in (self._counted, *self._masks))
        return self._verdict(n, met, after, late, bool(len(at)) and bool(self.graph_nodes[at].all()))

    def of_groups(self, groups: Groups) -> list[QueueVerdict]:
        """Return the state of each group of rows."""
        counts = [groups.count(m).tolist() for m in (self._counted, *self._masks)]
        inside = (groups.count(self.graph_nodes) == groups.counts).tolist()
        return [self._verdict(*numbers) for numbers in zip(*counts, inside, strict=True)]

    def _verdict(self, n: int, met: int, after: int, late: int, inside: bool) -> QueueVerdict:
        verdict = _verdict(n, met, after, late, self._linked, self.clocks, self.doubts, self.options)
        if verdict.state is QueueState.UNKNOWN and inside and not n:
            return replace(verdict, reason="runs inside a graph launch: the replay is judged, not its nodes")
        return verdict


def _verdict(
    n: int,
    met_empty: int,
    after: int,
    late: int,
    linked: bool,
    clocks: Clocks,
    doubts: Doubts,
    options: AnalysisOptions,
) -> QueueVerdict:
    """Return the state of n launches of which some met an empty stream, after a synchronise or not, or came late."""

    def unknown(reason: str) -> QueueVerdict:
        return QueueVerdict(QueueState.UNKNOWN, None, n, met_empty, after, late, reason)

    if not linked:
        return unknown("no device row is linked to a launch")
    if clocks.state is ClockState.DISAGREE:
        return unknown(f"host and device clocks disagree by {clocks.skew_ns / 1000:.1f} us or more")
    if n < 2:
        return unknown(f"{'only one' if n else 'no'} launch has a predecessor on the stream")
    half, little = options.threshold("starved_fraction"), options.threshold("full_fraction")
    if (met_empty + late) / n >= half:
        state = QueueState.CPU_BOUND
    elif after / n >= half:
        state = QueueState.SYNC_BOUND
    elif (met_empty + late + after) / n <= little:
        state = QueueState.GPU_BOUND
    else:
        state = QueueState.MIXED
    grade, reason = Grade.PROVEN, ""
    if clocks.state is ClockState.OFFSET:
        grade = Grade.DERIVED
        reason = f"device clock at least {clocks.skew_ns / 1000:.1f} us ahead of the host's; judged with that allowance"
    elif doubts.links:
        grade, reason = Grade.DERIVED, doubts.links
    elif doubts.host and state in (QueueState.CPU_BOUND, QueueState.SYNC_BOUND):
        grade, reason = Grade.DERIVED, doubts.host
    elif state is QueueState.CPU_BOUND and met_empty / n < half:
        grade, reason = (
            Grade.DERIVED,
            f"{late} launches were called just before the stream fell idle, too late to fill it",
        )
    elif n < stats.MIN_N_FOR_INTERVAL:
        grade, reason = Grade.DERIVED, f"only {n} launch{'' if n == 1 else 'es'}"
    return QueueVerdict(state, grade, n, met_empty, after, late, reason)
