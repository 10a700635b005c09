"""The simulator is sound by itself, and reproduces the golden table of the timing model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.queue_sim import Machine, reading

GOLDEN = [  # d, k, wall sync each, pair + sync, pair, whole loop, do_bench c=85, c=16 (L=4, s=6, e=2, d_c=6)
    (20, 8, 38, 28, 24, 20, 8, 14),
    (20, 12, 42, 32, 24, 20, 12, 14),
    (20, 35, 65, 55, 35, 35, 35, 35),
    (20, 300, 330, 320, 300, 300, 300, 300),
    (40, 8, 58, 48, 44, 40, 8, 34),
    (40, 12, 62, 52, 44, 40, 12, 34),
    (40, 35, 85, 75, 44, 40, 35, 35),
    (40, 56, 106, 96, 56, 56, 56, 56),
]
COLUMNS = ("wall_sync_each", "event_pair_sync", "event_pair", "event_loop", "do_bench", "do_bench")


def machine() -> Machine:
    return Machine(latency=4000, sync_cost=6000, record_cost=2000, depth=100_000)


@pytest.mark.parametrize("row", GOLDEN, ids=[f"d{r[0]}_k{r[1]}" for r in GOLDEN])
@pytest.mark.parametrize("column", range(6))
def test_the_golden_table_is_reproduced(row, column):
    d, k, *expected = row
    clear = 85_000 if column == 4 else 16_000
    found = reading(COLUMNS[column], [(d * 1000, k * 1000)], machine(), n=2000, clear=clear)
    tolerance = 0.05 if COLUMNS[column] == "event_loop" else 0.001  # the first and last call are in the loop
    assert found / 1000 == pytest.approx(expected[column], abs=tolerance)


@pytest.mark.parametrize(
    ("op", "pair", "pair_sync", "self_time"),
    [([(20, 5), (20, 5), (20, 5)], 64, 65, 15), ([(40, 10), (5, 10)], 49, 60, 20)],
)
def test_operations_of_several_kernels(op, pair, pair_sync, self_time):
    op = [(d * 1000, k * 1000) for d, k in op]
    assert reading("event_pair", op, machine()) == pair * 1000
    assert reading("event_pair_sync", op, machine()) == pair_sync * 1000
    assert reading("profiler_self_time", op, machine()) == self_time * 1000


times = st.integers(1_000, 100_000)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30), st.integers(1, 8), st.integers(0, 2000))
def test_streams_run_in_order_and_nothing_runs_before_its_launch(op, depth, gap):
    m = Machine(depth=depth, gap=gap)
    for d, k in op:
        m.launch("k", k, host_cost=d, call=500)
    calls = {h.corr: h for h in m.host}
    for before, after in zip(m.device, m.device[1:], strict=False):
        assert after.start >= before.end + gap
    for row in m.device:
        assert row.start >= calls[row.corr].end + m.latency
    for i, row in enumerate(m.device):
        submitted = calls[row.corr].end
        waiting = [r for r in m.device[:i] if r.start > submitted]
        assert len(waiting) < depth


@given(st.lists(st.tuples(times, times), min_size=2, max_size=10), st.integers(-500_000, 10**12))
def test_shifting_the_clock_changes_nothing_else(op, shift):
    def rows(start):
        m = Machine(now=start)
        for d, k in op:
            m.launch("k", k, host_cost=d)
        return [(r.start - start, r.end - start) for r in m.device]

    assert rows(1_000_000) == rows(1_000_000 + shift)
