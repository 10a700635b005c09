"""Worth of runs that no machine ever made: it speaks or gives a reason, and its numbers are numbers."""

from __future__ import annotations

import math

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.builders import TraceBuilder
from tests.kineto_writer import device_event, host_event
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.trace.reader import read

APIS = (
    "cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaEventQuery",
    "cudaFree", "cudaGraphLaunch", "cuModuleLoadData",
)  # fmt: skip
NAMES = ("aten::mm", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "x (dynamo_timed)")
call = st.tuples(
    st.sampled_from(APIS), st.integers(0, 900), st.integers(0, 300), st.integers(1, 3), st.integers(0, 400), st.integers(0, 200),
    st.integers(7, 9), st.integers(0, 3),
)  # fmt: skip
op = st.tuples(st.sampled_from(NAMES), st.integers(0, 900), st.integers(0, 500), st.integers(1, 3))


@settings(max_examples=120, deadline=None)
@given(st.lists(call, min_size=1, max_size=12), st.lists(op, max_size=5), st.integers(4, 7))
def test_every_change_has_a_finite_factor_or_a_reason(tmp_path_factory, calls, ops, units):
    builder = TraceBuilder()
    corr = 100
    for unit in range(units):
        at = 1_000_000 + unit * 1_000_000
        builder.events.append(host_event("user_annotation", "step", at, 990_000))
        for name, begin, dur, tid in ops:
            kind = "cpu_op" if name.startswith("aten") else "user_annotation"
            builder.events.append(host_event(kind, name, at + 1000 * begin, 1000 * dur, tid=tid))
        for api, begin, dur, tid, wait, length, stream, rows in calls:
            corr += 1
            builder.events.append(host_event("cuda_runtime", api, at + 1000 * begin, 1000 * dur, corr, tid=tid))
            for row in range(rows):
                start = at + 1000 * (begin + wait + row * length)
                kind = "memcpy" if "Memcpy" in api else "kernel"
                builder.events.append(device_event(kind, f"k{begin}", start, 1000 * length, stream, corr))
    found = analyse(read(builder.write(tmp_path_factory.mktemp("any") / "t.json")))
    for ledger in found.ledgers:
        worth = ledger.worth
        assert worth.reason or worth.changes
        for change in worth.changes:
            if change.factor is None:
                assert change.reason
            else:
                assert math.isfinite(change.factor) and change.factor > 0
                assert change.period_ns > 0
