"""Programs of today (sharded training, decoding, exported networks, loaders, checkpoints): the verdict names what the program was built to wait for."""

from __future__ import annotations

import json

import pytest

import traceanalyzer as ta
from tests.program_builder import Program
from traceanalyzer.api import report_of
from traceanalyzer.options import AnalysisOptions

_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def judged(tmp_path, program, more=()):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [*program.events, *more]}), encoding="utf-8")
    return report_of(ta.read(path), AnalysisOptions()).to_dict()


def sharded(*, prefetched, steps=6, layers=12):
    """A layer needs its parameters, gathered for 300 us while the layer before computes for 500, or only behind it."""
    p = Program()
    for s in range(steps):
        with p.range(f"ProfilerStep#{s}"):
            last = 0.0
            for k in range(layers):
                with p.range("FullyShardedDataParallel.forward"):
                    gathered = p.launch(_GATHER, 300, 20, after=0.0 if prefetched else last)
                    p.host(5, "aten::mm")
                    p.launch(f"ampere_gemm_{k % 4}", 450, after=gathered)
                    last = p.launch("elementwise_kernel", 50)
        if s % 2:
            p.synchronise("cudaStreamSynchronize", 7)
    return p


def tensor_parallel():
    """An all-reduce of 40 us behind each product of 70 us, on the same stream."""
    p = Program()
    for _ in range(8):
        with p.range("decode"):
            for k in range(20):
                p.host(6, "aten::linear")
                p.launch(f"gemm_{k % 4}", 70)
                p.launch(_REDUCE, 40)
    return p


def pipeline_stage():
    """A receive lasts until the stage before has sent: 1.5 ms at the start of each step."""
    p = Program()
    for s in range(8):
        with p.range(f"ProfilerStep#{s}"):
            for m in range(4):
                p.launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 60 if m else 1500)
                for k in range(10):
                    p.host(6, "aten::linear")
                    p.launch(f"gemm_{k % 5}", 70)
    return p


def decoding(scheduling=1500):
    """A token: one graph launch, a sampling kernel, its value awaited by an event, then the scheduler."""
    p = Program()
    for _ in range(30):
        with p.range("gpu_model_runner: forward"):
            p.launch("node", 40, api="cudaGraphLaunch", nodes=80, cost=60)
        with p.range("gpu_model_runner: sample"):
            p.launch("argmax_kernel", 12)
            p.copy("DtoH (Device -> Pinned)", 3, waits=False)
            p.synchronise("cudaEventSynchronize")
        p.host(scheduling)
    return p


def compiled_in_step_two():
    """Five steps of 30 kernels, of which the second compiles for 900 ms."""
    p = Program()
    for s in range(6):
        with p.range(f"ProfilerStep#{s}"):
            if s == 1:
                with p.range("_compile.compile_inner (dynamo_timed)"):
                    p.host(900_000)
            for k in range(30):
                p.host(8)
                p.launch(f"triton_poi_fused_{k % 5}", 120, api="cuLaunchKernel")
            p.synchronise()
    return p


def exported(between=0.0):
    """A network without operators' rows: inputs up, 25 kernels, results down; then the host's own work of so long, if any."""
    p = Program()
    for _ in range(40):
        p.copy("HtoD (Pinned -> Device)", 20, waits=False)
        for k in range(25):
            p.host(2)
            p.launch(f"sm80_xmma_fprop_{k}", 40, api="cuLaunchKernel")
        p.copy("DtoH (Device -> Pinned)", 10, waits=False)
        if between:
            p.synchronise("cudaStreamSynchronize")
            p.host(between)
    return p


def without_operators():
    """Kernels of 6 us that the host launches every 28 us, recorded with CUDA activities alone."""
    p = Program()
    for _ in range(15):
        for k in range(40):
            p.host(25)
            p.launch(f"k_{k}", 6)
    return p


