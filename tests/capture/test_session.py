"""What a session does when functions compile, drift, lie, fail or run out of memory. On the fake device: no GPU, no waiting."""

import numpy as np
import pytest

from tests.capture.fake_device import FakeDevice
from traceanalyzer.analysis.steadiness import drift
from traceanalyzer.capture.api import run
from traceanalyzer.capture.plan import plan
from traceanalyzer.capture.session import Operation, Settings
from traceanalyzer.capture.warmup import trend
from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.trace.sidecar import decode_sidecar

FAST = Settings(("wall_nosync", "wall_sync_each", "wall_sync_once"), iterations=20)


def session(tmp_path, call, device=None, settings=FAST, **operation):
    return run(device or FakeDevice(), Operation("op", call, **operation), settings, tmp_path)


def kept(tmp_path):
    sidecar, fault = decode_sidecar((tmp_path / "trace.sidecar.json").read_bytes(), "it")
    assert not fault
    return sidecar.operations[0]


def test_compilation_at_the_head_is_counted_and_in_no_reading(tmp_path):
    device, calls = FakeDevice(), []
    steady = device.op([(40_000, 10_000)])

    def compiling():
        calls.append(1)
        if len(calls) <= 2:
            device.machine.work(300_000_000)
        return steady()

    record = session(tmp_path, compiling, device).operation
    assert record.warm_up.slow_calls == 2 and record.warm_up.steady
    assert record.warm_up.slow_us == pytest.approx(600_120, abs=10)
    assert max(s for p in record.protocols for s in p.samples_us) < 100


def test_a_level_that_comes_late_is_waited_for(tmp_path):
    device, calls = FakeDevice(), []

    def tuning():
        calls.append(1)
        device.op([(200_000 if len(calls) < 8 else 40_000, 10_000)])()

    record = session(tmp_path, tuning, device).operation
    assert record.warm_up.steady and record.warm_up.calls > 10
    assert {p.p50_us for p in record.protocols if p.protocol == "wall_nosync"} == {40.0}


def test_a_level_that_changes_during_the_readings_takes_the_steadiness_back(tmp_path):
    device, calls = FakeDevice(), []

    def throttled():
        calls.append(1)
        device.op([(40_000 if len(calls) < 300 else 80_000, 10_000)])()

    record = session(tmp_path, throttled, device).operation
    assert not record.warm_up.steady and "changes from 60 us to 100 us" in record.warm_up.reason


def test_times_that_only_rise_are_called_unsteady(tmp_path):
    device, calls = FakeDevice(), []

    def rising():
        calls.append(1)
        device.op([(40_000 + 2000 * len(calls), 10_000)])()

    record = session(tmp_path, rising, device, Settings(FAST.protocols, iterations=20, budget_s=0.3)).operation
    assert not record.warm_up.steady and "rises" in record.warm_up.reason


@pytest.mark.parametrize(
    ("levels", "steady"), [((9, 3, 3.1, 3, 3.05), True), ((9, 3, 3.9), False), ((9, 3, 4, 3, 5), False)]
)
def test_slow_calls_that_fit_only_a_few_times_are_steady_where_they_agree(levels, steady):
    """Seconds per call, the first of which compiles; there is time for no more of them."""
    from traceanalyzer.capture.warmup import warm_up

    device, left = FakeDevice(), list(levels)

    def slow():
        device.machine.work(int(left.pop(0) * 1e9))

    record, _ = warm_up(device, slow, len(levels), 1)
    assert record.steady is steady and record.slow_calls == 1
    assert steady or record.reason


def test_scatter_without_direction_is_steady(tmp_path):
    device, calls = FakeDevice(), []

    def scattered():
        calls.append(1)
        device.op([(40_000 + 9000 * (len(calls) * 7 % 5), 10_000)])()

    assert session(tmp_path, scattered, device).operation.warm_up.steady


