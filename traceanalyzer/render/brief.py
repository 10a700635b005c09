"""The short forms of the sections: what fits one screen, one pull request comment or one step summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block, Line, Lines, NameCell, overlaps
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.model import FindingRow, ReportData
from traceanalyzer.report.units import KernelRow

OPERATIONS, FINDINGS = 3, 5
_LEAST_SHARE = 0.005
_WIDE = 92
"""Columns from which a table has room for what a reader can do without."""
_MORE_CODES = 6
_VERDICT, _NAME, _FACT, _CODE = 700, 40, 120, 28


def verdict(report: ReportData) -> str:
    """Return the headline, bounded: a name of ten thousand characters in it must not fill the screen."""
    return terminal(report.verdict.headline, _VERDICT)


def trace_facts(report: ReportData) -> tuple[list[str], list[str]]:
    """Return what the file is in one or two sentences, and what a reader must not overlook about it."""
    trace = report.trace
    devices = _devices(report)
    held = f"{show.plural(trace.kernels, 'kernel')} on {show.plural(trace.streams, 'stream')}"
    facts = [f"{terminal(trace.name, _NAME)}: {held}{f' of {devices}' if devices else ''}"]
    warnings = []
    if trace.simulated:
        warnings.append("SIMULATED: made by a simulator, not recorded on a device")
    if trace.incomplete:
        where = "" if trace.first_damage_byte is None else f" (byte {trace.first_damage_byte:,})"
        warnings.append(f"INCOMPLETE: the trace breaks off{where}; the numbers cover the part before")
    if text := blocks.clock_line(report):
        warnings.append(terminal(text, _FACT))
    damaged = sum(trace.repaired.values()) + sum(trace.excluded.values())
    if damaged or trace.notes:
        parts = [show.plural(damaged, "event") + " repaired or left out"] if damaged else []
        parts += [show.plural(len(trace.notes), "note") + " on the file"] if trace.notes else []
        warnings.append(f"{', '.join(parts)} (--section trace)")
    if trace.selection:
        nothing = "" if report.kernels or report.copies or "kernel" not in trace.selection else ": nothing matches"
        chosen = ", ".join(f"{k} {v}" for k, v in list(trace.selection.items())[:6])
        warnings.append(f"only {terminal(chosen, _FACT)}{nothing}")
    return facts, warnings


def _devices(report: ReportData) -> str:
    owners = {d.owner for d in report.trace.devices if d.owner}
    kinds = Counter(d.name for d in report.trace.devices if d.name)
    name = terminal(kinds.most_common(1)[0][0], _NAME) if kinds else ""
    count = len(report.trace.devices)
    if count > 1:
        several = f"{count} devices"
        if owners:
            several += f" of {show.plural(len(owners), 'rank')}"
        return f"{several} ({name}{'' if len(kinds) == 1 else ' and others'})" if name else several
    return name


def operations(report: ReportData) -> Block | None:
    """Return the largest operations with what two timers would read of a call."""
    with_work = [op for op in report.ops if op.self_time_p50_us is not None] or report.ops
    if not with_work:
        return None
    short = blocks.short_names(report)
    rows = [
        [
            short.get(op.name, op.name), show.count(op.iterations), show.time(op.self_time_p50_us), show.time(op.dispatch_p50_us),
            show.time(op.readings.get("event_pair")), show.time(op.readings.get("wall_sync_each")), show.queue(op.queue, op.grade),
        ]
        for op in with_work[:OPERATIONS]
    ]  # fmt: skip
    columns = ["operation", "calls", "self", "dispatch", "event pair", "wall, synced", "queue"]
    shown = _of(len(rows), len(report.ops))
    title = f"Operations ({shown}per call; other timers: --section timers)"
    return Block(title, columns, rows, compact=True)


def _of(shown: int, every: int) -> str:
    return "" if shown == every else f"{shown:,} of {every:,}, "


def kernels(report: ReportData, most: int, width: int) -> Block | None:
    """Return the kernels that hold at least 0.5 % of kernel time, at most ``most`` of them.

    A kernel that ran on several devices has one row, with the range of their medians: no number is pooled over devices.
    Where the runs of any kernel overlap others, what a run adds to their busy time takes the place of the dispatch.
    """
    if not report.kernels:
        return None
    folded: dict[str, list[KernelRow]] = {}
    for k in report.kernels:
        folded.setdefault(k.name, []).append(k)
    every = sorted(folded.values(), key=lambda same: -sum(k.share for k in same))
    large = [same for same in every[:most] if sum(k.share for k in same) >= _LEAST_SHARE] or every[:1]
    several = len({(k.device, k.owner) for k in report.kernels}) > 1
    adds = any(overlaps(k) for same in large for k in same)
    dispatch = not (adds or several or width < _WIDE)
    rows = []
    for same in large:
        first = same[0]
        variants = max(len(k.variants) for k in same)
        queues = {"in graph" if k.in_graph == k.count else show.queue(k.queue, k.grade) for k in same}
        rows.append(
            [
                NameCell(first.short_name.strip() or "(no name)", f" ({variants} cfg)" if variants else ""), _span(k.p50_us for k in same),
                *([_span(k.exclusive_p50_us for k in same)] if adds else []), show.count(sum(k.count for k in same)),
                show.percent(sum(k.share for k in same)), *([show.time(first.dispatch_p50_us)] if dispatch else []),
                _span(k.event_reading_us for k in same), queues.pop() if len(queues) == 1 else "differs",
                *([show.count(len(same))] if several else []),
            ]
        )  # fmt: skip
    shown = _of(len(rows), len(every))
    part = f"{show.percent(sum(k.share for same in large for k in same))} of kernel time, " if shown else ""
    title = f"Kernels ({shown}{part}medians; all: --section kernels)"
    columns = [
        "kernel", "self", *(["adds"] if adds else []), "calls", "share", *(["dispatch"] if dispatch else []), "event pair", "queue",
        *(["devices"] if several else []),
    ]  # fmt: skip
    return Block(title, columns, rows, compact=True)


def _span(values: Iterable[float | None]) -> str:
    """Return the value that all devices have, or the range of their values."""
    known = [v for v in values if v is not None]
    if not known:
        return show.NA
    low, high = show.time(min(known)), show.time(max(known))
    return low if low == high else show.time_interval((min(known), max(known)))


def findings(report: ReportData) -> Block | Lines:
    """Return one row for each rule (of one that gives several forms of warning, each form) with a warning or an error, gravest first.

    Notes are one line.
    """
    if not report.findings:
        return Lines("Findings: none", [])
    loud = [f for f in report.findings if f.severity != "note"]
    forms: dict[str, set[str]] = {}
    groups: dict[tuple[str, str], list[FindingRow]] = {}
    for finding in loud:
        forms.setdefault(finding.rule, set()).add(finding.code)
        groups.setdefault((finding.rule, finding.code), []).append(finding)
    costs = any(f.cost_us for f in loud)
    rows = [
        [
            f"{f.rule} {f.title}" + (f": {f.code}" if len(forms[f.rule]) > 1 else "") + (f" ({len(same)})" if len(same) > 1 else ""), f.severity,
            # cost and subject are of one finding: the gravest, which also leads the report
            *(_cost(f) if costs else []), terminal(f.subject, _FACT),
        ]
        for f, same in ((same[0], same) for same in list(groups.values())[:FINDINGS])
    ]  # fmt: skip
    notes = []
    if len(groups) > FINDINGS:
        notes.append(f"more: {_codes(list(dict.fromkeys(rule for rule, _ in list(groups)[FINDINGS:])))}")
    quiet = list(dict.fromkeys(f"{f.rule} {f.title}" for f in report.findings if f.severity == "note"))
    if quiet:
        notes.append(f"notes: {_codes(quiet)}")
    example = terminal((loud or report.findings)[0].rule, 20)
    title = f"Findings ({len(report.findings)}; details: --section findings, traceanalyze rule {example})"
    columns = ["rule", "level", *(["cost", "share"] if costs else []), "subject"]
    return Block(title, columns, rows, frozenset({len(columns) - 1}), notes, labels=frozenset({0, 1}), compact=True)


def _cost(finding: FindingRow) -> list[str]:
    """Return cost and share, empty where a finding is not about lost time."""
    if finding.cost_us is None:
        return ["", ""]
    return [show.duration(finding.cost_us), show.percent(finding.cost_share)]


def _codes(codes: list[str]) -> str:
    more = f" and {len(codes) - _MORE_CODES} more" if len(codes) > _MORE_CODES else ""
    return ", ".join(terminal(c, _CODE) for c in codes[:_MORE_CODES]) + more


def not_judged(report: ReportData) -> str:
    """Return the line that counts what was not judged, empty where everything was."""
    if not report.abstentions:
        return ""
    rules = len({a.rule for a in report.abstentions if a.rule != "report"})
    numbers = sum(a.rule == "report" for a in report.abstentions)
    parts = [show.plural(n, word) for n, word in ((rules, "rule"), (numbers, "number")) if n]
    return f"Not judged: {' and '.join(parts)} (reasons: --section not-judged)"


def footer(report: ReportData) -> Line:
    """Return the last line: version, and how to see everything."""
    if any(k.grade for k in report.kernels) or any(op.grade for op in report.ops):
        return Line(f"traceanalyzer {report.version}; all: --full, --section NAME; P proven, D derived, H hint", "dim")
    return Line(f"traceanalyzer {report.version}; everything: --full; one part: --section NAME", "dim")


def shortened(block: Block, notes: int = 3) -> Block:
    """Return a whole table on as few lines as it goes: column titles on one line, and its first notes."""
    return replace(block, notes=[terminal(n, _FACT) for n in block.notes[:notes]], compact=True)
