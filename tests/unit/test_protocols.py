"""The closed forms against the golden table and against the independent simulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.queue_sim import Machine, reading
from tests.unit.test_queue_sim import COLUMNS, GOLDEN
from traceanalyzer.analysis.protocols import (
    PROTOCOLS,
    TITLES,
    Symbols,
    do_bench,
    event_pair,
    event_pair_sync,
    inverts_by_max,
    inverts_by_sum,
    ladder,
    profiler_self_time,
)


def of(d, k, **other) -> Symbols:
    return Symbols((d * 1000,), (k * 1000,), **{"calls": 10**9, **other})


@pytest.mark.parametrize("row", GOLDEN, ids=[f"d{r[0]}_k{r[1]}" for r in GOLDEN])
def test_the_golden_table(row):
    d, k, *expected = row
    for column, wanted in zip(COLUMNS[:5], expected[:5], strict=True):
        assert ladder(of(d, k))[column] / 1000 == pytest.approx(wanted, abs=1e-3), column
    assert do_bench(of(d, k, clear=16_000)) / 1000 == expected[5]


@pytest.mark.parametrize(
    ("op", "pair", "pair_sync", "bench", "self_time"),
    [([(20, 5), (20, 5), (20, 5)], 64, 65, 15, 15), ([(40, 10), (5, 10)], 49, 60, 20, 20)],
)
def test_operations_of_several_kernels(op, pair, pair_sync, bench, self_time):
    s = Symbols(tuple(d * 1000 for d, _ in op), tuple(k * 1000 for _, k in op))
    found = [f(s) / 1000 for f in (event_pair, event_pair_sync, do_bench, profiler_self_time)]
    assert found == [pair, pair_sync, bench, self_time]


def random_case(rng) -> tuple[list[tuple[int, int]], dict[str, int]]:
    m = int(rng.integers(1, 5))
    op = [(int(rng.integers(500, 60_000)), int(rng.integers(500, 80_000))) for _ in range(m)]
    machine = {
        "latency": int(rng.integers(0, 10_000)), "record_cost": int(rng.integers(0, 5_000)), "sync_cost": int(rng.integers(0, 15_000)),
    }  # fmt: skip
    return op, machine


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if p not in ("graph_unrolled", "wall_nosync")])
def test_random_cases_agree_with_the_simulator_to_a_nanosecond(protocol):
    """20,000 cases over the protocols; those that need many calls to settle get fewer."""
    rng = np.random.default_rng(PROTOCOLS.index(protocol))
    exact = {"wall_sync_each": (4_500, 3), "event_pair_sync": (4_500, 3), "profiler_self_time": (2_000, 2)}
    cases, n = exact.get(protocol, (4_500, 12) if protocol in ("wall_sync_once", "event_loop") else (60, 700))
    for _ in range(cases):
        op, settings = random_case(rng)
        clear, clear_cost = int(rng.integers(0, 120_000)), int(rng.integers(0, 10_000))
        s = Symbols(
            tuple(d for d, _ in op), tuple(k for _, k in op), latency=settings["latency"], record=settings["record_cost"],
            sync=settings["sync_cost"], clear=clear, clear_dispatch=clear_cost, calls=n,
        )  # fmt: skip
        if protocol in ("event_pair", "do_bench"):
            host = s.total_dispatch + 2 * s.record + (clear_cost if protocol == "do_bench" else 0)
            device = s.total_kernel + (clear if protocol == "do_bench" else 0)
            if 0.9 * host < device < 1.1 * host:
                continue  # near the border the backlog needs longer to settle than the simulation runs
        found = reading(protocol, op, Machine(depth=10**9, **settings), n=n, clear=clear, clear_cost=clear_cost)
        assert found == pytest.approx(ladder(s)[protocol], abs=1), (op, settings, clear, clear_cost)


def test_gaps_between_queued_kernels_count_in_loops():
    rng = np.random.default_rng(5)
    for _ in range(300):
        op, settings = random_case(rng)
        gap = int(rng.integers(0, 3_000))
        s = Symbols(
            tuple(d for d, _ in op), tuple(k for _, k in op), latency=settings["latency"], record=settings["record_cost"],
            sync=settings["sync_cost"], gap=gap, calls=10, graph_calls=10,
        )  # fmt: skip
        for protocol in ("wall_sync_once", "event_loop", "wall_sync_each", "event_pair_sync", "graph_unrolled"):
            n = 3 if protocol in ("wall_sync_each", "event_pair_sync") else 10
            found = reading(protocol, op, Machine(depth=10**9, gap=gap, **settings), n=n)
            assert found == pytest.approx(ladder(s)[protocol], abs=1), protocol


def test_a_wall_clock_without_synchronise_reads_dispatch_until_the_queue_is_full():
    for n, depth in ((100, 1024), (5000, 64)):
        s = Symbols((10_000,), (50_000,), calls=n, depth=depth)
        found = reading("wall_nosync", [(10_000, 50_000)], Machine(depth=depth), n=n)
        assert found == pytest.approx(ladder(s)["wall_nosync"], rel=0.01)


def test_the_seed_inverts():
    """Triton: 40 us dispatch, 10 us kernel. mmcv: 20 us dispatch, 15 us kernel."""
    triton, mmcv = of(40, 10), of(20, 15)
    assert inverts_by_sum(triton, mmcv) and inverts_by_max(triton, mmcv)
    a, b = ladder(triton), ladder(mmcv)
    assert a["profiler_self_time"] < b["profiler_self_time"]
    assert a["event_pair_sync"] > b["event_pair_sync"] and a["wall_sync_each"] > b["wall_sync_each"]
    assert not inverts_by_sum(of(40, 100), of(20, 200))


def test_every_protocol_has_a_reading_and_a_title():
    assert list(ladder(of(1, 1))) == list(PROTOCOLS) == list(TITLES)


@pytest.mark.parametrize(("dispatch", "kernels"), [((), ()), ((1,), (1, 2)), ((-1,), (1,))])
def test_symbols_that_mean_nothing_are_refused(dispatch, kernels):
    with pytest.raises(ValueError):
        Symbols(dispatch, kernels)