def pinned_loader():
    """The step waits 7.4 ms for a batch, which another thread pins; its work takes 4.3."""
    p = Program()
    for s in range(12):
        with p.range(f"ProfilerStep#{s}"):
            with p.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
                p.now[2] = p.at + 6000
                p.thread = 2
                p.api("cudaHostAlloc", 900)
                p.host(300, "aten::copy_")
                p.thread, p.now[1] = 1, p.now[2] + 200
            p.copy("HtoD (Pinned -> Device)", 300, waits=False)
            for k in range(40):
                p.host(10, "aten::conv2d")
                p.launch(f"conv_{k % 8}", 100)
    return p


def accumulated():
    """A step of four micro-batches, forward on one thread and backward on another, and an optimizer."""
    p = Program()
    for s in range(8):
        with p.range(f"ProfilerStep#{s}"):
            for _ in range(4):
                with p.range("forward"):
                    for k in range(15):
                        p.host(6, "aten::linear")
                        p.launch(f"gemm_{k % 5}", 80)
                p.thread, p.now[2] = 2, p.at + 5
                for k in range(30):
                    p.host(6, "AddmmBackward0")
                    p.launch(f"gemm_b{k % 5}", 80)
                p.thread, p.now[1] = 1, p.at + 5
            with p.range("Optimizer.step#AdamW.step"):
                p.launch("multi_tensor_apply", 300)
    return p


def trained(*, step, steps=20):
    """A step of 40 kernels of 100 us, launched far ahead, then what ``step`` adds."""
    p = Program()
    for s in range(steps):
        with p.range(f"ProfilerStep#{s}"):
            for k in range(40):
                p.host(10, "aten::linear")
                p.launch(f"gemm_{k % 8}", 100)
            step(p, s)
    return p


def _checkpoint(p, s):
    if s == 9:
        for _ in range(30):
            with p.range("aten::to", op=True):
                p.copy("DtoH (Device -> Pageable)", 400, waits=True)
        p.host(300_000)


def _logging(p, s):
    if s % 5 == 4:
        with p.range("aten::to", op=True):
            p.copy("DtoH (Device -> Pageable)", 2, waits=True)
        p.host(8000)


def _collection(p, s):
    p.synchronise("cudaStreamSynchronize")
    if s in (4, 9, 15):
        p.host(40_000)


def _retry(p, _):
    with p.range("aten::empty", op=True):
        p.synchronise()
        for _ in range(30):
            p.api("cudaFree", 120)
        p.api("cudaMalloc", 400)


LIMITED = {
    "parameters gathered behind the layer before": (lambda: sharded(prefetched=False), "TA310", ("AllGather", "Start it earlier")),
    "all-reduce on the stream of the compute": (tensor_parallel, "TA310", ("AllReduce",)),
    "a stage waits for the one before": (pipeline_stage, "TA310", ("SendRecv", "neighbouring stage")),
    "a scheduler between tokens": (decoding, "TA302", ("cudaEventSynchronize", "Launch the next step before")),
    "a compilation in the window": (compiled_in_step_two, "TA401", ("compil",)),
    "host work between exported networks": (lambda: exported(1500), "TA302", ("cudaStreamSynchronize",)),
    "CUDA activities alone": (without_operators, "TA201", ("launches too late",)),
    "a loader that pins": (pinned_loader, "TA306", ("enumerate(DataLoader)",)),
    "a checkpoint": (lambda: trained(step=_checkpoint), "TA302", ("1 pause", "aten::to", "long pauses")),
    "a loss logged each five steps": (lambda: trained(step=_logging), "TA302", ("aten::to", "a step would take")),
    "garbage collection behind synchronises": (lambda: trained(step=_collection), "TA301", ("3 pauses",)),
    "an allocator that tries again": (lambda: trained(step=_retry), "TA305", ("cudaFree",)),
}  # fmt: skip


@pytest.mark.parametrize("run", LIMITED)
def test_the_verdict_names_what_the_program_waits_for(tmp_path, run):
    make, rule, words = LIMITED[run]
    found = judged(tmp_path, make())
    headline = found["verdict"]["headline"]
    assert found["verdict"]["status"] == "suspect" and all(w in headline for w in words), headline
    warned = [f for f in found["findings"] if f["severity"] == "warning" and f["cost_us"]]
    assert max(warned, key=lambda f: f["cost_us"])["rule"] == rule


