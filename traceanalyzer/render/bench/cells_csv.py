"""Benches as CSV: a line for each row, with the names of the JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.csv import safe_cell
from traceanalyzer.report.bench.model import BenchTable

COLUMNS = (
    "operator", "preset", "device_name", "device_kind", "direction", "dtype", "implementation", "missing_kind", "missing",
    "device_p50_us", "device_ci95_low_us", "device_ci95_high_us", "device_n", "device_protocol", "cold_p50_us", "cold_ci95_low_us", "cold_ci95_high_us",
    "end_to_end_p50_us", "end_to_end_ci95_low_us", "end_to_end_ci95_high_us", "end_to_end_n", "peak_memory_bytes", "correct", "max_abs_error",
    "share_of_allowed", "bytes_moved", "flops", "gbytes_per_s", "gflops_per_s", "share_of_peak_bandwidth", "verdict", "queue", "sm_clock_mhz", "steady",
)  # fmt: skip


def csv_bench(table: BenchTable, settings: RenderSettings) -> str:  # noqa: ARG001 - CSV holds every row, always
    """Return every row; axes and speed-ups are columns behind the fixed ones. An absent value is an empty cell."""
    axes = list(dict.fromkeys(name for row in table.rows for name, _ in row.axes))
    rows: list[list[object]] = []
    for row in table.rows:
        found = {s.against: s for s in row.speed_ups}
        values = dict(row.axes)
        d, c, e = row.device, row.cold, row.end_to_end
        line: list[object] = [
            table.operator, table.preset, table.device.name, row.device_kind, row.direction, row.dtype, row.implementation, row.missing_kind, row.missing,
            d.p50_us, *(d.ci95_us or (None, None)), d.n, d.protocol, c.p50_us, *(c.ci95_us or (None, None)),
            e.p50_us, *(e.ci95_us or (None, None)), e.n, row.peak_memory_bytes, row.result.passed, row.result.max_abs_error,
            row.result.share_of_allowed, row.bytes_moved, row.flops, row.gbytes_per_s, row.gflops_per_s, row.share_of_peak_bandwidth,
            row.verdict.status if row.verdict is not None else None, row.queue, row.sm_clock_mhz, row.steady,
        ]  # fmt: skip
        line += [values.get(name) for name in axes]
        for name in table.against:
            s = found.get(name)
            line += [None] * 4 if s is None else [s.ratio, *(s.ci95 or (None, None)), s.outcome]
        rows.append(line)
    over = [f"speed_up_over_{n}{part}" for n in table.against for part in ("", "_ci95_low", "_ci95_high", "_outcome")]
    return rows_csv([*COLUMNS, *(f"axis_{name}" for name in axes), *over], rows)


def rows_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return lines of CSV; text that a spreadsheet would run, or that acts on a terminal, is made harmless."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(c) for c in columns])
    writer.writerows([safe_cell(v) for v in row] for row in rows)
    return out.getvalue()
