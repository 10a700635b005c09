"""Analyses against hand-made traces and against the independent simulator."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.builders import trace
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.api import report_of


def analysed(tmp_path, builder):
    return analyse(ta.read(builder.write(tmp_path / "t.json")))


def report(tmp_path, builder, **selection):
    return ta.analyze(builder.write(tmp_path / "t.json"), **selection).data


def simulated(tmp_path_factory, machine):
    path = tmp_path_factory.mktemp("sim") / "t.json"
    path.write_text(to_json(document(machine)), encoding="utf-8")
    return ta.analyze(path).data


# -- waits ----------------------------------------------------------------------------------------------


def test_a_gap_splits_into_host_and_launch_wait(tmp_path):
    found = analysed(tmp_path, trace().call(0, 5, 10).call(25, 31, 10)).waits
    assert (found.gap_ns[1], found.host_wait_ns[1], found.launch_wait_ns[1]) == (16_000, 10_000, 6_000)
    assert found.starved.tolist() == [False, True]


def test_a_launch_before_the_stream_is_idle_is_no_host_wait(tmp_path):
    found = analysed(tmp_path, trace().call(0, 5, 10).call(14, 20, 10)).waits
    assert (found.gap_ns[1], found.host_wait_ns[1], found.launch_wait_ns[1]) == (5_000, 0, 5_000)
    assert not found.starved.any()


def test_wait_in_and_behind_a_synchronise_is_sync_wait(tmp_path):
    built = trace().call(0, 5, 10).sync(3, 18).call(40, 46, 10).call(70, 76, 10)
    found = analysed(tmp_path, built).waits
    # idle from 15; the synchronise lies over 3..21 and no launch between: all of 15..40 is its doing
    assert found.sync_wait_ns.tolist() == [0, 25_000, 0]
    assert found.host_wait_ns.tolist() == [0, 25_000, 14_000]


def test_host_wait_before_the_synchronise_is_not_its(tmp_path):
    found = analysed(tmp_path, trace().call(0, 5, 10).sync(30, 5).call(50, 56, 10)).waits
    assert (found.host_wait_ns[1], found.sync_wait_ns[1]) == (35_000, 20_000)


def test_kernel_gaps_ignore_copies_between(tmp_path):
    data = report(tmp_path, trace().call(0, 5, 10).memcpy(10, 20, 5).call(20, 30, 10))
    stream = data.streams[0]
    assert (stream.gap_total_us, stream.kernel_gap_total_us) == (10.0, 15.0)


def test_overlapping_rows_of_a_stream_have_no_negative_gap(tmp_path):
    data = report(tmp_path, trace().call(0, 10, 20).call(1, 28, 10).call(2, 50, 5))
    stream = data.streams[0]
    assert (stream.gap_total_us, stream.overlaps, stream.overlap_max_us) == (12.0, 1, 2.0)


def test_an_event_wholly_inside_its_predecessor_does_not_move_the_end_back(tmp_path):
    found = analysed(tmp_path, trace().call(0, 10, 50).call(1, 20, 5).call(2, 61, 5)).waits
    assert found.gap_ns.tolist() == [0, 0, 1_000]


# -- devices and processes ------------------------------------------------------------------------------


def test_busy_is_the_union_over_streams(tmp_path):
    data = report(tmp_path, trace().call(0, 10, 20, stream=7).call(1, 15, 20, stream=8))
    device = data.devices[0]
    assert (device.busy_us, device.self_time_us, device.span_us, device.overlap_us) == (25.0, 40.0, 25.0, 15.0)


def merged_ranks(second_pid=200, shift=0, device=1):
    built = trace()
    for rank, pid in enumerate((100, second_pid)):
        for i in range(4):
            at = 100 * i + shift * rank
            built.launch(at, corr=i + 1, pid=pid, tid=pid)
            built.kernel(at + 10 + rank, 5, corr=i + 1, device=device * rank)
    return built


def test_ids_are_scoped_by_process_in_merged_ranks(tmp_path):
    data = report(tmp_path, merged_ranks())
    assert data.trace.linked == 8 and data.trace.launches == 8
    assert [(d.device, d.launches_counted) for d in data.devices] == [(0, 3), (1, 3)]
    assert {(k.device, k.launch_latency_p50_us) for k in data.kernels} == {(0, 10.0), (1, 11.0)}


def test_ranks_on_one_device_number_are_kept_apart(tmp_path):
    data = report(tmp_path, merged_ranks(device=0, shift=10_000_000))
    if data.trace.linked == 8:
        assert len(data.devices) == 2 and all(s.overlaps == 0 for s in data.streams)
    else:
        assert data.coverage.reasons


def test_causality_settles_ranks_whose_rows_are_mixed(tmp_path):
    built = merged_ranks(shift=50)
    order = np.random.default_rng(1).permutation(len(built.events))
    built.events = [built.events[i] for i in order]
    data = report(tmp_path, built)
    # rank 1 runs 50 us later: rank 0's kernels start before rank 1's launches, so only one pairing is possible for them
    assert data.trace.linked >= 4
    assert all(k.launch_latency_p50_us is None or k.launch_latency_p50_us < 60 for k in data.kernels)


def test_several_configurations_of_a_name_are_told_apart(tmp_path):
    built = trace()
    for i in range(8):
        built.call(100 * i, 100 * i + 10, 5 if i % 2 else 50, grid=(1 + i % 2, 1, 1))
    row = report(tmp_path, built).kernels[0]
    assert [(v.count, v.p50_us) for v in row.variants] == [(4, 50.0), (4, 5.0)]
    assert row.config is None and "grid 1x1x1" in row.variants[0].config


# -- selection ------------------------------------------------------------------------------------------


def test_work_belongs_to_a_range_by_its_launch_call(tmp_path):
    built = trace().range("step", 100, 50).call(90, 120, 7).call(110, 200, 5).call(160, 210, 3)
    data = report(tmp_path, built, range="step")
    assert (data.trace.kernels, data.trace.kernel_total_us) == (1, 5.0)
    assert data.trace.selection == {"range_name": "step", "range_instances": 1}


@pytest.mark.parametrize(
    "selection",
    [{"range": "setp"}, {"device": 5}, {"stream": 99}, {"kernel": "("}],
    ids=["range", "device", "stream", "regex"],
)
def test_a_selection_of_nothing_is_refused_with_what_there_is(tmp_path, selection):
    from traceanalyzer.errors import OptionError

    with pytest.raises(OptionError) as error:
        report(tmp_path, trace().range("step", 0, 50).call(0, 5, 5), **selection)
    assert error.value.hint


def test_the_kernel_filter_narrows_the_tables_only(tmp_path):
    built = trace().call(0, 5, 5, name="aa").call(20, 25, 5, name="bb")
    data = report(tmp_path, built, kernel="^a")
    assert [k.name for k in data.kernels] == ["aa"] and data.trace.kernels == 2


# -- dispatch -------------------------------------------------------------------------------------------


def test_steady_dispatch_leaves_out_synchronises_loads_and_the_profiler_with_counts(tmp_path):
    built = trace()
    for i in range(12):
        built.call(100 * i, 100 * i + 5, 5)
    built.sync(150, 10).launch(250, 30, api="cuModuleLoadData").host("overhead", "Buffer Flush", 350, 45)
    built.range("ProfilerStep#3", 540, 400)
    thread = report(tmp_path, built).threads[0]
    assert thread.left_out == {"after a synchronise": 1, "module load": 1, "profiler overhead": 1, "iteration start": 1}
    assert (thread.steady_intervals, thread.dispatch_p50_us) == (7, 100.0)


def test_kernel_dispatch_needs_no_device_rows(tmp_path):
    built = trace().launch(0).launch(10).launch(20).kernel(30, 5)
    thread = report(tmp_path, built).threads[0]
    assert (thread.launches, thread.kernel_launches, thread.kernel_dispatch_p50_us) == (1, 3, 10.0)


# -- invariances ----------------------------------------------------------------------------------------

rows = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=2, max_size=15)


def machine_of(found, start=1_000_000, **settings):
    m = Machine(now=start, **settings)
    for d, k in found:
        m.launch("k", k * 1000, host_cost=d * 1000, call=500)
    return m


@settings(max_examples=25)
@given(rows, st.integers(0, 10**15))
def test_shifting_all_times_changes_no_number(tmp_path_factory, found, shift):
    a = simulated(tmp_path_factory, machine_of(found)).to_dict()
    b = simulated(tmp_path_factory, machine_of(found, 1_000_000 + shift)).to_dict()
    for name in ("kernels", "streams", "threads", "devices"):
        assert a[name] == b[name]


@settings(max_examples=25)
@given(rows, st.randoms())
def test_the_order_of_rows_in_the_file_does_not_matter(tmp_path_factory, found, random):
    path = tmp_path_factory.mktemp("order") / "t.json"
    doc = document(machine_of(found))
    path.write_text(to_json(doc), encoding="utf-8")
    a = ta.analyze(path).to_dict()
    random.shuffle(doc["traceEvents"])
    path.write_text(to_json(doc), encoding="utf-8")
    assert ta.analyze(path).to_dict() == a


@settings(max_examples=25)
@given(rows)
def test_waits_add_up_and_busy_is_at_most_the_sum(tmp_path_factory, found):
    data = simulated(tmp_path_factory, machine_of(found))
    stream, device, idle = data.streams[0], data.devices[0], data.idle[0]
    assert stream.host_wait_us + stream.launch_wait_us == pytest.approx(stream.gap_total_us)
    assert device.busy_us <= device.self_time_us and device.busy_us + device.idle_us == pytest.approx(device.span_us)
    assert idle.host_us + idle.launch_us == pytest.approx(idle.idle_us)
    assert idle.long_us + idle.short_us == pytest.approx(idle.idle_us)


@settings(max_examples=40)
@given(st.integers(2, 80), st.integers(2, 80), st.integers(0, 2))
def test_a_steady_loop_reads_max_of_dispatch_and_kernel(tmp_path_factory, d, k, call):
    m = Machine()
    for _ in range(40):
        m.launch("k", k * 1000, host_cost=d * 1000, call=min(call, d) * 1000)
    row = simulated(tmp_path_factory, m).kernels[0]
    assert row.p50_us == k and row.dispatch_p50_us == d
    assert row.event_reading_us == max(d, k)
    if d > k + 5:
        assert row.queue == "cpu-bound"
    if d < k:
        assert row.queue == "gpu-bound"


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(2, 60), st.integers(1, 20))
def test_a_synchronise_per_call_reads_the_sum(tmp_path_factory, d, k, sync):
    m = Machine(sync_cost=sync * 1000)
    for _ in range(20):
        m.launch("k", k * 1000, host_cost=d * 1000, call=1000)
        m.sync()
    row = simulated(tmp_path_factory, m).kernels[0]
    assert row.event_reading_us == d + k
    assert row.queue == "sync-bound"


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_a_queue_that_stays_full_is_never_cpu_bound_however_short_its_kernels(tmp_path_factory, kernel):
    m = Machine()
    for i in range(300):
        # a burst ahead of the device, then a host as slow as the device: backlog never runs out
        m.launch("k", kernel * 1000, host_cost=100 if i < 100 else kernel * 1000, call=50)
    data = simulated(tmp_path_factory, m)
    assert data.devices[0].queue == "gpu-bound" and not [f for f in data.findings if f.rule == "TA201"]


def test_queue_depth_counts_what_waits_and_runs(tmp_path_factory):
    m = Machine(depth=50)
    for _ in range(200):
        m.launch("k", 100_000, host_cost=5_000, call=1000)
    data = simulated(tmp_path_factory, m)
    assert 49 <= data.streams[0].queue_depth_max <= 51


def test_copies_that_keep_the_device_busy_are_not_cpu_bound(tmp_path):
    built = trace()
    for i in range(30):
        at = 300 * i
        built.memcpy(at, at + 10, 200).call(at + 240, at + 250, 10)
    data = report(tmp_path, built)
    assert data.devices[0].queue != "cpu-bound"


def test_a_trace_is_let_go_with_its_report_and_no_search_for_cycles(tmp_path):
    """The command line does not look for cycles: a folder of runs would be in memory as a whole."""
    made = trace()
    for i in range(40):
        made.call(100 * i, 100 * i + 8, 12)
    read = ta.read(made.write(tmp_path / "t.json"))
    held = weakref.ref(read)
    gc.collect()
    gc.disable()
    try:
        data = report_of(read).data
        del read
        assert data.kernels
        assert held() is None
    finally:
        gc.enable()
