"""What a history shows: per unit and device the values over recordings, the ratio to the one before, and changepoints."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from traceanalyzer.report.history.changes import LevelChange, changepoints
from traceanalyzer.report.history.store import Entry


@dataclass(frozen=True)
class Trend:
    """One unit on one device, oldest first. ``ratios`` to the recording before, None for the first."""

    unit: str
    device: str
    entries: list[Entry]
    ratios: list[float | None]
    changes: list[LevelChange]


def trends(entries: list[Entry]) -> list[Trend]:
    """Return a trend per unit and device; entries without a positive period are left out."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for e in entries:
        if isinstance(e.period_us, int | float) and e.period_us > 0:
            groups.setdefault((e.unit, e.device), []).append(e)
    found = []
    for (unit, device), mine in groups.items():
        values = [float(e.period_us or 0) for e in mine]
        ratios: list[float | None] = [None, *(b / a for a, b in pairwise(values))]
        found.append(Trend(unit, device, mine, ratios, changepoints(values)))
    return found
