"""Iterations, symbols, the ladder and claims against simulated runs of known truth."""

from __future__ import annotations

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine, reading
from traceanalyzer.analysis.claims import explain
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.errors import OptionError
from traceanalyzer.options import parse_claim


def machine(jitter=0.0, **settings) -> Machine:
    return Machine(jitter=jitter, rng=np.random.default_rng(7), **settings)


def run(m: Machine, op, n=60, sync=False, clear=0) -> Machine:
    for _ in range(n):
        if clear:
            m.launch("Memset (Device)", clear, host_cost=6000, call=3000, kind="memset", api="cudaMemsetAsync")
        for j, (d, k) in enumerate(op):
            m.launch(f"kernel_{j}", k, host_cost=d, call=min(d, 3000))
        if sync:
            m.sync()
    m.sync()
    return m


def analysed(tmp_path, m: Machine):
    path = tmp_path / "t.json"
    path.write_text(to_json(document(m)), encoding="utf-8")
    return analyse(ta.read(path))


@pytest.mark.parametrize(
    "op",
    [
        [(40_000, 10_000)],
        [(10_000, 45_000)],
        [(20_000, 5_000), (20_000, 6_000), (20_000, 4_000)],
        [(40_000, 12_000), (5_000, 9_000)],
    ],
)
def test_symbols_are_found_within_2_percent_in_spite_of_5_percent_jitter(tmp_path, op):
    found = analysed(tmp_path, run(machine(0.05), op, n=200)).operations
    assert len(found) == 1 and len(found[0].worked) >= 195
    s = found[0].symbols
    # the pattern may begin at another of the operation's launches when their waits are alike
    shifts = [list(np.roll(np.array(op), r, axis=0)) for r in range(len(op))]
    assert any(
        list(s.dispatch) == pytest.approx([d for d, _ in o], rel=0.02)
        and list(s.kernels) == pytest.approx([k for _, k in o], rel=0.02)
        for o in shifts
    )


@pytest.mark.parametrize("op", [[(40_000, 10_000)], [(20_000, 12_000)], [(10_000, 45_000)]])
@pytest.mark.parametrize(
    "protocol",
    ["wall_sync_each", "wall_sync_once", "event_pair_sync", "event_loop", "profiler_self_time", "wall_nosync"],
)
def test_the_ladder_says_what_a_run_under_each_protocol_reads(tmp_path, op, protocol):
    analysis = analysed(tmp_path, run(machine(), op, n=80, sync=True))
    predicted = analysis.operations[0].readings[protocol]
    # the trace shows no event records, so they are taken as free; the synchronise cost is read off the trace
    read = reading(protocol, op, Machine(record_cost=0, depth=10**9), n=2000)
    assert predicted == pytest.approx(read, rel=0.01)


def test_both_routes_agree_on_a_steady_run(tmp_path):
    op = analysed(tmp_path, run(machine(), [(40_000, 10_000)])).operations[0]
    for protocol, replay in op.replays.items():
        if replay is not None and protocol != "wall_nosync":
            assert replay == pytest.approx(op.readings[protocol], rel=0.02), protocol


def test_a_clear_leads_its_call_and_counts_in_no_self_time(tmp_path):
    op = analysed(tmp_path, run(machine(), [(40_000, 9_000)], clear=85_000)).operations[0]
    assert np.median(op.self_ns) == 9_000 and np.median(op.clear_ns) == 85_000


@pytest.mark.parametrize(("kernel", "backlog_us"), [(10_000, 0), (45_000, 29.5 * 35)])
def test_the_backlog_is_the_work_queued_when_a_call_arrives(tmp_path, kernel, backlog_us):
    """Of 60 calls the queue grows by kernel less dispatch each; the median call is the thirtieth."""
    path = tmp_path / "t.json"
    path.write_text(to_json(document(run(machine(), [(10_000 if backlog_us else 40_000, kernel)]))), encoding="utf-8")
    symbols = ta.analyze(path).to_dict()["ops"][0]["symbols"]
    assert symbols["backlog_us"] == pytest.approx(backlog_us, abs=40)


