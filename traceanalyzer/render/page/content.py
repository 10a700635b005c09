"""The report as one HTML page: complete in itself, readable without scripts, with charts and sorting where they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from traceanalyzer.render import blocks, ledger
from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.measured import conditions_lines, measured_in
from traceanalyzer.render.opinion import opinion
from traceanalyzer.render.page.assets import page_assets, page_data
from traceanalyzer.render.page.charts import has_ladder, protocol_titles, report_figures
from traceanalyzer.render.page.kernel_table import CELLS, COLUMNS, OPEN, kernel_notes, kernel_rows
from traceanalyzer.render.page.ladder import ladder_chart
from traceanalyzer.render.page.measured import clocks, measured_charts
from traceanalyzer.render.page.svg import distribution_chart, overview
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.report.charts.model import Timeline
from traceanalyzer.report.model import FindingRow, LedgerRow, ReportData
from traceanalyzer.report.units import OpRow

ROWS, TABLE_ROWS = 250, 200
MOST_BYTES = 1_000_000
_PARTS = (1, 2, 5, 12)
"""A page too long is made again with one row of so many in each table, the largest."""
LADDERS = 12
MOST_BARS, MOST_PARTS, CAUSES = 3, 6, 30
PARTS_OF_SEVERAL = 3
"""Of several devices each has one line of words, so that the timeline is on the first screen, too."""
MOST_QUOTED, LEAST_CALLS, MOST_KERNELS = 3, 3, 8
COLOURS = {
    "host_op": "host", "python": "host", "between_ops": "host", "launch_call": "call", "launch_latency": "call", "other_call": "call",
    "launch_stall": "call", "first_use": "code", "compile": "code", "code_load": "code", "graph_setup": "code", "data_loading": "data",
    "synchronise": "wait", "copy_call": "wait", "allocation": "memory", "device_gap": "device", "device_wait": "device", "inside_launch": "device",
}  # fmt: skip
"""One colour for a family of causes."""
NAME, CELL, SENTENCE = 120, 200, 2000
POPULATIONS = {"self-time": "self", "dispatch": "call", "event pair": "reading"}
_WORDS = {"ok": "OK", "suspect": "Suspect", "cannot-judge": "Cannot judge"}


def render_page(report: ReportData, *, top: int = ROWS) -> str:
    """Return the page, under MOST_BYTES. Without ``report.figures`` it has tables alone.

    Its tables hold at most ``top`` kernels and TABLE_ROWS rows of all else; where that is too long, a part of each.
    """
    data = page_data(report_figures(report) | {"markdown": render_markdown(report)})
    text = ""
    for part in _PARTS:
        text = _page(report, data, max(1, top // part), TABLE_ROWS // part)
        if len(text.encode()) < MOST_BYTES:
            break
    return text


def _page(report: ReportData, data: str, top: int, rows: int) -> str:
    figures = report.figures
    timeline = figures.timeline if figures else None
    assets = page_assets()
    ladders = [op for op in report.ops if has_ladder(op)][:LADDERS]
    short = blocks.short_names(report)
    context: dict[str, Any] = {
        "assets": assets,
        "title": _text(f"{report.trace.name}: {report.verdict.headline[:200]}", 400),
        "status": report.verdict.status,
        "status_word": _WORDS[report.verdict.status],
        "headline": _headline(report),
        "file": _text(report.trace.name, 200),
        "file_parts": _file_parts(report),
        "quote": quote(report),
        "ledger": _ledger_bars(report),
        "ledger_notes": _ledger_notes(report),
        "causes": _blocks(*(p for p in ledger.full_ledger(report, CAUSES) if isinstance(p, blocks.Block))),
        "facts": _facts(report),
        "findings": _findings(report, timeline),
        "kernels": kernel_rows(report, top),
        "kernel_columns": COLUMNS,
        "variant_columns": CELLS,
        "open_rows": OPEN,
        "kernel_notes": kernel_notes(report, top),
        "timeline": timeline is not None,
        "overview": overview(timeline) if timeline else None,
        "timeline_notes": _timeline_notes(timeline) if timeline else [],
        "depth_notes": _depth_notes(report),
        "stream_tables": _blocks(blocks.streams(report, rows)),
        "operations": next(iter(_blocks(blocks.ops(report, rows))), None),
        "ladders": [
            {
                "table": clean_block(_ladder(op, short.get(op.name, op.name), _is_wrong(report, op))),
                "chart": ladder_chart(op, short.get(op.name, op.name), _is_wrong(report, op)),
            }
            for op in ladders
        ],
        "ladder_notes": _ladder_notes(report),
        "distributions": [distribution_chart(d, POPULATIONS) for d in figures.distributions] if figures else [],
        "distribution_notes": [
            f"not drawn: {show.count(figures.distributions_left_out)} more, the smallest operations and kernels"
        ]
        if figures and figures.distributions_left_out
        else [],
        "devices": next(iter(_blocks(blocks.devices(report, rows))), None),
        "idle": next(iter(_blocks(blocks.idle(report, rows))), None),
        "pauses": _pauses(report, timeline),
        "capture": report.capture is not None,
        "measured": _blocks(*measured_in(report), clocks(report.capture)),
        "measured_charts": measured_charts(report.capture, report.ops),
        "captured": [_text(line, 1000) for line in conditions_lines(report.capture)],
        "more_tables": _blocks(blocks.threads(report, rows), blocks.copies(report, rows), opinion(report)),
        "coverage": _text(report.coverage.sentence),
        "abstentions": [(_text(rules, 400), _text(reason)) for rules, reason in blocks.abstentions(report)],
        "rules": figures.rules if figures else [],
        "conditions": _text(blocks.conditions(report)),
        "data": data,
    }
    context["sections"] = _sections(context)
    return render_template("report.html.j2", context)


def _text(text: str, limit: int = SENTENCE) -> str:
    # autoescape keeps markup out; terminal() keeps out what turns text around or cannot be seen
    return terminal(text, limit)


def clean_block(b: blocks.Block) -> blocks.Block:
    """Return the block with every text made harmless and cut."""
    return replace(
        b, title=_text(b.title, 200), columns=[_text(c, NAME) for c in b.columns], rows=[[_text(c, CELL) for c in row] for row in b.rows],
        notes=[_text(n, 600) for n in b.notes],
    )  # fmt: skip


def _blocks(*found: blocks.Block | None) -> list[blocks.Block]:
    return [clean_block(b) for b in found if b is not None]


def _headline(report: ReportData) -> str:
    text = report.verdict.headline
    # the pill beside it says the first word already
    start = f"{_WORDS[report.verdict.status]}: "
    text = text.removeprefix(start)
    return _text(text[:1].upper() + text[1:])


def _file_parts(report: ReportData) -> list[str]:
    names = list(dict.fromkeys(d.name for d in report.trace.devices if d.name))
    span = [f"{show.duration(report.trace.span_us)}"] if report.trace.span_us is not None else []
    parts = [*names[:3], show.plural(report.trace.kernels, "kernel"), *span]
    return [_text(p, 200) for p in (*parts, *(["simulated"] if report.trace.simulated else []))]


def quote(report: ReportData) -> dict[str, Any] | None:
    """Return which number to quote of the run and which not: of the first operation, else of the only kernel. None without one.

    Nothing is quoted of a run whose device idles for reasons that no timer would show (the verdict says those).
    """
    measured = [o for o in report.ops if _is_measurement(o)]
    if not measured or len(measured) > MOST_QUOTED:
        return None
    op = measured[0]
    name = blocks.short_names(report).get(op.name, op.name)
    interval = (
        f" (95 % {show.interval(op.self_time_ci95_us)}, n {show.count(op.iterations)})" if op.self_time_ci95_us else ""
    )
    found: dict[str, Any] = {
        "value": show.duration(op.self_time_p50_us), "what": _text(f"self-time p50 of {name}{interval}", 300),
        "instead": "", "instead_what": "", "share": 0.0,
    }  # fmt: skip
    pair = op.readings.get("event_pair")
    if pair is not None and op.self_time_p50_us and pair > 1.1 * op.self_time_p50_us:
        found |= {
            "instead": show.duration(pair), "instead_what": f"event pair, no synchronise ({show.ratio(pair / op.self_time_p50_us)})",
            "share": round(100 * op.self_time_p50_us / pair, 1),
        }  # fmt: skip
    return found


def _is_measurement(op: OpRow) -> bool:
    """Whether somebody would time this operation: a capture's, or a pattern of few kernels."""
    few = op.kernels_per_iteration is not None and op.kernels_per_iteration <= MOST_KERNELS
    return bool(op.self_time_p50_us) and op.iterations >= LEAST_CALLS and (op.method == "capture annotation" or few)


