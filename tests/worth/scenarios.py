"""Runs of the simulator with and without a change really made: what a replay must foresee from the first alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.queue_sim import Machine

UNITS = 24


@dataclass(frozen=True)
class Made:
    """Changes really made to a run."""

    sync: bool = True
    copies_wait: bool = True
    data: bool = True
    allocation: bool = True
    graph: bool = False
    halved: bool = False
    backward_item: bool = True


NOTHING = Made()
Step = Callable[[Machine, Made], None]


def run(step: Step, made: Made, units: int = UNITS, **machine: int) -> Machine:
    """Return a machine that has run the step so often, each in a range ``step``."""
    m = Machine(**{"latency": 4000, "gap": 800, "sync_cost": 5000, **machine})
    for _ in range(units):
        start = m.now
        step(m, made)
        m.annotate("step", start)
    return m


def period_ns(step: Step, made: Made, **machine: int) -> float:
    """Return the period in the steady state: the last half of a long run, by when all work of a unit has ended."""
    long = 400
    m = Machine(**{"latency": 4000, "gap": 800, "sync_cost": 5000, **machine})
    done = []
    for _ in range(long):
        step(m, made)
        done.append(max(row.end for row in m.device[-64:]))
    return (done[-1] - done[long // 2]) / (long - 1 - long // 2)


def _kernels(m: Machine, made: Made, count: int, dispatch: int, kernel: int, other: int = 3000) -> None:
    """Launch a large kernel and small ones, or all as one graph."""
    large = kernel // 2 if made.halved else kernel
    work = [("gemm" if i == 0 else f"small_{i}", large if i == 0 else other) for i in range(count)]
    if made.graph:
        m.graph(work, host_cost=dispatch, call=4000, node_gap=m.gap)
        return
    for name, duration in work:
        m.work(max(0, dispatch - 4000), f"aten::{name}")
        m.launch(name, duration, host_cost=4000, call=4000)


def cpu_bound(m: Machine, made: Made) -> None:
    """Ten kernels, each dispatched far slower than it runs."""
    _kernels(m, made, 10, 20_000, 9000)


def gpu_bound(m: Machine, made: Made) -> None:
    """Ten kernels, the device far slower than the host."""
    _kernels(m, made, 10, 8000, 150_000, 10_000)


def sync_each(m: Machine, made: Made) -> None:
    """A synchronise at the end of each step, device and host equally long."""
    _kernels(m, made, 8, 10_000, 60_000)
    if made.sync:
        m.sync()


def item_each(m: Machine, made: Made) -> None:
    """An .item() at each step: a copy that waits, and a synchronise."""
    _kernels(m, made, 8, 10_000, 60_000)
    if made.copies_wait and made.sync:
        m.item(host_cost=6000)
    else:
        begun = m.now
        m.work(6000)
        m.copy(1500, call=4000, waits=made.copies_wait)
        if made.sync:
            m.sync("cudaStreamSynchronize", 7)
        m.host.append(type(m.host[0])("op", "aten::item", begun, m.now))


def copies(m: Machine, made: Made) -> None:
    """Blocking copies to the device before the kernels of each step."""
    m.copy(20_000, call=4000, waits=made.copies_wait, name="Memcpy HtoD (Pageable -> Device)")
    _kernels(m, made, 6, 10_000, 80_000)


def exposed_data(m: Machine, made: Made) -> None:
    """A wait for data longer than the device needs for a step."""
    if made.data:
        m.data(400_000)
    _kernels(m, made, 8, 10_000, 60_000)


def workers(m: Machine, made: Made) -> None:
    """Workers that make a batch every 500 us, slower than the host and the device."""
    m.batches = getattr(m, "batches", 0) + 1
    if made.data:
        m.fetch(1_000_000 + m.batches * 500_000)
    _kernels(m, made, 8, 25_000, 6000)


def hidden_data(m: Machine, made: Made) -> None:
    """A wait for data while the device still has work."""
    if made.data:
        m.data(60_000)
    _kernels(m, made, 8, 8000, 300_000)


def allocations(m: Machine, made: Made) -> None:
    """Allocations between the launches of a run that the host limits."""
    for i in range(6):
        if made.allocation:
            m.call("cudaMalloc", 30_000)
        m.work(6000, f"aten::op_{i}")
        m.launch(f"k_{i}", 5000, host_cost=4000, call=4000)


def two_causes(m: Machine, made: Made) -> None:
    """A copy that waits and a synchronise behind it, each of which hides the other, after launches slower than their kernels."""
    _kernels(m, made, 8, 25_000, 4000)
    m.copy(180_000, call=4000, waits=made.copies_wait)
    if made.sync:
        m.sync()


def two_threads(m: Machine, made: Made) -> None:
    """A forward pass, a backward pass on another thread that the first waits for, an update."""
    _kernels(m, made, 8, 12_000, 20_000)
    m.hand_over(2, 6000)
    for i in range(8):
        m.work(9000, f"autograd_{i}")
        m.launch(f"backward_{i}", 6000, host_cost=4000, call=4000)
    m.hand_over(1, 5000)
    m.work(6000, "aten::update")
    m.launch("update", 8000, host_cost=4000, call=4000)
    if made.sync:
        m.sync()


def two_streams(m: Machine, made: Made) -> None:
    """Work on two streams, the host waits for both."""
    _kernels(m, made, 6, 8000, 90_000)
    m.work(4000, "aten::side")
    m.launch("side", 120_000, host_cost=4000, call=4000, stream=8)
    if made.sync:
        m.sync()
