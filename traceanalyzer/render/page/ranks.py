"""The report on a folder of ranks as a page: a bar per rank on one axis of time, then who waits for whom."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from traceanalyzer.render import format as show
from traceanalyzer.render import ranks as cells
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.ledger import BUSY, word
from traceanalyzer.render.page.content import COLOURS
from traceanalyzer.render.page.sheet import ROWS, Bar, BarPiece, Bars, Sheet, SheetPart, sheet_page
from traceanalyzer.render.page.svg import Axis, ChartMark, ChartRow, RowChart, short_time
from traceanalyzer.report.ranks import WAITING_SHARE, RankRow, RanksData, RankWaits

_LEAST_SHARE = 0.004
_LEGEND = 8
_WAITING = 12
_OTHER = "other"


def page_ranks(report: RanksData, settings: RenderSettings) -> str:
    """Return the page; ``top`` rows per table."""
    top = min(settings.top or ROWS, ROWS)
    status, said = _status(report)
    waiting = [b for b in (cells.waits(report, top), cells.collectives(report, top)) if b is not None]
    verdicts = replace(cells.verdicts(report, top), labels=frozenset({1, 2, 3}))
    numbers = [cells.ledgers(report, top), cells.times(report, top), verdicts, cells.hta_numbers(report, top)]
    late = [f"rank {_name(report, r)}: {r.straggler}" for r in report.ranks if r.straggler]
    parts = [
        SheetPart("ledger", "Where each rank's time went", _bars(report)),
        SheetPart("ranks", "Ranks", tables=[_table(report, top)], lines=late),
        SheetPart("waits", "Who waits for whom", charts=_charts(report), tables=waiting),
        SheetPart("details", "In numbers", tables=[b for b in numbers if b is not None]),
        SheetPart("file", "The folder", lines=cells.facts(report)[:-1]),
    ]  # fmt: skip
    headline = report.headline[:1].upper() + report.headline[1:]
    lines = cells.markdown_ranks(report, RenderSettings(top=16))
    about = cells.facts(report)[-1]
    return sheet_page(Sheet(report.folder, headline, parts, status, said, [cells.counts(report)], about, lines))


def _name(report: RanksData, row: RankRow) -> str:
    """Return the rank alone where each has one device, else with its device."""
    ranks = [r.rank for r in report.ranks]
    return cells.row_name(row) if row.rank is None or len(set(ranks)) < len(ranks) else f"{row.rank}"


def _status(report: RanksData) -> tuple[str, str]:
    """Return the status that colours the verdict, and its word."""
    found = report.communication
    waited = sum(r.wait_us for r in found.ranks) if found else 0.0
    whole = waited + (sum(r.transfer_us for r in found.ranks) if found else 0.0)
    if any(r.straggler for r in report.ranks):
        return "suspect", "Late rank"
    if waited > WAITING_SHARE * whole:
        return "suspect", "Ranks wait"
    if any(r.queue == "cpu-bound" for r in report.ranks):
        return "suspect", "CPU-bound"
    if report.missing or report.lost:
        return "undecided", "Incomplete"
    if found is None or found.reason or len(report.ranks) < 2:
        return "undecided", "Waits not judged"
    return "ok", "Even"


def anchors(rows: list[RankRow]) -> list[str]:
    """Return an id for each row: ``rank-3``, ``rank-3-device-1`` for a further device of it, ``file-7`` where no rank is known."""
    found: list[str] = []
    for n, r in enumerate(rows, 1):
        wanted = (
            [f"file-{n}"]
            if r.rank is None
            else [f"rank-{r.rank}", f"rank-{r.rank}-device-{r.device}", f"rank-{r.rank}-row-{n}"]
        )
        found.append(next(w for w in wanted if w not in found[-_NEAR:]))
    return found  # fmt: skip


_NEAR = 64
"""Rows of one rank are together: a trace has no more devices."""


def _bars(report: RanksData) -> Bars | None:
    rows = [(r, a) for r, a in zip(report.ranks, anchors(report.ranks), strict=True) if r.span_us > 0 and r.ledger]
    if not rows:
        return None
    longest = max(r.span_us for r, _ in rows)
    shares: dict[str, list[float]] = {}
    for r, _ in rows:
        for cls, us in r.ledger.items():
            if us > 0:
                shares.setdefault(cls, []).append(us / r.span_us)
    order = [c for c in BUSY if c in shares] + sorted(
        (c for c in shares if c not in BUSY), key=lambda c: -max(shares[c])
    )
    bars = []
    for r, anchor in rows:
        name = _name(report, r)
        label = f"rank {name}" if r.rank is not None else name.removeprefix("? ")
        value = f"{show.percent(r.busy_us / r.span_us)} busy of {show.duration(r.span_us)}"
        bars.append(Bar(label, value, _pieces(r, order, longest), anchor, "late" if r.straggler else ""))
    large = sorted(order, key=lambda c: -max(shares[c]))[:_LEGEND]
    legend = [
        (_kind(c), f"{word(c)} {_range(shares[c], sum(cells.knows(r, c) for r, _ in rows))}")
        for c in order
        if c in large
    ]
    return Bars(
        "each rank's device from its first row to its last, on one axis; busy first, then why it was idle",
        bars,
        Axis(0.0, longest, False).ticks(short_time),
        legend,
    )


def _kind(cls: str) -> str:
    return cls if cls in BUSY else COLOURS.get(cls, _OTHER)


def _range(shares: list[float], rows: int) -> str:
    low, high = (min(shares) if len(shares) == rows else 0.0), max(shares)
    return show.percent(high) if rows == 1 or high - low < 0.005 else f"{show.percent(low)} to {show.percent(high)}"


def _pieces(r: RankRow, order: list[str], longest: float) -> list[BarPiece]:
    made, x, rest = [], 0.0, 0.0
    for cls in order:
        us = r.ledger.get(cls, 0.0)
        if us < _LEAST_SHARE * r.span_us:
            rest += us
            continue
        made.append(BarPiece(_kind(cls), round(x, 2), round(1000 * us / longest, 2), f"{word(cls)} {show.percent(us / r.span_us)} ({show.duration(us)})"))  # fmt: skip
        x += 1000 * us / longest
    if rest > 0:
        made.append(BarPiece(_OTHER, round(x, 2), round(1000 * rest / longest, 2), f"smaller causes {show.duration(rest)}"))  # fmt: skip
    return made


def _table(report: RanksData, top: int) -> Block:
    waits: dict[int, RankWaits] = {w.rank: w for w in report.communication.ranks} if report.communication else {}
    rows, name = [], partial(_name, report)
    for r in report.ranks[:top]:
        w = waits.get(r.rank) if r.rank is not None else None
        rows.append(
            [
                name(r), "late" if r.straggler else "", show.time(r.span_us), show.percent(r.busy_us / r.span_us if r.span_us else None),
                show.time(r.exposed_communication_us), show.percent(r.overlap_share), show.time(w.wait_us if w else None), _mostly(w),
                show.time(w.caused_us if w else None), show.count(w.last if w else None), show.queue(r.queue, r.grade), r.file,
            ]
        )  # fmt: skip
    columns = [
        "rank", "late", "span", "busy", "exposed communication", "overlap", "waits in collectives", "mostly for", "others wait for it", "joined last", "queue", "file",
    ]  # fmt: skip
    notes = cells.hidden(report, top)
    return Block(
        "Each rank and its device", columns, rows, frozenset({11}), notes, labels=frozenset({0, 1, 7, 10}), anchors=tuple(anchors(report.ranks[:top]))
    )  # fmt: skip


def _mostly(w: RankWaits | None) -> str:
    if w is None or not w.waits_for_us or not w.wait_us:
        return ""
    longest = max(w.waits_for_us, key=lambda q: w.waits_for_us[q])
    return f"rank {longest} ({show.percent(w.waits_for_us[longest] / w.wait_us)})"


def _charts(report: RanksData) -> list[RowChart]:
    """Return waiting and transfer of each rank on one axis; of many ranks those that wait most."""
    found = report.communication
    known = [] if found is None else [w for w in found.ranks if w.wait_us + w.transfer_us > 0]
    if not known:
        return []
    # the rank that the others wait for is the one to see, though it waits least
    cause = max(known, key=lambda w: w.caused_us).rank
    kept = {w.rank for w in sorted(known, key=lambda w: (w.rank != cause, -w.wait_us))[:_WAITING]}
    axis = Axis(0.0, max(w.wait_us + w.transfer_us for w in known), False)
    rows = []
    for w in (w for w in known if w.rank in kept):
        ends = axis.at(w.wait_us), axis.at(w.wait_us + w.transfer_us)
        mostly = _mostly(w)
        waits = f"waits {show.time(w.wait_us)}" if w.wait_us else "waits for none"
        text = f"{waits}{f', mostly for {mostly}' if mostly else ''}; transfer {show.time(w.transfer_us)}"
        rows.append(ChartRow(f"rank {w.rank}", terminal(text, 200), [ChartMark("span", "wait", 0.0, ends[0]), ChartMark("span", "communication", *ends)]))  # fmt: skip
    notes = ["waiting: until the last rank's kernel started; transfer: the rest of the collectives"]
    if len(known) > len(kept):
        notes.append(
            f"rank {cause}, for which the others wait most, and the {len(kept) - 1} of {len(known):,} ranks that wait longest; the table has all"
        )
    return [
        RowChart("Time in collectives: waiting first, then transfer", rows, axis.ticks(short_time), "", notes=notes)
    ]
