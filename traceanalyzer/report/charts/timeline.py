"""The timeline of a trace, bounded: rows near what the findings point at, covered shares per bin for all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from traceanalyzer.analysis import intervals
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.report.charts.gaps import Gaps, gaps
from traceanalyzer.report.charts.lanes import RawLane, raw_lanes
from traceanalyzer.report.charts.model import Timeline, TimelineLane, View
from traceanalyzer.trace.names import short_names
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Bool, Int64

ROWS = 6_000
"""Most rows of a kind shown (device rows, calls, operators, ranges); calls of shown device rows come on top."""
BINS = 1500
NEIGHBOURS = 8
REACH = 30
"""A view holds the rows around its evidence, but on a side no more than this many times the evidence's own length."""
EVIDENCE_SHOWN = 3
NAME_LENGTH, MANY_NAMES, SHORT_NAME = 200, 1000, 60

Windows = list[tuple[int, int]]


def timeline(
    analysis: Analysis, findings: Sequence[Finding], clean: Callable[[str], str], kernel_names: dict[int, str], *,
    rows: int | None = None, around: Windows | None = None,
) -> Timeline | None:  # fmt: skip
    """Return the timeline, None without a device row. ``rows`` bounds each kind of row (ROWS); ``around`` (ns from the origin) are the
    stretches whose rows come first, in place of the findings' evidence.

    ``kernel_names``: short names by number of ``Trace.names``, in the order of the kernel table; they lead
    :attr:`Timeline.names`, so that a kernel's place there is its place in the table.
    """
    rows = ROWS if rows is None else rows
    table = analysis.trace.activities
    if not analysis.chosen.rows.any():
        return None
    lanes, left_out = raw_lanes(analysis)
    views = [[_view(analysis, e.start_ns, e.dur_ns or 0) for e in f.evidence[:EVIDENCE_SHOWN]] for f in findings]
    pauses = [[_view(analysis, p.start_ns, p.length_ns) for p in d.idle.pauses] for d in analysis.devices]
    begin, end = _extent(lanes, [v for part in views for v in part])
    focus = [v for part in views for v in part] or [v for part in pauses for v in part[:1]]
    origin = analysis.trace.meta.origin_ns
    cores = [(low + origin, high + origin) for low, high in around or []] or [(v.from_ns, v.to_ns) for v in focus]
    windows = _windows(lanes, [_bounded(lanes, core, rows) for core in cores], begin, end, rows)
    shown = [np.flatnonzero(_within(lane.start_ns, lane.end_ns, windows)) for lane in lanes]
    shown = [at[:rows] if lane.kind in ("ranges", "operators") else at for lane, at in zip(lanes, shown, strict=True)]
    of_streams = [lane.rows[at] for lane, at in zip(lanes, shown, strict=True) if lane.kind == "stream"]
    waited = gaps(analysis, np.concatenate(of_streams), clean)
    called = distinct(table.call[np.concatenate(of_streams)])
    # the call of a row that waited long in the queue lies far before it, outside the windows
    shown = [
        np.union1d(at, np.flatnonzero(np.isin(lane.rows, called))) if lane.kind == "calls" else at
        for lane, at in zip(lanes, shown, strict=True)
    ]
    names, place = _names(analysis, lanes, shown, clean, kernel_names)
    place_of_call = _places_of_calls(lanes, shown, len(analysis.trace.calls))
    edges = np.linspace(begin, end, BINS + 1).astype(np.int64)
    return Timeline(
        begin_ns=begin - origin,
        end_ns=end - origin,
        names=names,
        lanes=[
            TimelineLane(
                kind=lane.kind,
                label=lane.label,
                total=len(lane.rows),
                busy_permille=_busy(edges, lane),
                start_ns=(lane.start_ns[at] - origin).tolist(),
                dur_ns=(lane.end_ns[at] - lane.start_ns[at]).tolist(),
                name=[place[lane.kind == "calls", n] for n in lane.name[at].tolist()],
                tag=lane.tag[at].tolist(),
                link=place_of_call[table.call[lane.rows[at]]].tolist() if lane.kind == "stream" else [],
                **(_gaps(waited, lane.rows[at]) if lane.kind == "stream" else {}),
            )
            for lane, at in zip(lanes, shown, strict=True)
        ],
        windows=[(low - origin, high - origin) for low, high in windows],
        bins=BINS,
        views=[[_shifted(v, origin) for v in part] for part in views],
        pauses=[[_shifted(v, origin) for v in part] for part in pauses],
        device_rows=sum(len(lane.rows) for lane in lanes if lane.kind == "stream"),
        device_rows_shown=sum(map(len, of_streams)),
        host_rows=sum(len(lane.rows) for lane in lanes if lane.kind != "stream"),
        host_rows_shown=sum(len(at) for lane, at in zip(lanes, shown, strict=True) if lane.kind != "stream"),
        lanes_left_out=left_out,
        causes=waited.causes,
        causes_known=waited.known,
    )


def _gaps(waited: Gaps, rows: Int64) -> dict[str, list[int]]:
    at = np.flatnonzero(waited.cause[rows] >= 0)
    return {"gap_at": at.tolist(), "gap_ns": waited.ns[rows[at]].tolist(), "gap_cause": waited.cause[rows[at]].tolist()}


def _shifted(view: View, origin: int) -> View:
    return View(view.from_ns - origin, view.to_ns - origin, view.at_ns - origin, view.dur_ns)


