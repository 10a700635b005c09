"""The blocks of a report as plain cells, shared by the text, Markdown and notebook renderers.

A block has a title, column titles and rows of text; which columns hold names of the trace is marked, so
that each renderer escapes them its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from traceanalyzer.damage_text import words_of_key
from traceanalyzer.record import record
from traceanalyzer.render import format as show
from traceanalyzer.report.model import FindingRow, ReportData
from traceanalyzer.report.units import KernelRow, OpRow

VARIANTS_SHOWN = 2
VARIANTS_FOR = 5


@record(frozen=True)
class Block:
    """A table; ``names`` are the numbers of the columns that hold text from the trace. ``notes`` follow it.

    Cells in ``struck`` (row, column) are times of a wrong result: shown, but struck through. Columns in ``labels`` hold words
    of our own: they are aligned left as names are, and are never cropped. A ``compact`` block takes one line for its column
    titles and none for a rule below them. ``anchors`` are the ids of the rows on a page, where they have some. Rows in ``inner`` are
    parts of the row above them, indented.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    names: frozenset[int] = frozenset({0})
    notes: list[str] = field(default_factory=list)
    struck: frozenset[tuple[int, int]] = frozenset()
    labels: frozenset[int] = frozenset()
    compact: bool = False
    anchors: tuple[str, ...] = ()
    inner: frozenset[int] = frozenset()

    def outer_rows(self) -> list[list[str]]:
        """Return the rows without those that are parts of others."""
        return [row for number, row in enumerate(self.rows) if number not in self.inner]


class NameCell(str):
    """A cell that holds a name and a ``tail``, which stays whole where the name is cut."""

    __slots__ = ("name", "tail")
    name: str
    tail: str

    def __new__(cls, name: str, tail: str) -> NameCell:
        """Return the cell, as a text both parts together."""
        made = super().__new__(cls, name + tail)
        made.name, made.tail = name, tail
        return made


@record(frozen=True)
class Line:
    """One paragraph of text: ``style`` is a style of rich for terminals with colour, ``limit`` the characters shown."""

    text: str
    style: str = ""
    indent: int = 0
    limit: int = 2000


@record(frozen=True)
class Lines:
    """Paragraphs under an optional title."""

    title: str
    lines: list[Line]


Part = Block | Lines


def kernels(report: ReportData, top: int) -> Block | None:
    """Return the kernel table, largest total first; a column names the device where there are several."""
    if not report.kernels:
        return None
    several = len({(k.device, k.owner) for k in report.kernels}) > 1
    adds = any(overlaps(k) for k in report.kernels[:top])
    rows: list[list[str]] = []
    inner: set[int] = set()
    for place, kernel in enumerate(report.kernels[:top]):
        configs = len(kernel.variants)
        # a name that begins with blanks would pass for the row of a variant
        name = kernel.short_name.strip() or "(no name)"
        rows.append(_kernel(kernel, NameCell(name, f" ({configs} configs)" if configs else ""), adds, several))
        if place < VARIANTS_FOR:
            parts = [_kernel(v, "  " + _config(v.config), adds, several) for v in kernel.variants[:VARIANTS_SHOWN]]
            inner |= set(range(len(rows), len(rows) + len(parts)))
            rows += parts
    notes = []
    hidden = report.kernels[top:]
    if hidden:
        notes.append(
            f"{show.plural(len(hidden), 'more kernel')} with {show.percent(sum(k.share for k in hidden))} of kernel time "
            "not shown (--top N; all in JSON and CSV)"
        )
    if any(k.variants for k in report.kernels[:top]):
        notes.append(
            "(N configs): one name launched as N different kernels; its own row mixes them (rNN registers, sNN shared bytes)"
        )
    if adds:
        notes.append("adds: what a run adds to the busy time of the rows before it; quote it where runs overlap")
    if any(k.grade for k in report.kernels[:top]):
        notes.append("queue: P proven by rows of this trace, D derived, H hint; n/a not judged")
    columns = [
        "kernel", "self p50", "95% CI", *(["adds p50"] if adds else []), "n", "share", "dispatch p50", "event pair reads", "inflation", "queue",
        *(["device"] if several else []),
    ]  # fmt: skip
    return Block("Kernels (self-time, largest total first)", columns, rows, notes=notes, inner=frozenset(inner))


