"""A unit of one side of a comparison, from wherever it was read."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.analysis.compare.statistics import Times


@dataclass(frozen=True)
class UnitPart:
    """One kernel, copy or fill per repeat: how often it runs, and the time it adds on its stream (ns)."""

    name: str
    count: float
    time_ns: float


@dataclass(frozen=True)
class SideLedger:
    """Where the time of one device went in the middle repeat (ns): ``classes`` of the ledger, ``kernels`` of the class compute by name.

    ``device`` is its number, with the rank in a merged file; ``decides``: the unit keeps it busy longest.
    """

    device: str
    decides: bool
    classes: dict[str, float]
    kernels: dict[str, float]


@dataclass(frozen=True)
class UnitSide:
    """A unit as :class:`traceanalyzer.analysis.units.model.Unit` has it; ``work`` and ``operators`` are per repeat; a ledger per device.

    ``of_runs``: a value of a series is the median of a run, no repeat.
    """

    name: str
    method: str
    repeats: int
    coverage: float
    kernels: float
    launches: float
    period: Times
    duration: Times
    busy: Times
    self_time: Times
    exclusive: Times
    work: list[UnitPart]
    operators: dict[str, float] = field(default_factory=dict)
    period_ledgers: list[SideLedger] = field(default_factory=list)
    duration_ledgers: list[SideLedger] = field(default_factory=list)
    of_runs: bool = False
