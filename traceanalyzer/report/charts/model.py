"""Plot-ready data of a report: bounded whatever the trace, made only when a page with charts is asked for.

Times are integer nanoseconds from the trace's origin, as viewers count; a length is a difference of two of them.
Everything that was left out or put together is counted here, so that a page can say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

LaneKind = Literal["stream", "calls", "operators", "ranges"]

STARVED, AFTER_SYNC, COPY = 1, 2, 4
"""Bits of :attr:`Lane.tag` on a stream: the launch met an empty stream, followed a synchronise, is a copy or fill."""
LAUNCH, SYNC, OTHER = 0, 1, 2
"""Values of :attr:`Lane.tag` on a lane of calls."""


@dataclass(frozen=True)
class TimelineLane:
    """One line of the timeline: a stream, or what a host thread did at one level.

    The columns hold the shown rows in order of start: ``name`` is a place in :attr:`Timeline.names`, ``link`` the place
    of a device row's launch call among all rows of all lanes in order (-1: none shown), ``tag`` see above (a depth of
    nesting on lanes of ranges). ``total`` rows lie on the lane; ``busy_permille`` is the covered share of each bin.
    ``gap_at`` are the places, in these columns, of rows that ended an idle interval of their device, ``gap_ns`` its length and
    ``gap_cause`` the place of its largest cause in :attr:`Timeline.causes`.
    """

    kind: LaneKind
    label: str
    total: int
    busy_permille: list[int]
    start_ns: list[int]
    dur_ns: list[int]
    name: list[int]
    tag: list[int]
    link: list[int]
    gap_at: list[int] = field(default_factory=list)
    gap_ns: list[int] = field(default_factory=list)
    gap_cause: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """A stretch of the timeline to open, around one row: the evidence of a finding, or a pause."""

    from_ns: int
    to_ns: int
    at_ns: int
    dur_ns: int


@dataclass(frozen=True)
class Timeline:
    """Lanes over [begin, end], rows within ``windows`` (start, end; all of it where nothing was left out).

    Outside the windows only the binned shares are known. ``views`` holds, per finding, one view per evidence row;
    ``pauses`` the same per row of ``ReportData.idle`` and pause. ``causes``: label of a ledger class, and what it was busy with;
    none are known where ``causes_known`` is False.
    """

    begin_ns: int
    end_ns: int
    names: list[str]
    lanes: list[TimelineLane]
    windows: list[tuple[int, int]]
    bins: int
    views: list[list[View]]
    pauses: list[list[View]]
    device_rows: int
    device_rows_shown: int
    host_rows: int
    host_rows_shown: int
    lanes_left_out: int
    causes: list[tuple[str, str]] = field(default_factory=list)
    causes_known: bool = True

    @property
    def whole(self) -> bool:
        """True when every row of every shown lane between begin and end is in it."""
        return self.windows == [(self.begin_ns, self.end_ns)]


@dataclass(frozen=True)
class DepthSeries:
    """Queue depth of one stream as steps: ``depth[i]`` from ``at_ns[i]`` until the next.

    ``steps`` changes were found; where more than shown, all within the timeline's windows are here, and elsewhere the first,
    lowest, highest and last of each stretch.
    ``starved_ns`` are launches that met an empty stream, at most one per stretch of the thinned series, of ``starved``.
    """

    label: str
    at_ns: list[int]
    depth: list[int]
    steps: int
    starved_ns: list[int]
    starved: int


@dataclass(frozen=True)
class Band:
    """One population of times: counts per bin of its distribution's ``edges_ns``, and values to draw one by one.

    ``samples_ns`` are all ``n`` values, or evenly spaced order statistics with both extremes; ``below`` values lie under
    the first edge (0 ns on a logarithmic axis) and count in the first bin.
    """

    label: str
    n: int
    p50_ns: float
    counts: list[int]
    samples_ns: list[int]
    below: int = 0


@dataclass(frozen=True)
class Mark:
    """A value to mark across all bands, with what it is."""

    label: str
    at_ns: float


@dataclass(frozen=True)
class Distribution:
    """Self-times and dispatch intervals of one operation or kernel on one axis; ``edges_ns`` are the bins' edges."""

    title: str
    kind: Literal["operation", "kernel"]
    logarithmic: bool
    edges_ns: list[float]
    bands: list[Band]
    marks: list[Mark]


@dataclass(frozen=True)
class RuleText:
    """The documentation of one rule: its sections as (title, text), its thresholds as sentences."""

    code: str
    name: str
    summary: str
    sections: list[tuple[str, str]]
    thresholds: list[str]


@dataclass(frozen=True)
class Figures:
    """Every figure of a report; ``no_depth`` says why there is no depth series, ``distributions_left_out`` how many kernels have none.

    ``repeats``: of each unit, by name and method, the repeat of median length (start, end); made where a comparison may follow.
    """

    timeline: Timeline | None
    depth: list[DepthSeries]
    no_depth: str
    distributions: list[Distribution]
    distributions_left_out: int
    rules: list[RuleText] = field(default_factory=list)
    repeats: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class SideFigures:
    """What a comparison draws of one side: its timeline, and the repeat of median length of the compared unit (ns), if one is known."""

    timeline: Timeline
    depth: list[DepthSeries]
    repeat: tuple[int, int] | None


@dataclass(frozen=True)
class ComparisonFigures:
    """The figures of a comparison: both sides' values per operation and kernel, and the texts of the rules that fired.

    ``sides`` are base and head, None where a side was no trace, or figures were not asked for.
    """

    distributions: list[Distribution]
    rules: list[RuleText]
    sides: tuple[SideFigures, SideFigures] | None = None