def test_a_call_is_named_after_its_work_not_after_the_clear(tmp_path):
    op = analysed(tmp_path, run(machine(), [(40_000, 10_000)], clear=85_000)).operations[0]
    assert op.iterations.name == "kernel_0"


def test_iterations_whose_launches_group_otherwise_do_not_break_the_symbols(tmp_path):
    """The same kernels, in graph launches that own two rows and in plain launches that own one."""
    events = trace()
    for i in range(30):
        at = 1000 + 200 * i
        events.launch(at, api="cudaGraphLaunch" if i % 3 == 0 else "cudaLaunchKernel").kernel(at + 5, 10, name="a")
        if i % 3:
            events.launch(at + 8)
        events.kernel(at + 16, 10, name="b")
        events.range("call", at - 5, 60)
    analysis = analyse(ta.read(events.write(tmp_path / "t.json")))
    op = next(o for o in analysis.operations if o.iterations.method == "repeating range")
    assert len(op.worked) == 30 and op.symbols is not None and len(op.symbols.kernels) == 2


def test_a_few_irregular_iterations_at_head_and_tail_are_left_out(tmp_path):
    m = machine()
    for i in range(3):
        m.launch(f"init_{i}", 5_000, host_cost=30_000, call=2000)
    run(m, [(30_000, 8_000), (10_000, 6_000)], n=40)
    m.launch("final", 5_000, host_cost=30_000, call=2000)
    op = analysed(tmp_path, m).operations[0]
    assert len(op.worked) >= 39 and op.iterations.left_out <= 6
    assert np.median(op.self_ns) == 14_000


def test_operations_one_after_the_other_are_told_apart(tmp_path):
    m = machine()
    for name, k in (("alpha", 8_000), ("beta", 12_000)):
        for _ in range(30):
            m.launch(name, k, host_cost=30_000, call=2000)
    found = {o.iterations.name: np.median(o.self_ns) for o in analysed(tmp_path, m).operations}
    assert found == {"alpha": 8_000, "beta": 12_000}


def test_ranges_that_repeat_win_over_the_pattern(tmp_path):
    built = trace()
    for i in range(6):
        built.range(f"step#{i}", 100 * i, 80).call(100 * i + 5, 100 * i + 12, 9).call(100 * i + 30, 100 * i + 36, 4)
    op = analyse(ta.read(built.write(tmp_path / "t.json"))).operations[0]
    assert (op.iterations.method, op.iterations.name, len(op.worked)) == ("repeating range", "step", 6)
    assert np.median(op.self_ns) == 13_000


def test_profiler_steps_are_used_when_nothing_better_is_there(tmp_path):
    built = trace()
    for i in range(4):
        built.range(f"ProfilerStep#{i}", 100 * i, 90).call(100 * i + 5, 100 * i + 12, 9)
    assert analyse(ta.read(built.write(tmp_path / "t.json"))).operations[0].iterations.method == "ProfilerStep"


def test_capture_annotations_come_first(tmp_path):
    built = trace()
    for i in range(4):
        built.range("ProfilerStep#1", 100 * i, 90).range("traceanalyzer.call:my_op", 100 * i + 1, 50).call(
            100 * i + 5, 100 * i + 12, 9
        )
    iterations = analyse(ta.read(built.write(tmp_path / "t.json"))).operations[0].iterations
    assert (iterations.method, iterations.name, iterations.certainty) == ("capture annotation", "my_op", "certain")


def test_no_repetition_is_an_abstention_with_its_reason(tmp_path):
    built = trace()
    for i in range(12):
        built.call(50 * i, 50 * i + 5, 10, name=f"kernel_{i}")
    data = ta.analyze(built.write(tmp_path / "t.json")).data
    assert not data.ops and any("no pattern of launches repeats" in a.reason for a in data.abstentions)


