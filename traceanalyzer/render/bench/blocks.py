"""A bench as blocks of cells and lines of text, shared by its text and its Markdown."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.report.bench.model import NOT_COLD, BenchRow, BenchTable, Loss, SpeedUp

_NONE = "-"


def title(table: BenchTable) -> str:
    """Return what was measured and on what."""
    kind, name = table.device.kind, table.device.name
    device = f"{name} ({kind})" if name and not name.lower().startswith(kind) else name or kind
    return f"{' '.join(p for p in (table.operator, table.preset) if p)} on {device}"


MOST_CASES = 6
"""Cases that fit side by side; more are rows of the table below alone."""


def overview(table: BenchTable) -> Block | None:
    """Return the measured implementation alone: device time and its speed-up over each alternative, by direction and dtype.

    None where it has no device time, or more cases than fit side by side.
    """
    rows = [r for r in table.rows if r.implementation == table.implementation]
    if not any(r.device.p50_us is not None for r in rows) or len(rows) > MOST_CASES:
        return None
    cells = [[f"{table.implementation}, device p50", *(show.duration(r.device.p50_us) for r in rows)]]
    struck = {(0, place) for place, r in enumerate(rows, 1) if r.result.passed is False}
    for name in table.against:
        found = [next((s for s in r.speed_ups if s.against == name), None) for r in rows]
        struck |= {(len(cells), place) for place, s in enumerate(found, 1) if s is not None and not s.counts}
        cells.append([f"  speed-up over {name}", *(_ratio(s) for s in found)])
    columns = [table.device.name or table.device.kind, *(r.case for r in rows)]
    return Block(
        f"{title(table)}: {table.implementation}", columns, cells, frozenset(), [], frozenset(struck), frozenset({0})
    )


def times(table: BenchTable) -> Block:
    """Return the times of every row, both columns, and speed-ups; the interval is next to the column that is compared."""
    device = table.column == "device"
    cold = any(r.cold.p50_us is not None for r in table.rows)
    on = not device or len({r.device_kind for r in table.rows}) > 1  # one device of them all is in the title
    columns = [
        "per call, us",
        *(["on"] if on else []),
        "device p50",
        *(["95% CI"] if device else []),
        *(["cold L2"] if cold else []),
        *(f"over {n}" for n in table.against),
    ]
    first = len(columns) - len(table.against)
    columns += ["end-to-end"] if device else ["end-to-end", "95% CI"]
    rows, struck = [], set()
    for number, row in enumerate(table.rows):
        found = {s.against: s for s in row.speed_ups}
        interval = show.interval(row.device.ci95_us if device else row.end_to_end.ci95_us)
        rows.append(
            [
                row.label, *([row.device_kind] if on else []), show.us(row.device.p50_us), *([interval] if device else []), *([show.us(row.cold.p50_us)] if cold else []),
                *(_NONE if name == row.implementation else _ratio(found.get(name)) for name in table.against),
                show.us(row.end_to_end.p50_us), *([] if device else [interval]),
            ]
        )  # fmt: skip
        if row.result.passed is False:
            struck |= {(number, place) for place in range(1 + on, len(columns))}
        struck |= {(number, first + i) for i, n in enumerate(table.against) if n in found and not found[n].counts}
    struck = {(r, c) for r, c in struck if rows[r][c] not in (show.NA, _NONE)}
    whole = title(table) if overview(table) is None else "Every implementation"
    return Block(
        whole, columns, rows, frozenset(), _on_speed_ups(table), frozenset(struck), frozenset({0, 1} if on else {0})
    )


def work(table: BenchTable) -> Block:
    """Return the other interval, memory, error, rates reached and what the trace says of every row that was measured."""
    device = table.column == "device"
    peak = any(r.share_of_peak_bandwidth is not None for r in table.rows)
    columns = [
        "row",
        *(["end-to-end 95% CI"] if device else []),
        "peak MiB",
        "max error",
        "of allowed",
        "GB/s",
        *(["of peak"] if peak else []),
        "GFLOP/s",
        "trace says",
    ]
    rows, struck = [], set()
    for number, row in enumerate(r for r in table.rows if r.measured):
        verdict = show.NA
        if row.verdict is not None:
            queue = show.queue(row.queue, row.grade)
            verdict = row.verdict.status if queue == show.NA else f"{row.verdict.status}, {queue}"
        rows.append(
            [
                row.label, *([show.interval(row.end_to_end.ci95_us)] if device else []),
                show.NA if row.peak_memory_bytes is None else f"{row.peak_memory_bytes / 2**20:,.1f}", _error(row), _allowed(row),
                _rate(row.gbytes_per_s),
                *([show.percent(row.share_of_peak_bandwidth)] if peak else []), _rate(row.gflops_per_s), verdict,
            ]
        )  # fmt: skip
        if row.result.passed is False:
            struck |= {
                (number, n) for n, c in enumerate(columns) if c in ("end-to-end 95% CI", "GB/s", "of peak", "GFLOP/s")
            }
    struck = {(r, c) for r, c in struck if rows[r][c] != show.NA}
    return Block("Memory, result, rates and trace", columns, rows, frozenset(), [], frozenset(struck), frozenset({0}))


def remarks(table: BenchTable) -> list[str]:
    """Return what must be said of the rows: wrong results, losses, absences and doubts, in that order."""
    lines = [f"WRONG RESULT: {r.label}: {r.result.reason}" for r in table.rows if r.result.passed is False]
    lines += losses(table)
    lines += _absences(table)
    lines += [f"not steady: {r.label}: {r.steady_reason}" for r in table.rows if r.measured and r.steady is False]
    lines += _questions(table)
    lines += _throttled(table)
    lines += _no_cold(table)
    lines += [f"device times disagree: {r.label}: {r.agreement}" for r in table.rows if r.agrees is False]
    unchecked: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        if row.measured and row.result.passed is None:
            unchecked.setdefault(row.result.reason, []).append(row)
    lines += [f"result not checked: {_labels(table, rows)}: {reason}" for reason, rows in unchecked.items()]
    return lines + [f"note: {n}" for n in table.notes]


def verdicts(table: BenchTable) -> list[str]:
    """Return the verdicts on traces that are not ok, each sentence once, what was not judged, and notes on single rows."""
    said: dict[str, list[BenchRow]] = {}
    silent: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        if row.verdict is not None and row.verdict.status != "ok":
            said.setdefault(row.verdict.headline, []).append(row)
        elif row.verdict is None and row.measured:
            silent.setdefault(row.unjudged, []).append(row)
    lines = [f"trace of {_labels(table, rows)}: {headline}" for headline, rows in said.items()]
    lines += [f"traces not judged: {_labels(table, rows)}: {reason}" for reason, rows in silent.items()]
    notes: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        for note in dict.fromkeys(row.notes):
            notes.setdefault(note, []).append(row)
    return lines + [f"note: {_labels(table, rows)}: {note}" for note, rows in notes.items()]


def conditions(table: BenchTable) -> list[str]:
    """Return versions, sizes, and where the traces are."""
    lines = [f"{table.operator} {table.preset}: " + ", ".join(f"{k} {v}" for k, v in table.sizes.items())]
    lines = lines if table.sizes else []
    lines.append("; ".join([table.schema, *(f"{k} {v}" for k, v in table.versions.items())]))
    if any(r.folder for r in table.rows):
        lines.append(
            "each row's trace and sidecar: DIR/ROW/trace.json.gz; judge one: traceanalyze report DIR/ROW/trace.json.gz"
        )
    elif any(r.measured for r in table.rows):
        lines.append("traces were not kept; -o DIR keeps one for each row")
    return lines


def _on_speed_ups(table: BenchTable) -> list[str]:
    if not any(s.ratio is not None for r in table.rows for s in r.speed_ups):
        return []
    where = (
        "device column against device column"
        if table.column == "device"
        else "end-to-end against end-to-end, as there is no device time"
    )
    lines = [f"over NAME: time of NAME / time of the row, {where}; below 1 the row is slower"]
    if any(s.outcome == "undecided" for r in table.rows for s in r.speed_ups):
        lines.append("?: undecided, the 95 % interval of the ratio is not wholly beyond or within 1 %")
    return lines


def losses(table: BenchTable) -> list[str]:
    """Return where the measured implementation is not the fastest, in one line; none without a speed-up."""
    own = [
        s for r in table.rows if r.implementation == table.implementation for s in r.speed_ups if s.ratio is not None
    ]
    if not own:
        return []
    if not table.losses:
        return [f"losses of {table.implementation}: none"]
    return [f"losses of {table.implementation}: " + "; ".join(_loss(x) for x in table.losses)]


def _loss(loss: Loss) -> str:
    sure = f" ({loss.ci95[0]:.2f}-{loss.ci95[1]:.2f})" if loss.ci95 else ""
    return f"{loss.case} {loss.ratio:.2f}x{sure} over {loss.against}" + (
        ", undecided" if loss.outcome == "undecided" else ""
    )


def _absences(table: BenchTable) -> list[str]:
    by_reason: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        if row.missing:
            by_reason.setdefault(row.missing, []).append(row)
    return [
        f"{'ended early' if all(r.measured for r in rows) else 'n/a'}: {_labels(table, rows)}: {reason}"
        for reason, rows in by_reason.items()
    ]


def _questions(table: BenchTable) -> list[str]:
    """Return each question in words: what does not fit, in numbers, and what may be behind it."""
    lines = []
    for q in table.questions:
        if q.kind in ("bytes_not_time", "more_than_bytes"):
            seems = (
                "not bound by memory bandwidth, or not what it seems"
                if q.kind == "bytes_not_time"
                else "the wider one has another bound, or is not what it seems"
            )
            lines.append(
                f"question: {q.row} moves {q.expected:.2f}x the bytes of {q.other} and takes {q.found:.2f}x its time: {seems}"
            )
        elif q.kind == "from_cache":
            lines.append(
                f"question: {q.row} is {show.percent(q.found)} of the memory's peak; its bytes fit into L2, which is warm here (see cold L2)"
            )
        else:
            lines.append(
                f"question: {q.row} is {show.percent(q.found)} of the memory's peak: its time is too short, or its bytes are counted too high"
            )
    return lines


def _throttled(table: BenchTable) -> list[str]:
    """Return for each row whose clock was held down in how many samples, each with its clock and reasons."""
    lines = []
    for row in table.rows:
        held = [c for c in row.clock_samples if c.throttle_reasons]
        if held:
            each = "; ".join(
                f"{c.sm_clock_mhz or '?'}{f' of {c.max_sm_clock_mhz}' if c.max_sm_clock_mhz else ''} MHz: {', '.join(c.throttle_reasons)}"
                for c in held
            )
            lines.append(f"clock held down: {row.label}: {len(held)} of {len(row.clock_samples)} samples ({each})")
    return lines


def _no_cold(table: BenchTable) -> list[str]:
    """Return why rows have no cold time where the device has a clock, or others have one; not asked for is no news."""
    reasons: dict[str, list[BenchRow]] = {}
    for row in table.rows:
        if row.device.p50_us is not None and row.cold.p50_us is None and row.cold.reason != NOT_COLD.reason:
            reasons.setdefault(row.cold.reason, []).append(row)
    return [f"cold L2 n/a: {_labels(table, rows)}: {reason}" for reason, rows in reasons.items()]


def _labels(table: BenchTable, rows: list[BenchRow]) -> str:
    """Return rows in words: an implementation alone where all of its rows are meant."""
    parts: list[str] = []
    for name in dict.fromkeys(r.implementation for r in rows):
        of_it = [r for r in rows if r.implementation == name]
        every = [r for r in table.rows if r.implementation == name]
        parts += [name] if len(of_it) == len(every) else [r.label for r in of_it]
    return ", ".join(parts)


def _ratio(found: SpeedUp | None) -> str:
    if found is None or found.ratio is None:
        return show.NA
    return show.ratio(found.ratio) + ("?" if found.outcome == "undecided" else "")


def _error(row: BenchRow) -> str:
    if row.result.max_abs_error is None:
        return show.NA
    return f"{row.result.max_abs_error:.2g}" + (" WRONG" if row.result.passed is False else "")


def _allowed(row: BenchRow) -> str:
    share = row.result.share_of_allowed
    return show.percent(share) if share is None or share < 10 else f"{share:.2g} x"


def _rate(value: float | None) -> str:
    return show.NA if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