def _ledger_bars(report: ReportData) -> list[dict[str, Any]]:
    rows = ledger.spans(report)
    return [ledger_bar(row, MOST_PARTS if len(rows) == 1 else PARTS_OF_SEVERAL) for row in rows[:MOST_BARS]]


def ledger_bar(row: LedgerRow, most: int = MOST_PARTS) -> dict[str, Any]:
    """Return a device's span as the parts of a bar of 1000: busy classes, then the causes of idle time, largest first."""
    order = [c for c in ledger.BUSY if c in row.classes]
    order += sorted((c for c in row.classes if c not in ledger.BUSY), key=lambda c: -row.classes[c])
    parts: list[dict[str, Any]] = []
    x = 0.0
    for cls in order:
        width = 1000 * row.classes[cls] / row.span_us
        share, took = show.percent(row.classes[cls] / row.span_us), show.duration(row.classes[cls])
        text = f"{ledger.word(cls, row)} {share} ({took})"
        kind = cls if cls in ledger.BUSY else COLOURS.get(cls, "other")
        parts.append(
            {
                "kind": kind,
                "x": round(x, 2),
                "width": round(width, 2),
                "text": _text(text, 200),
                "word": f"{ledger.word(cls, row)} {share}",
                "took": f"({took})",
            }
        )
        x += width
    busy = sum(row.classes.get(c, 0.0) for c in ledger.BUSY) / row.span_us
    label = f"{ledger.device(row)}: busy {show.percent(busy)} of {show.duration(row.span_us)}"
    return {
        "label": _text(label, 200), "parts": parts, "text": "; ".join(p["text"] for p in parts),
        "legend": sorted(parts, key=lambda p: -p["width"])[:most],
    }  # fmt: skip


