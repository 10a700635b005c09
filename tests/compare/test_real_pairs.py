"""Pairs of real traces: graph against eager, different models, different devices."""

from __future__ import annotations

import time

import pytest

import traceanalyzer as ta
from tests.conftest import SHARED

TRACES = SHARED / "traces"
pytestmark = pytest.mark.skipif(
    not (TRACES / "truth.json").is_file(), reason="the shared traces are not on this machine"
)


def compare(base: str, head: str, **options):
    return ta.compare(TRACES / f"{base}.json.gz", TRACES / f"{head}.json.gz", **options).data


def test_a_cuda_graph_changes_the_queue_and_not_the_kernels():
    data = compare("leimao_mlp_eager", "leimao_mlp_graph")
    [unit] = data.units
    assert data.basis == "units" and min(unit.shared_work) > 0.95 and unit.method == "ProfilerStep"
    assert data.verdict.status == "faster" and data.metric == "period"
    assert 2.4 < 1 / unit.ratio_of("period").ratio < 3.0 and 0.9 < unit.ratio_of("busy").ratio < 1.1
    assert "The queue changed: base cpu-bound" in data.verdict.headline and "head gpu-bound" in data.verdict.headline
    assert not data.rank_inversion


@pytest.mark.parametrize(
    "name", ["leimao_mlp_eager", "h100_owlv2", "v100_resnet50_2021", "mi300_vllm_graph", "b200_eager"]
)
def test_a_trace_against_itself_is_the_same(name):
    data = compare(name, name)
    assert data.verdict.status == "same"
    assert not [k for k in data.kernels if k.status != "matched"]
    assert not [r for r in (*data.ops, *data.kernels) if r.verdict in ("FASTER", "SLOWER")]


@pytest.mark.parametrize(
    ("base", "head"), [("h100_owlv2", "h100_qwen"), ("h100_falconsai", "h100_qwen"), ("h100_falconsai", "h100_owlv2")]
)
def test_two_models_give_no_verdict_and_no_loss(base, head):
    data = compare(base, head)
    assert data.verdict.status == "undecided" and "two different pieces of work" in data.verdict.headline
    assert not data.losses and not [r for r in (*data.ops, *data.kernels) if r.verdict in ("FASTER", "SLOWER")]
    assert all(r.verdict in (None, "UNDECIDED") for r in data.units[0].ratios)


def test_two_devices_are_not_comparable():
    data = compare("v100_ns_resolution", "b200_eager")
    assert data.verdict.status == "cannot-judge"
    assert "Tesla V100-SXM2-32GB" in data.verdict.headline and "NVIDIA B200" in data.verdict.headline
    assert all(r.ratio is None for r in (*data.ops, *data.kernels))
    assert compare("v100_ns_resolution", "b200_eager", allow_different=True).verdict.headline.startswith(
        "Not comparable"
    )


def test_a_large_pair_takes_a_few_seconds():
    begun = time.perf_counter()
    compare("h100_owlv2", "h100_owlv2")
    assert time.perf_counter() - begun < 15