# -- claims ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "kind", "label"),
    [
        ("10us", "confirmed", "device self-time"),
        ("10020ns", "confirmed", "device self-time"),
        ("40us", "another", "dispatch"),
        ("50us", "another", "event pair, synchronise each call"),
        ("60us", "another", "wall clock, synchronise each call"),
        ("0.6ms", "another", "the total of 60 calls"),
        ("2.4ms", "another", "the total of 60 calls by"),
        ("0.15us", "impossible", ""),
        ("23us", "unexplained", ""),
    ],
)
def test_a_claim_is_told_for_what_it_is(tmp_path, claim, kind, label):
    operations = analysed(tmp_path, run(machine(), [(40_000, 10_000)])).operations
    found = explain(parse_claim(claim), operations)
    assert found.kind == kind, found.matches
    assert not label or any(label in name for name, _ in found.matches)


def test_enqueue_time_is_told_from_impossible(tmp_path):
    operations = analysed(tmp_path, run(machine(), [(10_000, 45_000)])).operations
    found = explain(parse_claim("10us"), operations)
    assert found.kind == "another" and any("enqueue" in name or "dispatch" in name for name, _ in found.matches)


def test_one_kernel_of_several_and_the_clear_included(tmp_path):
    operations = analysed(tmp_path, run(machine(), [(30_000, 12_000), (30_000, 21_000)])).operations
    assert any("alone" in name for name, _ in explain(parse_claim("12us"), operations).matches)
    operations = analysed(tmp_path, run(machine(), [(40_000, 9_000)], clear=85_000)).operations
    assert any("clear included" in name for name, _ in explain(parse_claim("94us"), operations).matches)


@pytest.mark.parametrize("text", ["", "fast", "9.8", "-3us", "0us", "1e999us x"])
def test_a_claim_that_is_no_time_is_refused(text):
    with pytest.raises(OptionError):
        parse_claim(text)


def test_units_and_names_of_claims():
    assert parse_claim("9.8us:my_op").ns == 9800 and parse_claim("9.8us:my_op").operation == "my_op"
    assert parse_claim("1ms").ns == parse_claim("1000 \u00b5s").ns == 1_000_000


def test_two_devices_with_one_cause_are_told_apart_and_named_once_in_the_verdict(tmp_path):
    built = trace()
    for i in range(60):
        built.launch(1000 + 40 * i).kernel(1005 + 40 * i, 10, device=i % 2)
    report = ta.analyze(built.write(tmp_path / "t.json")).to_dict()
    messages = [f["message"] for f in report["findings"] if f["rule"] == "TA201"]
    assert sorted(m[:12] for m in messages) == ["On device 0,", "On device 1,"]
    assert report["verdict"]["headline"].count("CPU-bound queue") == 1


def test_a_launch_whose_row_has_no_usable_time_is_not_called_lost_by_the_profiler(tmp_path):
    document = trace().loop(30, 40, 5, 10).document()
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    for event in kernels[10:13]:
        event["dur"] = -5
    path = tmp_path / "t.json"
    path.write_text(to_json(document), encoding="utf-8")
    lost = next(f for f in ta.analyze(path).to_dict()["findings"] if f["rule"] == "TA103")
    assert "3 device rows in the file were left out" in lost["message"]


def test_the_period_of_replays_that_start_out_of_order_is_from_start_to_start(tmp_path):
    t = trace()
    starts = (100, 700, 400, 1000)  # the third is called after the second, and starts before it on a stream of its own
    for i, start in enumerate(starts):
        t.launch(20 * i, api="cudaGraphLaunch")
        for node in range(3):
            t.kernel(start + 20 * node, 15, name=f"node_{node}", stream=7 + i % 2)
    replays = [o for o in ta.analyze(t.write(tmp_path / "t.json")).to_dict()["ops"] if o["method"] == "graph launch"]
    assert [o["period_p50_us"] for o in replays] == [300]
