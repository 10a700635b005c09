"""Random steps for the simulator: launches, copies, waits, allocations and data in any order, each change made for real."""

from __future__ import annotations

import numpy as np

from tests.queue_sim import Machine
from tests.worth.scenarios import Made, Step


def random_step(seed: int) -> Step:
    """Return a step drawn from a seed; it runs the same program every time."""
    rng = np.random.default_rng(seed)
    parts: list[tuple[str, int, int, int]] = []
    scale = float(rng.choice([0.3, 1.0, 3.0]))  # device work over host work
    for _ in range(int(rng.integers(4, 14))):
        dispatch = int(rng.integers(8_000, 40_000))
        kernel = int(rng.integers(3_000, 40_000) * scale)
        parts.append(("launch", dispatch, kernel, 7 if rng.random() < 0.85 else 8))
        draw = rng.random()
        if draw < 0.08:
            parts.append(("sync", 0, 0, 0))
        elif draw < 0.16:
            parts.append(("copy", 4000, int(rng.integers(5_000, 150_000)), 7))
        elif draw < 0.22:
            parts.append(("item", 6000, 0, 7))
        elif draw < 0.28:
            parts.append(("allocate", int(rng.integers(10_000, 80_000)), 0, 0))
        elif draw < 0.32:
            parts.append(("data", int(rng.integers(50_000, 400_000)), 0, 0))
    largest = max(range(len(parts)), key=lambda i: parts[i][2] if parts[i][0] == "launch" else 0)

    def step(m: Machine, made: Made) -> None:
        for number, (what, host, device, stream) in enumerate(parts):
            if what == "launch":
                m.work(host - 4000, f"aten::op_{number}")
                halved = made.halved and number == largest
                m.launch(
                    f"kernel_{number}", device // 2 if halved else device, host_cost=4000, call=4000, stream=stream
                )
            elif what == "sync" and made.sync:
                m.sync()
            elif what == "copy":
                m.copy(device, call=host, waits=made.copies_wait)
            elif what == "item":
                m.work(host)
                m.copy(1500, call=4000, stream=stream, waits=made.copies_wait)
                if made.sync:
                    m.sync("cudaStreamSynchronize", stream)
            elif what == "allocate" and made.allocation:
                m.call("cudaMalloc", host)
            elif what == "data" and made.data:
                m.data(host)

    return step
