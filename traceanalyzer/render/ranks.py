"""The report on a folder of ranks as text and Markdown."""

from __future__ import annotations

from textwrap import wrap

from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.escape import markdown, terminal
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.report.ranks import RankRow, RanksData

_ROWS, _MISSING, _LOST, _FILE = 64, 32, 20, 16


def text_ranks(report: RanksData, settings: RenderSettings) -> str:
    """Return the report as text; ``top`` rows per table, all in JSON."""
    head = [*wrap(terminal(report.headline, 600), settings.width), ""]
    head.append(f"{terminal(report.folder, 200)}: {show.plural(len(report.ranks), 'row')}")
    shown = _blocks(report, settings.top or _ROWS)
    return "\n".join(head) + "\n\n" + render_blocks(shown, _facts(report), width=settings.width)


def markdown_ranks(report: RanksData, settings: RenderSettings) -> str:
    """Return the report as Markdown; ``top`` rows per table, all in JSON."""
    lines = [f"### GPU traces by rank: {markdown(report.folder, 100)}", "", f"**{markdown(report.headline, 600)}**", ""]
    for block in _blocks(report, settings.top or _ROWS):
        notes = "<br>".join(markdown(n, 300) for n in [block.title, *block.notes])
        lines += [*pipe_table(block), "", f"<sub>{notes}</sub>", ""]
    lines += [f"<sub>{'<br>'.join(markdown(fact, 300) for fact in _facts(report))}</sub>"]
    return "\n".join(lines) + "\n"


def _blocks(report: RanksData, top: int) -> list[Block]:
    found = (_times(report, top), _verdicts(report, top), _hta(report, top))
    return [block for block in found if block is not None]


def _name(row: RankRow) -> str:
    device = f"({row.device}{' ' + row.owner if row.owner else ''})"
    if row.rank is not None:
        return f"{row.rank} {device}"
    file = row.file.removesuffix(".gz").removesuffix(".json")
    return f"? {file if len(file) <= _FILE else file[: _FILE - 1] + '…'} {device}"


def _hidden(report: RanksData, top: int) -> list[str]:
    more = len(report.ranks) - top
    return [f"{show.plural(more, 'more row')} (--top N; all in JSON)"] if more > 0 else []


def _times(report: RanksData, top: int) -> Block:
    rows = [
        [
            _name(r), show.us(r.span_us), show.percent(r.busy_us / r.span_us if r.span_us else None), show.us(r.compute_us),
            show.us(r.communication_us), show.us(r.exposed_communication_us), show.percent(r.overlap_share), show.us(r.copy_us),
            show.us(r.idle_us),
        ]
        for r in report.ranks[:top]
    ]  # fmt: skip
    notes = [
        "comms: kernels of NCCL, RCCL and the like, by name; exposed: not covered by compute; overlap: the covered share",
        *_hidden(report, top),
    ]
    columns = ["rank (device)", "span", "busy", "compute", "comms", "exposed", "overlap", "copies", "idle"]
    return Block("What each rank's device did (us)", columns, rows, notes=notes)


def _verdicts(report: RanksData, top: int) -> Block:
    rows = [
        [
            _name(r),
            show.queue(r.queue, r.grade),
            r.verdict,
            "late" if r.straggler else "",
            show.count(r.kernels),
            r.file,
        ]
        for r in report.ranks[:top]
    ]
    notes = [f"rank {_name(r)}: {r.straggler}" for r in report.ranks if r.straggler][:12]
    notes += [f"rank {_name(r)}: queue not judged: {r.queue_reason}" for r in report.ranks if r.queue == "unknown"][:12]
    columns = ["rank (device)", "queue", "verdict", "straggler", "kernels", "file"]
    return Block("Queue verdicts", columns, rows, frozenset({0, 5}), notes)


def _hta(report: RanksData, top: int) -> Block | None:
    with_hta = [r for r in report.ranks[:top] if r.hta is not None]
    if not with_hta:
        return None
    rows: list[list[str]] = []
    reasons: dict[str, list[str]] = {}
    for r in with_hta:
        assert r.hta is not None
        theirs = show.percent(None if r.hta.overlap_percent is None else r.hta.overlap_percent / 100)
        cells = [
            (show.us(r.span_us), show.us(r.hta.span_us)), (show.us(r.idle_us), show.us(r.hta.idle_us)),
            (show.us(r.compute_us), show.us(r.hta.compute_us)), (show.percent(r.overlap_share), theirs),
        ]  # fmt: skip
        rows.append([_name(r), *(cell for pair in cells for cell in pair)])
        if r.hta.error:
            reasons.setdefault(r.hta.error, []).append(_name(r))
    notes = [f"none for rank {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    notes.append("why they differ: traceanalyze report TRACE --second-opinion takes each difference apart")
    columns = ["rank (device)", "span", "HTA", "idle", "HTA", "compute", "HTA", "overlap", "HTA"]
    return Block(f"Beside {report.hta} (us)", columns, rows, notes=notes)


def _facts(report: RanksData) -> list[str]:
    facts = []
    if report.missing:
        ranks = ", ".join(map(str, report.missing[:_MISSING])) + (", ..." if len(report.missing) > _MISSING else "")
        of = f" of {report.world_size}" if report.world_size is not None else ""
        facts.append(f"missing: {show.plural(len(report.missing), 'rank')}{of} without a trace: {ranks}")
    facts += [
        f"lost: {'' if lost.rank is None else f'rank {lost.rank}, '}{lost.file}: {lost.reason}"
        for lost in report.lost[:_LOST]
    ]
    if len(report.lost) > _LOST:
        facts.append(f"and {len(report.lost) - _LOST} more lost files (all in JSON)")
    facts += report.notes
    if report.hta and all(r.hta is None for r in report.ranks):
        facts.append(report.hta)
    return [*facts, f"traceanalyzer {report.version}; {report.schema}"]
