"""The trace builder and writer say what a test wrote: no float, no lost row, no clock in the bytes."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import ns, trace
from tests.kineto_writer import category_of, document, stamp, to_json
from tests.queue_sim import Machine

LATE_US = 1_700_000_000_000_000
"""Stamps of older PyTorch lie here, where a float keeps only steps of 0.25 us."""


def rows(text, **wanted):
    events = json.loads(text, parse_float=Decimal, parse_int=Decimal)["traceEvents"]
    return [e for e in events if all(e.get(key) == value for key, value in wanted.items())]


@given(st.integers(-(10**19), 10**19))
def test_a_stamp_is_its_nanoseconds_with_exactly_three_decimals(value):
    text = stamp(value)
    assert Decimal(text) * 1000 == value
    assert len(text.partition(".")[2]) == 3


@pytest.mark.parametrize(("us", "expected"), [(5, 5000), (0.1, 100), (1.005, 1005), ("0.001", 1), (-2.5, -2500)])
def test_microseconds_are_read_as_decimals_not_as_binary_fractions(us, expected):
    assert ns(us) == expected


@given(st.integers(0, 10**6))
def test_times_of_old_traces_survive_to_the_nanosecond(offset):
    start = LATE_US * 1000 + offset
    text = to_json(trace().launch(stamp(start)).kernel(stamp(start + 4001), "3.007").document())
    (kernel,) = rows(text, cat="kernel")
    assert kernel["ts"] * 1000 == start + 4001
    assert kernel["dur"] * 1000 == 3007


def test_stamps_are_written_as_numbers_not_as_text():
    text = to_json(trace().call(0, 8, 10).document())
    assert '"ts": 8.000, "dur": 10.000' in text
    assert "\\u0001" not in text


def test_a_kernel_without_a_correlation_hangs_on_the_launch_before_it():
    text = to_json(trace().call(0, 8, 10).call(20, 28, 10).document())
    calls = [e["args"]["correlation"] for e in rows(text, cat="cuda_runtime")]
    kernels = [e["args"]["correlation"] for e in rows(text, cat="kernel")]
    assert calls == kernels
    assert len(set(calls)) == 2


def test_a_correlation_given_by_hand_is_kept():
    text = to_json(trace().launch(0, 5, corr=1).kernel(8, 10, corr=2).document())
    assert [e["args"]["correlation"] for e in rows(text)] == [1, 2]


def test_synchronise_rows_share_no_correlation_with_work():
    text = to_json(trace().call(0, 8, 10).sync(2, 20).call(30, 38, 10).sync(32, 20).document())
    ids = [e["args"]["correlation"] for e in rows(text, cat="cuda_runtime")]
    assert len(ids) == len(set(ids)) == 4


@given(st.integers(1, 40), st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_loop_is_n_calls_one_period_apart_with_constant_latency(n, period, latency, dur):
    built = trace().loop(n, stamp(period), stamp(latency), stamp(dur), start=7)
    text = to_json(built.document())
    calls, kernels = rows(text, cat="cuda_runtime"), rows(text, cat="kernel")
    assert [c["ts"] * 1000 for c in calls] == [7000 + i * period for i in range(n)]
    assert [k["ts"] * 1000 - c["ts"] * 1000 for c, k in zip(calls, kernels, strict=True)] == [latency] * n
    assert {k["dur"] * 1000 for k in kernels} == {dur}


@pytest.mark.parametrize(
    ("method", "category", "api"),
    [("memset", "gpu_memset", "cudaMemsetAsync"), ("memcpy", "gpu_memcpy", "cudaMemcpyAsync")],
)
def test_copies_and_fills_come_with_their_call(method, category, api):
    text = to_json(getattr(trace(), method)(0, 6, 4).document())
    (call,) = rows(text, cat="cuda_runtime")
    (work,) = rows(text, cat=category)
    assert call["name"] == api
    assert call["args"]["correlation"] == work["args"]["correlation"]


@pytest.mark.parametrize(
    ("api", "category"),
    [
        ("cuLaunchKernel", "cuda_driver"),
        ("cuLaunchKernelEx", "cuda_driver"),
        ("cudaLaunchKernel", "cuda_runtime"),
        ("hipLaunchKernel", "cuda_runtime"),
    ],
)
def test_only_driver_calls_stand_in_the_driver_category(api, category):
    assert category_of(api) == category
    assert rows(to_json(trace().launch(0, api=api).document()))[0]["cat"] == category


def test_a_name_with_quotes_and_other_alphabets_survives():
    name = 'demo_"内核"_\\µ'
    (kernel,) = rows(to_json(trace().call(0, 8, 10, name=name).document()), cat="kernel")
    assert kernel["name"] == name


def test_writing_a_file_twice_gives_the_same_bytes(tmp_path):
    def build(name):
        return trace().range("step", 0, 60).loop(5, 40, 4, 10).sync(220, 20).write(tmp_path / name)

    assert build("a.json").read_bytes() == build("b.json").read_bytes()


def simulated():
    m = Machine(gap=500)
    m.work(3000, "aten::add")
    m.launch("k", 10_000, host_cost=20_000, call=4000)
    m.launch("Memset (Device)", 2000, host_cost=5000, call=1000, kind="memset", api="cudaMemsetAsync")
    m.graph([("a", 3000), ("b", 4000)], host_cost=9000, call=5000, node_gap=700)
    m.sync()
    return m


def test_the_writer_loses_no_row_of_a_simulated_timeline():
    m = simulated()
    text = to_json(document(m))
    written = [e for e in rows(text, ph="X") if e["cat"] in ("kernel", "gpu_memset")]
    assert [(e["name"], e["ts"] * 1000, e["dur"] * 1000) for e in written] == [
        (r.name, r.start, r.end - r.start) for r in m.device
    ]
    calls = rows(text, cat="cuda_runtime")
    assert [(e["ts"] * 1000, e["dur"] * 1000) for e in calls] == [
        (r.start, r.end - r.start) for r in m.host if r.kind == "call"
    ]


def test_graph_nodes_share_the_correlation_of_their_launch_and_are_told_apart_by_node():
    text = to_json(document(simulated()))
    nodes = [e for e in rows(text, cat="kernel") if "graph node id" in e["args"]]
    (launch,) = rows(text, name="cudaGraphLaunch")
    assert {e["args"]["correlation"] for e in nodes} == {launch["args"]["correlation"]}
    assert [e["args"]["graph node id"] for e in nodes] == [1, 2]


def test_a_simulated_trace_says_that_it_is_simulated():
    made = json.loads(to_json(document(Machine(), simulated=True)))
    assert made["simulated"] is True
    assert "Simulated" in made["deviceProperties"][0]["name"]
