"""Decimal microseconds become integer nanoseconds without loss."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.trace.kineto.decimal_times import BAD_TIME, column_to_ns, finest_step_ns, to_ns


@given(st.lists(st.tuples(st.integers(0, 8 * 10**15), st.integers(0, 999), st.integers(0, 3)), min_size=1, max_size=50))
def test_text_with_up_to_three_decimals_is_exact(parts):
    texts, wanted = [], []
    for whole, thousandths, digits in parts:
        fraction = f"{thousandths:03d}"[:digits]
        texts.append(f"{whole}.{fraction}".encode() if digits else str(whole).encode())
        wanted.append(whole * 1000 + int(fraction.ljust(3, "0") if digits else 0))
    assert column_to_ns(texts).tolist() == wanted


def test_stamps_of_1_7e15_keep_their_last_digit():
    assert column_to_ns([b"1712195495519689.123", b"1712195495519689.124"]).tolist() == [
        1712195495519689123,
        1712195495519689124,
    ]
    assert round(float("1712195495519689.123") * 1000) != 1712195495519689123


@given(st.decimals(-(10**12), 10**12, allow_nan=False, places=6))
def test_fractions_of_a_nanosecond_round_to_the_nearest(value):
    assert abs(Fraction(to_ns(str(value).encode())) - Fraction(value) * 1000) <= Fraction(1, 2)


@pytest.mark.parametrize(
    "text", [b"", b"null", b"NaN", b'"x"', b"1e400", b"[1]", b"--1", b"1.2.3", b"9" * 40, b"1" * 1000]
)
def test_what_is_no_time_is_marked(text):
    assert column_to_ns([text, b"1.5"]).tolist() == [BAD_TIME, 1500]


@pytest.mark.parametrize(
    ("text", "ns"),
    [(b'"2.5"', 2500), (b"-1.5", -1500), (b"1e3", 1_000_000), (b" 7 ", 7000), (b".5", 500), (b"5.", 5000)],
)
def test_other_ways_to_write_a_number(text, ns):
    assert column_to_ns([b"1", text]).tolist() == [1000, ns]


@pytest.mark.parametrize(
    ("texts", "step"), [([b"1", b"2"], 1000), ([b"1.0"], 1000), ([b"1.5"], 100), ([b"1.25"], 10), ([b"1", b"8.000"], 1)]
)
def test_the_step_of_stamps(texts, step):
    assert finest_step_ns(texts) == step
