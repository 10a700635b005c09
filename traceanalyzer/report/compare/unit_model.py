"""Frozen values of compared units; field names are those of the JSON comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class UnitRatio:
    """One number of both units and its ratio, head over base. ``metric``: period, busy, self or launches.

    ``basis`` of a period: start-to-start (first device row to the first of the next repeat), window (the host's range to the end of
    its work) or span (whole trace). ``ratio_range`` stands where there are under six values on a side: the least and the greatest that
    a value of the head is of one of the base; else ``ratio_ci95`` of medians, missing where ``reason`` says why. Launches have
    counts in place of times, and no verdict.
    """

    metric: Literal["period", "busy", "self", "launches"]
    basis: str
    base: float
    head: float
    base_n: int
    head_n: int
    ratio: float | None
    ratio_ci95: tuple[float, float] | None
    ratio_range: tuple[float, float] | None
    verdict: Literal["FASTER", "SLOWER", "SAME", "UNDECIDED"] | None
    reason: str = ""


@dataclass(frozen=True)
class PartChange:
    """A kernel, copy or fill per repeat on both sides, in exclusive time; ``saved_us`` is what the head spends less in it.

    ``status``: matched, new (head alone) or gone (base alone).
    """

    name: str
    head_name: str
    short_name: str
    status: Literal["matched", "new", "gone"]
    base_us: float
    head_us: float
    base_count: float
    head_count: float
    saved_us: float


@dataclass(frozen=True)
class KernelsDifference:
    """A part of the class compute: kernels that are ``shared`` by name, ``gone`` (base alone) or ``new`` (head alone)."""

    what: Literal["shared", "gone", "new"]
    base_us: float
    head_us: float
    saved_us: float


@dataclass(frozen=True)
class LedgerDifference:
    """One class of the ledger in the repeat of median length; ``saved_us`` add up to the base's period less the head's.

    ``kernels`` cuts the class compute up, and adds up to it; other classes have none.
    """

    what: str
    base_us: float
    head_us: float
    saved_us: float
    kernels: list[KernelsDifference] = field(default_factory=list)


@dataclass(frozen=True)
class DeviceDifference:
    """The difference of the ledgers of one device of several; it adds up to the same difference of the periods.

    ``decides`` names the sides (base, head) whose unit keeps it busy longest.
    """

    device: str
    decides: list[str]
    difference: list[LedgerDifference]


@dataclass(frozen=True)
class BackTest:
    """What the base's ledger had said a change would be worth, beside what was measured; factors of the period, base over head."""

    change: str
    predicted_factor: float
    measured_factor: float


@dataclass(frozen=True)
class UnitComparison:
    """Two units and what became of them. ``matched_by``: asked, name, inputs, work, operators or whole.

    ``shared_work``: share of each side's kernel and copy time that has a counterpart by name; ``scale``: how often the head does the
    base's work (whole traces; its times are divided by it). ``shared_operators``: the same of the framework's operator calls on the host. ``caveats``: other-work, little-work,
    other-kernels, little-time, scaled. ``step``: a step of a run, no
    kernel under test. ``metric`` is what the headline speaks of. ``mean_ratio`` is that of mean periods. ``parts`` by time saved,
    ``ledger_difference`` likewise, of the device ``ledger_device`` that base's unit keeps busy longest; busy time, kernels and parts are that
    device's too. ``other_devices``: of a run on several, the rest. ``value``: what one value of a ratio is, a repeat of the unit or the median of a run.
    """

    name: str
    head_name: str
    method: str
    head_method: str
    matched_by: str
    shared_work: tuple[float, float]
    scale: float
    caveats: list[str]
    step: bool
    base_repeats: int
    head_repeats: int
    base_kernels: float
    head_kernels: float
    shared_operators: float
    base_coverage: float
    head_coverage: float
    metric: str
    mean_ratio: float | None
    ratios: list[UnitRatio]
    parts: list[PartChange] = field(default_factory=list)
    ledger_difference: list[LedgerDifference] = field(default_factory=list)
    ledger_device: str = ""
    other_devices: list[DeviceDifference] = field(default_factory=list)
    back_test: BackTest | None = None
    value: Literal["repeat", "run"] = "repeat"

    def ratio_of(self, metric: str) -> UnitRatio | None:
        """Return the ratio of a metric, None where a side lacks it."""
        return next((r for r in self.ratios if r.metric == metric), None)