def _ledger_notes(report: ReportData) -> list[str]:
    more = len(ledger.spans(report)) - MOST_BARS
    notes = [f"{show.plural(more, 'more device')}: see the table of causes"] if more > 0 else []
    return [*notes, *([ledger.NO_CAUSES] if ledger.clocks_disagree(report) and ledger.spans(report) else [])]


def _facts(report: ReportData) -> list[tuple[str, list[str]]]:
    clock = blocks.clock_line(report) or f"clocks: {report.clock.state}"
    facts = [
        ("Trace", [_text(line.text, 1000) for line in blocks.trace_lines(report)[:16]]),
        ("Linkage", [_text(report.coverage.sentence)]),
        ("Clocks", [_text(clock.removeprefix("clocks: "), 400)]),
    ]
    if report.capture is not None:
        facts.append(("Capture", [_text(f"{report.capture.tool}, {show.plural(len(report.capture.operations), 'operation')}", 400)]))  # fmt: skip
    facts.append(("Conditions", [_text(blocks.conditions(report))]))
    return facts


def _sections(context: dict[str, Any]) -> list[tuple[str, str]]:
    wanted = [
        ("timeline", "Timeline", context["timeline"]), ("findings", "Findings", True), ("kernels", "Kernels", context["kernels"]),
        ("causes", "Causes", context["causes"]), ("operations", "Readings", context["ladders"] or context["operations"]), ("streams", "Queue", context["timeline"]),
        ("distributions", "Distributions", context["distributions"]),
        ("idle", "Idle", context["devices"]), ("capture", "Capture", context["capture"]), ("tables", "Dispatch", context["more_tables"]),
        ("file", "File", True), ("not-judged", "Not judged", context["abstentions"]), ("rules", "Rules", context["rules"]),
    ]  # fmt: skip
    return [(anchor, name) for anchor, name, there in wanted if there]


def _findings(report: ReportData, timeline: Timeline | None) -> list[dict[str, Any]]:
    rows = {k.name: (f"kernel-{i}", k.short_name) for i, k in enumerate(report.kernels[:ROWS], 1)}
    texts = {r.code for r in report.figures.rules} if report.figures else set()
    return [
        finding_card(f, f"{n}" if timeline and n < len(timeline.views) else "", rows, texts)
        for n, f in enumerate(report.findings)
    ]


def finding_card(found: FindingRow, views: str, rows: dict[str, tuple[str, str]], texts: set[str]) -> dict[str, Any]:
    """Return a finding for the page: ``views`` is its number in the timeline (empty: none), ``rows`` names to anchor and label."""
    return {
        "rule": _text(found.rule, 20), "title": _text(found.title, 200), "severity": found.severity, "grade": _text(found.grade, 20),
        "has_text": found.rule in texts, "message": _text(found.message), "numbers": number_items(found),
        "evidence": [
            {
                "view": f"{views}.{i}" if views and i < 3 else "", "at": show.moment(e.at_us), "length": show.time(e.dur_us) if e.dur_us else "",
                "what": _text(rows.get(e.what, ("", e.what))[1], NAME), "row": rows.get(e.what, ("", ""))[0], "note": _text(e.note, 400),
            }
            for i, e in enumerate(found.evidence)
        ],
        "remedy": [_text(r, 600) for r in found.remedy],
        "more": _more(found),
    }  # fmt: skip


