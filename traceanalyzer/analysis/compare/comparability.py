"""What two runs share, factor by factor: device, versions, work, protocol, clocks. Never one number: each differs in its own way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from traceanalyzer.analysis.compare.shared_work import SharedWork
from traceanalyzer.analysis.compare.sides import Side

SAME_WORK = 0.95
"""Work is the same where this share of either side's kernel and copy time has a counterpart by name."""
_VERSION = " version"
_PROTOCOL = ("profiler options", "resolution of times", "selection", "framework", "environment switches")
_DEVICE = ("device", "devices at work", "origin")


@dataclass(frozen=True)
class Factor:
    """One factor: ``state``, and what each side has where it differs (of a factor that is the same: what both have)."""

    name: Literal["device", "versions", "work", "protocol", "clocks"]
    state: Literal["same", "differs", "unknown"]
    base: str = ""
    head: str = ""


def comparability(
    base: Side,
    head: Side,
    work: SharedWork | None,
    unpaired: tuple[int, int],
    cache: Sequence[tuple[str, str]],
    clock_change: float,
) -> list[Factor]:
    """Return the five factors.

    ``unpaired``: kernels that are gone and new, where no unit is paired. ``cache``: treatments of the cache that differ, of base and
    head; ``clock_change``: clocks within it are one.
    """
    mine, theirs = ({c.what: c.value for c in s.conditions if c.value} for s in (base, head))
    versions = [what for what in (*mine, *theirs) if what.endswith(_VERSION)]
    protocol = _of("protocol", mine, theirs, [w for w in _PROTOCOL if w in mine and w in theirs])
    if cache:
        protocol = Factor("protocol", "differs", cache[0][0], cache[0][1])
    device = (
        _of("device", mine, theirs, _DEVICE) if "device" in mine and "device" in theirs else Factor("device", "unknown")
    )
    return [
        device,
        _of("versions", mine, theirs, dict.fromkeys(v for v in versions if v in mine and v in theirs)),
        _work(work, unpaired),
        protocol,
        _clocks(base, head, clock_change),
    ]


def _of(name: Literal["device", "versions", "protocol"], mine: dict[str, str], theirs: dict[str, str], keys: Sequence[str] | dict[str, None]) -> Factor:  # fmt: skip
    """Return the factor of some conditions: unknown where none of them is known on both sides."""
    known = [k for k in keys if k in mine and k in theirs]
    apart = [k for k in known if mine[k] != theirs[k]]
    if not known:
        return Factor(name, "unknown")
    first = (apart or known)[0]
    word = "" if name == "device" and first == "device" else f"{first.removesuffix(_VERSION)} "
    if apart:
        return Factor(name, "differs", word + mine[first], word + theirs[first])
    return Factor(name, "same", mine[first], mine[first]) if name == "device" else Factor(name, "same")


def _work(work: SharedWork | None, unpaired: tuple[int, int]) -> Factor:
    if work is None or not work.pairs:
        return (
            Factor("work", "differs", f"{unpaired[0]} gone", f"{unpaired[1]} new")
            if any(unpaired)
            else Factor("work", "unknown")
        )
    if work.least >= SAME_WORK:
        return Factor("work", "same")
    gone, new = (sum(getattr(p, side) is None for p in work.pairs) for side in ("head", "base"))
    return Factor("work", "differs", f"{gone} gone", f"{new} new")


def _clocks(base: Side, head: Side, change: float) -> Factor:
    a, b = base.clock_mhz, head.clock_mhz
    if base.throttled != head.throttled:
        return Factor("clocks", "differs", base.throttled or "not held down", head.throttled or "not held down")
    if not a or not b:
        return Factor("clocks", "unknown")
    apart = abs(math.log(b / a)) > math.log1p(change)
    return Factor("clocks", "differs" if apart else "same", f"{a:.0f} MHz", f"{b:.0f} MHz")
