"""What a cause is called, what it costs alone, and on which device it leads: words and sums that the rows bear out."""

from __future__ import annotations

import pytest

from tests.unit.test_verdict import read, reported, steps
from traceanalyzer.api import report_of
from traceanalyzer.doctor.example import call, cpu_op, host_range, kernel, launch, memcpy, overhead
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.text import text_report


def on_device(event, device):
    return event | {"pid": device, "args": event["args"] | {"device": device}}


@pytest.mark.parametrize("operators", [False, True])
def test_nothing_is_outside_of_operators_that_nobody_recorded(tmp_path, operators):
    between = [cpu_op("aten::quick", 1, 2)] if operators else []
    found = reported(tmp_path, steps(8, 800, *between))
    (row,) = [row for row in found["ledger"] if row["window"] == "span"]
    words = "outside of operators" if operators else "outside of API calls"
    assert row["operators_recorded"] is operators
    assert words in found["verdict"]["headline"]
    text = text_report(report_of(read(tmp_path, steps(8, 800, *between)), AnalysisOptions()).data, RenderSettings())
    assert ("host outside operators" if operators else "host outside API calls") in text


def test_what_is_long_for_the_launches_of_a_run_is_no_matter_of_fewer_launches(tmp_path):
    def run(step):
        """Bursts of eight launches ``step`` us apart, a pause of 60 us behind each."""
        events, at, free = [], 0.0, 0.0
        for i in range(320):
            start = max(at + 4, free)
            free = start + 6
            events += [launch(at, i + 1, 1), kernel(start, 6, i + 1, f"k{i % 7}_{i % 3}")]
            at = free + 60 if i % 8 == 7 else at + step
        return reported(tmp_path, events)["verdict"]["headline"]

    # 60 us are long where a launch takes 2 us, and the usual pace where it takes 40
    assert "look at what the program does there" in run(2).lower()
    assert "look at what the program does there" not in run(40).lower()


def waits_and_copies(period, idle_after, staged):
    """Twelve rounds of ``period`` us: a value is read back and the next launch comes ``idle_after`` us later; a copy is staged for ``staged`` us in its call."""
    events = []
    for i in range(12):
        at, corr = period * i, 10 * i
        events += [launch(at, corr + 1), kernel(at + 5, 100, corr + 1)]
        events += memcpy(at + 20, at + 106, 2, corr + 2, 90, "DtoH (Device -> Pageable)")
        again = at + 110 + idle_after
        events += [launch(again, corr + 3), kernel(again + 5, 20, corr + 3, "second")]
        events += memcpy(again + 30, again + 30 + staged, 10, corr + 4, staged + 12)
        events += [launch(again + 45 + staged, corr + 5), kernel(again + 50 + staged, 100, corr + 5, "third")]
    return events


def costs_of(found):
    return {f["code"]: f["cost_us"] for f in found["findings"] if f["rule"] == "TA302"}


def test_a_read_back_and_a_copy_call_cost_what_each_costs_alone(tmp_path):
    found = reported(tmp_path, waits_and_copies(1000, 190, 500))
    mine = costs_of(found)
    (row,) = [row for row in found["ledger"] if row["window"] == "span"]
    assert set(mine) == {"read-back", "copy-call"}
    # what is behind waits is no more than the ledger says that waits drained
    assert mine["read-back"] <= row["drained_by"]["wait"]
    # the first 10 us of the 500 inside the call pass before "second" has ended
    assert mine["copy-call"] == pytest.approx(12 * 500, rel=0.02)


@pytest.mark.parametrize(("idle_after", "staged", "first", "second"), [
    (600, 900, "Suspect: copy calls hold the device up", "Also: reading values back drains the queue"),
    (900, 600, "Suspect: reading values back drains the queue", "Also: copy calls hold the device up"),
])  # fmt: skip
def test_of_two_costs_of_one_rule_the_larger_leads_and_both_are_named(tmp_path, idle_after, staged, first, second):
    events = waits_and_copies(2000, idle_after, staged)
    found = reported(tmp_path, events)
    assert set(costs_of(found)) == {"read-back", "copy-call"}
    assert found["verdict"]["headline"].startswith(first) and second in found["verdict"]["headline"]
    text = text_report(report_of(read(tmp_path, events), AnalysisOptions()).data, RenderSettings())
    assert "TA302 hidden-sync: read-back" in text and "TA302 hidden-sync: copy-call" in text