def _more(found: FindingRow) -> str:
    rows = [show.plural(len(found.evidence) - 1, "more row")] if len(found.evidence) > 1 else []
    numbers = sum(v is not None for v in found.numbers.values())
    return ", ".join([*rows, *([show.plural(numbers, "number")] if numbers else [])])


def number_items(found: FindingRow) -> list[tuple[str, str]]:
    """Return the numbers of a finding as (name, value)."""
    items = []
    for name, value in found.numbers.items():
        if value is not None:
            one = blocks.numbers(replace(found, numbers={"": value})).strip()
            items.append((_text(name, 80).replace("_", " "), _text(one, 200)))
    return items


def _timeline_notes(timeline: Timeline) -> list[str]:
    notes = []
    if not timeline.whole:
        several = f"{len(timeline.windows)} stretches" if len(timeline.windows) > 1 else "one stretch"
        notes.append(
            f"Showing {timeline.device_rows_shown:,} of {timeline.device_rows:,} device rows and {timeline.host_rows_shown:,} of "
            f"{timeline.host_rows:,} host rows, in {several} around the evidence (underlined in the overview). Elsewhere each lane "
            f"shows the share of time it was busy, in {timeline.bins:,} bins."
        )
    if timeline.lanes_left_out:
        notes.append(f"{show.plural(timeline.lanes_left_out, 'quieter stream or thread')} not drawn.")
    return notes


def _depth_notes(report: ReportData) -> list[str]:
    figures = report.figures
    if figures is None:
        return []
    notes = [f"Not drawn: {_text(figures.no_depth, 400)}."] if figures.no_depth else []
    for series in figures.depth:
        if series.steps > len(series.at_ns):
            notes.append(
                f"{_text(series.label, 60)}: {len(series.at_ns):,} of {series.steps:,} steps: all where rows are shown above, elsewhere the extremes of each stretch"
            )
    return notes


def _is_wrong(report: ReportData, op: OpRow) -> bool:
    records = report.capture.operations if report.capture else []
    return any(o.name == op.name and o.correctness.passed is False for o in records)


def _ladder(op: OpRow, name: str, wrong: bool) -> blocks.Block:
    measured = bool(op.readings_measured)
    rows = [
        [title, show.time(op.readings.get(p)), show.time(op.readings_replayed.get(p))]
        + ([show.time(op.readings_measured.get(p))] if measured else [])
        for p, title in protocol_titles(op).items()
    ]
    columns = ["protocol", "closed form", "replayed", *(["measured"] if measured else [])]
    title = f"{_text(name, NAME)}: what each protocol would have read (per call)"
    # times of a wrong result are shown, but struck through
    struck = frozenset((row, 3) for row in range(len(rows))) if wrong else frozenset()
    return blocks.Block(title, columns, rows, struck=struck)


def _ladder_notes(report: ReportData) -> list[str]:
    short = blocks.short_names(report)
    # the page picks an operation by name, where the text numbers its columns
    with_ladder = [op for op in report.ops if op.symbols]
    op, several = (with_ladder[0], len(with_ladder) > 1) if with_ladder else (None, False)
    kept = (
        [blocks.ladder_symbols(op, short.get(op.name, op.name) if several else ""), *blocks.ladder_sources(op)]
        if op
        else []
    )
    notes = [_text(n, 600) for n in kept]
    notes += [
        _text(f"no ladder for {short.get(op.name, op.name)}: {op.no_ladder}", 600) for op in report.ops[:LADDERS] if op.no_ladder
    ]  # fmt: skip
    more = sum(map(has_ladder, report.ops)) - LADDERS
    return notes + ([f"{show.plural(more, 'more operation')} not shown; all in JSON"] if more > 0 else [])


def _pauses(report: ReportData, timeline: Timeline | None) -> dict[str, Any] | None:
    place = max(range(len(report.idle)), key=lambda n: report.idle[n].long_us, default=None)
    if place is None or not report.idle[place].pauses:
        return None
    idle = report.idle[place]
    rows = [
        {
            "at": show.moment(p.at_us), "length": show.time(p.length_us), "cause": _text(p.cause, 200), "before": _text(p.before, NAME),
            "after": _text(p.after, NAME), "view": f"{place}.{i}" if timeline and place < len(timeline.pauses) and i < len(timeline.pauses[place]) else "",
        }
        for i, p in enumerate(idle.pauses)
    ]  # fmt: skip
    return {"title": f"Longest idle stretches of device {idle.device}", "rows": rows}


def page_report(report: ReportData, settings: RenderSettings) -> str:
    """Return the page with the number of rows that was asked for."""
    return render_page(report, top=settings.top or ROWS)
