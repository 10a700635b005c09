"""Real traces against numbers made by an independent exact script (counts exactly, times to 0.001 us)."""

from __future__ import annotations

import json

import pytest

import traceanalyzer as ta
from tests.conftest import SHARED

TRUTH = SHARED / "traces" / "truth.json"
pytestmark = pytest.mark.skipif(not TRUTH.is_file(), reason="the shared traces are not on this machine")
TRACES = json.loads(TRUTH.read_text(encoding="utf-8")) if TRUTH.is_file() else {}


@pytest.fixture(scope="module")
def reports() -> dict[str, dict]:
    return {}


def report_of(reports: dict[str, dict], name: str) -> dict:
    if name not in reports:
        reports[name] = ta.analyze(SHARED / "traces" / name).to_dict()
    return reports[name]


def pooled(rows: list[dict], field: str) -> float:
    return sum(row[field] for row in rows)


@pytest.mark.parametrize("name", sorted(TRACES))
def test_counts_agree_exactly(reports, name):
    truth, report = TRACES[name], report_of(reports, name)
    trace = report["trace"]
    assert trace["kernels"] == truth["kernels"]
    assert trace["device_activities"] == truth["device_activities"]
    assert trace["linked"] == truth["linked"]
    assert trace["launches"] == truth["launches"]
    assert trace["streams"] == truth["streams"]
    assert len(report["kernels"]) == truth["kernel_names"]
    assert pooled(report["streams"], "gaps") == truth["gaps"]
    assert pooled(report["streams"], "kernel_gaps") == truth["kernel_gaps"]
    assert pooled(report["streams"], "starved") == truth["starved"]
    assert sum(max(0, t["launches"] - 1) for t in report["threads"]) == truth["dispatch_n"]


@pytest.mark.parametrize("name", sorted(TRACES))
def test_times_agree_to_a_nanosecond(reports, name):
    truth, report = TRACES[name], report_of(reports, name)
    close = pytest.approx
    assert report["trace"]["kernel_total_us"] == close(truth["total_kernel_us"], abs=0.001)
    assert report["trace"]["kernel_p50_us"] == close(truth["kernel_p50_us"], abs=0.001)
    for field in ("gap_total_us", "kernel_gap_total_us", "host_wait_us", "launch_wait_us"):
        assert pooled(report["streams"], field) == close(truth[field], abs=0.001), field
    assert pooled(report["threads"], "dispatch_total_us") == close(truth["dispatch_total_us"], abs=0.001)
    if truth["streams"] == 1:
        assert report["streams"][0]["gap_p50_us"] == close(truth["gap_p50_us"], abs=0.001)
        assert report["streams"][0]["kernel_gap_p50_us"] == close(truth["kernel_gap_p50_us"], abs=0.001)
    for device, expected in zip(report["devices"], truth["devices"], strict=True):
        assert device["busy_us"] == close(expected["busy_us"], abs=0.001)
        assert device["span_us"] == close(expected["span_us"], abs=0.001)
    kernels = {k["name"]: k for k in report["kernels"]}
    for expected in truth["top_kernels"]:
        row = kernels[expected["name"]]
        assert row["count"] == expected["count"]
        for field in ("total_us", "p50_us", "min_us", "max_us"):
            assert row[field] == close(expected[field], abs=0.001), field


@pytest.mark.parametrize("name", sorted(TRACES))
def test_waits_of_linked_rows_add_up_to_their_gaps(reports, name):
    for stream in report_of(reports, name)["streams"]:
        parts = stream["host_wait_us"] + stream["launch_wait_us"] + stream["unattributed_us"]
        assert parts == pytest.approx(stream["gap_total_us"], abs=0.001)
        assert 0 <= stream["sync_wait_us"] <= stream["host_wait_us"]


@pytest.mark.parametrize(
    ("name", "queue", "status"),
    [
        ("b200_eager.json.gz", "cpu-bound", "suspect"),
        ("h100_falconsai.json.gz", "cpu-bound", "suspect"),
        ("leimao_mlp_eager.json.gz", "cpu-bound", "suspect"),
        ("leimao_mlp_graph.json.gz", "gpu-bound", "ok"),
        ("h100_owlv2.json.gz", "gpu-bound", "suspect"),
        ("v100_ns_resolution.json.gz", "gpu-bound", "ok"),
        ("mi300_torch_compile_triton.json.gz", "gpu-bound", "ok"),
        ("mi300_graph_capture_only.json.gz", "unknown", "suspect"),
        ("a100_triton_example.json.gz", "unknown", "cannot-judge"),
        ("b200_gpu_before_launch.json.gz", "unknown", "cannot-judge"),
    ],
)
def test_the_queue_state_is_what_a_right_report_says(reports, name, queue, status):
    report = report_of(reports, name)
    assert report["devices"][0]["queue"] == queue
    assert report["verdict"]["status"] == status


