"""Our statistics, written to keep the report quick to start, give what scipy gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference

from traceanalyzer.analysis import steadiness


@pytest.mark.parametrize("seed", range(10))
def test_drift_is_theil_sen_with_sens_interval(seed):
    rng = np.random.default_rng(seed)
    values = np.round(100_000 + 50 * np.arange(120) + rng.normal(0, 3000, 120)).astype(np.int64)
    found = steadiness.drift(values)
    slope, _, low, high = reference.theilslopes(values, np.arange(120), 0.999)
    scale = 119 / np.median(values)
    assert found.total == pytest.approx(slope * scale, rel=1e-9)
    # scipy rounds the ranks of the interval's ends otherwise: one rank of 7,140
    assert (found.low, found.high) == pytest.approx((low * scale, high * scale), abs=2e-4)


@pytest.mark.parametrize("seed", range(10))
def test_kendall_is_tau_b(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 50, 80), rng.integers(0, 50, 80)
    tau, _ = steadiness.kendall(x, y)
    assert tau == pytest.approx(reference.kendalltau(x, y).statistic, abs=1e-9)
