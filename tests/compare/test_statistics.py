"""The ratio of two medians: its interval, its verdict, and what it says of too little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.compare_coverage import FEW_SIZES, KINDS, SIZES, study, times
from traceanalyzer.analysis.compare.statistics import (
    Times,
    clock_step,
    compare_medians,
    device_step,
    differs_p,
    effective_count,
    pooled,
    spread_steps,
    verdict_of,
    withdrawn,
)

RNG = np.random.default_rng(20261130)
CONSERVATIVE = {"1 us clock", "1 us clock, all in one step", "slow wave"}


def series(n: int, level_us: float = 10.0, scatter: float = 0.03, seed: int = 0) -> Times:
    rng = np.random.default_rng(seed)
    return times(level_us * (1 + scatter * rng.standard_normal(n)), 1, rng)


@pytest.mark.parametrize("kind", KINDS, ids=[k.title for k in KINDS])
def test_the_interval_covers_and_equal_pairs_are_not_called_different(kind):
    # a small version of benchmarks/compare_coverage.py: 280 pairs in all, bounds three standard errors wide
    rng = np.random.default_rng(7)
    found = [study(kind, sizes, 20, rng) for sizes in SIZES]
    pairs = sum(f.pairs - f.none for f in found)
    coverage = sum(f.covered for f in found) / pairs
    assert pairs > 250
    assert coverage > 0.90
    assert kind.title in CONSERVATIVE or coverage < 0.99
    assert sum(f.false for f in found) / sum(f.equal for f in found) < 0.05


@pytest.mark.parametrize("title", ["steps of a model", "two-thread steps"])
def test_dependence_that_long_steps_hide_is_in_the_interval(title):
    kind = next(k for k in KINDS if k.title == title)
    found = [study(kind, sizes, 150, np.random.default_rng(11)) for sizes in ((30, 30), (100, 100))]
    # 600 pairs: three standard errors under 95 %
    assert sum(f.covered for f in found) / 600 > 0.923


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.title)
def test_few_repeats_of_one_program_are_called_different_in_under_one_of_twenty_pairs(kind):
    found = [study(kind, sizes, 60, np.random.default_rng(7)) for sizes in FEW_SIZES]
    equal = sum(f.equal for f in found)
    assert equal == 300 and sum(f.false for f in found) / equal < 0.05 + 3 * (0.05 * 0.95 / equal) ** 0.5


def test_the_interval_is_that_of_scipys_bootstrap_for_independent_values():
    from scipy.stats import bootstrap

    a, b = series(101, seed=1), series(151, 9.0, seed=2)
    ours = compare_medians(a, b)
    theirs = bootstrap(
        (np.asarray(a.values), np.asarray(b.values)), lambda x, y, axis: np.median(y, axis=axis) / np.median(x, axis=axis),
        n_resamples=4000, method="percentile", random_state=1,
    ).confidence_interval  # fmt: skip
    width = theirs.high - theirs.low
    assert ours.interval is not None
    assert abs(ours.interval[0] - theirs.low) < 0.25 * width
    assert abs(ours.interval[1] - theirs.high) < 0.25 * width


def test_the_ratio_is_head_over_base_of_the_plain_medians():
    a, b = series(60, 10.0, seed=1), series(80, 14.0, seed=2)
    found = compare_medians(a, b)
    assert found.ratio == np.median(b.values) / np.median(a.values)
    assert found.interval is not None and found.interval[0] <= found.ratio <= found.interval[1]
    assert verdict_of(found) == "SLOWER"
    assert verdict_of(compare_medians(b, a)) == "FASTER"


def test_the_same_input_gives_the_same_interval_and_another_row_other_draws():
    a, b = series(60, seed=1), series(80, seed=2)
    assert compare_medians(a, b).interval == compare_medians(a, b).interval
    assert (compare_medians(a, b).log_draws != compare_medians(a, b, stream=1).log_draws).any()


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(0.985, "FASTER"), (0.995, "SAME"), (1.005, "SAME"), (1.015, "SLOWER"), (0.99, "UNDECIDED")]
)
def test_one_percent_either_way_is_the_same(ratio, verdict):
    # 1 ns of scatter at 100 us: the interval is a point but for the border itself
    base = series(100, 100.0, 1e-5, 1)
    assert verdict_of(compare_medians(base, series(100, 100.0 * ratio, 2e-4 if ratio == 0.99 else 1e-5, 2))) == verdict


def test_undecided_says_how_many_values_would_decide_and_so_many_do():
    base, head = series(20, 10.0, 0.05, 1), series(20, 9.75, 0.05, 2)
    found = compare_medians(base, head)
    assert verdict_of(found) == "UNDECIDED" and found.n_needed is not None and found.n_needed > 20
    more = compare_medians(series(8 * found.n_needed, 10.0, 0.05, 3), series(8 * found.n_needed, 9.75, 0.05, 4))
    assert verdict_of(more) == "FASTER" and more.n_needed is None


@pytest.mark.parametrize("n", [1, 2, 5])
def test_under_six_values_there_is_a_ratio_but_no_interval(n):
    found = compare_medians(series(n), series(40, 5.0))
    assert found.ratio is not None and found.interval is None
    assert verdict_of(found) == "UNDECIDED" and f"base n {n}" in found.reason


def test_a_median_of_zero_has_no_ratio():
    zero = Times(10, 0.0, np.zeros(10, dtype=np.int64))
    found = compare_medians(zero, series(10))
    assert found.ratio is None and "0" in found.reason and verdict_of(found) == "UNDECIDED"


def test_dependence_widens_the_interval_and_says_so():
    rng = np.random.default_rng(3)
    x = np.zeros(400)
    for i in range(1, 400):
        x[i] = 0.8 * x[i - 1] + rng.standard_normal()
    dependent = times(10 * (1 + 0.02 * x), 1, rng)
    shuffled = replace(dependent, values=rng.permutation(dependent.values))
    worth, blocks = effective_count(dependent)
    assert blocks and worth < 120
    assert effective_count(shuffled)[1] is False
    wide, narrow = compare_medians(dependent, dependent), compare_medians(shuffled, shuffled)
    assert wide.blocks and wide.interval and narrow.interval
    assert wide.interval[1] - wide.interval[0] > 1.5 * (narrow.interval[1] - narrow.interval[0])


def test_a_series_worth_under_six_values_spans_its_whole_range():
    ramp = times(np.linspace(10, 12, 20), 1, np.random.default_rng(0))
    found = compare_medians(ramp, series(50, 5.0, 1e-4))
    assert found.effective[0] < 6 and found.interval is not None
    assert found.interval[0] < 5.0 / 11.9 and found.interval[1] > 5.0 / 10.1


def test_thinned_samples_count_for_what_they_were_taken_from():
    rng = np.random.default_rng(5)
    full = (10_000 * (1 + 0.05 * rng.standard_normal(1000))).astype(np.int64)
    whole = Times(1000, float(np.median(full)), full)
    thin = Times(1000, float(np.median(full)), full[::2])
    alone = Times(500, float(np.median(full[::2])), full[::2])
    head = series(4000, 10.0, 0.05, 6)
    widths = []
    for base in (whole, thin, alone):
        found = compare_medians(base, head)
        assert found.interval is not None
        widths.append(found.interval[1] - found.interval[0])
    assert widths[1] < 0.92 * widths[2]
    assert abs(widths[1] - widths[0]) < 0.2 * widths[0]


def test_without_samples_the_interval_of_the_median_stands_in_and_is_wider():
    from traceanalyzer.analysis.stats import median_interval

    base, head = series(60, seed=1), series(60, 9.0, seed=2)
    bare = [Times(t.count, t.p50_ns, interval_ns=median_interval(t.values)) for t in (base, head)]
    full, found = compare_medians(base, head), compare_medians(*bare)
    assert found.from_interval and not full.from_interval and found.interval and full.interval
    assert found.interval[1] - found.interval[0] > full.interval[1] - full.interval[0]
    assert compare_medians(Times(60, 1e4), head).interval is None


def test_ties_of_a_stepped_clock_are_spread_over_the_step():
    values = np.array([10_016, 10_048, 10_048, 10_048, 10_080, 10_112, 10_144])
    assert clock_step(values) == 32
    spread, shift = spread_steps(values)
    assert shift == 0 and len(np.unique(spread)) == len(values)
    assert spread[1] > 10_048 - 16 and spread[3] < 10_048 + 16 and spread[2] == 10_048


def test_two_levels_are_modes_and_not_a_clock_step():
    assert clock_step(np.array([10_001, 12_001] * 10)) == 1
    assert clock_step(np.array([10_000, 12_000] * 10), written=1000) == 1000


def counted(true_ns: float, step: int, seed: int, n: int = 200, off: int = 0) -> np.ndarray:
    """Return times as a device's clock counts them whose stamps are converted to nanoseconds, within ``off``."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum(rng.integers(9000, 11_000, n))
    ends = starts + np.rint(true_ns * (1 + 0.01 * rng.standard_normal(n))).astype(np.int64)
    return (ends // step - starts // step) * step + rng.integers(-off, off + 1, n)


@pytest.mark.parametrize("step", [1000, 40, 32])
@pytest.mark.parametrize("off", [0, 1])
def test_a_devices_step_is_seen_in_the_times_although_the_file_writes_nanoseconds(step, off):
    assert device_step([counted(3.3 * step, step, 1, off=off), counted(30 * step, step, 2, off=off)]) == step
    assert device_step([counted(3.3 * step, step, 1, off=off)]) == step
    assert device_step([series(200, seed=3).values, counted(3.3 * step, step, 1, off=off)]) == 1
    assert device_step([np.array([10_000, 14_000] * 20)]) in (1, 1000)
    assert device_step([np.array([10_011, 12_017] * 20)]) == device_step([np.full(20, 10_000)]) == device_step([]) == 1


@pytest.mark.parametrize(
    ("step", "base", "head"), [(1000, 3000, 3300), (1000, 1800, 2300), (32, 1000, 1012), (32, 1500, 1516)]
)
def test_a_difference_under_the_devices_step_is_neither_called_the_same_nor_found(step, base, head):
    for seed in range(5):
        a, b = counted(base, step, seed, off=1), counted(head, step, 100 + seed, off=1)
        sides = [Times(len(v), float(np.median(v)), v, step_ns=device_step([v])) for v in (a, b)]
        found = compare_medians(*sides)
        assert verdict_of(found) == "UNDECIDED"
        assert found.interval is not None and found.interval[0] <= head / base <= found.interval[1]


def test_times_all_in_one_step_leave_the_ratio_open_by_the_step():
    one = Times(100, 10_000.0, np.full(100, 10_000, dtype=np.int64), step_ns=1000)
    found = compare_medians(one, one)
    assert found.interval is not None and found.interval[0] < 0.93 and found.interval[1] > 1.07


def test_of_many_equal_pairs_a_lucky_one_is_withdrawn_and_a_real_one_stays():
    assert withdrawn([0.04, *[0.5] * 20]) == [True] + [True] * 20
    assert withdrawn([1e-6, *[0.5] * 20])[0] is False
    assert withdrawn([0.04]) == [False] and withdrawn([None, 0.01]) == [False, False]


def test_p_is_under_five_percent_just_where_the_interval_clears_the_border():
    for seed in range(30):
        found = compare_medians(series(30, 10.0, 0.02, seed), series(30, 9.75, 0.02, 100 + seed))
        p = differs_p(found)
        assert p is not None and found.interval is not None
        if abs(found.interval[1] - 0.99) > 1e-3:
            assert (p < 0.05) == (found.interval[1] < 0.99)


def test_the_pooled_ratio_is_the_geometric_mean_with_an_interval_narrower_than_its_parts():
    parts = [
        compare_medians(series(40, 10.0, 0.05, 2 * i), series(40, 10.0, 0.05, 2 * i + 1), stream=i) for i in range(9)
    ]
    found = pooled(parts, [1.0] * 9)
    assert found is not None and found[1] is not None
    assert found[0] == pytest.approx(np.exp(np.mean([np.log(p.ratio) for p in parts])))
    assert found[1][1] - found[1][0] < 0.5 * np.mean([p.interval[1] - p.interval[0] for p in parts if p.interval])
    assert pooled([], []) is None