def overlaps(k: KernelRow) -> bool:
    """Return whether a kernel's runs overlap what ran before them, so that its self-time contains waiting."""
    return k.exclusive_p50_us is not None and k.exclusive_p50_us < 0.95 * k.p50_us


def _kernel(k: KernelRow, label: str, adds: bool, several: bool) -> list[str]:
    return [
        label, show.time(k.p50_us), show.time_interval(k.p50_ci95_us), *([show.time(k.exclusive_p50_us)] if adds else []), show.count(k.count),
        show.percent(k.share), show.time(k.dispatch_p50_us), show.time(k.event_reading_us), show.ratio(k.inflation),
        "in graph" if k.in_graph == k.count else show.queue(k.queue, k.grade),
        *([f"{k.device}{f' ({k.owner})' if k.owner else ''}"] if several else []),
    ]  # fmt: skip


def _config(config: str | None) -> str:
    text = config or "configuration not recorded"
    for long, short in (("grid ", ""), (" block ", "/"), (" regs ", " r"), (" smem ", " s")):
        text = text.replace(long, short)
    return text


def short_names(report: ReportData) -> dict[str, str]:
    """Return the name that the tables show for each full name: a row has the same name everywhere."""
    found = {op.name: op.short_name for op in report.ops if op.short_name.strip()}
    return found | {row.name: row.short_name for row in (*report.kernels, *report.copies) if row.short_name.strip()}


def copies(report: ReportData, top: int) -> Block | None:
    """Return copies and fills."""
    if not report.copies:
        return None
    rows = [
        [c.short_name, show.time(c.p50_us), show.time(c.total_us), show.count(c.count)] for c in report.copies[:top]
    ]
    return Block(
        "Copies and fills",
        ["copy", "p50", "total", "n"],
        rows,
        notes=_hidden(report.copies, top, "kind of copy", "kinds of copy"),
    )


def ops(report: ReportData, top: int) -> Block | None:
    """Return operations: the calls of the thing being measured, and graph replays."""
    if not report.ops:
        return None
    short = short_names(report)
    rows = [
        [
            short.get(op.name, op.name), show.count(op.iterations), show.count(op.kernels_per_iteration), show.time(op.self_time_p50_us), show.time(op.span_p50_us),
            show.time(op.dispatch_p50_us), show.queue(op.queue, op.grade),
        ]
        for op in report.ops[:top]
    ]  # fmt: skip
    notes = [f"calls found by {op.method}: {op.how} ({op.certainty})" for op in report.ops[:top]]
    notes += [
        f"{short.get(op.name, op.name)}: a cache clear of {show.time(op.clear_p50_us)} leads each call; it counts in no self-time"
        for op in report.ops[:top]
        if op.clear_p50_us is not None
    ]
    columns = ["operation", "calls", "kernels", "self p50", "span p50", "dispatch p50", "queue"]
    notes = [*dict.fromkeys(notes), *_hidden(report.ops, top, "operation")]
    return Block("Operations (per call)", columns, rows, notes=notes)


