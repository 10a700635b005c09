"""Pairs of one program in two forms, against the simulator: unit, period, kernels, verdict and ledger are right, and nothing is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.inputs.nsys_builder import NsysBuilder
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.cli import cli
from traceanalyzer.report.compare.model import ComparisonData

_GEMM = "void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_64x2_nn_align8>(Params)"
_OTHER_GEMM = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn"
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::"
EAGER = [
    ("aten::layer_norm", "void at::native::vectorized_layer_norm_kernel<float, float>(int, float)", 4000),
    ("aten::mm", _GEMM, 22_000),
    ("aten::gelu", _ELEMENTWISE + "GeluCUDAKernelImpl>", 6000),
    ("aten::mm", _OTHER_GEMM, 18_000),
    ("aten::add", _ELEMENTWISE + "CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)", 5000),
] * 6
COMPILED = [
    ("", "triton_red_fused_native_layer_norm_0", 3000),
    ("", _GEMM, 22_000),
    ("", "triton_poi_fused_gelu_1", 3000),
    ("", _OTHER_GEMM, 18_000),
] * 6


@dataclass(frozen=True)
class Run:
    """A file with what the simulator knows of it: the median step from first row to first row, and its kernel time (ns)."""

    path: Path
    period_ns: float | None
    kernels_ns: float


def simulate(
    path: Path, kernels: list[tuple[str, str, int]] = EAGER, *, steps: int = 9, dispatch: int = 15_000, mark: str = "", graph: bool = False,
    seed: int = 0, rename: Callable[[str], str] = str, threads: bool = False, scale: float = 1.0,
) -> Run:  # fmt: skip
    machine = Machine(gap=800, jitter=0.01, rng=np.random.default_rng(seed))
    firsts, times = [], []
    for step in range(steps):
        start, before = machine.now, len(machine.device)
        nodes = [(rename(name), round(ns * scale)) for _, name, ns in kernels]
        if graph:
            machine.graph(nodes, host_cost=dispatch, call=9000, node_gap=600)
        for i, (name, ns) in enumerate([] if graph else nodes):
            if threads and i == len(nodes) // 2:
                machine.hand_over(2, cost=5000)
            machine.work(dispatch - 4000, kernels[i][0])
            machine.launch(name, ns, host_cost=4000, call=4000)
        if threads:
            machine.hand_over(1, cost=3000)
        machine.sync()
        if mark:
            machine.annotate(f"{mark}#{step}", start)
        rows = machine.device[before:]
        firsts.append(min(r.start for r in rows))
        times.append(sum(r.end - r.start for r in rows))
    if path.suffix == ".sqlite":
        as_nsys(machine, path)
    else:
        path.write_text(to_json(document(machine)), encoding="utf-8")
    return Run(path, float(np.median(np.diff(firsts))) if steps > 1 else None, float(np.median(times)))


def as_nsys(machine: Machine, path: Path) -> None:
    """Write the same rows as Nsight Systems would export them."""
    nsys = NsysBuilder()
    for row in machine.host:
        if row.kind == "call":
            nsys.call(f"{row.name}_v7000", row.start, row.end, row.corr)
        elif row.kind == "range":
            nsys.nvtx(row.name, row.start, row.end)
    for row in machine.device:
        nsys.kernel(row.name, row.start, row.end, row.corr, graphNodeId=row.node)
    nsys.add("TARGET_INFO_GPU", id=0, name="Simulated GPU (traceanalyzer)")
    nsys.write(path)


def holds(base: Run, head: Run, status: str, within: float = 0.03) -> ComparisonData:
    """Check the comparison of two runs against what the simulator knows, and return it."""
    data = ta.compare(base.path, head.path).data
    [unit] = data.units
    period = unit.ratio_of("period")
    assert data.verdict.status == status and data.metric == "period" and unit.step
    if base.period_ns and head.period_ns:
        assert period.ratio == pytest.approx(head.period_ns / base.period_ns, rel=within)
    assert unit.ratio_of("self").ratio == pytest.approx(head.kernels_ns / base.kernels_ns, rel=within)
    assert sum(t.saved_us for t in unit.ledger_difference) == pytest.approx(period.base - period.head, abs=1e-3)
    assert (data.regression_pct > 0) == (status == "slower")
    return data


MARKS = pytest.mark.parametrize(("first", "second"), [("ProfilerStep", "ProfilerStep"), ("", ""), ("ProfilerStep", "")])


@MARKS
def test_eager_against_compiled(tmp_path, first, second):
    base = simulate(tmp_path / "a.json", mark=first, seed=1)
    head = simulate(tmp_path / "b.json", COMPILED, mark=second, seed=2, dispatch=9000)
    # without marks the unit is a layer, whose median period leaves out the wait at the end of a step
    within = 0.03 if second else 0.05
    data = holds(base, head, "faster", within)
    [compute] = [t for t in data.units[0].ledger_difference if t.what == "compute"]
    assert [k.what for k in compute.kernels] == ["shared", "gone", "new"]
    holds(head, base, "slower", within)


@MARKS
def test_eager_against_compiled_in_a_graph(tmp_path, first, second):
    base = simulate(tmp_path / "a.json", mark=first, seed=1)
    holds(base, simulate(tmp_path / "b.json", COMPILED, mark=second, seed=2, graph=True), "faster")


@MARKS
@pytest.mark.parametrize("graph", [False, True])
def test_two_launching_threads(tmp_path, first, second, graph):
    base = simulate(tmp_path / "a.json", mark=first, seed=1, threads=True)
    head = simulate(tmp_path / "b.json", mark=second, seed=2, threads=not graph, graph=graph, dispatch=9000)
    holds(base, head, "faster")


def newer(name: str) -> str:
    name = name.replace(_OTHER_GEMM, "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_cublas")
    return name.replace("16x16_64x2", "128x128_32x5").replace("std::array<char*, 3ul>", "at::detail::Array<char*, 3>")


def stranger(name: str) -> str:
    return f"sm90::kernel_{len(name)}"


@MARKS
def test_kernel_names_that_change_with_a_version(tmp_path, first, second):
    base = simulate(tmp_path / "a.json", mark=first, seed=1)
    holds(base, simulate(tmp_path / "b.json", mark=second, seed=2, rename=newer, dispatch=12_000), "faster")


@MARKS
def test_of_kernels_that_all_have_other_names_the_operators_tell_the_unit(tmp_path, first, second):
    base = simulate(tmp_path / "a.json", mark=first, seed=1)
    head = simulate(tmp_path / "b.json", mark=second, seed=2, rename=stranger, dispatch=12_000)
    data = holds(base, head, "faster")
    [unit] = data.units
    assert unit.shared_work == (0.0, 0.0) and unit.shared_operators > 0.9
    if unit.matched_by == "operators":
        assert "The kernels have other names" in data.verdict.headline


def without_operators(kernels: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    return [("", name, ns) for _, name, ns in kernels]


def test_where_nothing_agrees_the_refusal_gives_an_option_that_works(tmp_path):
    simulate(tmp_path / "a.json", without_operators(EAGER), seed=1)
    simulate(tmp_path / "b.json", without_operators(EAGER), seed=2, rename=stranger, dispatch=12_000)
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    refused = CliRunner().invoke(cli, ["compare", *files])
    assert refused.exit_code == 3
    [advice] = re.findall(r"--unit=\S+", refused.output)
    done = CliRunner().invoke(cli, ["compare", *files, *shlex.split(advice), "--format", "json"])
    assert done.exit_code == 0 and '"matched_by": "asked"' in done.output


@pytest.mark.parametrize(
    ("steps", "more"), [((5, 30), {}), ((30, 5), {"mark": "step"}), ((1, 9), {"mark": "ProfilerStep"})]
)
def test_different_numbers_of_steps(tmp_path, steps, more):
    base = simulate(tmp_path / "a.json", steps=steps[0], seed=1, **more)
    holds(base, simulate(tmp_path / "b.json", steps=steps[1], seed=2, dispatch=9000, scale=0.5, **more), "faster")


@pytest.mark.parametrize("mark", ["ProfilerStep", ""])
def test_one_step_each_where_the_launches_changed(tmp_path, mark):
    base = simulate(tmp_path / "a.json", steps=1, seed=1, mark=mark)
    graph = simulate(tmp_path / "b.json", steps=1, seed=2, mark=mark, graph=True)
    assert 1.1 < 1 / holds(base, graph, "faster").units[0].ratio_of("period").ratio < 1.45


def test_one_step_each_of_the_same_launches_is_called_only_where_no_long_step_explains_it(tmp_path):
    base = simulate(tmp_path / "a.json", steps=1, seed=1, mark="step")
    for dispatch, status in ((18_000, "undecided"), (60_000, "slower")):
        head = simulate(tmp_path / f"{dispatch}.json", steps=1, seed=2, mark="step", dispatch=dispatch)
        data = holds(base, head, status)
        assert ("no scatter of its own" in data.verdict.headline) == (status == "undecided")


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("mark", ["step", ""])
def test_one_run_read_from_kineto_and_from_nsight_systems_is_the_same(tmp_path, graph, mark):
    runs = [simulate(tmp_path / name, seed=1, graph=graph, mark=mark) for name in ("a.json", "b.sqlite")]
    data = holds(*runs, "same", 1e-9)
    assert data.units[0].ratio_of("period").ratio == 1 and data.units[0].ratio_of("busy").ratio == 1
