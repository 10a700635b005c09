"""Makes ``ReportData`` by hand: small ones with what a test is about, a realistic one, and hostile ones.

Renderers only format, so a test of them needs no trace; and text that no reader of traces would let through
can be put into a report here, which is how the bounds are held by construction and not by luck.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, TypeVar

from traceanalyzer.report import model, units
from traceanalyzer.report.model import (
    Abstention,
    CoverageRow,
    DeviceRef,
    Evidence,
    FindingRow,
    KernelRow,
    OpRow,
    ReportData,
    Verdict,
)

Row = TypeVar("Row")
PROTOCOLS = [
    "wall_nosync",
    "wall_sync_each",
    "wall_sync_once",
    "event_pair",
    "event_pair_sync",
    "event_loop",
    "do_bench",
    "graph_unrolled",
    "profiler_self_time",
]
SYMBOLS = ["dispatch", "kernels", "latency", "record", "sync", "gap", "clear"]


def make(row: type[Row], text: str = "", **given: Any) -> Row:
    """Return a row of the model: ``given`` fields, ``text`` in every other text, zero and empty elsewhere.

    Built from the annotations, so that a field added to the model needs no change here.
    """
    hints = _hints(row)
    for field in dataclasses.fields(row):  # type: ignore[arg-type]
        if field.name not in given and field.default is dataclasses.MISSING:
            given[field.name] = _value(hints[field.name], text)
        elif field.name not in given and hints[field.name] is str:
            given[field.name] = text
    return row(**given)


@functools.cache
def _hints(row: type) -> dict[str, Any]:
    model.load_every_type()
    return typing.get_type_hints(row, {**vars(units), **vars(model)})


def _value(hint: Any, text: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return text if str in args and text else None
    if origin is typing.Literal:
        return args[0]
    if origin is dict:
        return {text: _value(args[1], text)} if text else {}
    if origin in (list, tuple):
        return []
    if dataclasses.is_dataclass(hint):
        return make(typing.cast(type, hint), text)
    return {int: 0, float: 0.0, bool: False, str: text}[hint]


def kernel(name: str, **given: Any) -> KernelRow:
    """Return a kernel row that launched a hundred times for ten microseconds."""
    usual: dict[str, Any] = {
        "name": name, "short_name": name, "count": 100, "total_us": 1000.0, "p50_us": 10.0, "p50_ci95_us": (9.9, 10.1), "share": 0.01,
        "linked": 100, "dispatch_p50_us": 42.0, "event_reading_us": 42.0, "inflation": 4.2, "queue": "cpu-bound", "grade": "PROVEN",
    }  # fmt: skip
    return make(KernelRow, **{**usual, **given})


def op(name: str, text: str = "", **given: Any) -> OpRow:
    """Return an operation with a whole ladder."""
    readings = {p: 10.0 + i for i, p in enumerate(PROTOCOLS)}
    usual: dict[str, Any] = {
        "name": name, "iterations": 100, "kernels_per_iteration": 2.0, "self_time_p50_us": 20.0, "queue": "cpu-bound", "grade": "PROVEN",
        "readings": readings, "readings_replayed": {p: 2 * r for p, r in readings.items()},
        "symbols": {f"{s}_us": 1.5 for s in SYMBOLS}, "symbol_sources": dict.fromkeys(SYMBOLS, text or "measured"),
    }  # fmt: skip
    return make(OpRow, text, **{**usual, **given})


def finding(rule: str = "TA201", text: str = "", **given: Any) -> FindingRow:
    """Return a finding with numbers, an evidence row and a remedy."""
    usual: dict[str, Any] = {
        "rule": rule, "title": "cpu-bound-queue", "severity": "warning", "grade": "PROVEN",
        "message": text or "launches every 42 us, the kernel takes 10 us: an event pair would read 42 us, 4.2x the kernel",
        "numbers": {"dispatch_us": 42.0, "threshold_ratio": 1.1}, "evidence": [Evidence(text or "my_kernel", 1234.567, 10.0, text)],
        "remedy": [text or "fill the queue first, or capture the calls in one graph"],
    }  # fmt: skip
    return make(FindingRow, text, **{**usual, **given})


def cause(class_: str = "host_op", text: str = "", **given: Any) -> model.LedgerItemRow:
    """Return a cause of 400 us that recurs in every step."""
    usual: dict[str, Any] = {
        "class_": class_, "name": text or "aten::add", "us": 400.0, "share": 0.4, "count": 10, "longest_us": 60.0, "example_at_us": 1234.5,
        "before": text or "my_kernel", "when": "every_step",
    }  # fmt: skip
    return make(model.LedgerItemRow, text, **{**usual, **given})


def ledger(text: str = "", **given: Any) -> model.LedgerRow:
    """Return the ledger of a device of 1000 us that is busy for half of it."""
    usual: dict[str, Any] = {
        "window": "span", "span_us": 1000.0, "classes": {"compute": 500.0, "host_op": 400.0, "launch_latency": 100.0},
        "drained_by": {"late": 400.0, "wait": 100.0}, "items": [cause(text=text), cause("launch_latency", text, us=100.0, share=0.1)],
    }  # fmt: skip
    made = make(model.LedgerRow, text, **{**usual, **given})
    # each cause lies in one range
    return made if "causes" in given else dataclasses.replace(made, causes=made.items)


def report(text: str = "", **given: Any) -> ReportData:
    """Return a report with the given blocks; ``text`` stands wherever a report holds text."""
    usual: dict[str, Any] = {
        "schema": model.SCHEMA, "version": "0.0.0", "verdict": Verdict("suspect", text or "Suspect: launches come too late"),
        "trace": make(model.TraceSummary, text, **({} if text else {"name": "fake.json", "format": "JSON object"})),
        "clock": make(model.Clock, text, **({} if text else {"state": "agree"})),
        "coverage": make(model.Coverage, text or "0 of 0 device rows linked"),
    }  # fmt: skip
    return make(ReportData, text, **{**usual, **given})


def hostile(text: str, rows: int = 40, kernels: int = 500) -> ReportData:
    """Return a report that holds ``text`` in every text of every row, and many rows of each kind."""
    several = [kernel(text, config=text, queue_reason=text) for _ in range(4)]
    trace = make(
        model.TraceSummary, text, incomplete=True, salvaged=True, simulated=True, notes=[text] * rows, devices=[DeviceRef(0, text, text)] * rows,
        excluded={f"{n}{text}": n for n in range(rows)}, repaired={f"{n}{text}": n for n in range(rows)},
        unknown_categories={f"{n}{text}": n for n in range(rows)}, versions={f"{n}{text}": text for n in range(rows)},
        profiler_flags={f"{n}{text}": 1 for n in range(rows)}, selection={f"{n}{text}": text for n in range(rows)},
    )  # fmt: skip
    pause = make(model.PauseRow, text, length_us=1e9, at_us=1e12)
    return report(
        text,
        trace=trace,
        clock=make(model.Clock, text),
        coverage=make(model.Coverage, text, by_api=[CoverageRow(text, 1, False)] * rows),
        devices=[make(model.DeviceRow, text, busy_us=1e12, span_us=1e13, overlap_us=1e12)] * rows,
        streams=[make(model.StreamRow, text, gap_total_us=1e12, overlaps=3, overlap_max_us=1e9, clocks_agree=True)] * rows,
        threads=[make(model.ThreadRow, text, dispatch_p50_us=1e9, left_out={text: 7})] * rows,
        kernels=[kernel(f"{text}{n}", variants=several, queue_reason=text, config=text) for n in range(kernels)],
        copies=[kernel(text)] * rows,
        ops=[op(text, text, clear_p50_us=4.0)] * rows,
        ledger=[ledger(text) for _ in range(rows)],
        idle=[make(model.IdleRow, text, idle_us=1e12, long_pauses=rows, long_us=1e12, unattributed_us=1.0, pauses=[pause] * rows)] * rows,
        findings=[finding(f"TA{n:03}", text, numbers={text: text}, evidence=[Evidence(text, 1e12, 1e9, text)] * 9) for n in range(rows)],
        abstentions=[Abstention(f"TA{n:03}", text) for n in range(rows)],
    )  # fmt: skip
