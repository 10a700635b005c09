"""The time ledger for people: a bar per device, the largest causes, and the whole table."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.render import format as show
from traceanalyzer.render import worth
from traceanalyzer.render.blocks import Block, Line, Lines, Part, short_names
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.model import LedgerItemRow, LedgerRow, ReportData

CAUSES, BARS = 5, 4
_CAUSE_SHARE = 0.005
_LEAST = 0.0005
"""Less is shown as nothing."""
_LEGEND_SHARE = 0.02
_LEGEND = 6
_MARGIN_SHARE = 0.1
BUSY = ("compute", "communication", "copy", "fill")

WORDS = {
    "compute": ("#", "compute"), "communication": ("%", "communication"), "copy": ("=", "copy"), "fill": ("-", "fill"),
    "host_op": ("o", "host operator"), "python": ("p", "Python"), "between_ops": ("b", "host outside operators"),
    "launch_call": ("c", "launch call"), "launch_latency": ("l", "launch latency"), "other_call": ("v", "other API call"),
    "synchronise": ("s", "synchronise"), "copy_call": ("m", "copy call"), "allocation": ("a", "allocation"),
    "data_loading": ("d", "data loading"), "compile": ("j", "compilation"), "code_load": ("k", "code loading"),
    "graph_setup": ("n", "graph setup"), "first_use": ("f", "first use"), "launch_stall": ("t", "stalled launch"),
    "device_gap": ("g", "device gap"), "device_wait": ("w", "device wait"), "inside_launch": ("i", "inside a graph"),
    "before_window": ("e", "queued earlier"), "profiler": ("r", "profiler"), "unrecorded": ("u", "launch without rows"),
    "unlinked": ("?", "rows without launch"),
}  # fmt: skip
"""Of each class of the ledger its mark in a bar and its name in text. No mark is used twice."""
OTHER = "."
_BEFORE = "before_window"


def spans(report: ReportData) -> list[LedgerRow]:
    """Return the ledgers of whole devices, in the report's order; without causes where the clocks disagree."""
    rows = [row for row in report.ledger if row.window == "span" and row.span_us > 0]
    return [_busy_only(row) for row in rows] if clocks_disagree(report) else rows


def clocks_disagree(report: ReportData) -> bool:
    """Return whether host and device times cannot be compared, so that no idle time has a known cause."""
    return report.clock.state == "disagree"


NO_CAUSES = "host and device clocks disagree: why the device idled is not known"


def _busy_only(row: LedgerRow) -> LedgerRow:
    classes = {c: us for c, us in row.classes.items() if c in BUSY} | {"idle": idle_us(row)}
    items, largest = ([i for i in found if i.class_ in BUSY] for found in (row.items, row.causes))
    return replace(row, classes=classes, drained_by={}, worth=[], items=items, causes=largest)


def word(cls: str, row: LedgerRow | None = None) -> str:
    """Return the name of a class in text, as the ledger of a device whose operators were recorded, or nobody recorded, may call it.

    Without the row of a ledger it is not known which: then the name is true of both.
    """
    if cls == "between_ops" and (row is None or not row.operators_recorded):
        return "host code" if row is None else "host outside API calls"
    return WORDS[cls][1] if cls in WORDS else terminal(cls, 30)


def device(row: LedgerRow) -> str:
    """Return the device of a ledger as text names it."""
    return f"device {row.device}" + (f" ({terminal(row.owner, 16)})" if row.owner else "")


def idle_us(row: LedgerRow) -> float:
    """Return the time of a window in which the device did nothing."""
    return row.span_us - sum(us for cls, us in row.classes.items() if cls in BUSY)


def bar(row: LedgerRow, width: int) -> str:
    """Return a line of ``width`` marks, each worth the same time; classes that get none share the mark of the rest.

    Busy classes come first, then the causes of idle time, largest first. Marks are dealt by largest remainder, so that
    they add up to the width.
    """
    order = [c for c in BUSY if c in row.classes] + [c for c in row.classes if c not in BUSY]
    exact = [row.classes[c] / row.span_us * width for c in order]
    marks = [int(e) for e in exact]
    for n in sorted(range(len(order)), key=lambda n: marks[n] - exact[n])[: width - sum(marks)]:
        marks[n] += 1
    shown = {c for c, _ in _legend(row)}
    return "".join((WORDS[c][0] if c in shown and c in WORDS else OTHER) * m for c, m in zip(order, marks, strict=True))