def test_long_pauses_of_owlv2_are_told_from_late_launches(reports):
    idle = report_of(reports, "h100_owlv2.json.gz")["idle"][0]
    assert idle["long_share"] > 0.95
    assert idle["late_us"] < 0.02 * idle["idle_us"]
    assert idle["long_us"] + idle["short_us"] == pytest.approx(idle["idle_us"], abs=0.001)
    assert len(idle["pauses"]) == 10 and idle["pauses"][0]["length_us"] >= idle["pauses"][1]["length_us"]


def test_falconsai_waits_for_the_host_and_its_kernels_read_the_dispatch_interval(reports):
    report = report_of(reports, "h100_falconsai.json.gz")
    found = next(f for f in report["findings"] if f["rule"] == "TA201")
    assert found["cost_share"] == pytest.approx(0.836, abs=0.001) and found["params"]["top"] == "aten::linear"
    reading = next(f for f in report["findings"] if f["rule"] == "TA202")
    # what an event pair would read of a kernel is a note in a model's step
    assert reading["severity"] == "note" and reading["numbers"]["inflation"] > 2


def test_owlv2_waits_for_its_data_loader(reports):
    report = report_of(reports, "h100_owlv2.json.gz")
    assert "input pipeline" in report["verdict"]["headline"]
    assert next(f for f in report["findings"] if f["rule"] == "TA306")["cost_share"] == pytest.approx(0.455, abs=0.001)


def test_disagreeing_clocks_are_never_subtracted_in_a_judgement(reports):
    report = report_of(reports, "b200_gpu_before_launch.json.gz")
    assert report["clock"]["state"] == "disagree" and report["clock"]["early"] == 113
    for kernel in report["kernels"]:
        assert kernel["launch_latency_p50_us"] is None and kernel["event_reading_us"] is None
        assert kernel["inflation"] is None and kernel["queue"] == "unknown"
    assert not {f["rule"] for f in report["findings"]} & {"TA201", "TA202"}
    assert not any(s["clocks_agree"] for s in report["streams"])


def test_launches_recorded_into_a_graph_are_not_lost(reports):
    report = report_of(reports, "mi300_graph_capture_only.json.gz")
    assert report["coverage"]["launches_without_device_row"] == 0
    assert report["coverage"]["captured_launches"] > 400
    assert "TA103" not in {f["rule"] for f in report["findings"]}


def test_work_queued_before_the_profiler_is_named_and_counted(reports):
    report = report_of(reports, "h100_qwen.json.gz")
    assert report["coverage"]["unlinked"] == report["coverage"]["unlinked_at_head"] == 509
    assert report["devices"][0]["grade"] == "DERIVED"
    assert next(f for f in report["findings"] if f["rule"] == "TA103")["severity"] == "note"


def test_coverage_is_printed_by_api(reports):
    sentence = report_of(reports, "b200_eager.json.gz")["coverage"]["sentence"]
    assert sentence.startswith("929 of 929 device rows linked: cudaLaunchKernel 367, cuLaunchKernelEx 220")


def test_a_host_row_with_a_stream_argument_is_no_kernel(reports):
    report = report_of(reports, "a100_triton_example.json.gz")
    assert report["trace"]["kernel_total_us"] == 1.76 and len(report["streams"]) == 1


def test_whole_microseconds_are_stated_and_zero_kernels_kept(reports):
    report = report_of(reports, "v100_resnet50_2021.json.gz")
    assert report["trace"]["resolution_us"] == 1.0
    assert any("whole microseconds" in a["reason"] for a in report["abstentions"])


def test_dependent_launches_overlap_and_make_no_negative_gap(reports):
    stream = report_of(reports, "b200_eager.json.gz")["streams"][0]
    assert stream["overlaps"] == 74
    assert stream["overlap_max_us"] == pytest.approx(3.74, abs=0.01)


def test_421_kernels_hang_on_one_graph_launch(reports):
    ops = report_of(reports, "mi300_vllm_graph.json.gz")["ops"]
    assert [(op["iterations"], op["kernels_per_iteration"]) for op in ops] == [(1, 421.0)]
