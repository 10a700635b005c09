"""When a cost falls due, on costs laid out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.analysis.recurrence import Recurrence, When, recurrence

STEPS = np.arange(0, 100_000, 1000)
NO_STEPS = np.empty(0, dtype=np.int64)


def found(costs: dict[int, int], steps=NO_STEPS, end: int = 100_000) -> Recurrence:
    at = np.array(sorted(costs), dtype=np.int64)
    return recurrence(at, np.array([costs[a] for a in at.tolist()], dtype=np.int64), 0, end, steps)


def test_what_falls_into_the_first_tenth_is_at_the_start():
    assert found({100: 500, 9_000: 400, 50_000: 100}).when is When.START


def test_what_falls_into_the_last_tenth_is_at_the_end():
    assert found({95_000: 500, 97_000: 500, 50_000: 60}).when is When.END


def test_one_occurrence_that_holds_nearly_all_is_once():
    assert found({40_000: 9000, 60_000: 500, 70_000: 400}).when is When.ONCE
    # wherever it falls: a pause of most of the window begins early
    assert found({9_000: 80_000, 95_000: 100}).when is When.ONCE


def test_every_step_and_every_kth_step():
    rng = np.random.default_rng(1)
    each = {int(s) + 200: int(rng.integers(80, 120)) for s in STEPS}
    assert found(each, STEPS) == Recurrence(When.EVERY_STEP, every=1)
    fourth = {int(s) + 200: int(rng.integers(80, 120)) for s in STEPS[2::4]}
    assert found(fourth, STEPS) == Recurrence(When.KTH_STEP, every=4)
    # a little in every step and much in each fifth: the fifth is what to look at
    mixed = {int(s) + 200: 1000 if n % 5 == 0 else 20 for n, s in enumerate(STEPS)}
    assert found(mixed, STEPS) == Recurrence(When.KTH_STEP, every=5)


def test_a_steady_rate_needs_no_steps():
    assert found(dict.fromkeys(range(50, 100000, 700), 10)).when is When.STEADY


def test_regular_occurrences_without_steps_have_a_period():
    spread = {15_000: 100, 35_000: 101, 55_000: 99, 75_100: 100}
    answer = found(spread)
    assert answer.when is When.PERIODIC and abs(answer.period_ns - 20_000) <= 100


def test_no_pattern_is_not_made_up():
    assert found({12_000: 100, 30_000: 90, 33_000: 80, 34_000: 95, 37_000: 100}).when is When.IRREGULAR
    gaps = {int(STEPS[n]) + 10: 100 for n in (15, 22, 31, 33, 47, 60, 66)}
    assert found(gaps, STEPS).when in (When.IRREGULAR, When.STEADY)


@pytest.mark.parametrize("empty", [{}, {5: 0}])
def test_no_cost_has_no_pattern(empty):
    assert found(empty).when is When.IRREGULAR
