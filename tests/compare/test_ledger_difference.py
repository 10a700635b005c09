"""The difference of two ledgers: it adds up to the difference of the periods, per device, and the compute term to its kernels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from tests.compare.test_units import LAYERS, run
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.render.compare.text import render_comparison_console

NS = 1e-3


def two_devices(path: Path, *, dispatch: int, seed: int, heavy: int = 3, number: int = 1) -> Path:
    """Write steps whose every third kernel runs on a second device, ``heavy`` times as long."""
    machine = Machine(gap=800, jitter=0.01, rng=np.random.default_rng(seed))
    for step in range(9):
        start = machine.now
        for i, (name, ns) in enumerate(LAYERS):
            far = i % 3 == 0
            machine.launch(name, ns * heavy if far else ns, host_cost=dispatch, call=4000, stream=9 if far else 7)
        machine.sync()
        machine.annotate(f"step#{step}", start)
    trace = json.loads(to_json(document(machine)))
    for e in trace["traceEvents"]:
        if e.get("cat") == "kernel" and e["args"]["stream"] == 9:
            e["pid"] = e["args"]["device"] = number
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path


def saved(terms) -> float:
    return sum(t.saved_us for t in terms)


def adds_up(data) -> None:
    [unit] = data.units
    period = unit.ratio_of("period")
    assert unit.ledger_difference
    for terms in (unit.ledger_difference, *(d.difference for d in unit.other_devices)):
        assert saved(terms) == pytest.approx(period.base - period.head, abs=NS)
        for t in terms:
            assert not t.kernels or t.what == "compute"
            for field in ("base_us", "head_us", "saved_us"):
                assert not t.kernels or sum(getattr(k, field) for k in t.kernels) == pytest.approx(
                    getattr(t, field), abs=NS
                )


def test_each_of_several_devices_has_a_difference_that_adds_up_to_that_of_the_periods(tmp_path):
    base = two_devices(tmp_path / "a.json", dispatch=12_000, seed=0)
    head = two_devices(tmp_path / "b.json", dispatch=7000, seed=1)
    data = ta.compare(base, head).data
    adds_up(data)
    [unit] = data.units
    assert unit.ledger_device == "1" and [d.device for d in unit.other_devices] == ["0"]
    far = sum(3 * ns for i, (_, ns) in enumerate(LAYERS) if i % 3 == 0) / 1000
    # the times of the device that decides, not those of both together
    assert unit.ratio_of("busy").base == pytest.approx(far, rel=0.02)
    assert unit.ratio_of("self").base == pytest.approx(far, rel=0.02)
    assert "device 1 is the one the unit keeps busy longest" in render_comparison_console([data])


def test_devices_of_one_side_alone_are_named_with_the_one_that_decides(tmp_path):
    base = two_devices(tmp_path / "a.json", dispatch=12_000, seed=0)
    head = two_devices(tmp_path / "b.json", dispatch=12_000, seed=1, number=4)
    data = ta.compare(base, head).data
    [unit] = data.units
    assert not unit.ledger_difference and [d.device for d in unit.other_devices] == ["0"]
    assert saved(unit.other_devices[0].difference) == pytest.approx(
        unit.ratio_of("period").base - unit.ratio_of("period").head, abs=NS
    )
    [reason] = [a.reason for a in data.abstentions if "ledger difference" in a.reason]
    assert "base alone on device 1" in reason and "head alone on device 4" in reason
    assert "device 1 decides base" in reason and "device 4 decides head" in reason


@pytest.mark.parametrize("steps", [(10, 10), (11, 9), (3, 5)])
def test_the_compute_term_is_cut_up_into_kernels_of_both_sides_and_of_one(tmp_path, steps):
    base = run(tmp_path / "a.json", steps[0], mark="step", seed=1)
    head = run(tmp_path / "b.json", steps[1], mark="step", seed=2, scale=0.8)
    text = head.read_text(encoding="utf-8")
    for name in ("layer_10_kernel", "layer_11_kernel"):
        text = text.replace(name, f"fused_{'ab'['layer_11' in name]}")
    head.write_text(text, encoding="utf-8")
    data = ta.compare(base, head).data
    adds_up(data)
    [compute] = [t for t in data.units[0].ledger_difference if t.what == "compute"]
    parts = {k.what: k for k in compute.kernels}
    names = dict(LAYERS)
    lost = (names["layer_10_kernel"] + names["layer_11_kernel"]) / 1000
    assert parts["gone"].base_us == pytest.approx(lost, rel=0.05) and parts["gone"].head_us == 0
    assert parts["new"].head_us == pytest.approx(0.8 * lost, rel=0.05) and parts["new"].base_us == 0
    assert parts["shared"].saved_us == pytest.approx(0.2 * (sum(names.values()) / 1000 - lost), rel=0.3)
    shown = render_comparison_console([data])
    assert "of kernels of base alone" in shown and "of kernels of head alone" in shown


def test_kernels_on_two_streams_count_once_in_the_parts_of_compute(tmp_path):
    files = []
    for seed, gap in enumerate((3000, 9000)):
        machine = Machine(jitter=0.01, rng=np.random.default_rng(seed))
        for step in range(9):
            start = machine.now
            for i, (name, ns) in enumerate(LAYERS):
                machine.launch(name, 4 * ns, host_cost=gap, call=2000, stream=7 + i % 2)
            machine.sync()
            machine.annotate(f"step#{step}", start)
        path = tmp_path / f"{seed}.json"
        path.write_text(to_json(document(machine)), encoding="utf-8")
        files.append(path)
    data = ta.compare(*files).data
    adds_up(data)
    [compute] = [t for t in data.units[0].ledger_difference if t.what == "compute"]
    assert compute.base_us < 0.9 * 4 * sum(ns for _, ns in LAYERS) / 1000


def test_what_a_run_pays_once_is_said_where_it_is_much_of_the_difference(tmp_path):
    def step(name, first):
        """One step of twelve kernels; the launch of the sixth takes ``first`` us the first time."""
        t = trace().host("user_annotation", "ProfilerStep#3", 0, 5000 + first)
        at = 10
        for i in range(40):
            dur = first if i == 5 and first else 4
            t.launch(at, dur).kernel(at + dur + 5, 30, name=f"layer_{i % 12}_{i}")
            at += dur + 60
        return t.write(tmp_path / name)

    once = ta.compare(step("base.json", 20_000), step("head.json", 0)).data.verdict.headline
    assert "first use in base is" in once and "which a run pays once" in once
    steady = ta.compare(step("same.json", 0), step("head.json", 0)).data.verdict.headline
    assert "pays once" not in steady
