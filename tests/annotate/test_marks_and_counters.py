"""What is drawn: marks where the report says its evidence is, arrows that end in it, counters by the report's definitions."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.annotate.test_copy import annotate, as_compared, content, loop, report
from tests.builders import trace
from tests.conftest import report_on, shared_files
from tests.kineto_writer import to_json
from traceanalyzer.analysis import annotations as of
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.trace.reader import read

SAMPLES = ["samples/cpu_bound_loop.json", "samples/sync_in_loop.json", "samples/do_bench_clear.json"]
# without the three largest: they hold more rows than the others, and none of another kind
REAL = sorted(shared_files("traces/*.json.gz"), key=lambda path: path.stat().st_size)[:-3]
CAUSES = 1_000_000
"""Tracks from here on show why a device idles."""


def events_of(source, tmp_path, *options):
    """The original's events and ours, times as decimals."""
    out = tmp_path / "copy.json"
    result = annotate(source, out, *options)
    assert result.exit_code == 0, result.output
    document = json.loads(content(out), parse_float=Decimal, parse_int=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    ours = [e for e in events if e.get("cat") == "traceanalyzer"]
    return [e for e in events if e.get("cat") != "traceanalyzer"], ours, result


@pytest.mark.parametrize("path", [*SAMPLES, *REAL], ids=lambda p: str(p).split("/")[-1])
def test_marks_arrows_and_causes_are_those_of_the_report_and_the_copy_reads_the_same(path, tmp_path):
    """One copy and one report a trace: they are what takes time."""
    theirs, ours, _ = events_of(path, tmp_path)
    assert report(tmp_path / "copy.json") == as_compared(report_on(path))
    data = report_on(path).data
    assert_every_mark_lies_where_the_report_says_by_the_clock_of_a_viewer(theirs, ours, data)
    assert_every_arrow_starts_in_its_mark_and_ends_at_the_start_of_the_row(theirs, ours)
    assert_the_causes_drawn_add_up_to_the_ledger_of_the_report(ours, data)


def assert_every_mark_lies_where_the_report_says_by_the_clock_of_a_viewer(theirs, ours, data):
    drawn = [Decimal(e["ts"]) for e in [*theirs, *ours] if e.get("ph") in ("X", "B", "i", "C") and "ts" in e]
    slices = [e for e in ours if e["ph"] == "X" and 1 < e["tid"] < CAUSES]
    expected = [row for f in data.findings for row in f.evidence]
    assert len(slices) == len(expected)
    at = sorted(Decimal(e["ts"]) - min(drawn) for e in slices)
    assert at == sorted(Decimal(str(row.at_us)) for row in expected)
    assert sorted(Decimal(str(e["args"]["at_us"])) for e in slices) == at
    assert sorted(Decimal(e["ts"]) - min(drawn) for e in ours if e["ph"] == "i" and e["s"] == "g") == at


def assert_every_arrow_starts_in_its_mark_and_ends_at_the_start_of_the_row(theirs, ours):
    rows = {(str(e["pid"]), str(e["tid"]), Decimal(e["ts"])): e for e in theirs if e.get("ph") == "X"}
    marks = {(e["tid"], e["ts"]): e for e in ours if e["ph"] == "X" and 1 < e["tid"] < CAUSES}
    starts = {e["id"]: e for e in ours if e["ph"] == "s"}
    ends = {e["id"]: e for e in ours if e["ph"] == "f"}
    # an idle interval is evidence too, and no row to point at
    lengths = {(e["ts"], e["dur"]) for e in rows.values()}
    with_row = [m for m in marks.values() if (m["ts"], m["dur"]) in lengths]
    assert len(starts) == len(ends) == len(with_row)
    for number, start in starts.items():
        mark = marks[start["tid"], start["ts"]]
        end = ends[number]
        row = rows[str(end["pid"]), str(end["tid"]), Decimal(end["ts"])]
        assert (row["ts"], row["dur"]) == (mark["ts"], mark["dur"]) and end["bp"] == "e"


def test_ours_stand_in_a_process_of_their_own_and_never_over_each_other(tmp_path):
    for path in SAMPLES:
        theirs, ours, _ = events_of(path, tmp_path)
        pids = {e["pid"] for e in ours if e["ph"] != "f"}
        assert len(pids) == 1 and not pids & {e.get("pid") for e in theirs}
        lanes = defaultdict(list)
        for e in ours:
            if e["ph"] == "X":
                lanes[e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        for spans in lanes.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(spans))
        named = {e["tid"] for e in ours if e["name"] == "thread_name"}
        assert set(lanes) <= named


def test_the_verdict_is_drawn_over_the_time_of_the_device(tmp_path):
    _, ours, _ = events_of(SAMPLES[0], tmp_path)
    report = ta.analyze(SAMPLES[0]).data
    verdict = next(e for e in ours if e["ph"] == "X" and e["tid"] == 1)
    assert verdict["args"]["headline"] == report.verdict.headline
    assert verdict["dur"] == Decimal(str(report.devices[0].span_us))


def test_a_finding_without_a_row_still_stands_in_the_copy(tmp_path):
    source = trace().launch(100).launch(200).launch(300).write(tmp_path / "in.json")
    without = [f.rule for f in ta.analyze(source).data.findings if not f.evidence]
    _, ours, _ = events_of(source, tmp_path)
    shown = [e["name"].split()[0] for e in ours if e["ph"] == "i" and e["s"] == "t"]
    assert without == shown


# -- causes of idle time --------------------------------------------------------------------------------


def assert_the_causes_drawn_add_up_to_the_ledger_of_the_report(ours, data):
    # where host and device clocks disagree, no idle time has a known cause
    spans = [row for row in data.ledger if row.window == "span" and data.clock.state != "disagree"]
    assert len({e["tid"] for e in ours if e["ph"] == "X" and e["tid"] >= CAUSES}) == len(
        [s for s in spans if s.drained_by]
    )
    for number, row in enumerate(spans):
        pieces = [e for e in ours if e["ph"] == "X" and e["tid"] == CAUSES + number]
        drawn, why = defaultdict(Decimal), defaultdict(Decimal)
        for e in pieces:
            drawn[e["args"]["class"]] += e["dur"]
            why[e["args"]["drained_by"]] += e["dur"]
        assert drawn == {
            c: Decimal(str(us))
            for c, us in row.classes.items()
            if c not in ("compute", "communication", "copy", "fill")
        }
        assert why == {c: Decimal(str(us)) for c, us in row.drained_by.items()}
        spots = sorted((e["ts"], e["ts"] + e["dur"]) for e in pieces)
        assert all(a[1] <= b[0] for a, b in pairwise(spots))


def test_a_cause_says_what_held_the_device_up_and_what_came_next(tmp_path):
    _, ours, result = events_of(SAMPLES[0], tmp_path)
    piece = next(e for e in ours if e["ph"] == "X" and e["tid"] == CAUSES)
    assert piece["name"] == "host operator: triton_poi_fused_add_mul_0"
    assert piece["args"] == {
        "class": "host_op", "name": "triton_poi_fused_add_mul_0", "drained_by": "late", "row_after": "triton_poi_fused_add_mul_0",
    }  # fmt: skip
    assert "177 causes of idle time" in result.output


def test_of_many_causes_the_longest_are_drawn_and_that_is_printed(tmp_path):
    _, every, _ = events_of(SAMPLES[0], tmp_path)
    _, some, result = events_of(SAMPLES[0], tmp_path, "--max-steps", "50")
    lengths = sorted((e["dur"] for e in every if e["ph"] == "X" and e["tid"] == CAUSES), reverse=True)
    kept = sorted((e["dur"] for e in some if e["ph"] == "X" and e["tid"] == CAUSES), reverse=True)
    assert kept == lengths[:50] and "causes of device 0: the 50 longest of 177" in result.output


# -- counters -------------------------------------------------------------------------------------------

launches = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 40), st.integers(1, 50), st.sampled_from([7, 20])),
    min_size=1,
    max_size=30,
)