def ladder(report: ReportData, top: int) -> Block | None:
    """Return what each protocol would have read, per operation: closed form, and replay where it differs by 5 %."""
    with_ladder = [op for op in report.ops if op.symbols][:top]
    if not with_ladder:
        return None
    rows = []
    for protocol, title in LADDER_TITLES.items():
        cells = []
        for op in with_ladder:
            form, replay = op.readings.get(protocol), op.readings_replayed.get(protocol)
            differs = form is not None and replay is not None and abs(form - replay) > 0.05 * max(form, replay)
            cells.append(show.time(form) + (f" ({show.time(replay)})" if differs else ""))
        rows.append([title, *cells])
    op = with_ladder[0]
    short, several = short_names(report), len(with_ladder) > 1
    notes = []
    if several:
        notes.append("; ".join(f"op {n}: {short.get(o.name, o.name)}" for n, o in enumerate(with_ladder, 1)))
    if any("(" in c for row in rows for c in row[1:]):
        notes.append(
            "in brackets: the trace's own times replayed through the queue, where they differ from the closed form by 5 %"
        )
    notes += [ladder_symbols(op, "op 1" if several else ""), *ladder_sources(op)]
    titles = [f"op {n + 1}" for n in range(len(with_ladder))] if several else ["reading"]
    return Block("What each protocol would have read (per call)", ["protocol", *titles], rows, notes=notes)


_SYMBOLS = {
    "dispatch": "d", "kernels": "k", "latency": "L", "record": "e", "sync": "s", "gap": "g", "clear": "c", "backlog": "b",
}  # fmt: skip


def ladder_symbols(op: OpRow, of: str = "") -> str:
    """Return the symbols that an operation's ladder is made of; ``of`` names the operation where there are several."""
    symbols = ", ".join(f"{short} {_symbol(op.symbols.get(f'{name}_us'))}" for name, short in _SYMBOLS.items())
    return f"symbols{f' of {of}' if of else ''}: {symbols}"


def ladder_sources(op: OpRow) -> list[str]:
    """Return how each of the symbols was found."""
    return [f"{name}: {how}" for name, how in op.symbol_sources.items() if name in _SYMBOLS]


LADDER_TITLES = {
    "wall_nosync": "wall clock, no synchronise", "wall_sync_each": "wall clock, synchronise each call",
    "wall_sync_once": "wall clock, synchronise once", "event_pair": "event pair per call",
    "event_pair_sync": "event pair, synchronise each call", "event_loop": "events around the loop",
    "do_bench": "event pair behind a clear (do_bench)", "graph_unrolled": "calls unrolled in one graph",
    "profiler_self_time": "profiler self-time",
}  # fmt: skip


def _symbol(value: float | list[float] | None) -> str:
    if isinstance(value, list):
        return "+".join(show.time(v) for v in value[:4]) + ("+..." if len(value) > 4 else "")
    return show.time(value)


def devices(report: ReportData, top: int = 20) -> Block | None:
    """Return devices with their queue state."""
    if not report.devices:
        return None
    rows = [
        [
            f"{d.device} {d.owner}".strip(), d.name or "not stated", show.time(d.busy_us), show.time(d.span_us), show.percent(d.busy_fraction),
            f"{d.starved + d.starved_after_sync} of {d.launches_counted}", show.queue(d.queue, d.grade),
        ]
        for d in report.devices[:top]
    ]  # fmt: skip
    notes = [f"device {d.device}: {d.queue_reason}" for d in report.devices[:top] if d.queue_reason]
    notes += [
        f"device {d.device}: self-times add up to {show.time(d.self_time_us)}, {show.time(d.overlap_us)} more than busy: rows overlap"
        for d in report.devices[:top]
        if d.overlap_us > 0.02 * d.busy_us
    ]
    notes += _hidden(report.devices, top, "device")
    columns = ["device", "name", "busy", "span", "share", "starved", "queue"]
    return Block("Devices", columns, rows, frozenset({0, 1}), notes)


def streams(report: ReportData, top: int) -> Block | None:
    """Return streams with what their gaps waited for."""
    if not report.streams:
        return None
    rows = [
        [
            f"{s.device}/{s.stream} {s.owner}".strip(), show.count(s.activities), show.time(s.gap_p50_us), show.time(s.gap_total_us),
            *([show.NA] * 4 if not s.clocks_agree else
              [show.time(s.host_wait_us), show.time(s.sync_wait_us), show.time(s.launch_wait_us), show.count(s.starved)]),
            show.NA if not s.clocks_agree or s.queue_depth_p50 is None else f"{show.count(s.queue_depth_p50)} / {s.queue_depth_max}",
        ]
        for s in report.streams[:top]
    ]  # fmt: skip
    notes = [
        f"stream {s.device}/{s.stream}: {show.plural(s.overlaps, 'row')} start before their predecessor ends, by up to "
        f"{show.time(s.overlap_max_us)} (dependent launch)"
        for s in report.streams[:top]
        if s.overlaps
    ]
    notes += _hidden(report.streams, top, "stream")
    columns = [
        "stream",
        "rows",
        "gap p50",
        "gaps",
        "host wait",
        "of it sync",
        "launch wait",
        "starved",
        "depth p50/max",
    ]
    return Block("Streams", columns, rows, notes=notes)


