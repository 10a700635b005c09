"""``--precision``: more calls until the interval is narrow enough, and what is said where it never is."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tests.bench.fake_runner import Runner, Speed
from tests.bench.test_bench_command import cli
from tests.queue_sim import Machine
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.capture.precision import MOST_CALLS, half_width, next_calls


def noisy(jitter, **asked):
    speed = Speed(5, 100, device={"machine": Machine(jitter=jitter, rng=np.random.default_rng(3))})
    speeds = {"triton": speed}
    runner = Runner(speeds, names=("triton",), dtypes=("fp32",), directions=("forward",))
    return bench(BenchAsked("msda", iterations=12, against=(), **asked), run=runner), runner


def test_a_narrow_interval_is_measured_once():
    table, runner = noisy(0.0, precision=0.01)
    assert [j.iterations for j in runner.jobs] == [12] and not table.rows[0].notes


def test_a_wide_one_is_measured_again_with_as_many_calls_as_it_takes():
    table, runner = noisy(0.1, precision=0.02)
    row = table.rows[0]
    assert half_width(row.device.p50_us, row.device.ci95_us) <= 0.02
    calls = [j.iterations for j in runner.jobs]
    assert len(calls) > 1 and calls == sorted(calls) and row.device.n > 12
    assert not [n for n in row.notes if "wanted within" in n]


def test_without_precision_nothing_is_measured_twice():
    _, runner = noisy(0.1)
    assert len(runner.jobs) == 1


def test_what_was_not_reached_is_a_note_with_what_was():
    table, runner = noisy(0.3, precision=0.0001, budget_s=0.05)
    assert len(runner.jobs) <= 6
    (note,) = [n for n in table.rows[0].notes if "wanted within" in n]
    assert note.startswith("wanted within 0.01 %, reached ")


def test_a_run_that_fails_leaves_the_one_before():
    speed = Speed(5, 100, device={"machine": Machine(jitter=0.2, rng=np.random.default_rng(3))})
    runner = Runner({"triton": speed}, names=("triton",), dtypes=("fp32",), directions=("forward",))

    def first_then_fail(job, seconds):
        if runner.jobs:
            speed.fails = RuntimeError("CUDA out of memory")
        return runner(job, seconds)

    table = bench(BenchAsked("msda", iterations=12, against=(), precision=0.001), run=first_then_fail)
    assert len(runner.jobs) == 2 and table.rows[0].measured and not table.rows[0].missing


@pytest.mark.parametrize(
    ("half", "before", "more"),
    [
        (0.01, None, None),  # as narrow as wanted
        (0.02, None, 500),  # four times the calls and some room
        (0.04, 0.041, None),  # the run before made no difference
        (0.5, None, 1600),  # no more than 16 times at once
        (None, None, 400),  # too few readings for an interval
    ],
)
def test_the_next_number_of_calls(half, before, more):
    assert next_calls(100, half, before, 0.01) == more
    assert next_calls(MOST_CALLS, half, before, 0.01) is None


def test_a_precision_of_nothing_is_refused():
    done = CliRunner().invoke(cli, ["bench", "msda", "--precision", "0%"])
    assert done.exit_code == 2 and "--precision" in done.output
