"""Every protocol of capture against the closed forms of the timing model, to the nanosecond, on a simulated queue."""

import numpy as np
import pytest

from tests.capture.fake_device import FakeDevice
from tests.queue_sim import Machine
from traceanalyzer.analysis.protocols import Symbols, ladder
from traceanalyzer.capture.api import run
from traceanalyzer.capture.device import Capability
from traceanalyzer.capture.protocols import PROTOCOLS
from traceanalyzer.capture.session import Operation, Settings

PER_CALL = {"wall_sync_each", "event_pair", "event_pair_sync", "do_bench", "backlog", "profiler_self_time"}
GOLDEN = [(20, 8), (20, 12), (20, 35), (20, 300), (40, 8), (40, 12), (40, 35), (40, 56)]


def captured(tmp_path, parts, *, device=None, iterations=100, protocols=PROTOCOLS, **op):
    device = device or FakeDevice()
    operation = Operation("fake_op", device.op(parts, **op))
    return run(device, operation, Settings(protocols, iterations=iterations), tmp_path / "out")


def readings(capture):
    return {p.protocol: p.p50_us for p in capture.operation.protocols}


def symbols(parts, calls=100, **changed):
    return Symbols(
        tuple(float(d) for d, _ in parts), tuple(float(k) for _, k in parts), calls=calls, graph_calls=calls, clear=changed.pop("clear", 85_000.0), **changed
    )  # fmt: skip


@pytest.mark.parametrize(("d", "k"), GOLDEN)
def test_every_protocol_reads_its_closed_form_to_the_nanosecond(tmp_path, d, k):
    parts = [(d * 1000, k * 1000)]
    found = readings(captured(tmp_path, parts))
    for protocol, expected in ladder(symbols(parts)).items():
        assert found[protocol] == pytest.approx(expected / 1000, abs=0.001), protocol
    assert found["backlog"] == k


@pytest.mark.parametrize(
    "parts", [[(20_000, 5000)] * 3, [(40_000, 10_000), (5000, 10_000)], [(3000, 60_000), (3000, 20_000)]]
)
def test_operations_of_several_kernels_read_their_closed_forms(tmp_path, parts):
    found = readings(captured(tmp_path, parts))
    for protocol, expected in ladder(symbols(parts)).items():
        if protocol != "wall_nosync":
            assert found[protocol] == pytest.approx(expected / 1000, abs=0.001), protocol


def test_the_ranking_of_the_seed_inverts_under_a_synchronise_per_call_and_under_event_pairs(tmp_path):
    """Triton: d 40, k 10. mmcv: d 20, k 22. The device says Triton; every dispatcher-bound protocol says mmcv."""
    triton = readings(captured(tmp_path / "triton", [(40_000, 10_000)]))
    mmcv = readings(captured(tmp_path / "mmcv", [(20_000, 22_000)]))
    for protocol in ("profiler_self_time", "graph_unrolled", "backlog", "do_bench"):
        assert triton[protocol] < mmcv[protocol], protocol
    for protocol in ("wall_sync_each", "wall_sync_once", "event_pair", "event_pair_sync", "event_loop", "wall_nosync"):
        assert triton[protocol] > mmcv[protocol], protocol
    # "about four times" of the seed: d + L + k + s against k
    assert triton["wall_sync_each"] / triton["profiler_self_time"] > 4


def test_one_call_shows_both_columns_and_they_stay_two(tmp_path):
    record = captured(tmp_path, [(40_000, 10_000)]).operation
    columns = {p.protocol: p.column for p in record.protocols}
    assert columns["profiler_self_time"] == "device" and columns["wall_sync_once"] == "end-to-end"
    assert columns["event_pair"] == "neither"


def test_self_time_and_the_unrolled_graph_agree(tmp_path):
    agreement = captured(tmp_path, [(40_000, 10_000)]).operation.agreement
    assert agreement.agree is True
    assert agreement.difference == pytest.approx(0, abs=1e-6)  # the graph's launch is calibrated, 10 us over 100 calls


