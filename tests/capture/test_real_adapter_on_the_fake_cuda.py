"""The real CUDA adapter, and triton's real do_bench, end to end on a torch.cuda that keeps a virtual clock."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.capture.fake_cuda import FakeCuda, install
from traceanalyzer.analysis.protocols import Symbols, ladder
from traceanalyzer.capture.api import run
from traceanalyzer.capture.frameworks.pytorch import TorchCuda
from traceanalyzer.capture.protocols import PROTOCOLS
from traceanalyzer.capture.session import Operation, Settings


def captured(monkeypatch, folder, parts, cuda=None, settings=None, **op):
    cuda = install(monkeypatch, cuda or FakeCuda())
    capture = run(
        TorchCuda(),
        Operation("op", cuda.op(parts, **op)),
        settings or Settings(PROTOCOLS, iterations=50),
        folder / "out",
    )
    return capture, {p.protocol: p for p in capture.operation.protocols}


@pytest.mark.parametrize(("d", "k"), [(40, 10), (20, 60), (20, 8)])
def test_every_protocol_of_the_real_adapter_reads_its_closed_form(monkeypatch, tmp_path, d, k):
    capture, found = captured(monkeypatch, tmp_path, [(d * 1000, k * 1000)])
    clear = capture.sidecar.calibration.clear_us * 1000
    symbols = Symbols(
        (d * 1000.0,), (k * 1000.0,), clear=clear, calls=50, graph_calls=50, node_gap=900, graph_dispatch=10_000, gap=0
    )
    for protocol, expected in ladder(symbols).items():
        assert found[protocol].p50_us == pytest.approx(expected / 1000, abs=0.002), protocol
    assert found["backlog"].p50_us == pytest.approx(k, abs=0.001)
    assert found["do_bench"].parameters["through"] == "triton.testing.do_bench"
    assert capture.operation.agreement.agree is True


def test_predictions_of_the_real_adapter_lie_within_two_percent(monkeypatch, tmp_path):
    capture, found = captured(monkeypatch, tmp_path, [(40_000, 10_000)], FakeCuda(overhead_ns=8000))
    op = capture.report().data.ops[0]
    assert set(op.readings_predicted) == set(PROTOCOLS) - {"profiler_self_time"}
    for protocol, predicted in op.readings_predicted.items():
        assert predicted == pytest.approx(found[protocol].p50_us, rel=0.02), protocol


def test_without_room_for_the_clear_do_bench_alone_abstains(monkeypatch, tmp_path):
    _, found = captured(monkeypatch, tmp_path, [(40_000, 10_000)], FakeCuda(limit_bytes=100 << 20))
    silent = {p: r.reason for p, r in found.items() if r.p50_us is None}
    assert set(silent) == {"do_bench"} and "memory ran out" in silent["do_bench"]


def test_a_function_that_waits_inside_has_no_graph_and_leaves_the_adapter_whole(monkeypatch, tmp_path):
    cuda = FakeCuda()
    _, found = captured(monkeypatch, tmp_path, [(40_000, 10_000)], cuda, sync=True)
    assert {p for p, r in found.items() if r.p50_us is None} == {"backlog", "graph_unrolled"}
    assert cuda.capturing is None and cuda.mode == 0 and cuda.current_stream() == cuda.default_stream()


def test_an_event_that_is_read_too_early_raises_here_as_it_does_on_a_device(monkeypatch):
    cuda = install(monkeypatch, FakeCuda())
    device = TorchCuda()
    start = device.record()
    cuda.op([(1000, 1_000_000)])()
    with pytest.raises(RuntimeError, match="must be completed"):
        device.elapsed_ns(start, device.record())


def test_work_on_a_stream_of_its_own_makes_readings_that_contradict_the_kernel(monkeypatch, tmp_path):
    """Events lie on the current stream: the pair reads nothing of work elsewhere; the device's own stamps do."""
    cuda = FakeCuda()
    install(monkeypatch, cuda)
    own = cuda.Stream()
    capture, found = captured(monkeypatch, tmp_path, [(40_000, 500_000)], cuda, stream=own)
    assert found["profiler_self_time"].p50_us == 500
    assert found["do_bench"].p50_us < 100 and found["backlog"].p50_us < 100
    finding = next(f for f in capture.report().data.findings if f.rule == "TA711")
    assert finding.code == "below-other-stream" and finding.severity == "warning"


def test_sound_readings_contradict_nothing(monkeypatch, tmp_path):
    capture, _ = captured(monkeypatch, tmp_path, [(40_000, 10_000)], FakeCuda(overhead_ns=8000))
    assert not [f for f in capture.report().data.findings if f.rule == "TA711"]
