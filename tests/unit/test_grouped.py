"""Statistics of many groups at once are those of each group alone, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.grouped import Groups


@pytest.mark.parametrize("seed", range(5))
def test_grouped_statistics_equal_numpys_group_by_group(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 40, 50)
    rows = rng.permutation(int(counts.sum()) + 30)[: int(counts.sum())]
    values = rng.integers(0, 10**6, int(counts.sum()) + 30)
    mask = rng.random(len(values)) < 0.6
    groups = Groups(rows, np.cumsum(counts) - counts)
    ordered, some = groups.ordered(values), groups.ordered(values, mask)
    for i in range(len(counts)):
        own = values[groups.members(i)]
        kept = own[mask[groups.members(i)]]
        assert groups.sum(values)[i] == own.sum()
        assert ordered.quantile(0.5)[i] == np.median(own)
        assert ordered.quantile(0.9)[i] == np.quantile(own, 0.9)
        assert (ordered.first()[i], ordered.last()[i]) == (own.min(), own.max())
        assert ordered.median_intervals()[i] == stats.median_interval(own)
        assert some.medians()[i] == stats.median(kept)
