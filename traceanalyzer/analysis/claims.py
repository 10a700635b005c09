"""What a claimed time per call really is: which number of this trace it equals."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.protocols import TITLES
from traceanalyzer.options import CLAIM_TOLERANCE, Claim
from traceanalyzer.record import record

_CONFIRMING = "device self-time"


@record(frozen=True)
class Explained:
    """A claim against one operation: the self-time (ns), the numbers it equals, nearest first, and the verdict.

    ``kind``: confirmed (it is the self-time), another (it is some other number), impossible (below the work's own
    time and no other number of it), unexplained.
    """

    claim: Claim
    op: OpFacts
    self_ns: float
    interval_ns: tuple[float, float] | None
    matches: list[tuple[str, float]]
    kind: str


def explain(claim: Claim, operations: list[OpFacts], tolerance: float = CLAIM_TOLERANCE.default) -> Explained | None:
    """Return what the claim is for the operation it fits best among those it names; None where there is none.

    A claim within ``tolerance`` of a number, relative to it, or within its interval, is taken for it.
    """
    named = [
        o
        for o in operations
        if claim.operation.lower() in o.iterations.name.lower() and len(o.self_ns) and o.self_ns.any()
    ]
    results = [_against(claim, op, tolerance) for op in named]
    order = {"confirmed": 0, "another": 1, "unexplained": 2, "impossible": 3}
    return min(results, key=lambda r: order[r.kind], default=None)


def _against(claim: Claim, op: OpFacts, tolerance: float) -> Explained:
    own = stats.median(op.self_ns) or 0.0
    interval = stats.median_interval(op.self_ns)
    found = [(label, value) for label, value in numbers_of(op, tolerance) if _equal(claim.ns, value, tolerance)]
    if (
        interval is not None
        and interval[0] <= claim.ns <= interval[1]
        and not any(label == _CONFIRMING for label, _ in found)
    ):
        found.append((_CONFIRMING, own))
    found.sort(key=lambda m: (abs(m[1] - claim.ns), m[0] != _CONFIRMING))
    if any(label == _CONFIRMING for label, _ in found):
        kind = "confirmed"
    elif found:
        kind = "another"
    else:
        least = interval[0] if interval is not None else float(op.self_ns.min())
        kind = "impossible" if claim.ns < (1 - tolerance) * min(least, own) else "unexplained"
    return Explained(claim, op, own, interval, found, kind)


def _equal(claim: float, value: float, tolerance: float) -> bool:
    return value > 0 and abs(claim - value) <= tolerance * value


def numbers_of(op: OpFacts, tolerance: float = CLAIM_TOLERANCE.default) -> list[tuple[str, float]]:
    """Return every number of an operation that somebody could take for its time per call, in nanoseconds."""
    own = stats.median(op.self_ns) or 0.0
    numbers: list[tuple[str, float | None]] = [
        (_CONFIRMING, own),
        ("mean of the self-times", float(op.self_ns.mean())),
        ("span on the device, gaps included", stats.median(op.span_ns)),
        ("interval between calls on the device", stats.median(op.period_ns)),
        ("dispatch interval of the host", stats.median(op.dispatch_ns)),
    ]
    for protocol, value in op.readings.items():
        if protocol == "profiler_self_time":
            continue
        title = TITLES[protocol]
        if protocol == "wall_nosync" and value is not None and value < own:
            title = "enqueue time only (wall clock, no synchronise)"
        numbers.append((title, value))
    numbers += [
        (f"replay of {TITLES[p]}", v)
        for p, v in op.replays.items()
        if v is not None and not _equal(v, op.readings.get(p) or 0, tolerance)
    ]
    if (op.clear_ns > 0).any():
        numbers.append(
            ("self-time with the cache clear included", own + (stats.median(op.clear_ns[op.clear_ns > 0]) or 0.0))
        )
    if op.symbols is not None and len(op.symbols.kernels) > 1:
        numbers += [(f"kernel {j + 1} of {len(op.symbols.kernels)} alone", k) for j, k in enumerate(op.symbols.kernels)]
    n = len(op.self_ns)
    if n > 1:
        numbers.append((f"the total of {n} calls", float(op.self_ns.sum())))
        numbers += [
            (f"the total of {n} calls by {TITLES[p]}", n * v)
            for p in ("wall_sync_once", "wall_sync_each")
            if (v := op.readings.get(p)) is not None
        ]
    else:
        numbers.append(("the total", float(op.self_ns.sum())))
    return [(label, value) for label, value in numbers if value is not None and np.isfinite(value) and value > 0]