def threads(report: ReportData, top: int) -> Block | None:
    """Return dispatch per launching thread."""
    if not report.threads:
        return None
    rows = [
        [
            t.thread, show.count(t.launches), show.time(t.dispatch_p50_us), show.time(t.dispatch_p90_us), show.time(t.steady_dispatch_p50_us),
            show.count(t.steady_intervals), show.time(t.kernel_dispatch_p50_us), show.count(t.kernel_launches),
        ]
        for t in report.threads[:top]
    ]  # fmt: skip
    notes = [
        f"thread {t.thread}: left out of the steady dispatch: {', '.join(f'{r} {n}' for r, n in t.left_out.items())}"
        for t in report.threads[:top]
        if t.left_out
    ]
    notes += _hidden(report.threads, top, "thread")
    columns = ["thread", "launches", "p50", "p90", "steady p50", "steady n", "kernel launches p50", "n"]
    return Block("Dispatch (launch to launch)", columns, rows, notes=notes)


def idle(report: ReportData, top: int = 20) -> Block | None:
    """Return idle time, long pauses and late launches apart."""
    every = [i for i in report.idle if i.idle_us > 0]
    with_idle = every[:top]
    if not with_idle:
        return None
    judged = report.clock.state != "disagree"
    rows = [
        [
            f"{i.device} {i.owner}".strip(), show.time(i.idle_us), show.percent(i.idle_share), f"{i.long_pauses} / {show.time(i.long_us)}",
            f"{i.short_gaps} / {show.time(i.short_us)}",
            f"{i.late_launches} / {show.time(i.late_us)}" if judged else show.NA,
            f"{show.time(i.host_us)} ({show.time(i.sync_us)})" if judged else show.NA,
            show.time(i.launch_us) if judged else show.NA,
        ]
        for i in with_idle
    ]  # fmt: skip
    notes = [
        f"long pause: over {show.time(with_idle[0].long_limit_us)}; late: a short gap in which the host had not called yet"
    ]
    notes += _hidden(every, top, "device")
    unattributed = sum(i.unattributed_us for i in every)
    if unattributed:
        notes.append(f"{show.time(unattributed)} of idle time end with a row that has no launch: not attributed")
    columns = [
        "device",
        "idle",
        "of span",
        "long pauses n / time",
        "short gaps n / time",
        "late n / time",
        "host (sync)",
        "launch",
    ]
    return Block("Idle anatomy", columns, rows, notes=notes)


def pauses(report: ReportData, limit: int = 5) -> Block | None:
    """Return the longest pauses of the device that idles most, where there are long ones."""
    device = max(report.idle, key=lambda i: i.long_us, default=None)
    if device is None or not device.long_pauses:
        return None
    shown = device.pauses[: min(limit, device.long_pauses)]
    if not shown:
        return None
    rows = [[show.moment(p.at_us), show.time(p.length_us), p.cause, p.before, p.after] for p in shown]
    title = f"Longest pauses of device {device.device} ({len(rows)} of {device.long_pauses})"
    return Block(title, ["at", "length", "waits for", "after", "before"], rows, frozenset({2, 3, 4}))


def _hidden(rows: Sequence[object], top: int, word: str, words: str = "") -> list[str]:
    """Return the note that says how many rows a table leaves out, if any."""
    more = len(rows) - top
    if more <= 0:
        return []
    return [f"{more:,} more {word if more == 1 else words or word + 's'} not shown (all in JSON)"]


