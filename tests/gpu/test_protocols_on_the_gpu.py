"""Captures on the machine's GPU: ratios and bounds alone, so that any GPU passes where the model holds."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from traceanalyzer.capture.api import capture  # noqa: E402
from traceanalyzer.capture.job import Job  # noqa: E402
from traceanalyzer.capture.protocols import PROTOCOLS  # noqa: E402
from traceanalyzer.capture.supervise import supervise  # noqa: E402
from traceanalyzer.trace.sidecar import read_sidecar  # noqa: E402

FLOOR_US = 1.5
"""Device stamps resolve half a microsecond and a record takes about one: below it a share says nothing."""


def captured_kernel(folder, target, preset, dtype, direction="forward"):
    """Return (sidecar, report) of a capture in a process of its own, as the command makes it."""
    from traceanalyzer.api import analyze

    job = Job(
        out=str(folder), status="", target=target, preset=preset, dtype=dtype, implementation="triton", direction=direction,
        protocols=list(PROTOCOLS), budget_s=8.0, framework="pytorch", device="cuda",
    )  # fmt: skip
    failure = supervise(job, 120)
    assert failure is None, failure and failure.one_line()
    sidecar, damage = read_sidecar(folder / "trace.json.gz")
    assert sidecar is not None, damage
    return sidecar, analyze(folder / "trace.json.gz").data


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A kernel far shorter than its dispatch."""
    return captured_kernel(tmp_path_factory.mktemp("small"), "vector_add", "small", "fp32")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A kernel far longer than its dispatch."""
    return captured_kernel(tmp_path_factory.mktemp("large"), "vector_add", "large", "fp32")


@pytest.fixture(scope="module")
def backward(tmp_path_factory):
    return captured_kernel(tmp_path_factory.mktemp("backward"), "msda", "decoder", "fp16", "backward")


def readings(made):
    return {p.protocol: p.p50_us for p in made[0].operations[0].protocols}


def op_of(made):
    name = made[0].operations[0].name
    return next(o for o in made[1].ops if o.name == name)


def close(found, wanted, share=0.10):
    return abs(found - wanted) <= max(share * wanted, FLOOR_US)


@pytest.mark.parametrize("made", ["small", "large", "backward"])
def test_each_protocol_gives_a_reading(made, request):
    record = request.getfixturevalue(made)[0].operations[0]
    assert {p.protocol: p.reason for p in record.protocols if p.p50_us is None} == {}


@pytest.mark.parametrize("made", ["small", "large", "backward"])
def test_the_result_is_right_and_the_conditions_are_known(made, request):
    sidecar, report = request.getfixturevalue(made)
    assert sidecar.operations[0].correctness.passed is True, sidecar.operations[0].correctness
    assert sidecar.device.name and sidecar.device.multiprocessors and sidecar.operations[0].peak_memory_bytes
    assert report.trace.device_activities > 0 and report.coverage.linked >= 0.9 * report.coverage.rows
    assert all(
        v is not None
        for v in (sidecar.calibration.record_us, sidecar.calibration.sync_us, sidecar.calibration.clear_us)
    )


@pytest.mark.parametrize("made", ["large", "backward"])
def test_self_time_and_the_unrolled_graph_agree_within_three_percent(made, request):
    found = readings(request.getfixturevalue(made))
    kernels = op_of(request.getfixturevalue(made)).kernels_per_iteration
    # between the nodes of a graph the device pauses about a microsecond, which is no kernel's time
    gaps = 1.5 * kernels
    own, graph = found["profiler_self_time"], found["graph_unrolled"]
    assert own * 0.97 <= graph <= own * 1.03 + gaps


@pytest.mark.parametrize("made", ["small", "large"])
def test_a_backlog_reads_the_kernel(made, request):
    found = readings(request.getfixturevalue(made))
    assert close(found["backlog"], found["profiler_self_time"])


def test_a_synchronise_in_every_call_reads_more_than_dispatch_and_kernel(small):
    record = small[0].operations[0]
    found = readings(small)
    assert found["wall_sync_each"] > record.inflation.unprofiled_us + found["profiler_self_time"]
    assert found["wall_sync_each"] > 2 * found["profiler_self_time"]


def test_for_a_short_kernel_every_protocol_without_a_backlog_reads_the_host(small):
    record = small[0].operations[0]
    found = readings(small)
    for protocol in ("wall_nosync", "wall_sync_once", "event_loop"):
        assert found[protocol] == pytest.approx(record.inflation.unprofiled_us, rel=0.35), protocol
    for protocol in ("event_pair", "event_pair_sync"):
        assert found[protocol] > 2 * found["profiler_self_time"], protocol


def test_for_a_long_kernel_every_protocol_but_the_enqueue_time_reads_the_kernel(large):
    found = readings(large)
    for protocol in ("event_pair", "event_loop", "do_bench", "wall_sync_once", "graph_unrolled", "backlog"):
        assert close(found[protocol], found["profiler_self_time"], 0.15), protocol


def test_the_queue_is_named_for_what_it_is(small, large):
    assert op_of(small).queue == "cpu-bound" and small[1].verdict.status == "suspect"
    assert op_of(large).queue == "gpu-bound"


@pytest.mark.parametrize("made", ["small", "large", "backward"])
def test_predictions_lie_within_a_tenth_of_the_readings(made, request):
    op = op_of(request.getfixturevalue(made))
    assert op.readings_predicted, op.no_ladder
    off = {
        protocol: (form, op.readings_measured[protocol])
        for protocol, form in op.readings_predicted.items()
        if not close(form, op.readings_measured[protocol])
    }
    assert off == {}


def test_peak_memory_holds_inputs_and_result_and_not_the_references(large):
    sidecar = large[0]
    vector = (1 << 26) * 4
    assert 3 * vector <= sidecar.operations[0].peak_memory_bytes <= 4 * vector


def test_the_profiler_slows_the_host_and_not_the_kernel(small):
    assert small[0].operations[0].inflation.ratio > 1


def waits_inside(x):
    return x * float(x[0].item())


def test_a_function_that_cannot_be_a_graph_abstains_and_harms_nothing_after_it(tmp_path):
    x = torch.ones(1 << 20, device="cuda")
    before = torch.cuda.current_stream()
    found = capture(waits_inside, x, out=tmp_path, iters=20, budget_s=3)
    by_key = {p.protocol: p for p in found.operation.protocols}
    assert by_key["graph_unrolled"].p50_us is None and "cannot be captured" in by_key["graph_unrolled"].reason
    assert by_key["profiler_self_time"].p50_us and by_key["event_pair"].p50_us
    assert torch.cuda.current_stream() == before
    assert torch.randn(4, device="cuda").isfinite().all(), "the random generator is not left in a capture"


def fails_in_a_graph(x):
    torch.cuda.synchronize()
    return x + 1


def test_a_capture_that_breaks_half_way_leaves_the_device_usable(tmp_path):
    """The barrier is not one that torch can be told to refuse beforehand: the capture itself fails."""
    x = torch.ones(1 << 16, device="cuda")
    before = torch.cuda.current_stream()
    found = capture(fails_in_a_graph, x, out=tmp_path, iters=20, budget_s=3)
    by_key = {p.protocol: p for p in found.operation.protocols}
    assert by_key["graph_unrolled"].p50_us is None and by_key["profiler_self_time"].p50_us
    assert torch.cuda.current_stream() == before
    assert float((x @ x).sum()) == pytest.approx(1 << 16)


def wrong(x):
    return x + 1.5


def test_a_wrong_kernel_is_caught_on_the_device(tmp_path):
    x = torch.ones(1 << 16, device="cuda")
    found = capture(wrong, x, out=tmp_path, iters=20, budget_s=3, reference=lambda t: t + 1, protocols="wall_sync_once")
    assert found.operation.correctness.passed is False and found.operation.correctness.max_abs_error == 0.5


def test_tensors_say_which_device_is_measured(tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x = torch.ones(1 << 16, device="cuda:1")
    try:
        found = capture(lambda t: t + 1, x, out=tmp_path, iters=20, budget_s=3)
        assert torch.cuda.current_device() == 1 and found.operation.protocols[-1].p50_us
    finally:
        torch.cuda.set_device(0)