def _extent(lanes: list[RawLane], views: list[View]) -> tuple[int, int]:
    """Return the time from the first to the last shown thing: device rows, their launches, evidence."""
    device = [lane for lane in lanes if lane.kind == "stream"]
    begin = min(int(lane.start_ns.min()) for lane in device)
    end = max(int(lane.end_ns.max()) for lane in device)
    calls = [lane for lane in lanes if lane.kind == "calls"]
    begin = min([begin, *(int(lane.start_ns.min()) for lane in calls), *(v.at_ns for v in views)])
    end = max([end, *(int(lane.end_ns.max()) for lane in calls), *(v.at_ns + v.dur_ns for v in views)])
    return begin, max(end, begin + 1)


def _view(analysis: Analysis, start: int, dur: int) -> View:
    """Return what to show of the surroundings of one row, given by its time: its launch call and its neighbours."""
    table, waits = analysis.trace.activities, analysis.waits
    rows = np.flatnonzero(analysis.chosen.rows)
    starts = table.start_ns[rows]
    low, high = start, start + dur
    for row in rows[(starts == start) & (table.end_ns[rows] == start + dur)][:1].tolist():
        if waits.linked[row]:
            low = min(low, int(waits.launch_start_ns[row]))
    # a launch far behind in a deep queue would make its kernel a hair's breadth
    typical = int(np.median(table.dur_ns[rows]))
    reach = REACH * max(dur, typical, 100)
    low = max(low, start - reach)
    order = np.sort(starts)
    first, last = int(np.searchsorted(order, low)), int(np.searchsorted(order, high, side="right"))
    before = int(order[max(0, first - NEIGHBOURS)])
    behind = int(order[min(len(order) - 1, last + NEIGHBOURS)])
    margin = max((high - low) // 4, typical // 2, 50)
    return View(min(low - margin, max(before, low - reach)), max(high + margin, min(behind, high + reach)), start, dur)


def _bounded(lanes: list[RawLane], core: tuple[int, int], rows: int) -> tuple[int, int]:
    """Return a stretch, cut where it holds more than three times the bound of device rows."""
    starts = np.sort(np.concatenate([lane.start_ns for lane in lanes if lane.kind == "stream"]))
    first, last = np.searchsorted(starts, core)
    return core if last - first <= 3 * rows else (core[0], int(starts[first + 3 * rows]))


def _windows(lanes: list[RawLane], cores: Windows, begin: int, end: int, rows: int) -> Windows:
    """Return where rows are drawn: everywhere, or as far around the cores as the bound on rows allows.

    Every core is a window; then all of them grow by the same time on both sides while each kind of row stays in bounds.
    """
    device = [lane for lane in lanes if lane.kind == "stream"]
    calls = [lane for lane in lanes if lane.kind == "calls"]
    if all(sum(len(lane.rows) for lane in part) <= rows for part in (device, calls)):
        return [(begin, end)]
    cores = cores or [(begin, begin)]
    grow = end - begin
    for part in (device, calls):
        starts = np.concatenate([lane.start_ns for lane in part]) if part else np.empty(0, np.int64)
        if len(starts) > rows:
            far = np.min([np.maximum(0, np.maximum(low - starts, starts - high)) for low, high in cores], axis=0)
            grow = min(grow, int(np.partition(far, rows)[rows]) - 1)
    grow = max(grow, 0)
    lows, highs = zip(*((max(begin, low - grow), min(end, high + grow)) for low, high in cores), strict=True)
    joined = intervals.union(np.array(lows, dtype=np.int64), np.array(highs, dtype=np.int64))
    return list(zip(*(part.tolist() for part in joined), strict=True))


def _within(start_ns: Int64, end_ns: Int64, windows: Windows) -> Bool:
    inside = np.zeros(len(start_ns), dtype=bool)
    for low, high in windows:
        inside |= (end_ns >= low) & (start_ns <= high)
    return inside


def _busy(edges: Int64, lane: RawLane) -> list[int]:
    covered = intervals.covered_length(edges[:-1], edges[1:], lane.start_ns, lane.end_ns)
    width = np.maximum(1, np.diff(edges))
    # a stretch with a single short row is not an idle one
    share = np.where(covered > 0, np.maximum(1, covered * 1000 // width), 0)
    return share.tolist() if len(lane.rows) else [0] * (len(edges) - 1)


def _places_of_calls(lanes: list[RawLane], shown: list[Int64], calls: int) -> Int64:
    """Return, per call, its place among all shown rows of all lanes; -1 where it is not shown, and in one more at the end."""
    places = np.full(calls + 1, -1, dtype=np.int64)
    before = 0
    for lane, at in zip(lanes, shown, strict=True):
        if lane.kind == "calls":
            places[lane.rows[at]] = before + np.arange(len(at))
        before += len(at)
    return places


def _names(
    analysis: Analysis, lanes: list[RawLane], shown: list[Int64], clean: Callable[[str], str], kernel_names: dict[int, str]
) -> tuple[list[str], dict[tuple[bool, int], int]]:  # fmt: skip
    """Return the texts used and where each is: keyed by whether it is an API's name, and by number."""
    texts = list(kernel_names.values())
    place = {(False, number): i for i, number in enumerate(kernel_names)}
    used = {
        (lane.kind == "calls", n)
        for lane, at in zip(lanes, shown, strict=True)
        for n in distinct(lane.name[at]).tolist()
    }
    rest = sorted(used - place.keys())
    source = (analysis.trace.names, analysis.trace.apis)
    full = [clean(source[api][n][:4096]) for api, n in rest]
    for key, short in zip(rest, short_names(full, 60), strict=True):
        place[key] = len(texts)
        texts.append(short)
    # a page stays small whatever the number of names
    return [t[: NAME_LENGTH if n < MANY_NAMES else SHORT_NAME] for n, t in enumerate(texts)], place