def test_what_was_measured_outlives_the_function_that_fails(tmp_path):
    device, calls = FakeDevice(), []

    def failing():
        calls.append(1)
        if len(calls) > 200:
            raise ValueError("tile does not\nfit")
        device.op([(40_000, 10_000)])()

    with pytest.raises(CaptureUnavailable) as caught:
        session(tmp_path, failing, device)
    assert caught.value.kind == "function_raised" and "ValueError in wall_" in str(caught.value)
    assert "\n" not in caught.value.one_line()
    record = kept(tmp_path)
    assert any(p.samples_us for p in record.protocols)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "out_of_memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), "out_of_memory"),
        (SystemExit(3), "function_exited"),
        (AssertionError("Torch not compiled with CUDA enabled"), "needs_gpu"),
        (RuntimeError("Found no NVIDIA driver on your system. CUDA ..."), "needs_gpu"),
        (RecursionError("maximum recursion depth exceeded"), "function_raised"),
    ],
)
def test_each_kind_of_failure_has_its_word_and_exit_code_four(tmp_path, error, kind):
    def failing():
        raise error

    with pytest.raises(CaptureUnavailable) as caught:
        session(tmp_path, failing)
    assert caught.value.kind == kind and caught.value.exit_code == 4
    assert not any(p.samples_us for p in kept(tmp_path).protocols)


def test_an_interrupt_stays_an_interrupt_and_keeps_what_there_is(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session(tmp_path, interrupted)
    assert kept(tmp_path).name == "op"


async def coroutine():
    return 1


def generator():
    yield 1


@pytest.mark.parametrize("call", [coroutine, generator])
def test_a_function_that_does_no_work_when_called_is_refused(tmp_path, call):
    with pytest.raises(CaptureUnavailable, match="did nothing"):
        session(tmp_path, call)


def test_a_result_that_is_right_once_and_wrong_later_is_wrong(tmp_path):
    device, calls = FakeDevice(), []

    def lazy():
        calls.append(1)
        device.op([(40_000, 10_000)])()
        return 4.0 if len(calls) == 1 else 0.0

    record = session(tmp_path, lazy, device, reference=lambda: 4.0).operation
    assert record.correctness.passed is False and "right in the first call, wrong after" in record.correctness.reason


def test_a_function_that_changes_its_inputs_is_held_to_their_first_values(tmp_path):
    torch = pytest.importorskip("torch", reason="in-place change needs tensors")
    device, x = FakeDevice(), torch.zeros(4)

    def grow(t):
        device.op([(40_000, 10_000)])()
        return t.add_(1)

    record = session(tmp_path, lambda: grow(x), device, args=(x,), reference=lambda t: t + 1).operation
    assert record.correctness.passed is True


def test_slow_calls_get_fewer_of_them_and_never_under_six_rounds():
    found = plan(100, 500e6, 6, 3, 30 * 10**9)
    assert (found.rounds, found.block_calls, found.round_calls) == (6, 1, 1)
    assert "6 rounds of 1 single call, and of a block of 1 call" in found.note
    assert plan(100, 50e3, 6, 3, 30 * 10**9).note == ""
    assert plan(100, 50e3, 6, 3, 30 * 10**9, held_bytes=1 << 28).block_calls == 4


def test_an_earlier_capture_in_the_folder_leaves_nothing_behind(tmp_path):
    session(tmp_path, FakeDevice().op([(40_000, 10_000)]), settings=Settings(iterations=10))
    assert (tmp_path / "trace.json.gz").is_file()

    def failing():
        raise ValueError

    with pytest.raises(CaptureUnavailable):
        session(tmp_path, failing)
    assert not (tmp_path / "trace.json.gz").exists()


def test_a_steep_fall_is_told_by_its_levels_and_never_by_over_100_percent():
    times = np.array([1000 + int(40_000 * 0.95**n) for n in range(100)], dtype=np.int64)
    assert drift(times, 0.1).total < -1
    assert trend(times) == "falls from 22.6 us to 1.46 us"
    assert trend(np.arange(1000, 1500, 5, dtype=np.int64)) == "rises by 40 %"