def _legend(row: LedgerRow) -> list[tuple[str, float]]:
    order = [c for c in BUSY if c in row.classes] + [c for c in row.classes if c not in BUSY]
    shares = [(c, row.classes[c] / row.span_us) for c in order]
    # of a device that hardly computes the share of its compute is the first thing to know
    # and what else keeps the device busy is told apart, so that the shares explain how busy it is
    shown = [
        (c, share) for c, share in shares if share >= _LEGEND_SHARE or c == "compute" or (c in BUSY and share >= _LEAST)
    ]
    if len(shown) > _LEGEND:
        least = sorted((share for _, share in shown), reverse=True)[_LEGEND - 1]
        shown = [(c, share) for c, share in shown if share >= least or c == "compute"]
    return shown


def legend(row: LedgerRow) -> list[str]:
    """Return what the marks of a bar stand for, each with its share."""
    shown = _legend(row)
    parts = [f"{WORDS[c][0] if c in WORDS else OTHER} {word(c, row)} {show.percent(share)}" for c, share in shown]
    rest = 1 - sum(share for _, share in shown)
    return [*parts, *([f"{OTHER} other {show.percent(rest)}"] if rest >= _LEAST else [])]


def _wrapped(parts: list[str], width: int) -> list[str]:
    """Return the parts on lines of at most ``width`` characters, broken between two parts."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if len(longer) < width or not lines[-1]:
            lines[-1] = longer
        else:
            lines[-1] += ","
            lines.append(part)
    return lines


def drained(row: LedgerRow) -> list[str]:
    """Return why the device had run dry, in shares of its idle time; of what was queued before the recording nobody knows."""
    total = sum(row.drained_by.values())
    words = {
        "late": "the host launched late", "wait": "a synchronise or copy call had emptied the queue",
        "device": "queued work had not started", "unlinked": "not known",
    }  # fmt: skip
    why_us = dict(row.drained_by)
    for item in row.items:
        if item.class_ == _BEFORE:
            for why, us in item.drained_by.items():
                why_us[why] -= us
                why_us["unlinked"] = why_us.get("unlinked", 0.0) + us
    parts = [f"{words.get(why, why)} {show.percent(us / total)}" for why, us in why_us.items() if us >= 0.02 * total]
    return ["of the idle time: " + parts[0], *parts[1:]] if parts else []


def when(item: LedgerItemRow) -> str:
    """Return when a cause falls due, in words."""
    if item.when == "kth_step":
        return f"every {show.nth(item.every)} step"
    if item.when == "periodic":
        return f"each {show.duration(item.period_us)}"
    plain = {"start": "at the start", "end": "at the end", "every_step": "every step"}
    return plain.get(item.when, item.when)


def brief_ledger(report: ReportData, width: int, most: int = CAUSES) -> list[Part]:
    """Return a bar for each device (of many, those that idle most), and the ``most`` largest causes of lost time."""
    rows = spans(report)
    if not rows:
        return []
    bars = _one_bar(rows[0], width - 4) if len(rows) == 1 else _bars(rows, width - 4)
    if clocks_disagree(report):
        bars.lines.append(Line(NO_CAUSES, "bold", 2))
    return [bars, *_causes(rows, short_names(report), width, most)]


def _one_bar(row: LedgerRow, width: int) -> Lines:
    busy = show.percent(1 - idle_us(row) / row.span_us)
    lines = [bar(row, width), *_wrapped(legend(row), width)]
    if idle_us(row) >= 0.02 * row.span_us and (parts := drained(row)):
        lines += _wrapped(parts, width)
    title = f"Where the time of {device(row)} went ({show.duration(row.span_us)}, {busy} busy)"
    return Lines(title, [Line(text, indent=2) for text in [*lines, *_margins(row)]])


def _bars(rows: list[LedgerRow], width: int) -> Lines:
    """Return one line per device, its bar between its name and the busy share, and one legend for all."""
    shown = rows if len(rows) <= BARS else sorted(rows, key=idle_us, reverse=True)[:BARS]
    names = [device(row) for row in shown]
    ends = [f"{show.duration(r.span_us)}, {show.percent(1 - idle_us(r) / r.span_us)} busy" for r in shown]
    left, right = max(map(len, names)), max(map(len, ends))
    room = max(10, width - left - right - 2)
    lines = [
        f"{name:{left}} {bar(row, room)} {end:>{right}}" for name, row, end in zip(names, shown, ends, strict=True)
    ]
    marks: dict[str, LedgerRow] = {}
    for row in shown:
        for c, _ in _legend(row):
            marks.setdefault(c, row)
    lines += _wrapped(
        [f"{WORDS[c][0]} {word(c, row)}" for c, row in marks.items() if c in WORDS] + [f"{OTHER} other"], width
    )
    if len(rows) > BARS:
        lines.append(f"{show.plural(len(rows) - BARS, 'more device')}, which idle less: --section ledger")
    return Lines(f"Where the time of {len(rows)} devices went", [Line(text, indent=2) for text in lines])


def _margins(row: LedgerRow) -> list[str]:
    """Return the host's time outside of the span, where it is much: the numbers above do not hold it."""
    parts = [
        f"{show.duration(us)} {where} device row"
        for us, where in ((row.before_first_us, "before the first"), (row.after_last_us, "after the last"))
        if us is not None and us >= _MARGIN_SHARE * row.span_us
    ]
    return [f"not counted: the host ran for {' and '.join(parts)}"] if parts else []


