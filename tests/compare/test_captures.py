"""Captures: what their sidecars know decides what may be compared, and stands in where no device was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.doctor.example import captured
from traceanalyzer.trace.sidecar import (
    ClockSample,
    Correctness,
    Flush,
    OperationRecord,
    ProtocolResult,
    Sidecar,
    encode_sidecar,
    sidecar_path,
)


def measured(protocol: str, level_us: float, seed: int, column: str = "end-to-end") -> ProtocolResult:
    rng = np.random.default_rng(seed)
    samples = [round(float(v), 3) for v in level_us * (1 + 0.02 * rng.standard_normal(40))]
    return ProtocolResult(protocol, column, {}, 40, float(np.median(samples)), None, 0.1, samples)


def record(name: str = "op", **fields) -> OperationRecord:
    return replace(captured().operations[0], name=name, **fields)


def sidecar(op: OperationRecord, **fields) -> Sidecar:
    return replace(captured(), operations=[op], **fields)


def write(path: Path, side: Sidecar, *, kernel: float | None = 10.0, name: str = "op", seed: int = 0) -> Path:
    built = trace()
    rng = np.random.default_rng(seed)
    if kernel is None:
        built.host("cpu_op", "aten::mm", 10, 5)
    else:
        at = 1000.0
        for _ in range(30):
            built.range(f"traceanalyzer.call:{name}", at, 8)
            own = round(kernel * (1 + 0.01 * float(rng.standard_normal())), 3)
            built.call(round(at + 1, 3), round(at + 8, 3), own, name=f"{name}_kernel")
            at = round(at + 40, 3)
    built.write(path)
    sidecar_path(path).write_bytes(encode_sidecar(side))
    return path


def test_captures_without_a_device_compare_what_they_measured_end_to_end_and_say_so(tmp_path):
    base = write(
        tmp_path / "a.json",
        sidecar(
            record(
                "quick",
                inputs={"x": "float32 4x300"},
                protocols=[measured("wall_sync_each", 100, 1), measured("wall_sync_once", 90, 2)],
            )
        ),
        kernel=None,
    )
    head = write(
        tmp_path / "b.json",
        sidecar(
            record(
                "slow",
                inputs={"x": "float32 4x300"},
                protocols=[measured("wall_sync_each", 210, 3), measured("wall_sync_once", 180, 4)],
            )
        ),
        kernel=None,
    )
    data = ta.compare(base, head).data
    assert data.verdict.status == "slower"
    [op] = data.ops
    assert op.measure == "wall_sync_once" and op.ratio == pytest.approx(2.0, rel=0.02)
    assert op.winners == {"wall_sync_each": "base", "wall_sync_once": "base"} and set(op.measured) == set(op.winners)
    assert any("no device rows" in a.reason for a in data.abstentions)
    assert "wall clock, synchronise once" in data.verdict.headline


def test_no_protocol_in_common_is_no_comparison(tmp_path):
    base = write(tmp_path / "a.json", sidecar(record(protocols=[measured("wall_sync_each", 100, 1)])), kernel=None)
    head = write(tmp_path / "b.json", sidecar(record(protocols=[measured("wall_sync_once", 90, 2)])), kernel=None)
    data = ta.compare(base, head).data
    assert data.verdict.status == "undecided" and data.ops[0].ratio is None
    assert "no protocol" in data.ops[0].reason


def test_captures_of_other_operations_without_inputs_in_common_are_not_paired(tmp_path):
    protocols = [measured("wall_sync_each", 100, 1)]
    base = write(tmp_path / "a.json", sidecar(record("quick", inputs={}, protocols=protocols)), name="quick")
    head = write(tmp_path / "b.json", sidecar(record("slow", inputs={}, protocols=protocols)), name="slow")
    data = ta.compare(base, head).data
    assert data.verdict.status == "cannot-judge" and "--unit=quick=slow" in data.verdict.headline
    assert {op.status for op in data.ops} == {"gone", "new"} and not data.units
    asked = ta.compare(base, head, unit=("quick", "slow")).data
    assert asked.verdict.status in ("same", "undecided") and asked.ops[0].status == "matched"


def test_a_cache_that_one_protocol_cleared_says_nothing_of_self_times(tmp_path):
    def do_bench(clear: int) -> ProtocolResult:
        return replace(measured("do_bench", 12, 1), parameters={"clear_bytes": clear})

    plain = write(tmp_path / "a.json", sidecar(record(protocols=[])))
    cleared = write(
        tmp_path / "b.json", sidecar(record(protocols=[do_bench(1 << 28)], flush=Flush("l2-clear", 1 << 28)))
    )
    assert ta.compare(plain, cleared).data.verdict.status in ("same", "undecided")
    one, other = (
        write(tmp_path / f"{n}.json", sidecar(record(protocols=[do_bench(n)])), kernel=None) for n in (1 << 20, 1 << 28)
    )
    refused = ta.compare(one, other).data.verdict
    assert refused.status == "cannot-judge" and "cache of op (do_bench)" in refused.headline


def test_other_inputs_are_refused(tmp_path):
    base = write(tmp_path / "a.json", sidecar(record(inputs={"x": "float32 4x300"})))
    other = write(tmp_path / "b.json", sidecar(record(inputs={"x": "float32 8x300"})))
    assert "input x" in ta.compare(base, other).verdict.headline
    assert ta.compare(base, other).verdict.status == "cannot-judge"
    assert ta.compare(base, other, allow_different=True).verdict.status != "cannot-judge"


def test_clocks_and_throttling_are_marked_and_do_not_refuse(tmp_path):
    base = write(tmp_path / "a.json", sidecar(record(), clocks=[ClockSample("during", 1980, 1980)]))
    head = write(
        tmp_path / "b.json",
        sidecar(record(), clocks=[ClockSample("during", 1410, 1980, throttle_reasons=["sw_power_cap"])]),
        kernel=13.0,
    )
    data = ta.compare(base, head).data
    assert data.verdict.status == "slower"
    assert {d.what for d in data.differences} >= {"SM clock", "clock held down by"}
    assert [f.severity for f in data.findings if f.rule == "TA704"] == ["note"]


def test_a_wrong_result_cannot_win(tmp_path):
    base = write(tmp_path / "a.json", sidecar(record()))
    head = write(
        tmp_path / "b.json",
        sidecar(record(correctness=Correctness(False, "max error 3 where 0.01 is allowed"))),
        kernel=5.0,
    )
    data = ta.compare(base, head).data
    assert data.verdict.status == "cannot-judge" and "wrong" in data.verdict.headline
    assert data.ops[0].ratio is None


def test_readings_measured_on_both_sides_take_the_place_of_the_model(tmp_path):
    base = write(tmp_path / "a.json", sidecar(record(protocols=[measured("wall_sync_each", 55, 1)])), kernel=14.0)
    head = write(
        tmp_path / "b.json", sidecar(record(protocols=[measured("wall_sync_each", 75, 2)])), kernel=10.0, seed=1
    )
    [op] = ta.compare(base, head).data.ops
    assert op.base_readings["wall_sync_each"] == pytest.approx(55, rel=0.02) and op.measured == ["wall_sync_each"]
    assert op.verdict == "FASTER" and op.flips == ["wall_sync_each"] and "base looked 1.3" in op.inversion
