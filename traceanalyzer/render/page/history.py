"""A history as a page: a trend per unit and device with its changes of level, and the recordings as a table."""

from __future__ import annotations

from itertools import pairwise

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.sheet import Sheet, SheetPart, sheet_page
from traceanalyzer.render.page.trend import trend_chart
from traceanalyzer.report.history.trends import Trend

_TRENDS = 80
_ALL_ROWS = 1200
_FEWEST = 10


def history_page(trends: list[Trend], name: str = "history") -> str:
    """Return the page of the history in the file ``name``."""
    shown = trends[:_TRENDS]
    rows = max(_FEWEST, _ALL_ROWS // max(1, len(shown)))
    parts = [SheetPart("changes", "Changes of level", tables=[b for b in [_changes(trends)] if b is not None])]
    parts += [_part(n, t, rows) for n, t in enumerate(shown, 1)]
    if len(trends) > len(shown):
        parts.append(
            SheetPart(
                "more", "More", lines=[f"{len(trends) - len(shown):,} more units are not on this page: text has all"]
            )
        )
    status, word = ("", "") if not trends else ("undecided", "Level changed") if any(t.changes for t in trends) else ("ok", "Steady")  # fmt: skip
    recordings = len({(e.added, e.trace) for t in trends for e in t.entries})
    about = [show.plural(recordings, "recording"), show.plural(len(trends), "trend")]
    return sheet_page(Sheet(name, _headline(trends), parts, status, word, about if trends else []))


def _headline(trends: list[Trend]) -> str:
    if not trends:
        return "The history holds no unit with a period."
    changed = [t for t in trends if t.changes]
    if not changed:
        return f"No change of level in {show.plural(len(trends), 'unit')}."
    last = max(((t, c) for t in changed for c in t.changes), key=lambda p: p[0].entries[p[1].index].added)
    t, c = last
    return (
        f"{t.unit} on {_device(t)}: {show.duration(c.before)} to {show.duration(c.after)} ({c.after / c.before:.3f}) at {_called(t, c.index)}, "
        f"the newest of {show.plural(sum(len(x.changes) for x in changed), 'change')} of level."
    )


def _device(t: Trend) -> str:
    return t.device or "a device not named"


def _called(t: Trend, index: int) -> str:
    """Return what a recording is called: its commit, else its time."""
    e = t.entries[index]
    return terminal(e.commit_id[:12], 12) or terminal(e.added[:16].replace("T", " "), 16)


def _changes(trends: list[Trend]) -> Block | None:
    rows = []
    for t in trends:
        for c in t.changes:
            ratio, added = c.after / c.before, t.entries[c.index].added[:16].replace("T", " ")
            row = [
                t.unit,
                _device(t),
                _called(t, c.index),
                terminal(added, 16),
                show.time(c.before),
                show.time(c.after),
            ]
            rows.append([*row, f"{ratio:.3f}"])
    if not rows:
        return None
    columns = ["unit", "device", "first recording", "added", "before", "after", "ratio"]
    notes = ["a change: the medians of the stretches around it differ by over 1 % and by over four standard errors"]
    return Block("Where the period changed for good", columns, rows, frozenset({0, 1, 2}), notes, labels=frozenset({3}))


def _part(number: int, t: Trend, rows: int) -> SheetPart:
    values = [float(e.period_us or 0) for e in t.entries]
    spread = [
        (e.period_low_us, e.period_high_us) if e.period_low_us is not None and e.period_high_us is not None else None
        for e in t.entries
    ]
    chart = trend_chart(
        f"{t.unit} on {_device(t)}: period per recording", values, spread, [_called(t, i) for i in range(len(values))],
        [(c.index, c.before, c.after) for c in t.changes], show.duration,
        [f"{i}: {show.duration(c.before)} to {show.duration(c.after)} ({c.after / c.before:.3f}) at {_called(t, c.index)}" for i, c in enumerate(t.changes[:12], 1)]
        or ["no change of level"],
    )  # fmt: skip
    kept = range(max(0, len(values) - rows), len(values))
    at = {c.index: c for c in t.changes}
    ratios = [None, *(b / a for a, b in pairwise(values))]
    cells = [
        [
            terminal(t.entries[i].added[:16].replace("T", " "), 16), t.entries[i].commit_id[:12], t.entries[i].trace, show.time(values[i]), show.time_interval(spread[i]),
            show.NA if ratios[i] is None else f"{ratios[i]:.3f}", show.time(t.entries[i].busy_us), t.entries[i].verdict, "level changes" if i in at else "",
        ]
        for i in reversed(kept)
    ]  # fmt: skip
    left = len(values) - len(kept)
    notes = [f"{left:,} older recordings are in the chart alone"] if left else []
    columns = ["added", "commit", "trace", "period", "quarters", "to the one before", "busy", "verdict", "change"]
    table = Block(
        f"Recordings of {t.unit}, newest first", columns, cells, frozenset({1, 2, 7}), notes, labels=frozenset({0, 8})
    )
    return SheetPart(f"unit-{number}", t.unit, charts=[chart], tables=[table])
