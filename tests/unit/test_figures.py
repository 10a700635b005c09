"""Figures: bounded, true to the trace, and open about what they leave out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import trace
from tests.kineto_writer import document, to_json
from tests.queue_sim import Machine
from traceanalyzer.analysis.depth import depth_over_time, thinned
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.api import report_of
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.options import AnalysisOptions, Selection
from traceanalyzer.report.charts import distributions, timeline
from traceanalyzer.report.charts.distributions import distribution
from traceanalyzer.report.charts.model import AFTER_SYNC, COPY, STARVED, Mark
from traceanalyzer.trace.reader import read

OPTIONS = AnalysisOptions(figures=True)


def data_of(built, tmp_path, options=OPTIONS):
    return report_of(read(built.write(tmp_path / "t.json")), options).data


def lane(data, kind):
    return next(x for x in data.figures.timeline.lanes if x.kind == kind)


def test_figures_are_made_on_demand_and_stay_out_of_json(tmp_path):
    built = trace().loop(10, 40, 6, 10)
    without = data_of(built, tmp_path, AnalysisOptions())
    with_them = data_of(built, tmp_path)
    assert without.figures is None
    assert with_them.figures is not None
    assert with_them.to_dict() == without.to_dict()
    assert "figures" not in with_them.to_dict()


def test_each_row_is_linked_to_the_launch_that_made_it(tmp_path):
    built = trace()
    for i in range(20):
        built.launch(100 * i, dur=3, corr=i + 1, tid=1 + i % 2)
        built.kernel(100 * i + 7, 10 + i, corr=i + 1, name=f"k{i % 3}", stream=7 + i % 2)
    found = data_of(built, tmp_path).figures.timeline
    starts = [s for x in found.lanes for s in x.start_ns]
    checked = 0
    for stream in (x for x in found.lanes if x.kind == "stream"):
        for start, link in zip(stream.start_ns, stream.link, strict=True):
            assert starts[link] == start - 7000
            checked += 1
    assert checked == 20


def test_tags_say_starved_after_a_synchronise_and_copy(tmp_path):
    built = trace().call(0, 6, 10, name="a").call(40, 46, 10, name="b").sync(60, 5).call(70, 76, 10, name="c")
    built.memcpy(72, 90, 5)
    stream = lane(data_of(built, tmp_path), "stream")
    assert stream.tag == [0, STARVED, STARVED | AFTER_SYNC, COPY]


def test_kernels_lead_the_names_in_the_order_of_the_table(tmp_path):
    built = trace()
    for i in range(8):
        built.call(200 * i, 200 * i + 6, 10, name="small").call(200 * i + 50, 200 * i + 56, 90, name="large")
    data = data_of(built, tmp_path)
    assert data.figures.timeline.names[:2] == [k.short_name for k in data.kernels] == ["large", "small"]


def test_operators_show_the_outermost_and_ranges_two_levels(tmp_path):
    built = trace().loop(6, 100, 6, 10, start=0)
    built.host("cpu_op", "outer", 0, 90).host("cpu_op", "inner", 10, 20)
    built.range("step", 0, 500).range("phase", 0, 200).range("detail", 10, 50)
    data = data_of(built, tmp_path)
    names = data.figures.timeline.names
    assert [names[n] for n in lane(data, "operators").name] == ["outer"]
    ranges = lane(data, "ranges")
    assert [(names[n], t) for n, t in zip(ranges.name, ranges.tag, strict=True)] == [("step", 0), ("phase", 1)]


def test_a_view_holds_its_evidence_and_the_launch_of_it(tmp_path):
    built = trace().loop(60, 40, 6, 10)
    analysis = analyse(read(built.write(tmp_path / "t.json")), OPTIONS)
    findings, _ = diagnose(analysis)
    found = timeline.timeline(analysis, findings, lambda text: text, {})
    assert any(found.views)
    for finding, views in zip(findings, found.views, strict=True):
        assert len(views) == min(3, len(finding.evidence))
        for evidence, view in zip(finding.evidence, views, strict=False):
            assert view.at_ns == evidence.start_ns - analysis.trace.meta.origin_ns
            assert view.from_ns < view.at_ns - 6000
            assert view.to_ns > view.at_ns + view.dur_ns
            assert view.to_ns - view.from_ns < (found.end_ns - found.begin_ns) / 2


def test_a_long_trace_shows_every_row_within_its_windows_and_no_more_than_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "ROWS", 200)
    built = trace().loop(1500, 40, 6, 10)
    found = data_of(built, tmp_path).figures.timeline
    assert not found.whole
    assert found.device_rows == 1500
    stream = next(x for x in found.lanes if x.kind == "stream")
    assert len(stream.start_ns) == found.device_rows_shown <= 200
    every = [1000_000 + 40_000 * i + 6000 - 1000_000 for i in range(1500)]
    inside = [s for s in every if any(s + 10_000 >= low and s <= high for low, high in found.windows)]
    assert stream.start_ns == inside
    for views in found.views:
        assert all(any(low <= v.from_ns and v.to_ns <= high for low, high in found.windows) for v in views)


def test_bins_hold_the_share_of_time_a_lane_was_busy(tmp_path):
    built = trace().loop(1500, 40, 6, 10, start=0)
    stream = lane(data_of(built, tmp_path), "stream")
    assert len(stream.busy_permille) == timeline.BINS
    assert np.mean(stream.busy_permille) == pytest.approx(250, rel=0.03)


def test_a_selection_leaves_other_streams_out(tmp_path):
    built = trace()
    for i in range(12):
        built.call(100 * i, 100 * i + 6, 10, stream=7 + i % 2)
    data = data_of(built, tmp_path, AnalysisOptions(Selection(stream=8), figures=True))
    assert [x.label for x in data.figures.timeline.lanes if x.kind == "stream"] == ["stream 0/8"]


def test_no_device_row_makes_no_timeline_and_no_crash(tmp_path):
    data = data_of(trace().host("cpu_op", "aten::add", 0, 10), tmp_path)
    assert data.figures.timeline is None
    assert data.figures.distributions == []
    assert data.figures.no_depth == "no device row is linked to a launch"


def test_clocks_that_disagree_give_no_depth_and_say_why(tmp_path):
    built = trace()
    for i in range(30):
        built.call(100 * i + 5000, 100 * i, 10)
    data = data_of(built, tmp_path)
    assert data.clock.state == "disagree"
    assert data.figures.depth == []
    assert "clocks disagree" in data.figures.no_depth
    assert all(not d.marks for d in data.figures.distributions)


@given(st.integers(0, 2**32 - 1))
def test_depth_over_time_read_at_each_launch_is_the_depth_at_launch(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    launched = np.cumsum(rng.integers(1, 30, n))
    ended = launched + rng.integers(-5, 60, n)
    when, depth = depth_over_time(launched, ended)
    for i in range(n):
        waiting = sum(1 for j in range(n) if launched[j] < launched[i] and max(ended[j], launched[j]) > launched[i])
        at = int(np.searchsorted(when, launched[i], side="left")) - 1
        ending_now = sum(1 for j in range(n) if launched[j] < launched[i] and max(ended[j], launched[j]) == launched[i])
        assert (depth[at] if at >= 0 else 0) - ending_now == waiting
    assert len(depth) == 0 or depth[-1] == 0


def test_a_simulated_backlog_is_as_deep_as_the_simulator_says(tmp_path):
    machine = Machine(gap=1000)
    for _ in range(50):
        machine.launch("k", 45_000, host_cost=10_000, call=3000)
    machine.sync()
    path = tmp_path / "sim.json"
    path.write_text(to_json(document(machine)), encoding="utf-8")
    series = report_of(read(path), OPTIONS).data.figures.depth[0]
    launched = [r.start for r in machine.host if r.kind == "call" and r.corr in {d.corr for d in machine.device}]
    ended = sorted(d.end for d in machine.device)
    deepest = max(sum(1 for x in launched if x <= t) - sum(1 for x in ended if x <= t) for t in launched)
    assert max(series.depth) == deepest > 30


@given(st.lists(st.integers(0, 500), min_size=1, max_size=400), st.integers(1, 20))
def test_thinning_keeps_ends_and_extremes(values, bins):
    at = np.cumsum(np.arange(1, len(values) + 1))
    value = np.array(values)
    keep = thinned(at, value, bins)
    assert len(keep) <= max(4 * bins, 1)
    assert (np.diff(keep) > 0).all()
    assert keep[0] == 0
    assert keep[-1] == len(values) - 1
    assert value[keep].max() == value.max()
    assert value[keep].min() == value.min()


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=500))
def test_every_value_is_counted_once(values):
    found = distribution("x", "kernel", [("self-time", np.array(values))], [])
    band = found.bands[0]
    assert sum(band.counts) == band.n == len(values)
    assert len(found.edges_ns) == len(band.counts) + 1
    assert (np.diff(found.edges_ns) > 0).all()
    assert band.samples_ns[0] == min(values)
    assert band.samples_ns[-1] == max(values)
    assert len(band.samples_ns) <= distributions.SAMPLES
    assert found.edges_ns[-1] >= max(values)
    if not found.logarithmic:
        assert band.below == 0


def test_values_far_apart_stand_on_a_logarithmic_axis_and_zeros_are_counted_below():
    found = distribution("x", "kernel", [("self-time", np.array([0, 1000, 30_000]))], [Mark("m", 25_000.0)])
    assert found.logarithmic
    assert found.bands[0].below == 1
    assert not distribution("x", "kernel", [("self-time", np.array([1000, 1900]))], []).logarithmic


def test_distributions_carry_dispatch_self_time_and_the_reading(tmp_path):
    found = data_of(trace().loop(60, 40, 6, 10, name="k"), tmp_path).figures.distributions
    kernel = next(d for d in found if d.kind == "kernel")
    assert [(b.label, b.n, b.p50_ns) for b in kernel.bands] == [
        ("self-time", 60, 10_000), ("dispatch", 59, 40_000), ("event pair", 59, pytest.approx(42_000, abs=4000)),
    ]  # fmt: skip
    assert kernel.marks[0].label == "event pair reads"
    assert any(d.kind == "operation" for d in found)


def test_the_texts_of_the_rules_that_fired_are_there_and_no_others(tmp_path):
    data = data_of(trace().loop(60, 40, 6, 10), tmp_path)
    assert {r.code for r in data.figures.rules} == {f.rule for f in data.findings}
    text = next(r for r in data.figures.rules if r.code == "TA201")
    assert dict(text.sections)["When it is wrong"]
    assert any(t.startswith("starved_fraction = 0.5") for t in text.thresholds)
