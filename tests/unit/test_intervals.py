"""Interval algebra holds for any intervals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.analysis import intervals, stats

pairs = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=25)


def arrays(found):
    starts = np.array([s for s, _ in found], dtype=np.int64)
    return starts, starts + np.array([d for _, d in found], dtype=np.int64)


def instants(found) -> set[int]:
    return {t for s, d in found for t in range(s, s + d)}


@given(pairs)
def test_the_union_covers_the_same_instants(found):
    s, e = intervals.union(*arrays(found))
    assert intervals.length(s, e) == len(instants(found))
    assert (s[1:] > e[:-1]).all()


@given(pairs)
def test_union_and_gaps_fill_the_span(found):
    s, e = intervals.union(*arrays(found))
    low, high = intervals.complement(s, e)
    if len(s):
        assert intervals.length(s, e) + intervals.length(low, high) == e[-1] - s[0]


@given(pairs, pairs)
def test_covered_length_counts_common_instants(found, others):
    s, e = arrays(found)
    covered = intervals.covered_length(s, e, *arrays(others))
    theirs = instants(others)
    assert covered.tolist() == [len(set(range(a, b)) & theirs) for a, b in zip(s, e, strict=True)]


@given(pairs, pairs)
def test_overlap_is_symmetric_with_brute_force(found, others):
    s, e = arrays(found)
    os, oe = arrays(others)
    wanted = [any(a <= d and c <= b for c, d in zip(os, oe, strict=True)) for a, b in zip(s, e, strict=True)]
    assert intervals.overlaps_any(s, e, os, oe).tolist() == wanted


@given(st.integers(6, 400))
def test_the_interval_of_the_median_covers_95_percent_and_no_wider(n):
    from math import comb

    k = stats.median_rank(n)
    below = sum(comb(n, i) for i in range(k)) / 2**n
    assert below <= 0.025 and below + comb(n, k) / 2**n > 0.025


def test_under_six_values_there_is_no_interval():
    assert stats.median_interval(np.arange(5)) is None
    assert stats.median_interval(np.arange(6)) == (0.0, 5.0)


def test_large_samples_have_a_rank_too():
    for n in (2_000, 100_000, 1_000_003):
        k = stats.median_rank(n)
        assert abs(k - (n / 2 - 0.98 * n**0.5)) < 3
