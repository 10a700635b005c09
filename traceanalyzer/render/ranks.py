"""The report on a folder of ranks as text and Markdown."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.escape import markdown, terminal, wrapped
from traceanalyzer.render.ledger import BUSY, word
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.report.ranks import RankRow, RanksData

_CLASS_SHARE, _CLASSES = 0.02, 6
IDLE = "idle"
"""The class of idle time whose causes are not known, as host and device clocks disagree."""
_ROWS, _MISSING, _LOST, _FILE = 64, 32, 20, 16


def text_ranks(report: RanksData, settings: RenderSettings) -> str:
    """Return the report as text; ``top`` rows per table, all in JSON."""
    head = [*wrapped(terminal(report.headline, 600), settings.width), ""]
    head.append(f"{terminal(report.folder, 200)}: {counts(report)}")
    shown = _blocks(report, settings.top or _ROWS)
    return "\n".join(head) + "\n\n" + render_blocks(shown, facts(report), width=settings.width)


def counts(report: RanksData) -> str:
    """Return how many ranks and files there are; devices where a trace has several."""
    ranks, files = {r.rank for r in report.ranks if r.rank is not None}, {r.file for r in report.ranks}
    of = f" of {report.world_size}" if report.world_size is not None and ranks else ""
    text = (
        f"{show.plural(len(ranks), 'rank')}{of} in {show.plural(len(files), 'trace')}"
        if ranks
        else f"{show.plural(len(files), 'trace')} without a rank"
    )
    several = len(report.ranks) > len(files)
    return text + (f", {show.plural(len(report.ranks), 'device')}" if several else "")


def markdown_ranks(report: RanksData, settings: RenderSettings) -> str:
    """Return the report as Markdown; ``top`` rows per table, all in JSON."""
    lines = [f"### GPU traces by rank: {markdown(report.folder, 100)}", "", f"**{markdown(report.headline, 600)}**", ""]
    for block in _blocks(report, settings.top or _ROWS):
        notes = "<br>".join(markdown(n, 300) for n in [block.title, *block.notes])
        lines += [*(pipe_table(block) if block.rows else []), "", f"<sub>{notes}</sub>", ""]
    lines += [f"<sub>{'<br>'.join(markdown(fact, 300) for fact in facts(report))}</sub>"]
    return "\n".join(lines) + "\n"


def _blocks(report: RanksData, top: int) -> list[Block]:
    found = (
        waits(report, top),
        collectives(report, top),
        ledgers(report, top),
        times(report, top),
        verdicts(report, top),
        hta_numbers(report, top),
    )
    return [block for block in found if block is not None]


def row_name(row: RankRow) -> str:
    """Return rank and device of a row, its file where no rank is known."""
    device = f"({row.device}{' ' + row.owner if row.owner else ''})"
    if row.rank is not None:
        return f"{row.rank} {device}"
    file = row.file.removesuffix(".gz").removesuffix(".json")
    return f"? {file if len(file) <= _FILE else file[: _FILE - 1] + '…'} {device}"


def hidden(report: RanksData, top: int) -> list[str]:
    """Return the note that counts the rows beyond ``top``; none where all are shown."""
    more = len(report.ranks) - top
    return [f"{show.plural(more, 'more row')} (--top N; all in JSON)"] if more > 0 else []


def ledgers(report: RanksData, top: int) -> Block | None:
    """Return the share of each class of the time ledger, rank by rank; classes that are small on every rank share a column."""
    rows = [r for r in report.ranks if r.span_us > 0 and r.ledger]
    if not rows:
        return None
    most: dict[str, float] = {}
    for r in rows:
        for cls, us in r.ledger.items():
            most[cls] = max(most.get(cls, 0.0), us / r.span_us)
    large = sorted((c for c, share in most.items() if share >= _CLASS_SHARE), key=lambda c: -most[c])[:_CLASSES]
    classes = [c for c in BUSY if c in large] + [c for c in large if c not in BUSY]
    cells = []
    for r in rows[:top]:
        shares = {c: r.ledger.get(c, 0.0) / r.span_us for c in classes if knows(r, c)}
        rest = show.percent(max(0.0, 1 - sum(shares.values())))
        cells.append([row_name(r), *(show.percent(shares.get(c)) for c in classes), rest])
    columns = ["rank (device)", *map(word, classes), "other"]
    return Block("Where each rank's time went (share of its device's span)", columns, cells)


def knows(row: RankRow, cls: str) -> bool:
    """Return whether a row's ledger tells a class: without causes it has ``idle`` alone, with them it has no ``idle``."""
    return cls in BUSY or (cls == IDLE) == (IDLE in row.ledger)


REASONS = {
    "one_rank": "one rank alone",
    "unknown_ranks": "some files tell no rank",
    "several_files": "several files are of one rank",
    "several_devices": "the collectives of one rank are on several devices",
    "no_collectives": "no collectives in the trace",
    "few_collectives": "fewer than five collectives",
    "different_sequences": "the ranks ran different collectives (process groups or pipeline stages), which the traces alone do not match",
    "clocks": "the hosts' clocks cannot be aligned: the ends of collectives are too far apart",
}
"""Why it is not known who waits for whom, by code."""


