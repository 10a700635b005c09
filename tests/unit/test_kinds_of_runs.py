"""Runs of known causes, as public traces have them: the verdict names the cause, and a clean run has no finding above a note."""

from __future__ import annotations

import json

import pytest

import traceanalyzer as ta
from traceanalyzer.api import report_of
from traceanalyzer.doctor.example import call, cpu_op, fill, host_range, kernel, launch, loop, memcpy
from traceanalyzer.options import AnalysisOptions

OLD = {
    "kernel": "Kernel",
    "cuda_runtime": "Runtime",
    "cpu_op": "Operator",
    "gpu_memcpy": "Memcpy",
    "user_annotation": "Operator",
}


def judged(tmp_path, events):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return report_of(ta.read(path), AnalysisOptions()).to_dict()


def generate(tokens=12, kernels=100, length=20, host=400):
    """A token: kernels queued far ahead, a value read back, and host code until the next token."""
    events, corr = [], 0
    for t in range(tokens):
        at = (kernels * length + host + 40) * t
        for k in range(kernels):
            corr += 1
            events += [
                cpu_op("aten::mm", at + 5 * k, 4.5),
                launch(at + 5 * k + 1, corr),
                kernel(at + 8 + length * k, length, corr, f"layer_{k % 25}"),
            ]
        end, read, corr = at + 8 + kernels * length, at + 5 * kernels + 5, corr + 1
        events += [
            cpu_op("aten::item", read, end + 20 - read), *memcpy(read + 2, end + 1, 2, corr, 3, "DtoH (Device -> Pageable)"),
            call(read + 6, end + 4 - read, "cudaStreamSynchronize", corr + 100_000),
        ]  # fmt: skip
    return events


def graph_decode(steps=12, nodes=60, node=15, host=2000):
    """A step is one graph launch, with host code until the next."""
    events = []
    for t in range(steps):
        at = host * t
        events.append(launch(at, t + 1, 30, "cudaGraphLaunch"))
        events += [kernel(at + 40 + node * k, node - 0.5, t + 1, f"node_{k % 13}") for k in range(nodes)]
    return events


def data_parallel(exposed, steps=8):
    """A step of 20 kernels, with an all-reduce that outlasts them by so much."""
    events, corr = [], 0
    for s in range(steps):
        at = (2050 + exposed) * s
        for k in range(20):
            corr += 1
            events += [launch(at + 4 * k, corr), kernel(at + 8 + 100 * k, 99, corr, f"gemm_{k % 5}")]
        corr += 1
        events += [
            launch(at + 90, corr),
            kernel(at + 1500, 500 + exposed, corr, "ncclDevKernel_AllReduce_Sum_f16_RING_LL", 20),
        ]
        events.append(call(at + 95, 1905 + exposed, "cudaDeviceSynchronize", corr + 10_000))
    return events


def copied_inputs(steps=30, kernels=12):
    """A step copies its input, then computes for less time than that took."""
    events, corr = [], 0
    for i in range(steps):
        at, corr = 1000 * i, corr + 1
        events += memcpy(at, at + 40, 560, corr, 3, "HtoD (Pinned -> Device)")
        for k in range(kernels):
            corr += 1
            events += [launch(at + 4 + 2 * k, corr), kernel(at + 602 + 32 * k, 31, corr, f"layer_{k}")]
    return events


def dispatched(steps=10, kernels=80, host=20):
    """Operators that take the host 20 us each and the device 5."""
    events = []
    for i in range(steps * kernels):
        at, corr = host * i, i + 1
        events += [
            cpu_op(f"aten::op_{i % kernels}", at, host - 1),
            launch(at + host - 6, corr, 3),
            kernel(at + host, 5, corr, f"k_{i % kernels}"),
        ]
    return events


LIMITED = {
    "a value is read back for each token": (generate, "TA302", "aten::item"),
    "graphs with host code between": (graph_decode, "TA201", "between the graph launches"),
    "an all-reduce after each step": (lambda: data_parallel(600), "TA310", "AllReduce"),
    "inputs are copied before each step": (copied_inputs, "TA311", "copies are exposed"),
    "operators that are dispatched too slowly": (dispatched, "TA201", "launches too late"),
}


@pytest.mark.parametrize("run", LIMITED)
def test_the_verdict_names_the_cause(tmp_path, run):
    make, rule, word = LIMITED[run]
    found = judged(tmp_path, make())
    assert found["verdict"]["status"] == "suspect" and word in found["verdict"]["headline"]
    assert max((f for f in found["findings"] if f["cost_share"]), key=lambda f: f["cost_share"])["rule"] == rule


@pytest.mark.parametrize("run", ["a value is read back for each token", "operators that are dispatched too slowly"])
def test_the_categories_of_old_profilers_say_the_same(tmp_path, run):
    make, rule, _ = LIMITED[run]
    found = judged(tmp_path, [e | {"cat": OLD.get(e["cat"], e["cat"])} for e in make()])
    assert rule in {f["rule"] for f in found["findings"] if f["severity"] == "warning"}


CLEAN = {
    "a queue that stays full": lambda: loop(60, 10, 30),
    "a clear before each kernel": lambda: [
        e for i in range(40) for e in (*fill(60 * i, 100 * i + 100, 60, 10 * i + 1), launch(60 * i + 10, 10 * i + 2), kernel(100 * i + 161, 38, 10 * i + 2))
    ],
    "replays of one long graph": lambda: graph_decode(host=910),
    "an all-reduce behind compute": lambda: data_parallel(10),
    "steps that a range marks": lambda: [*loop(60, 10, 30), *(host_range(f"ProfilerStep#{i}", 1000 + 200 * i, 199) for i in range(3))],
}  # fmt: skip


@pytest.mark.parametrize("run", CLEAN)
def test_a_clean_run_has_no_finding_above_a_note(tmp_path, run):
    found = judged(tmp_path, CLEAN[run]())
    assert [f["rule"] for f in found["findings"] if f["severity"] != "note"] == []
    assert found["verdict"]["status"] == "ok"


def test_what_was_recorded_in_place_of_device_rows_is_said(tmp_path):
    ranges = judged(tmp_path, [cpu_op("aten::mm", 10 * i, 9) for i in range(30)])["verdict"]["headline"]
    calls = judged(tmp_path, [call(10 * i, 9, "cudaGetDevice", i + 1) for i in range(3)])["verdict"]["headline"]
    launches = judged(tmp_path, [launch(10 * i, i + 1) for i in range(2)])["verdict"]["headline"]
    assert (
        "only host ranges or operators" in ranges
        and "3 runtime calls" in calls
        and "2 launches were called" in launches
    )
