"""Every nanosecond of a span is in one class, whatever the host and the device did."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import assume, given, settings

from tests.builders import TraceBuilder
from tests.kineto_writer import device_event, host_event
from traceanalyzer.analysis.ledger import BUSY, DeviceLedger, DrainedBy, LedgerMaker, items
from traceanalyzer.trace.reader import read

CALLS = (
    "cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaMalloc", "cudaFree", "cuModuleLoadData",
    "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphLaunch", "cudaEventQuery",
)  # fmt: skip
NAMES = (
    "aten::add",
    "ProfilerStep#3",
    "enumerate(DataLoader)#x",
    "f (dynamo_timed)",
    "mine",
    "autograd::engine::evaluate_function: B",
)
OVERHEADS = ("Lazy Function Loading", "Buffer Flush")

time = st.integers(0, 4000)
length = st.integers(0, 600)
host_rows = st.lists(
    st.tuples(st.sampled_from(["cuda_runtime", "cpu_op", "user_annotation", "python_function", "overhead"]), time, length,
              st.integers(0, 9), st.integers(1, 3)),
    max_size=40,
)  # fmt: skip
device_rows = st.lists(
    st.tuples(st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset"]), time, length, st.sampled_from(["k", "ncclDevKernel_AllReduce"]),
              st.integers(7, 8), st.one_of(st.none(), st.integers(0, 39))),
    min_size=1, max_size=25,
)  # fmt: skip


def built(host: list[tuple], device: list[tuple], path) -> DeviceLedger:
    builder = TraceBuilder()
    for number, (category, at, dur, which, tid) in enumerate(host):
        name = CALLS if category == "cuda_runtime" else OVERHEADS if category == "overhead" else NAMES
        builder.events.append(
            host_event(category, name[which % len(name)], 1000 * at, 1000 * dur, 100 + number, tid=tid)
        )
    for kind, at, dur, name, stream, launch in device:
        row = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}[kind]
        builder.events.append(
            device_event(row, name, 1000 * at, 1000 * dur, stream, 100 + launch if launch is not None else 0)
        )
    trace = read(builder.write(path))
    assume(len(trace.activities))  # a row at 0 of length 0 was never filled in
    return LedgerMaker(trace).span(0, np.arange(len(trace.activities)))


def check_sums(ledger: DeviceLedger) -> None:
    assert (ledger.start[1:] == ledger.end[:-1]).all()
    assert (ledger.ns > 0).all()
    if ledger.span_ns:
        assert (ledger.start[0], ledger.end[-1]) == (ledger.start_ns, ledger.end_ns)
    classes = ledger.classes_ns()
    assert sum(classes.values()) == ledger.span_ns
    idle = sum(ns for c, ns in classes.items() if c not in BUSY)
    assert sum(ledger.drained_ns().values()) == idle == int((ledger.idle.end - ledger.idle.start).sum())
    assert DrainedBy.BUSY not in ledger.drained_ns()
    found = items(ledger)
    assert sum(i.ns for i in found) == ledger.span_ns
    assert all(i.longest_ns <= i.ns and sum(i.drained.values()) in (0, i.ns) for i in found)
    assert len({(i.cls, i.name, i.within) for i in found}) == len(found)


@settings(max_examples=150, deadline=None)
@given(host_rows, device_rows)
def test_classes_add_up_to_the_span_and_drained_time_to_the_idle_time(tmp_path_factory, host, device):
    check_sums(built(host, device, tmp_path_factory.mktemp("ledger") / "t.json"))
