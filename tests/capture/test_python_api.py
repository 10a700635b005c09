"""measure, @benchmark and the pytest fixture: on the fake device and, for the plugin, in a pytest of its own."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import pytest

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture.benchmark import benchmark
from traceanalyzer.capture.measure import measure
from traceanalyzer.errors import OptionError

pytest_plugins = ["pytester"]


def test_a_measurement_has_both_times_and_a_verdict(tmp_path):
    device = FakeDevice()
    found = measure(device.op([(40_000, 10_000)]), device=device, name="op", out=tmp_path / "kept")
    assert (found.device_us, found.cold_us) == (10, 10) and found.end_to_end_us == pytest.approx(40, rel=0.02)
    assert (found.verdict == "suspect" and "dispatch" in found.headline) or "host" in found.headline
    assert found.correct is None and (tmp_path / "kept" / "trace.json.gz").is_file()
    assert "device 10 us (cold cache 10 us), end to end 40" in str(found)


def test_a_wrong_result_is_told_apart_from_one_that_nothing_was_compared_with():
    device = FakeDevice()
    call = device.op([(10_000, 20_000)], result=2.0)
    assert measure(call, device=device, reference=lambda: 1.0).correct is False
    assert measure(call, device=device, reference=lambda: 2.0).correct is True


def test_precision_is_reached_by_more_calls():
    import numpy as np

    from tests.queue_sim import Machine

    device = FakeDevice(Machine(jitter=0.2, rng=np.random.default_rng(5)))
    found = measure(device.op([(5_000, 50_000)]), device=device, iters=10, precision=0.02)
    low, high = found.ci95_us
    assert high - low <= 2 * 0.02 * found.time_us and len(found.sidecar.operations[0].protocols[-1].samples_us) > 20


@benchmark(axes={"n": [1, 2]}, reference=lambda x: x)
def identity(x):
    return x


def test_the_decorator_leaves_the_function_and_names_what_bench_looks_for():
    assert identity(3) == 3 and identity_axes == {"n": [1, 2]} and identity_reference(4) == 4  # noqa: F821
    assert callable(identity.bench)
    with pytest.raises(OptionError, match="not a function of a module"):
        benchmark()(lambda x: x)


TESTS = """
    import pytest
    from tests.capture.fake_device import FakeDevice

    def measured(ta_benchmark, kernel, **options):
        device = FakeDevice()
        return ta_benchmark(device.op([(5_000, kernel)], result=1.0), device=device, name="op", **options)

    def test_sound(ta_benchmark):
        assert measured(ta_benchmark, {kernel}).device_us == {kernel} / 1000

    def test_wrong(ta_benchmark):
        measured(ta_benchmark, 50_000, reference=lambda: 2.0)

    def test_suspect(ta_benchmark):
        device = FakeDevice()
        ta_benchmark(device.op([(40_000, 10_000)]), device=device)

    def test_nothing(ta_benchmark):
        pass
"""


def run(pytester, kernel, *words):
    import pathlib

    pytester.makepyfile(test_times=TESTS.format(kernel=kernel))
    root = pathlib.Path(__file__).resolve().parents[2]
    pytester.syspathinsert(str(root))
    # an installed package brings the plugin along, and pytest takes it once
    installed = any(e.name == "traceanalyzer" for e in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "traceanalyzer.capture.pytest_plugin"]
    return pytester.runpytest_inprocess(*plugin, "-p", "no:cacheprovider", "-p", "no:xdist", *words)


def test_the_fixture_fails_what_is_wrong_suspect_or_slower(pytester):
    first = run(pytester, 50_000, "--ta-save", "times.json")
    first.assert_outcomes(passed=2, failed=2, errors=1)
    first.stdout.fnmatch_lines(["*wrong result:*", "*suspect:*"])
    saved = json.loads((pytester.path / "times.json").read_text())["tests"]
    assert next(v for k, v in saved.items() if k.endswith("::test_sound"))["time_us"] == 50
    again = run(
        pytester, 60_000, "--ta-compare", "times.json", "--ta-allow-suspect", "-k", "test_sound or test_suspect"
    )
    again.assert_outcomes(passed=1, failed=1)
    again.stdout.fnmatch_lines(["*slower: 60 us, was 50 us (+20 %; the limit is 5.0 %)*"])
    assert run(pytester, 51_000, "--ta-compare", "times.json", "-k", "test_sound").ret == 0


def test_a_file_of_something_else_is_a_usage_error(pytester):
    (pytester.path / "times.json").write_text("[]")
    result = run(pytester, 50_000, "--ta-compare", "times.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
