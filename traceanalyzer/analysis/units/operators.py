"""The framework's operators that the host runs in a unit's windows: evidence of what work it is, whatever kernels do it."""

from __future__ import annotations

import numpy as np

from traceanalyzer.trace.tables import Trace

MOST_OPERATORS = 200


def operators(trace: Trace, windows: list[tuple[int, int]] | None) -> dict[str, int]:
    """Return how often each operator begins in the windows, the commonest first; of any thread, as backward has its own."""
    ops = trace.host_ops
    if windows is None or not len(ops):
        return {}
    order = np.argsort(ops.start_ns, kind="stable")
    starts = ops.start_ns[order]
    inside = np.zeros(len(ops) + 1, dtype=np.int64)
    for low, high in windows:
        begin, end = np.searchsorted(starts, (low, high))
        inside[begin] += 1
        inside[end] -= 1
    chosen = order[np.cumsum(inside[:-1]) > 0]
    numbers, counts = np.unique(ops.name[chosen], return_counts=True)
    found = [(trace.names[n], c) for n, c in zip(numbers.tolist(), counts.tolist(), strict=True)]
    found = [f for f in found if not f[0].startswith("ProfilerStep")]
    return dict(sorted(found, key=lambda f: -f[1])[:MOST_OPERATORS])
