"""The time of each step, with its wait, and what made the slowest one slow; one calls dispatch over several threads."""

from __future__ import annotations

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.analysis.pipeline import analyse


def looped(slow=2, n=6, extra=400, cause="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
    """Steps of 200 us with 50 us of kernel and a synchronise; one waits ``extra`` for its data."""
    built, at = trace(), 1000
    for i in range(n):
        length = 200 + (extra if i == slow else 0)
        built.range(f"ProfilerStep#{i}", at, length)
        if i == slow:
            built.host("user_annotation", cause, at + 1, extra)
        begin = at + length - 150
        built.call(begin, begin + 10, 50).sync(begin + 20, 45)
        at += length
    return built


def test_a_steps_time_is_its_host_range_with_the_wait_in_it(tmp_path):
    (steps,) = ta.analyze(looped().write(tmp_path / "t.json")).to_dict()["steps"]
    assert (steps["name"], steps["n"], steps["p50_us"], steps["wait_p50_us"]) == ("ProfilerStep", 6, 200, 45)
    assert steps["p50_ci95_us"] == (200, 600) and steps["busy_p50_us"] == 50
    assert steps["steps_us"] == [200, 200, 600, 200, 200, 200]


def test_the_slowest_step_says_what_it_had_more_of(tmp_path):
    slowest = ta.analyze(looped().write(tmp_path / "t.json")).to_dict()["steps"][0]["slowest"]
    assert (slowest["index"], slowest["us"], slowest["over_p50_us"]) == (2, 600, 400)
    assert slowest["cause"] == "data_loading" and slowest["cause_us"] == pytest.approx(400, abs=1)


def test_equal_steps_have_no_slow_cause(tmp_path):
    slowest = ta.analyze(looped(extra=0).write(tmp_path / "t.json")).to_dict()["steps"][0]["slowest"]
    assert (slowest["cause"], slowest["cause_us"]) == ("", None)


def test_without_marks_steps_are_the_calls_of_the_pattern(tmp_path):
    report = ta.analyze(trace().loop(8, 40, 5, 10).write(tmp_path / "t.json"))
    assert [(s["method"], s["n"], s["p50_us"]) for s in report.to_dict()["steps"]] == [("repeating kernels", 7, 40)]
    assert report.steps["p50_us"].tolist() == [40]


def backward(threads, n=8, gap=0):
    """Steps of ten launches 20 us apart, the last five on another thread (backward); ``gap`` us between the steps."""
    built = trace()
    for i in range(n):
        at = 1000 + (200 + gap) * i
        built.range(f"step#{i}", at, 200)
        for j in range(10):
            built.launch(at + 5 + 20 * j, tid=threads[j // 5]).kernel(at + 10 + 20 * j, 8, name=f"k{j}")
    return built


def op_of(tmp_path, built):
    return analyse(ta.read(built.write(tmp_path / "t.json"))).operations[0]


def test_dispatch_is_taken_over_the_launching_threads_together(tmp_path):
    one, two = (op_of(tmp_path, backward(t)) for t in ((21, 21), (21, 22)))
    assert one.symbols.total_dispatch == two.symbols.total_dispatch == 200_000
    assert two.readings == one.readings and two.readings["wall_sync_once"] == pytest.approx(200_000, rel=0.01)
    assert np.median(two.dispatch_ns) == 200_000


def test_a_ranges_dispatch_holds_nothing_of_what_lies_before_it(tmp_path):
    assert op_of(tmp_path, backward((21, 22), gap=5000)).symbols.total_dispatch == 200_000


def test_waiting_for_the_device_is_no_dispatch(tmp_path):
    built = trace()
    for i in range(8):
        at = 1000 + 500 * i
        built.call(at, at + 5, 300).sync(at + 20, 300)
    op = op_of(tmp_path, built)
    assert op.symbols.total_dispatch == 200_000
    assert op.readings["wall_sync_each"] == pytest.approx(500_000, rel=0.05)


@pytest.mark.parametrize(
    "wait",
    [
        lambda b, at: b.launch(at + 20, 280, api="cudaMemcpy").kernel(at + 296, 2, name="Memcpy DtoH (Device -> Pageable)", kind="memcpy"),
        lambda b, at: [b.host("cuda_driver", "cuStreamQuery", at + 20 + 40 * j, 2) for j in range(8)],
    ],
    ids=["a copy to the host", "polling"],
)  # fmt: skip
def test_other_ways_to_wait_are_no_dispatch_either(tmp_path, wait):
    built = trace()
    for i in range(8):
        at = 1000 + 500 * i
        built.call(at, at + 5, 285)
        wait(built, at)
    op = op_of(tmp_path, built)
    assert op.symbols.total_dispatch == pytest.approx(220_000, abs=5_000)
    assert op.readings["wall_sync_each"] <= 1.05 * np.median(op.period_ns)


def test_a_device_whose_rows_all_have_length_0_has_steps_that_are_all_margin(tmp_path):
    builder = trace()
    for n in range(3):
        builder.range(f"ProfilerStep#{n}", 1000 + 100 * n, 80).call(1010 + 100 * n, 1030 + 100 * n, 0)
    (step,) = ta.analyze(builder.write(tmp_path / "t.json")).data.steps
    assert step.n == 3 and not step.busy_p50_us
