"""TA708 work-missing: the faster side does less work, and nothing says that its result is right.

What it checks
    For an operation that came out faster: kernels per call, and the bytes a capture says a call moves, against the
    base's; and whether the head's result was compared with a reference.

Why it matters
    Leaving work out is the quickest optimisation. A fused kernel also launches less and moves less; only the result
    tells the two apart.

How it is decided
    At least one side is a capture, the head is FASTER, its calls hold a tenth fewer kernels or move a tenth fewer bytes, and
    no comparison of the head's result passed. A HINT.

Example
    Half the time with one kernel per call for two, and no reference in the head's capture.

What to do
    Capture the head with a reference (`--reference`), then compare again.

When it is wrong
    Genuine fusion that nobody checked.

References
    KernelBench, and public write-ups of benchmark hacks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.captured import NO_SIDECAR
from traceanalyzer.doctor.comparison_rule import ComparisonRule, PairExample
from traceanalyzer.doctor.example import Event, captured, host_range, kernel, launch, result
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import Threshold

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared, ComparedRow
    from traceanalyzer.trace.sidecar import Sidecar

MISSING_WORK = Threshold(
    "missing_work", 0.1, "share of kernels or bytes", "a tenth less is another computation, or the same one done better"
)


def calls(kernels: int, duration: float) -> tuple[Event, ...]:
    """Return 40 annotated calls of some kernels of one length, 200 us apart."""
    events: list[dict[str, Any]] = []
    for i in range(40):
        events.append(host_range("traceanalyzer.call:example", 200.0 * i, 100))
        for j in range(kernels):
            corr = 10 * i + j + 1
            events += [launch(200 * i + 5 + 8 * j, corr), kernel(200 * i + 15 + 60 * j, duration, corr, f"part_{j}")]
    return tuple(events)


def moving(byte_count: int | None, passed: bool | None = None) -> Sidecar:
    """Return a capture whose operation moves some bytes per call."""
    found = captured(correctness=result(passed, "" if passed else "no reference was given"))
    return replace(found, operations=[replace(found.operations[0], bytes_moved=byte_count)])


class WorkMissing(ComparisonRule):
    """The faster side does less work, and nothing says that its result is right."""

    code = "TA708"
    name = "work-missing"
    family = "comparison"
    thresholds = (MISSING_WORK,)
    messages: ClassVar[dict[str, Message]] = {
        "work-missing": Message(
            "{name:name} may leave work out",
            "{name:name} is faster[[ (ratio {ratio:number})]], but a call does less[[: {head_kernels:number} kernels for base's {base_kernels:number}]]"
            "[[; {head_bytes:count} bytes moved for base's {base_bytes:count}]], and no comparison says that its result is right.",
        ),
    }
    pair_positive = Examples(lambda: (
        PairExample("half the kernels in half the time", calls(2, 50), calls(1, 50), base_sidecar=lambda: moving(None), head_sidecar=lambda: moving(None)),
        PairExample(
            "a quarter of the bytes in half the time", calls(1, 50), calls(1, 25), base_sidecar=lambda: moving(4096), head_sidecar=lambda: moving(1024)
        ),
    ))  # fmt: skip
    pair_negative = Examples(lambda: (
        PairExample(
            "fused, and the result compared", calls(2, 50), calls(1, 50), base_sidecar=lambda: moving(None, True), head_sidecar=lambda: moving(None, True)
        ),
        PairExample("the same work, faster", calls(1, 50), calls(1, 25), base_sidecar=lambda: moving(4096), head_sidecar=lambda: moving(4096)),
        PairExample("half the kernels, no faster", calls(2, 25), calls(1, 50), base_sidecar=lambda: moving(None), head_sidecar=lambda: moving(None)),
    ))  # fmt: skip

    def check_pair(self, compared: Compared) -> list[Finding] | Abstained:
        """Return what the module's documentation says."""
        if compared.refused or compared.broken:
            return self.abstain("no ratio was formed")
        if not any(w.captured for side in (compared.base, compared.head) for w in side.ops):
            return self.abstain(NO_SIDECAR)
        limit = compared.options.threshold(MISSING_WORK)
        return [f for row in compared.ops if (f := self._judged(row, limit)) is not None]

    def _judged(self, row: ComparedRow, limit: float) -> Finding | None:
        base, head = row.base, row.head
        if base is None or head is None or row.verdict != "FASTER" or head.checked:
            return None
        fewer = head.kernels_per_call < (1 - limit) * base.kernels_per_call
        smaller = (
            bool(base.bytes_moved)
            and head.bytes_moved is not None
            and head.bytes_moved < (1 - limit) * (base.bytes_moved or 0)
        )
        if not fewer and not smaller:
            return None
        ratio = row.ratio.ratio if row.ratio and row.ratio.ratio else None
        params: dict[str, Param] = {
            "name": head.name, "ratio": ratio, "head_kernels": head.kernels_per_call if fewer else None, "base_kernels": base.kernels_per_call,
            "head_bytes": head.bytes_moved if smaller else None, "base_bytes": base.bytes_moved,
        }  # fmt: skip
        return self.say("work-missing", Severity.WARNING, Grade.HINT, Subject(SubjectKind.OPERATION, name=head.name), params, numbers={
                "ratio": None if ratio is None else round(ratio, 6),
                "base_kernels_per_call": base.kernels_per_call, "head_kernels_per_call": head.kernels_per_call,
                "base_bytes": base.bytes_moved, "head_bytes": head.bytes_moved, "threshold_missing_work": limit,
            }, evidence=[], remedy=["capture the head with a reference, then compare again"])  # fmt: skip