def causes(rows: list[LedgerRow]) -> list[tuple[LedgerRow, LedgerItemRow]]:
    """Return what the devices lost time to, largest first: everything but compute and the gaps of its own queue."""
    found = [(row, item) for row in rows for item in row.causes if item.class_ != "compute"]
    return sorted(found, key=lambda pair: -pair[1].us)


def _causes(rows: list[LedgerRow], short: dict[str, str], width: int, most: int) -> list[Part]:
    found = [(row, item) for row, item in causes(rows) if item.share >= _CAUSE_SHARE][:most]
    if not found:
        return []
    several = len(rows) > 1
    # a screen of 80 columns has room for the device or for the place
    place = not several or width >= 92
    cells = [
        [
            word(item.class_, row), named(item, short), show.duration(item.us), show.percent(item.share), when(item),
            *([show.moment(round(item.example_at_us))] if place else []),
            *([device(row).removeprefix("device ")] if several else []),
        ]
        for row, item in found
    ]  # fmt: skip
    columns = ["cause", "what", "cost", "share", "when"]
    columns += [*(["longest at"] if place else []), *(["device"] if several else [])]
    labels = frozenset({0, 4, len(columns) - 1} if several else {0, 4})
    title = "Largest causes (all: --section ledger)"
    row = max(rows, key=lambda r: max((w.factor or 0.0 for w in r.worth), default=0.0))
    known = worth.parts(row)
    if several and known:
        known[0] = f"{device(row)}: {known[0]}"
    return [Block(title, columns, cells, frozenset({1}), _wrapped(known, width - 4), labels=labels, compact=True)]


def named(item: LedgerItemRow, short: dict[str, str]) -> str:
    """Return the name of a cause, a device row's in short, with the user's range it lies in."""
    name = short.get(item.name, item.name).strip() or (item.before if item.class_ in BUSY else "")
    if item.ranges > 1:
        # of a name that has a row of its own the ranges say little more
        return name or (f"partly in {item.within}" if item.within else "")
    if item.within and item.within != item.name:
        return f"{name} in {item.within}" if name else f"in {item.within}"
    return name