def abstentions(report: ReportData) -> list[tuple[str, str]]:
    """Return what was not judged as (rules, reason), each reason once: one cause often silences many rules."""
    by_reason: dict[str, list[str]] = {}
    for abstention in report.abstentions:
        by_reason.setdefault(abstention.reason, []).append(abstention.rule)
    return [(", ".join(dict.fromkeys(rules)), reason) for reason, rules in by_reason.items()]


def trace_lines(report: ReportData, named: bool = True) -> list[Line]:
    """Return what the file is and what reading it met, unescaped; what takes from the whole report's worth is bold. ``named``: the first tells its name."""
    trace = report.trace
    names = [f"{d.id} {d.name or '(name not stated)'}" for d in trace.devices[:4]]
    more = f" and {len(trace.devices) - 4} more" if len(trace.devices) > 4 else ""
    lines = [
        f"{f'{trace.name}: ' if named else ''}{trace.format}, {show.plural(trace.events, 'event')}, {show.plural(trace.device_activities, 'device row')} "
        f"({show.plural(trace.kernels, 'kernel')}) on {show.plural(trace.streams, 'stream')}",
    ]
    if names:
        lines.append(f"device {', '.join(names)}{more}")
    loud = []
    if trace.simulated:
        loud.append("SIMULATED: this trace was made by a simulator, not recorded on a device")
    if trace.incomplete:
        where = "" if trace.first_damage_byte is None else f" (byte {trace.first_damage_byte})"
        loud.append(f"INCOMPLETE: the trace breaks off{where}; the numbers cover the part that was read")
    first, lines = lines, []
    for what, counts in (("repaired", trace.repaired), ("left out", trace.excluded)):
        if counts:
            lines.append(f"{what}: " + "; ".join(f"{n} x {words_of_key(reason)}" for reason, n in counts.items()))
    lines += [f"note: {n}" for n in trace.notes]
    if trace.unknown_categories:
        lines.append(
            "unknown categories: " + ", ".join(f"{c} {n}" for c, n in list(trace.unknown_categories.items())[:6])
        )
    if trace.annotations:
        lines.append(f"left out: {show.plural(trace.annotations, 'event')} of an earlier traceanalyze annotate")
    if trace.selection:
        nothing = (
            " (no kernel or copy matches)"
            if "kernel" in trace.selection and not (report.kernels or report.copies)
            else ""
        )
        lines.append("selection: " + ", ".join(f"{k} {v}" for k, v in trace.selection.items()) + nothing)
    return [*(Line(t, "dim") for t in first), *(Line(t, "bold") for t in loud), *(Line(t, "dim") for t in lines)]


def clock_line(report: ReportData) -> str:
    """Return how host and device clock differ, empty where they agree."""
    clock = report.clock
    if clock.state in ("agree", "unknown"):
        return ""
    return f"clocks: {clock.state}, {clock.early} of {clock.launches} launches start before their call, by up to {show.time(clock.skew_us)}"


def conditions(report: ReportData) -> str:
    """Return versions and resolution on one line."""
    trace = report.trace
    parts = [f"traceanalyzer {report.version}", report.schema]
    if trace.device_activities:  # of which it is the finest step
        parts.append(f"resolution {trace.resolution_us:g} us")
    parts += [f"{k} {v}" for k, v in trace.versions.items()]
    parts += [f"profiler {k}" for k, v in trace.profiler_flags.items() if v and k != "python_function_rows"]
    return "; ".join(parts)


def numbers(finding: FindingRow) -> str:
    """Return the numbers of a finding on one line."""
    return ", ".join(f"{k} {_number(v)}" for k, v in finding.numbers.items() if v is not None)


def _number(value: float | str) -> str:
    # six digits read well, but a million microseconds must not turn into 1e+06
    if isinstance(value, float):
        return f"{value:,.1f}" if 1e6 <= abs(value) < 1e15 else f"{value:g}"
    return str(value)
