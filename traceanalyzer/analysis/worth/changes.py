"""What each change does to a program: the keys of ``change`` in the report."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.analysis.worth.events import Built, EventKind, Parts
from traceanalyzer.analysis.worth.replay import NEVER, ProgramWait, ReplayProgram

SITE = "no_site:"
CHANGES = (
    "launches_free", "no_synchronise", "no_copy_calls", "no_host_waits", "no_allocation", "no_data_loading", "no_compile",
    "largest_kernel_halved", "everything_free",
)  # fmt: skip


def without_one_time(built: Built) -> ReplayProgram:
    """Return the program without what a run that repeats pays no more: first uses and code loading."""
    p, parts = built.program, built.parts
    return replace(
        p,
        gap=_less(p.gap, parts.one_time),
        cost=[max(0, c - o) for c, o in zip(p.cost, parts.one_time_cost, strict=True)],
    )


def data_at_cost(program: ReplayProgram, parts: Parts) -> ReplayProgram:
    """Return the program with each wait for workers as long as it was, whatever else changes: the host's own work, not theirs."""
    fetched = [k == EventKind.FETCHED for k in parts.kind]
    return replace(
        program,
        cost=[
            t - s if f and w == ProgramWait.INSTANT else c
            for c, f, w, t, s in zip(program.cost, fetched, program.wait, program.target, program.start, strict=True)
        ],
        wait=[ProgramWait.NONE if f else w for w, f in zip(program.wait, fetched, strict=True)],
    )


def changed(program: ReplayProgram, parts: Parts, change: str, halved: list[bool]) -> ReplayProgram:
    """Return the program with a change made; ``halved`` marks the rows of the largest kernel."""
    if change.startswith(SITE):
        covered, inside = parts.sites[change.removeprefix(SITE)]
        return _without(replace(program, gap=_less(program.gap, covered)), inside, 0)
    if change == "launches_free":
        return _launches_free(program, parts)
    if change == "everything_free":
        return _everything_free(program)
    if change == "largest_kernel_halved":
        return replace(program, length=[n // 2 if h else n for n, h in zip(program.length, halved, strict=True)])
    if change == "no_synchronise":
        return _without(program, [k == EventKind.SYNC for k in parts.kind], 0)
    if change == "no_copy_calls":
        return _without(program, [k == EventKind.COPY for k in parts.kind], parts.plain)
    if change == "no_host_waits":
        free = _without(program, [k == EventKind.COPY for k in parts.kind], parts.plain)
        return _without(free, [k in (EventKind.SYNC, EventKind.POLL) for k in parts.kind], 0)
    if change == "no_allocation":
        free = _without(program, [k == EventKind.ALLOCATION for k in parts.kind], 0)
        return replace(free, gap=_less(free.gap, parts.allocation))
    if change == "no_data_loading":
        free = _without(program, [k in (EventKind.DATA, EventKind.FETCHED) for k in parts.kind], 0)
        return replace(free, gap=_less(free.gap, parts.data))
    if change == "no_compile":
        return replace(program, gap=_less(program.gap, parts.compile))
    raise ValueError(change)


def missing(parts: Parts, change: str) -> str:
    """Return why a change has nothing to change in a program, else an empty text."""
    kinds = set(parts.kind)
    if change == "launches_free" and not any(
        k in (EventKind.LAUNCH, EventKind.COPY) and not o for k, o in zip(parts.kind, parts.opens_unit, strict=True)
    ):
        return "each unit is one launch: no host time lies between launches of a unit"
    reasons = {
        "no_synchronise": ("no call waits for the device", EventKind.SYNC in kinds),
        "no_copy_calls": ("nothing is copied or filled", EventKind.COPY in kinds),
        "no_host_waits": (
            "no call waits for the device",
            bool(kinds & {EventKind.SYNC, EventKind.POLL, EventKind.COPY}),
        ),
        "no_allocation": ("nothing is allocated or freed", EventKind.ALLOCATION in kinds or any(parts.allocation)),
        "no_data_loading": (
            "no data-loading range is recorded",
            bool(kinds & {EventKind.DATA, EventKind.FETCHED}) or any(parts.data),
        ),
        "no_compile": ("no compiler is at work", any(parts.compile)),
    }
    reason, there = reasons.get(change, ("", True))
    return "" if there else reason


def _less(gap: list[int], part: list[int]) -> list[int]:
    return [g if g == NEVER else max(0, g - part) for g, part in zip(gap, part, strict=True)]


def _without(program: ReplayProgram, which: list[bool], cost: int) -> ReplayProgram:
    """Let the chosen events return at once: they wait for nothing and cost no more than ``cost``."""
    return replace(
        program,
        cost=[min(c, cost) if w else c for c, w in zip(program.cost, which, strict=True)],
        wait=[ProgramWait.NONE if w else v for v, w in zip(program.wait, which, strict=True)],
    )


def _launches_free(program: ReplayProgram, parts: Parts) -> ReplayProgram:
    """Issue each unit's launches at once: no host time after its first, but its waits and its data loading."""
    inner = [not o for o in parts.opens_unit]
    launch = [k in (EventKind.LAUNCH, EventKind.COPY) for k in parts.kind]
    return replace(
        program,
        gap=[
            (g if g == NEVER else min(g, data)) if i else g
            for g, i, data in zip(program.gap, inner, parts.data, strict=True)
        ],
        cost=[0 if i and launches else c for c, i, launches in zip(program.cost, inner, launch, strict=True)],
    )


def _everything_free(program: ReplayProgram) -> ReplayProgram:
    """Leave the device alone with its rows: everything is called before, nobody waits."""
    n, begin = len(program.gap), program.start[0]
    return replace(
        program, start=[begin] * n, gap=[NEVER] * n, cost=[0] * n, wait=[ProgramWait.NONE] * n, latency=[0] * len(program.latency),
        free=[min(f, begin) for f in program.free],
    )  # fmt: skip