def test_the_profilers_own_work_is_a_warning_where_it_is_most_of_the_span(tmp_path):
    def run(length):
        events = []
        for i in range(40):
            at = 10 * i + (length if i > 20 else 0)
            events += [launch(at, i + 1), kernel(at + 4, 4, i + 1)]
        return reported(tmp_path, [*events, overhead("Activity Buffer Request", 203, length)])

    much = run(3000)
    found = next(f for f in much["findings"] if f["rule"] == "TA106")
    assert found["severity"] == "warning" and found["cost_us"] == pytest.approx(3000, rel=0.02)
    assert "the profiler itself holds the device up" in much["verdict"]["headline"]
    little = next(f for f in run(20)["findings"] if f["rule"] == "TA106")
    assert little["severity"] == "note" and little["cost_us"] is None


def test_a_fifth_of_the_span_without_a_cause_is_said_with_the_cause_that_leads(tmp_path):
    # two launches whose rows were not recorded, before a pause of 3 ms
    lost = [launch(1, 90_001), launch(5, 90_002)]
    found = reported(tmp_path, steps(8, 3000, *lost))
    (row,) = [row for row in found["ledger"] if row["window"] == "span"]
    share = row["classes"]["unrecorded"] / row["span_us"]
    assert share > 0.2
    assert f"{share:.0%} of the span has no cause in the trace".replace("%", " %", 1) in found["verdict"]["headline"]


def test_of_several_devices_the_one_that_loses_most_time_leads(tmp_path):
    events = []
    for device, n in ((0, 60), (1, 20)):
        for i in range(n):
            at, corr = 1000 * i + 300 * device, 1000 * device + i + 1
            # device 1 loses a larger part of a span a third as long
            length = 100 if device == 0 else 60
            events += [launch(at, corr, tid=device + 1), on_device(kernel(at + 5, length, corr), device)]
    headline = reported(tmp_path, events)["verdict"]["headline"]
    assert "device 0" in headline and "device 1" not in headline


def test_causes_put_the_ranges_together_and_add_up(tmp_path):
    between = [host_range("save", 1, 300), host_range("load", 320, 200), cpu_op("aten::a", 600, 50)]
    found = reported(tmp_path, steps(8, 800, *between))
    (row,) = [row for row in found["ledger"] if row["window"] == "span"]
    sums = {}
    for item in row["items"]:
        sums[item["class"], item["name"]] = sums.get((item["class"], item["name"]), 0) + item["us"]
    assert row["items_left_out"] == 0
    for cause in row["causes"]:
        assert cause["us"] == pytest.approx(sums[cause["class"], cause["name"]])
        assert cause["longest_us"] <= cause["us"] and sum(cause["drained_by"].values()) == pytest.approx(
            0 if cause["class"] == "compute" else cause["us"]
        )
    host = next(c for c in row["causes"] if c["class"] == "between_ops")
    assert host["ranges"] == 3 and host["within"] in ("save", "load")
    # seven gaps, in each of which it is met once, whatever the range
    assert host["count"] == 7
    assert [c["us"] for c in row["causes"]] == sorted((c["us"] for c in row["causes"]), reverse=True)


def test_a_bare_synchronise_reads_nothing_back(tmp_path):
    events = []
    for i in range(8):
        events += [launch(400 * i, 10 * i + 1), kernel(400 * i + 5, 100, 10 * i + 1)]
        events += [call(400 * i + 10, 100, "cudaDeviceSynchronize", 10 * i + 2)]
    found = reported(tmp_path, events)
    assert not [f for f in found["findings"] if f["rule"] == "TA302"]
