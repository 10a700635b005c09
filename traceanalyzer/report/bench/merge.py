"""Saved tables of one operator from several machines, as one: a row for each machine, a column for each case.

Schema ``traceanalyzer.bench-merge/1``; docs/bench.md describes it. Nothing is measured or averaged here: each cell is one
row of one table, and a speed-up is the one that was measured on its machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from traceanalyzer._version import __version__
from traceanalyzer.errors import OptionError
from traceanalyzer.report.bench.model import BenchRow, BenchTable, Column, Reading, SpeedUp
from traceanalyzer.trace.sidecar import DeviceFacts

MERGE_SCHEMA = "traceanalyzer.bench-merge/1"


Doubt = Literal["disagrees", "not_steady", "clock_held_down", "ended_early", "suspect"]
"""``disagrees``: self-time and unrolled graph; ``suspect``: the verdict on the trace, where the time shown is end to end."""


@dataclass(frozen=True)
class Cell:
    """One case on one machine. ``reading.reason`` says why there is no time; ``speed_ups`` are over each alternative measured there.

    ``correct`` is None where the result was not compared. ``doubts`` are on the time that is shown, and empty for one that
    nothing speaks against. ``queue`` is that of the row's trace: where it is CPU-bound, a call costs more than its kernel, and
    ``end_to_end`` says what.
    """

    case: str
    reading: Reading
    end_to_end: Reading
    speed_ups: list[SpeedUp]
    correct: bool | None
    doubts: list[Doubt]
    queue: str


@dataclass(frozen=True)
class Machine:
    """One table: ``label`` is its device's name and capability, and ``source`` too where two tables have the same."""

    label: str
    source: str
    device: DeviceFacts
    versions: dict[str, str]
    cells: list[Cell]


@dataclass(frozen=True)
class MergedBench:
    """Machines by rows, cases by columns, in the order in which they were given. ``against``: every alternative of any table.

    ``column`` is the one that times are of: device, or end-to-end where no table has device time. ``versions_differ``: packages
    that are not the same everywhere, with each machine's version (empty where it has none).
    """

    schema: str
    version: str
    operator: str
    preset: str
    sizes: dict[str, str]
    implementation: str
    against: list[str]
    column: Column
    cases: list[str]
    machines: list[Machine]
    versions_differ: dict[str, list[str]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, in the layout of the JSON."""
        return asdict(self)


def merged(tables: Sequence[tuple[str, BenchTable]]) -> MergedBench:
    """Return the tables as one; each comes with the name of its source.

    Raises :class:`~traceanalyzer.errors.OptionError` for tables that do not measure one implementation of one operator at
    one size: their times in one column would compare nothing.
    """
    if not tables:
        raise OptionError("nothing_to_merge", "no table was given", hint="give the bench.json of each machine")
    first_source, first = tables[0]
    for source, table in tables[1:]:
        for what, mine, theirs in (
            ("the operator", first.operator, table.operator),
            ("the preset", first.preset, table.preset),
            ("the sizes", _words(first.sizes), _words(table.sizes)),
            ("the implementation", first.implementation, table.implementation),
        ):
            if mine != theirs:
                raise OptionError(
                    "not_alike",
                    f"{what} of {source} is {theirs or 'none'}, that of {first_source} is {mine or 'none'}",
                    hint="merge tables of one bench command",
                )
    column: Column = "device" if any(t.column == "device" for _, t in tables) else "end-to-end"
    cases = list(dict.fromkeys(r.case for _, t in tables for r in t.rows))
    labels = _distinct([_label(t.device) for _, t in tables], [source for source, _ in tables])
    machines = [
        Machine(label, source, table.device, dict(table.versions), [_cell(table, case, column) for case in cases])
        for label, (source, table) in zip(labels, tables, strict=True)
    ]
    return MergedBench(
        MERGE_SCHEMA, __version__, first.operator, first.preset, dict(first.sizes), first.implementation,
        list(dict.fromkeys(name for _, t in tables for name in t.against)), column, cases, machines, _differences(machines),
    )  # fmt: skip


def _cell(table: BenchTable, case: str, column: Column) -> Cell:
    row = next((r for r in table.rows if r.case == case and r.implementation == table.implementation), None)
    if row is None:
        none = Reading("", None, None, 0, "not measured there")
        return Cell(case, none, none, [], None, [], "unknown")
    reading = row.device if column == "device" else row.end_to_end
    if reading.p50_us is None:
        reading = Reading(reading.protocol, None, None, 0, row.missing or reading.reason or f"no {column} time")
    doubts = _doubts(row, column) if reading.p50_us is not None else []
    return Cell(case, reading, row.end_to_end, _speed_ups(table, row, column), row.result.passed, doubts, row.queue)


def _doubts(row: BenchRow, column: Column) -> list[Doubt]:
    suspect = column == "end-to-end" and row.verdict is not None and row.verdict.status == "suspect"
    found: dict[Doubt, bool] = {
        "disagrees": column == "device" and row.agrees is False,
        "not_steady": row.steady is False,
        "clock_held_down": any(c.throttle_reasons for c in row.clock_samples),
        "ended_early": bool(row.missing),
        "suspect": suspect,
    }
    return [doubt for doubt, holds in found.items() if holds]


def _speed_ups(table: BenchTable, row: BenchRow, column: Column) -> list[SpeedUp]:
    """Return the row's speed-ups in the column shown; a table that compared another column has none in this one."""
    if table.column == column:
        return list(row.speed_ups)
    reason = f"compared {table.column} there"
    return [SpeedUp(s.against, column, None, None, None, s.counts, reason) for s in row.speed_ups]


def _distinct(labels: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return the labels, with the source in front where two are the same, and a number where that is the same too."""
    found = [
        label if labels.count(label) == 1 else f"{source}: {label}"
        for label, source in zip(labels, sources, strict=True)
    ]
    return [f"{i}: {label}" if found.count(label) > 1 else label for i, label in enumerate(found, 1)]


def _label(device: DeviceFacts) -> str:
    name = device.name or device.kind
    if not device.capability:
        return name
    return f"{name} (SM {device.capability})" if device.kind == "cuda" else f"{name} ({device.capability})"


def _differences(machines: Sequence[Machine]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for m in machines for name in m.versions)
    found = {name: [m.versions.get(name, "") for m in machines] for name in names}
    return {name: versions for name, versions in found.items() if len(set(versions)) > 1}


def _words(sizes: dict[str, str]) -> str:
    return ", ".join(f"{k} {v}" for k, v in sizes.items())