def built(rows):
    builder, host, free = trace(), 1000, {7: 0, 20: 0}
    for step, latency, dur, stream in rows:
        host += step
        start = max(host + latency, free[stream])
        builder.call(host, start, dur, stream=stream)
        free[stream] = start + dur
    return builder


def value_at(track, when, column=0):
    place = np.searchsorted(track.at_ns, when, side="right") - 1
    return int(track.values[place, column]) if place >= 0 else 0


@settings(max_examples=60)
@given(launches)
def test_the_step_before_a_launch_is_the_reports_queue_depth(tmp_path_factory, rows):
    path = built(rows).write(tmp_path_factory.mktemp("t") / "t.json")
    analysis = analyse(read(path))
    tracks, reason = of.counters(analysis, 10**6)
    assert not reason
    activities, found = analysis.trace.activities, analysis.waits
    for number, lane in enumerate(analysis.trace.lanes):
        depth = next(t for t in tracks if t.label == f"queue depth, stream {lane.stream}")
        assert (depth.values >= 0).all() and depth.values[-1, 0] == 0
        for row in np.flatnonzero((activities.lane == number) & found.opens_call).tolist():
            assert value_at(depth, found.launch_start_ns[row] - 1) >= analysis.depth[row]
            same = np.count_nonzero(found.launch_start_ns[activities.lane == number] == found.launch_start_ns[row])
            # rows that end exactly at the call are finished for it
            assert (
                value_at(depth, found.launch_start_ns[row]) - same
                <= analysis.depth[row]
                <= value_at(depth, found.launch_start_ns[row] - 1)
            )


