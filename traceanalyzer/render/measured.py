"""What a capture measured, as blocks: the readings with the model's predictions, and the conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer import number_text
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import LADDER_TITLES, Block
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import OpRow

if TYPE_CHECKING:
    from traceanalyzer.report.captured import OperationRecord, Sidecar

TITLES = LADDER_TITLES | {"backlog": "event pairs behind a blocker"}
WRONG = "WRONG RESULT"
OPERATIONS_SHOWN = 4
PROTOCOLS_SHOWN = 10  # a capture has no more
_NOTES, _CLOCKS = 6, 6


def measured(capture: Sidecar | None, ops: list[OpRow]) -> list[Block]:
    """Return a block for each captured operation; none without a sidecar."""
    if capture is None:
        return []
    rows = {op.name: op for op in ops}
    blocks = [_block(capture, record, rows.get(record.name)) for record in capture.operations[:OPERATIONS_SHOWN]]
    more = len(capture.operations) - OPERATIONS_SHOWN
    if more > 0:
        blocks[-1].notes.append(f"{show.plural(more, 'more operation')} in the JSON report")
    return blocks


def measured_in(report: ReportData) -> list[Block]:
    """Return the blocks of a report."""
    return measured(report.capture, report.ops)


def _block(capture: Sidecar, record: OperationRecord, op: OpRow | None) -> Block:
    wrong = record.correctness.passed is False
    predicted = op.readings_predicted if op else {}
    rows = []
    for p in record.protocols[:PROTOCOLS_SHOWN]:
        if p.p50_us is None:
            continue
        form = predicted.get(p.protocol)
        error = f"{number_text.change(form / p.p50_us - 1)}" if form is not None and p.p50_us else show.NA
        rows.append(
            [TITLES.get(p.protocol, p.protocol), "mixed" if p.column == "neither" else p.column, show.time(p.p50_us), show.time_interval(p.ci95_us), show.count(p.n), show.time(form), error]
        )  # fmt: skip
    notes = [WRONG + ": " + _correctness(record)] if wrong else [_correctness(record)]
    notes.append(_warm_up(record))
    if record.inflation is not None:
        i = record.inflation
        notes.append(
            f"profiler: a call takes the host {show.time(i.profiled_us)} under it, {show.time(i.unprofiled_us)} without ({show.ratio(i.ratio)})"
        )
    notes.append(f"cross-check: {record.agreement.explanation}")
    silent: dict[str, list[str]] = {}
    for p in record.protocols[:PROTOCOLS_SHOWN]:
        if p.reason:
            silent.setdefault(p.reason, []).append(p.protocol)
    notes += [f"not measured: {', '.join(names)}: {reason}" for reason, names in silent.items()]
    if record.peak_memory_bytes is not None:
        notes.append(f"peak device memory {record.peak_memory_bytes / 2**20:.1f} MiB")
    notes += [f"note: {n}" for n in capture.notes[:_NOTES]]
    kind, name = capture.device.kind, capture.device.name
    device = f"{name} ({kind})" if name and kind not in name.lower() else name or kind
    title = f"Measured: {record.name} on {device} (per call)"
    columns = ["protocol", "answers", "p50", "95% CI", "n", "model predicts", "error"]
    if not predicted:
        columns, rows = columns[:5], [row[:5] for row in rows]
    return Block(
        title,
        columns,
        rows,
        frozenset({0}),
        notes,
        frozenset((row, column) for row in range(len(rows)) for column in (2, 3)) if wrong else frozenset(),
    )


def _correctness(record: OperationRecord) -> str:
    c = record.correctness
    if c.passed is None:
        return f"result not checked: {c.reason}"
    numbers = f"max abs error {c.max_abs_error:.3g}" if c.max_abs_error is not None else ""
    limits = f"allowed rtol {c.rtol:.3g}, atol {c.atol:.3g}" if c.rtol is not None and c.atol is not None else ""
    if limits.removeprefix("allowed ") in c.reason:
        limits = ""  # the reason has them already
    words = "; ".join(x for x in (numbers, limits, f"against {c.reference}" if c.reference else "") if x)
    return f"result right: {words}" if c.passed else f"{c.reason} ({words})"


def _warm_up(record: OperationRecord) -> str:
    w = record.warm_up
    text = f"warm-up: {show.plural(w.calls, 'call')}"
    if w.slow_calls:
        text += f", the first {w.slow_calls} slow ({w.slow_us / 1000:.1f} ms: compilation, tuning or loading), counted in no reading"
    return text + ("" if w.steady else f"; NOT STEADY: {w.reason}")


def conditions_lines(capture: Sidecar | None) -> list[str]:
    """Return versions, switches and clocks of a capture, one line each."""
    if capture is None:
        return []
    lines = [] if capture.operations else [f"note: {n}" for n in capture.notes[:_NOTES]]
    if capture.versions:
        lines.append("captured with " + ", ".join(f"{k} {v}" for k, v in capture.versions.items()))
    if capture.environment:
        lines.append("environment: " + ", ".join(f"{k}={v}" for k, v in capture.environment.items()))
    if capture.clocks:
        lines += [
            f"clocks {c.when}: SM {show.count(c.sm_clock_mhz)} of {show.count(c.max_sm_clock_mhz)} MHz, "
            f"{show.time(c.power_w)} W of {show.time(c.power_limit_w)} W, {show.count(c.temperature_c)} C"
            + (f", held down by {', '.join(c.throttle_reasons)}" if c.throttle_reasons else "")
            for c in capture.clocks[:_CLOCKS]
        ]
    elif capture.clocks_missing:
        lines.append(f"clocks: {capture.clocks_missing}")
    if capture.git_commit:
        lines.append(f"git {capture.git_commit[:12]}{' with changes' if capture.git_changed else ''}")
    return lines