FED = {
    "parameters gathered a layer ahead": lambda: sharded(prefetched=True),
    "an exported network": exported,
    "accumulated gradients": accumulated,
}


@pytest.mark.parametrize("run", FED)
def test_a_program_that_keeps_the_device_busy_is_ok(tmp_path, run):
    found = judged(tmp_path, FED[run]())
    assert found["verdict"]["status"] == "ok"
    assert [f["rule"] for f in found["findings"] if f["severity"] == "warning"] == []


def test_memory_events_change_nothing(tmp_path):
    sizes = [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 1, "ts": 1000 + 40 * i, "s": "t", "args": {"Bytes": 512}}
        for i in range(300)
    ]  # fmt: skip
    plain, with_memory = judged(tmp_path, exported(1500)), judged(tmp_path, exported(1500), sizes)
    assert with_memory["verdict"] == plain["verdict"]
    assert with_memory["ledger"] == plain["ledger"]


def test_the_unit_is_the_profilers_step_where_there_are_several_ranges_in_it(tmp_path):
    found = judged(tmp_path, accumulated())
    [span] = [x for x in found["ledger"] if x["window"] == "span"]
    assert (span["unit_kind"], span["unit"]) == ("step", "ProfilerStep")


def test_a_range_that_holds_a_part_of_the_step_is_no_call_that_the_period_is_of(tmp_path):
    p = Program()
    for _ in range(12):
        with p.range("forward"):
            for k in range(8):
                p.host(30, "aten::linear")
                p.launch(f"gemm_{k}", 5)
        with p.range("backward"):
            for k in range(12):
                p.host(30, "MulBackward0")
                p.launch(f"gemm_b{k}", 5)
    found = judged(tmp_path, p)
    [span] = [x for x in found["ledger"] if x["window"] == "span"]
    now = next(w["now_us"] for w in span["worth"] if w.get("now_us"))
    assert span["unit_kind"] == "step" and now == pytest.approx(20 * 33 + 2, rel=0.02)
    assert "a step would take" in found["verdict"]["headline"]


def test_ranges_of_libraries_are_no_units(tmp_path):
    p = Program()
    for _ in range(12):
        with p.range("generate"):
            for k in range(8):
                p.host(30, "aten::linear")
                p.launch(f"gemm_{k}", 5)
            with p.range("ncclGroupEnd"):
                p.launch(_REDUCE, 5)
    found = judged(tmp_path, p)
    assert {x["unit"] for x in found["ledger"]} == {"generate"}


def test_a_graph_is_advised_only_where_one_can_be_captured(tmp_path):
    def remedy(make):
        findings = judged(tmp_path, make)["findings"]
        return next(f["remedy"][0] for f in findings if f["rule"] in ("TA201", "TA211"))

    def host_bound(steps, kernels, waits=0):
        p = Program()
        for s in range(steps):
            with p.range(f"ProfilerStep#{s}"):
                for k in range(kernels(s)):
                    p.host(30, f"aten::op_{k}")
                    p.launch(f"gemm_{k}", 5)
                    if k < waits:
                        p.synchronise("cudaStreamSynchronize")
        return p

    assert remedy(host_bound(8, lambda _: 30)).startswith("capture the step")
    assert "padded to few shapes" in remedy(host_bound(8, lambda s: 30 + s))
    assert "waits out of the step first" in remedy(host_bound(8, lambda _: 30, waits=4))


def test_late_work_that_nothing_in_the_trace_explains_is_said_to_be_unexplained(tmp_path):
    p = Program()
    for k in range(40):
        p.host(5, "aten::mm")
        p.launch(f"gemm_{k % 4}", 100, after=p.at + (400 if k % 2 else 0))
        p.now[1] = max(p.free.values()) + 1
    alone = next(f for f in judged(tmp_path, p)["findings"] if f["rule"] == "TA210")
    assert (alone["code"], alone["grade"].lower()) == ("no-reason", "hint") and "one stream" in alone["message"]
    p.launch("other_stream", 3, 13)
    joined = next(f for f in judged(tmp_path, p)["findings"] if f["rule"] == "TA210")
    assert "an event, another stream or device" in joined["message"]