@settings(max_examples=60)
@given(launches)
def test_the_idle_counters_add_up_to_the_reports_waits(tmp_path_factory, rows):
    path = built(rows).write(tmp_path_factory.mktemp("t") / "t.json")
    analysis = analyse(read(path))
    tracks, _ = of.counters(analysis, 10**6)
    for stream in analysis.streams:
        name = f"stream idle, stream {analysis.trace.lanes[stream.lane].stream}"
        track = next((t for t in tracks if t.label == name), None)
        held = np.zeros(3, dtype=np.int64)
        if track is not None:
            assert (
                (np.diff(track.at_ns) > 0).all()
                and (track.values.sum(axis=1) <= 1).all()
                and not track.values[-1].any()
            )
            held[: len(track.series)] = (track.values[:-1] * np.diff(track.at_ns)[:, None]).sum(axis=0)
        assert held.tolist() == [stream.host_wait_ns, stream.launch_wait_ns, stream.unattributed_ns]


def test_a_graph_launch_raises_the_depth_by_all_its_rows(tmp_path):
    builder = trace().launch(100, api="cudaGraphLaunch")
    for at in (110, 120, 130):
        builder.kernel(at, 8)
    tracks, _ = of.counters(analyse(read(builder.write(tmp_path / "t.json"))), 1000)
    assert tracks[0].values[:, 0].tolist() == [3, 2, 1, 0]


def test_where_clocks_disagree_no_counter_is_drawn_and_the_reason_is_said(tmp_path):
    builder = trace()
    for i in range(12):
        builder.call(1000 + 20 * i, 970 + 20 * i, 5)
    _, ours, result = events_of(builder.write(tmp_path / "in.json"), tmp_path)
    assert not [e for e in ours if e["ph"] == "C" or (e["ph"] == "X" and e["tid"] >= CAUSES)]
    assert "no counters: host and device clocks disagree" in result.output


def test_rows_without_a_launch_wait_for_what_was_not_recorded(tmp_path):
    builder = loop(5).kernel(3000, 10, corr=999_999)
    tracks, _ = of.counters(analyse(read(builder.write(tmp_path / "t.json"))), 1000)
    idle = next(t for t in tracks if t.label.startswith("stream idle"))
    assert idle.series == ("starved", "launch wait", "no launch recorded") and idle.values[-2].tolist() == [0, 0, 1]


def test_thinning_keeps_peaks_and_is_stated_with_numbers(tmp_path):
    builder = trace()
    host, free = 1000, 0
    for i in range(600):
        host += 3 if i % 100 < 50 else 40
        free = max(host + 5, free)
        builder.call(host, free, 20)
        free += 20
    source = builder.write(tmp_path / "in.json")
    analysis = analyse(read(source))
    whole, _ = of.counters(analysis, 10**6)
    thin, _ = of.counters(analysis, 100)
    assert sum(len(t.at_ns) for t in thin) <= 100 < sum(len(t.at_ns) for t in whole)
    for a, b in zip(whole, thin, strict=True):
        assert b.of == len(a.at_ns) and a.values.max() == b.values.max() and a.at_ns[-1] == b.at_ns[-1]
    _, ours, result = events_of(source, tmp_path, "--max-steps", "100")
    assert f"{len(thin[0].at_ns):,} of {thin[0].of:,} steps" in result.output
    assert all(e["name"].endswith("(thinned)") for e in ours if e["ph"] == "C")


# -- hostile -------------------------------------------------------------------------------------------


def test_hostile_names_and_ids_stay_text(tmp_path):
    name = 'k"},{"ph":"X"\n\x1b[31m\ud800</script>' + "x" * 5000
    builder = trace().loop(20, period=40, latency=5, dur=10, name=name)
    for event in builder.events:
        event["pid"] = 'a"b' if event["cat"] == "kernel" else "host\\"
    document = json.loads(to_json(builder.document()))
    source = tmp_path / "in.json"
    source.write_text(json.dumps(document))
    theirs, ours, result = events_of(source, tmp_path)
    assert len(theirs) == len(document["traceEvents"])
    assert {e["pid"] for e in ours if e["ph"] == "f"} <= {'a"b', "host\\"}
    assert "\x1b" not in result.output
    longest = max(len(e["name"]) for e in ours)
    assert longest < 400


def test_a_row_at_time_zero_moves_the_viewers_clock_and_that_is_said(tmp_path):
    builder = loop(20, start=5_000_000).kernel(0, 0)
    _, _, result = events_of(builder.write(tmp_path / "in.json"), tmp_path)
    assert "a viewer counts from an event 5,000,000.000 us before the report's zero" in result.output