def full_ledger(report: ReportData, top: int) -> list[Part]:
    """Return each ledger: its classes, why the device ran dry, and its items."""
    found: list[Part] = []
    short = short_names(report)
    every = spans(report) if clocks_disagree(report) else report.ledger
    if clocks_disagree(report) and every:
        found.append(Lines("", [Line(NO_CAUSES, "bold")]))
    for row in every[:top]:
        window = "" if row.window == "span" else f", calls of {terminal(row.window, 60)}"
        cells = [
            [word(c, row), c, show.time(us), show.percent(us / row.span_us)]
            for c, us in row.classes.items()
            if row.span_us
        ]
        notes = [", ".join(parts)] if (parts := drained(row)) else []
        notes += [
            f"launch latency: up to {show.duration(row.launch_latency_limit_us)} from call to start; above it is device wait"
        ]
        notes += _margins(row) if row.window == "span" else []
        title = f"Time ledger of {device(row)}{window} ({show.duration(row.span_us)})"
        found.append(
            Block(title, ["class", "in JSON", "time", "share"], cells, frozenset(), notes, labels=frozenset({0, 1}))
        )
        if row.window == "span" and row.items:
            found.append(_items(row, top, short))
        if (changes := worth.table(row, f"{device(row)}{window}")) is not None:
            found.append(changes)
    if len(every) > top:
        found.append(Lines("", [Line(f"and {show.plural(len(every) - top, 'ledger')} (all in JSON)")]))
    return found


def _items(row: LedgerRow, top: int, short: dict[str, str]) -> Block:
    cells = [
        [
            word(i.class_, row), named(i, short), show.time(i.us), show.percent(i.share), show.count(i.count), show.time(i.longest_us), when(i),
            show.moment(round(i.example_at_us)), short.get(i.before, i.before),
        ]
        for i in row.items[:top]
    ]  # fmt: skip
    more = len(row.items) - top + row.items_left_out
    notes = [f"{show.plural(more, 'more cause')} (the largest in JSON)"] if more > 0 else []
    columns = ["cause", "what", "cost", "share", "times", "longest", "when", "longest at", "row after it"]
    return Block(f"Causes on {device(row)}", columns, cells, frozenset({1, 8}), notes, labels=frozenset({0, 6}))


def one_line(row: LedgerRow, short: dict[str, str]) -> str:
    """Return a device's ledger as one sentence: the shares of its classes, and the largest cause."""
    order = sorted(row.classes.items(), key=lambda pair: -pair[1])
    shares = [
        f"{word(c, row)} {show.percent(us / row.span_us)}" for c, us in order if us >= _LEGEND_SHARE * row.span_us
    ]
    text = f"{device(row)}, {show.duration(row.span_us)}: {', '.join(shares[:_LEGEND])}"
    found = [item for _, item in causes([row]) if item.share >= _CAUSE_SHARE]
    if "idle" in row.classes:
        text += f"; {NO_CAUSES}"
    if found:
        first = found[0]
        name = f" {named(first, short)}" if named(first, short) else ""
        text += f"; largest cause: {word(first.class_, row)}{name}, {show.duration(first.us)} ({show.percent(first.share)}), {when(first)}"
    if change := worth.best(row):
        text += f"; {change}"
    return text


def cause_table(report: ReportData, most: int) -> Block | None:
    """Return the largest causes of all devices, without a place in the trace: for outputs that are compared between runs."""
    rows = spans(report)
    found = [(row, item) for row, item in causes(rows) if item.share >= _CAUSE_SHARE][:most]
    if not found:
        return None
    several, short = len(rows) > 1, short_names(report)
    cells = [
        [
            named(item, short) or f"before {short.get(item.before, item.before)}", word(item.class_, row), show.duration(item.us), show.percent(item.share), when(item),
            *([device(row).removeprefix("device ")] if several else []),
        ]
        for row, item in found
    ]  # fmt: skip
    columns = ["lost to", "cause", "cost", "share", "when", *(["device"] if several else [])]
    return Block("Largest causes of lost time", columns, cells, frozenset({0}), labels=frozenset({1, 4}))