def waits(report: RanksData, top: int) -> Block | None:
    """Return who waits in communication for whom; the reason alone where that is not known."""
    found = report.communication
    if found is None or found.reason == "one_rank":
        return None
    of_rank = [us for r in found.ranks[:top] for us in (r.wait_us, r.transfer_us, r.caused_us)]
    number, unit = show.in_common(of_rank)
    title = f"Waiting in collectives ({unit})" if of_rank else "Waiting in collectives"
    if found.reason:
        of = f" (rank {', '.join(map(str, found.reason_ranks[:8]))})" if found.reason_ranks else ""
        spread = f": {show.duration(found.spread_us)}" if found.reason == "clocks" else ""
        return Block(title, ["rank"], [], notes=[f"not judged: {REASONS.get(found.reason, found.reason)}{of}{spread}"])
    cells = []
    for r in found.ranks[:top]:
        whole = r.wait_us + r.transfer_us
        longest = max(r.waits_for_us, key=lambda q: r.waits_for_us[q], default=None)
        mostly = "" if longest is None else f"rank {longest} ({show.percent(r.waits_for_us[longest] / r.wait_us)})"
        share = show.percent(r.wait_us / whole if whole else None)
        cells.append(
            [
                str(r.rank),
                number(r.wait_us),
                number(r.transfer_us),
                share,
                mostly,
                number(r.caused_us),
                show.count(r.last),
            ]
        )
    notes = [
        f"{show.plural(found.collectives, 'collective')} that all ranks ran, matched by order and name; waiting: until the last rank's kernel started",
        f"clocks aligned by the collectives' ends, which agree within {show.duration(found.spread_us)} in nine of ten",
    ]
    if report.missing:
        notes.append("waiting for a rank without a trace counts as transfer")
    if len(found.ranks) > top:
        notes.append(f"{show.plural(len(found.ranks) - top, 'more rank')} (--top N; all in JSON)")
    columns = ["rank", "waits", "transfer", "waiting", "mostly for", "others wait for it", "joined last"]
    return Block(title, columns, cells, notes=notes, labels=frozenset({4}))


def collectives(report: RanksData, top: int) -> Block | None:
    """Return in which collectives the waiting is, and for whom."""
    found = report.communication
    names = [] if found is None else [n for n in found.names if n.wait_us > 0]
    if not names:
        return None
    number, unit = show.in_common(n.wait_us for n in names[:top])
    cells = [
        [n.name, show.count(n.collectives), number(n.wait_us), f"rank {n.rank} ({show.percent(n.caused_us / n.wait_us)})", show.count(n.last)]
        for n in names[:top]
    ]  # fmt: skip
    columns = ["collective", "times", "waiting", "mostly for", "which joined last"]
    return Block(f"In which collectives ({unit}, all ranks together)", columns, cells, labels=frozenset({3}))


def times(report: RanksData, top: int) -> Block:
    """Return the time of each rank's device by what it did."""
    number, unit = show.in_common(r.span_us for r in report.ranks[:top])
    rows = [
        [
            row_name(r), number(r.span_us), show.percent(r.busy_us / r.span_us if r.span_us else None), number(r.compute_us),
            number(r.communication_us), number(r.exposed_communication_us), show.percent(r.overlap_share), number(r.copy_us),
            number(r.idle_us),
        ]
        for r in report.ranks[:top]
    ]  # fmt: skip
    notes = [
        "comms: kernels of NCCL, RCCL and the like, by name; exposed: not covered by compute; overlap: the covered share",
        *hidden(report, top),
    ]
    columns = ["rank (device)", "span", "busy", "compute", "comms", "exposed", "overlap", "copies", "idle"]
    return Block(f"What each rank's device did ({unit})", columns, rows, notes=notes)


def verdicts(report: RanksData, top: int) -> Block:
    """Return each rank's queue verdict, and why it is late."""
    rows = [
        [
            row_name(r),
            show.queue(r.queue, r.grade),
            r.verdict,
            "late" if r.straggler else "",
            show.count(r.kernels),
            r.file,
        ]
        for r in report.ranks[:top]
    ]
    notes = [f"rank {row_name(r)}: {r.straggler}" for r in report.ranks if r.straggler][:12]
    notes += [f"rank {row_name(r)}: queue not judged: {r.queue_reason}" for r in report.ranks if r.queue == "unknown"][
        :12
    ]
    columns = ["rank (device)", "queue", "verdict", "straggler", "kernels", "file"]
    return Block("Queue verdicts", columns, rows, frozenset({0, 5}), notes)


def hta_numbers(report: RanksData, top: int) -> Block | None:
    """Return our numbers next to those of HolisticTraceAnalysis, None where it gave none."""
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
        rows.append([row_name(r), *(cell for pair in cells for cell in pair)])
        if r.hta.error:
            reasons.setdefault(r.hta.error, []).append(row_name(r))
    notes = [f"none for rank {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    notes.append("why they differ: traceanalyze report TRACE --second-opinion takes each difference apart")
    columns = ["rank (device)", "span", "HTA", "idle", "HTA", "compute", "HTA", "overlap", "HTA"]
    return Block(f"Beside {report.hta} (us)", columns, rows, notes=notes)


def facts(report: RanksData) -> list[str]:
    """Return what is missing or lost, the notes and the versions."""
    lines = []
    if report.missing:
        ranks = ", ".join(map(str, report.missing[:_MISSING])) + (", ..." if len(report.missing) > _MISSING else "")
        of = f" of {report.world_size}" if report.world_size is not None else ""
        lines.append(f"missing: {show.plural(len(report.missing), 'rank')}{of} without a trace: {ranks}")
    lines += [
        f"lost: {'' if lost.rank is None else f'rank {lost.rank}, '}{lost.file}: {lost.reason}"
        for lost in report.lost[:_LOST]
    ]
    if len(report.lost) > _LOST:
        lines.append(f"and {len(report.lost) - _LOST} more lost files (all in JSON)")
    lines += report.notes
    if report.hta and all(r.hta is None for r in report.ranks):
        lines.append(report.hta)
    return [*lines, f"traceanalyzer {report.version}; {report.schema}"]