@pytest.mark.parametrize("gap", [0, 500, 900, 1000, 2000])
@pytest.mark.parametrize("parts", [[(40_000, 1000)], [(40_000, 10_000)], [(20_000, 5000)] * 3])
def test_gaps_between_graph_nodes_are_calibrated_predicted_and_no_disagreement(tmp_path, gap, parts):
    device = FakeDevice()
    device.node_gap = gap
    capture = captured(tmp_path, parts, device=device)
    calibration, agreement = capture.sidecar.calibration, capture.operation.agreement
    assert calibration.node_gap_us == pytest.approx(gap / 1000, abs=0.01)
    assert calibration.graph_launch_us == pytest.approx(10, abs=0.01)
    assert agreement.agree is True and abs(agreement.difference) < 0.001
    op = capture.report().data.ops[0]
    assert op.readings_predicted["graph_unrolled"] == pytest.approx(op.readings_measured["graph_unrolled"], rel=0.001)


def test_a_graph_that_runs_more_than_the_call_disagrees_whatever_the_gap(tmp_path):
    class Doubled(FakeDevice):
        def graph(self, call, calls):
            return super().graph(call, calls * (1 if call == self.idle_kernel else 2))

    agreement = captured(tmp_path, [(40_000, 10_000)], device=Doubled()).operation.agreement
    assert agreement.agree is False and "runs other kernels" in agreement.explanation


def test_memory_that_runs_out_for_one_protocol_leaves_the_others(tmp_path):
    class Full(FakeDevice):
        def clear(self):
            raise MemoryError("CUDA out of memory. Tried to allocate 256.00 MiB")

    record = captured(tmp_path, [(40_000, 10_000)], device=Full()).operation
    silent = {p.protocol: p.reason for p in record.protocols if p.p50_us is None}
    assert set(silent) == {"do_bench"} and "memory ran out for what this protocol needs" in silent["do_bench"]


def test_a_long_call_keeps_to_its_budget_and_the_record_counts_what_was_made(tmp_path):
    device = FakeDevice()
    begun = device.now_ns()
    operation = Operation("slow", device.op([(1000, 300_000_000)]))
    record = run(device, operation, Settings(PROTOCOLS, budget_s=10), tmp_path / "out").operation
    assert device.now_ns() - begun < 20e9
    for p in record.protocols:
        assert p.n and p.n == pytest.approx(
            p.parameters["rounds"] * (p.parameters["calls_per_round"] if p.protocol in PER_CALL else 1)
        ), p.protocol


def test_a_reference_may_differentiate_and_a_function_may_write_into_its_argument(tmp_path):
    torch = pytest.importorskip("torch")
    from traceanalyzer.capture.correctness import check, snapshot

    x = torch.arange(4.0, requires_grad=True)

    def both(x):
        (y,) = torch.autograd.grad((x * x).sum(), x)
        return y

    assert check(both(x), both, (x,), {}, None).passed is True
    assert check(both(x) + 1, both, (x,), {}, None).passed is False

    def fills(out, by):
        out.copy_(by * 2)

    out, by = torch.zeros(4), torch.arange(4.0)
    before = snapshot((out, by))
    for factor, right in ((2, True), (3, False)):
        out.copy_(by * factor)
        device = FakeDevice()
        operation = Operation(
            "fills",
            lambda f=factor: [out.copy_(by * f)].clear(),
            (out, by),
            reference=fills,
        )
        assert (
            run(device, operation, Settings(("wall_sync_once",)), tmp_path / str(factor)).operation.correctness.passed
            is right
        )
    assert torch.equal(before[1], by)


def test_the_profilers_inflation_of_dispatch_is_measured(tmp_path):
    inflation = captured(tmp_path, [(40_000, 10_000)], device=FakeDevice(overhead=8000)).operation.inflation
    assert (inflation.unprofiled_us, inflation.profiled_us) == (40.0, 48.0)
    assert inflation.ratio == 1.2


