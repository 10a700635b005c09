"""What is asked of a series of self-times, and what of it needs scipy at all."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from traceanalyzer.analysis import steadiness


@pytest.mark.parametrize("total", [0.04, 0.1, -0.2])
def test_a_straight_drift_is_found_with_an_interval_around_its_size(total):
    rng = np.random.default_rng(7)
    values = np.round(100_000 * (1 + total * np.arange(120) / 119) + rng.normal(0, 500, 120)).astype(np.int64)
    found = steadiness.drift(values, 0.03)
    size = total / (1 + total / 2)  # of the median, which lies half-way
    assert found.low <= size <= found.high
    assert found.total == pytest.approx(size, abs=0.01)


def test_a_drift_just_over_the_limit_is_not_lost_to_the_screening():
    values = np.round(100_000 * (1 + 0.031 * np.arange(40) / 39)).astype(np.int64)
    assert steadiness.drift(values, 0.03).total > 0.03


def test_a_level_series_has_no_drift_and_loads_no_scipy():
    code = (
        "import sys, numpy as np\nfrom traceanalyzer.analysis.steadiness import drift\n"
        "assert drift(np.full(50, 1000), 0.03) is None\nassert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kendall_of_series_without_order_is_no_correlation():
    assert steadiness.kendall(np.full(30, 5), np.arange(30)) == (0.0, 1.0)
    tau, p = steadiness.kendall(np.arange(1000), np.arange(1000))
    assert tau == pytest.approx(1) and p < 1e-9
