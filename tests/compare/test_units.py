"""Whole runs: units by name and by work, ratios against the simulator's truth, ledgers that add up, few repeats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.analysis.compare.few import compare_few
from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError
from traceanalyzer.render.compare.blocks import about
from traceanalyzer.render.compare.units import ratios

LAYERS = [(f"layer_{i}_kernel", 3000 + 700 * i) for i in range(12)]


def run(
    path: Path,
    steps: int,
    *,
    dispatch: int = 12_000,
    graph: bool = False,
    mark: str = "",
    scale: float = 1.0,
    seed: int = 0,
) -> Path:
    machine = Machine(gap=800, jitter=0.01, rng=np.random.default_rng(seed))
    nodes = [(name, round(ns * scale)) for name, ns in LAYERS]
    for step in range(steps):
        start = machine.now
        if graph:
            machine.graph(nodes, host_cost=dispatch, call=9000, node_gap=800)
        else:
            for name, ns in nodes:
                machine.launch(name, ns, host_cost=dispatch, call=4000)
        machine.sync()
        if mark:
            machine.annotate(f"{mark}#{step}", start)
    path.write_text(to_json(document(machine)), encoding="utf-8")
    return path


def true_period(path: Path) -> float:
    rows = ta.read(path).activities
    first = np.sort(rows.start_ns)[:: len(LAYERS)]
    return float(np.median(np.diff(first))) / 1000


@pytest.mark.parametrize(
    ("first", "second"), [("ProfilerStep", "ProfilerStep"), ("", ""), ("ProfilerStep", ""), ("", "ProfilerStep")]
)
@pytest.mark.parametrize("steps", [(10, 24), (3, 5)])
def test_eager_and_graph_are_one_unit_with_the_periods_of_the_simulator(tmp_path, first, second, steps):
    base = run(tmp_path / "eager.json", steps[0] + 4 * (not first), mark=first, seed=1)
    head = run(tmp_path / "graph.json", steps[1] + 4 * (not second), graph=True, mark=second, seed=2)
    data = ta.compare(base, head).data
    [unit] = data.units
    period = unit.ratio_of("period")
    assert data.verdict.status == "faster" and data.metric == "period" and unit.step
    assert period.ratio == pytest.approx(true_period(head) / true_period(base), rel=0.02)
    assert unit.ratio_of("busy").ratio == pytest.approx(1, rel=0.02)
    assert unit.shared_work == (1.0, 1.0) and unit.ratio_of("launches").head == 1
    assert sum(t.saved_us for t in unit.ledger_difference) == pytest.approx(period.base - period.head, abs=1e-3)


def test_the_gate_is_on_the_period_of_a_step_and_on_what_is_asked_for(tmp_path):
    base = run(tmp_path / "a.json", 12, mark="step", seed=1)
    head = run(tmp_path / "b.json", 12, dispatch=21_000, mark="step", seed=2)
    gate = ["compare", str(base), str(head), "--fail-on-regression", "5"]
    failed = CliRunner().invoke(cli, gate)
    assert failed.exit_code == 1 and "gate: period of b.json" in failed.output
    assert CliRunner().invoke(cli, [*gate, "--metric", "busy"]).exit_code == 0


def test_units_that_a_side_does_not_have_are_named(tmp_path):
    base, head = run(tmp_path / "a.json", 8, mark="train"), run(tmp_path / "b.json", 8, mark="fit", seed=3)
    assert ta.compare(base, head).data.units[0].matched_by == "work"
    assert ta.compare(base, head, unit=("train", "fit")).data.units[0].matched_by == "asked"
    with pytest.raises(OptionError, match="head has no unit called 'train'"):
        ta.compare(base, head, unit=("train", "train"))


def series(rng: np.random.Generator, n: int, level: float, scatter: float) -> Times:
    values = np.rint(level * np.exp(scatter * rng.standard_normal(n))).astype(np.int64)
    return Times(n, float(np.median(values)), values)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (2, 40), (1, 5)])
def test_few_repeats_make_under_one_false_verdict_in_twenty_and_see_a_factor_of_two(n, m):
    """Of one repeat each a factor of four: a step three times as long as usual is nothing rare, and one alone does not tell."""
    rng = np.random.default_rng(n * 100 + m)
    scatter, factor = 0.04, 4 if n == m == 1 else 2
    wrong = seen = 0
    for _ in range(400):
        base = series(rng, n, 1e6, scatter)
        wrong += compare_few(base, series(rng, m, 1e6, scatter), 0.01)[1] in ("FASTER", "SLOWER")
        seen += compare_few(base, series(rng, m, 1e6 / factor, scatter), 0.01)[1] == "FASTER"
    assert wrong <= 20 and seen >= 360


@pytest.mark.parametrize("draw", ["long steps", "two modes", "drifting"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 3), (5, 5)])
def test_few_repeats_of_an_uneven_run_make_under_one_false_verdict_in_twenty(draw, n, m):
    rng = np.random.default_rng(17 * n + m)

    def one(count):
        usual = 1e6 * np.exp(0.01 * rng.standard_normal(count))
        if draw == "long steps":
            usual = np.where(rng.random(count) < 0.05, 3 * usual, usual)
        elif draw == "two modes":
            usual = np.where(rng.random(count) < 0.3, 1.1 * usual, usual)
        else:
            noise = 0.05 * rng.standard_normal()
            for i in range(count):
                usual[i] *= np.exp(noise)
                noise = 0.7 * noise + 0.05 * np.sqrt(1 - 0.49) * rng.standard_normal()
        values = np.rint(usual).astype(np.int64)
        return Times(count, float(np.median(values)), values)

    wrong = sum(compare_few(one(n), one(m), 0.01)[1] in ("FASTER", "SLOWER") for _ in range(600))
    assert wrong <= 36


def test_one_unit_is_no_mean_of_kernels_and_the_ratios_of_a_side_are_written_with_an_arrow(tmp_path):
    base = run(tmp_path / "base.json", 8, mark="ProfilerStep", seed=1)
    head = run(tmp_path / "head.json", 9, mark="ProfilerStep", graph=True, seed=2)
    data = ta.compare(base, head).data
    assert data.basis == "units" and len(data.units) == 1 and data.geomean_ratio is not None
    assert not [line for line in about(data) if "Geometric mean" in line or "Losses: none" in line]
    rows = ratios(data.units[0]).rows
    assert rows[0][-1] == "7 -> 8" and not any(" > " in cell for row in rows for cell in row)