def test_a_blocker_that_runs_out_is_noticed_and_made_longer(tmp_path):
    device = FakeDevice()
    device.block_share = 0.2
    record = captured(tmp_path, [(40_000, 10_000)], device=device).operation
    backlog = next(p for p in record.protocols if p.protocol == "backlog")
    assert backlog.p50_us == 10.0 and max(backlog.samples_us) == 10.0
    assert backlog.parameters["discarded_calls"] > 0


def test_a_function_that_waits_inside_builds_no_backlog_and_no_graph(tmp_path):
    record = captured(tmp_path, [(40_000, 10_000)], sync=True).operation
    found = {p.protocol: p for p in record.protocols}
    assert found["backlog"].p50_us is None and "waits for the device inside" in found["backlog"].reason
    assert (
        found["graph_unrolled"].p50_us is None and "cannot be captured into a graph" in found["graph_unrolled"].reason
    )
    assert record.agreement.agree is None and "unrolled graph" in record.agreement.explanation
    assert found["profiler_self_time"].p50_us == 10.0


@pytest.mark.parametrize("capability", list(Capability))
def test_what_a_device_lacks_is_an_abstention_with_its_reason(tmp_path, capability):
    device = FakeDevice(missing={capability: "this device has none"})
    record = captured(tmp_path, [(40_000, 10_000)], device=device).operation
    silent = {p.protocol for p in record.protocols if p.p50_us is None}
    expected = {
        Capability.EVENTS: {"event_pair", "event_pair_sync", "event_loop", "do_bench", "backlog", "graph_unrolled"},
        Capability.BLOCKER: {"backlog"}, Capability.CLEAR: {"do_bench"}, Capability.GRAPH: {"graph_unrolled"},
        Capability.PROFILER: {"profiler_self_time"},
    }[capability]  # fmt: skip
    assert silent == expected
    assert all(p.reason == "this device has none" for p in record.protocols if p.protocol in silent)


def test_rounds_interleave_the_protocols(tmp_path):
    """A device that becomes slower half-way slows every protocol's later samples, not the later protocols alone."""
    device = FakeDevice()
    order = []
    from traceanalyzer.capture.session import Session

    session = Session(
        device, Operation("op", device.op([(40_000, 10_000)])), Settings(), tmp_path / "t.json.gz",
        observe=lambda what, *_: order.append(what),
    )  # fmt: skip
    session.run()
    rounds = [o for o in order if o in PROTOCOLS and o != "profiler_self_time"]
    assert len(rounds) == 9 * 10
    firsts = rounds[::9]
    assert len(set(firsts)) == 9, "each round begins with another protocol"
    assert all(sorted(rounds[i : i + 9]) == sorted(rounds[:9]) for i in range(0, 90, 9))


def test_medians_come_with_their_interval_and_n(tmp_path):
    device = FakeDevice(Machine(jitter=0.05, rng=np.random.default_rng(3)))
    record = captured(tmp_path, [(40_000, 10_000)], device=device).operation
    for p in record.protocols:
        assert p.n == len(p.samples_us) >= 6
        assert p.ci95_us[0] <= p.p50_us <= p.ci95_us[1]


def test_the_machines_own_steps_are_calibrated(tmp_path):
    calibration = captured(tmp_path, [(40_000, 10_000)]).sidecar.calibration
    assert (calibration.sync_us, calibration.record_us, calibration.event_floor_us) == (6.0, 2.0, 0.0)
    assert (calibration.clear_us, calibration.clear_dispatch_us) == (85.0, 6.0)


@pytest.mark.parametrize("parts", [[(40_000, 10_000)], [(20_000, 35_000)], [(20_000, 5000)] * 3])
def test_the_report_predicts_every_measured_reading(tmp_path, parts):
    """The profiler slows the host by a fifth; predictions owe nothing to that, nor to the readings they are held to."""
    capture = captured(tmp_path, parts, device=FakeDevice(overhead=8000))
    op = capture.report().data.ops[0]
    assert op.name == "fake_op" and op.method == "capture annotation"
    assert set(op.readings_predicted) == set(PROTOCOLS) - {"profiler_self_time"}
    for protocol, predicted in op.readings_predicted.items():
        assert predicted == pytest.approx(op.readings_measured[protocol], rel=0.02), protocol
