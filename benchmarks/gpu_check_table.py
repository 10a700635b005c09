"""The result of a GPU check and its tables: what each protocol read, what the model predicts, and the error."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from traceanalyzer.capture.criterion import DEVICE_SHARE, PREDICTION_SHARE, agree, floor_us
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.console import render_blocks
from traceanalyzer.render.escape import markdown
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.render.measured import TITLES
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.sidecar import Calibration, OperationRecord, Sidecar

SCHEMA = "traceanalyzer.gpu-check/1"
UNFINISHED = "ended early"


@dataclass(frozen=True)
class LadderRow:
    """One protocol of one capture.

    ``error`` is predicted / measured - 1; ``within``: whether the two agree (``capture/criterion.py``), None where one is
    missing, and then ``reason`` says why.
    """

    capture: str
    protocol: str
    answers: str
    measured_us: float | None
    ci95_us: tuple[float, float] | None
    n: int
    predicted_us: float | None
    error: float | None
    within: bool | None
    reason: str = ""


@dataclass(frozen=True)
class CaptureRow:
    """One capture as a whole; ``agreement`` is the unrolled graph over what self-time and gaps make, less 1; ``agrees`` judges it."""

    capture: str
    operation: str
    folder: str
    verdict: str
    passed: bool | None
    result: str
    agreement: float | None
    agrees: bool | None
    floor_us: float
    explanation: str
    steady: bool
    sm_clock_mhz: int | None


@dataclass(frozen=True)
class StepRow:
    """A step: ``state`` done, failed, ended early or left out, with the reason and the seconds it took."""

    step: str
    state: str
    seconds: float
    reason: str = ""


@dataclass
class Check:
    """Everything so far; written after each step."""

    device: str
    budget_s: float
    versions: dict[str, str] = field(default_factory=dict)
    steps: list[StepRow] = field(default_factory=list)
    captures: list[CaptureRow] = field(default_factory=list)
    ladder: list[LadderRow] = field(default_factory=list)
    spent_s: float = 0.0
    schema: str = SCHEMA

    def faults(self) -> list[str]:
        """Return what was not as it should be, in words; nothing of it where all is well."""
        return [*self.wrong(), *self.unfinished()]

    def unfinished(self) -> list[str]:
        """Return what nothing can be said of, because time ran out or a device lacks it: no fault of a number."""
        found = [f"{s.step} {s.state}: {s.reason}" for s in self.steps if s.state == UNFINISHED]
        compared = {r.capture for r in self.ladder if r.error is not None}
        found += [
            f"{c.capture}: no reading could be compared with a prediction"
            for c in self.captures
            if c.capture not in compared
        ]
        found += [f"{c.capture}: no cross-check: {c.explanation}" for c in self.captures if c.agreement is None]
        if not self.captures:
            found.append("nothing was captured")
        return found

    def wrong(self) -> list[str]:
        """Return what was measured and is not as it should be."""
        found = [f"{s.step} {s.state}: {s.reason}" for s in self.steps if s.state == "failed"]
        found += [f"{c.capture}: the result is wrong: {c.result}" for c in self.captures if c.passed is False]
        found += [
            f"{r.capture}, {r.protocol}: predicted {r.error:+.1%} off, over {PREDICTION_SHARE:.0%} and the floor of the machine"
            for r in self.ladder
            if r.error is not None and r.within is False
        ]
        found += [
            f"{c.capture}: the unrolled graph is {c.agreement:+.1%} off self-time and gaps, over {DEVICE_SHARE:.0%} and the floor of the machine"
            for c in self.captures
            if c.agreement is not None and c.agrees is False
        ]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the JSON."""
        return {**asdict(self), "faults": self.faults(), "wrong": self.wrong(), "unfinished": self.unfinished()}


def ladder_rows(
    name: str, record: OperationRecord, report: ReportData | None, why: str, calibration: Calibration
) -> list[LadderRow]:
    """Return a capture's protocols with the model's prediction; ``why`` says why there is no report, if there is none."""
    op = next((o for o in report.ops if o.name == record.name), None) if report else None
    if report is not None and op is None:
        why = report.verdict.headline
    rows = []
    for p in record.protocols:
        predicted = op.readings_predicted.get(p.protocol) if op else None
        error = predicted / p.p50_us - 1 if predicted is not None and p.p50_us else None
        within = (
            agree(predicted, p.p50_us, PREDICTION_SHARE, calibration) if predicted is not None and p.p50_us else None
        )
        reason = p.reason
        if not reason and error is None and p.protocol != "profiler_self_time":
            reason = why or (op.no_ladder if op else "") or "the trace gives the model no symbols"
        rows.append(
            LadderRow(name, p.protocol, p.column, p.p50_us, p.ci95_us, p.n, predicted, error, within, reason)
        )  # fmt: skip
    return rows


def capture_row(name: str, sidecar: Sidecar, report: ReportData | None, why: str) -> CaptureRow:
    """Return a capture as a whole."""
    record = sidecar.operations[0]
    during = next((c.sm_clock_mhz for c in sidecar.clocks if c.when == "during"), None)
    return CaptureRow(
        name, record.name, name, report.verdict.headline if report else f"no report: {why}", record.correctness.passed,
        record.correctness.reason, record.agreement.difference, record.agreement.agree, floor_us(sidecar.calibration),
        record.agreement.explanation, record.warm_up.steady, during,
    )  # fmt: skip


def blocks(check: Check) -> list[Block]:
    """Return the tables: the ladder of each capture, the error per protocol over all of them, the cross-check, the steps."""
    shown = [_ladder(name, check) for name in dict.fromkeys(r.capture for r in check.ladder)]
    if check.ladder:
        shown.append(_errors(check))
    if check.captures:
        shown.append(_captures(check))
    rows = [[s.step, s.state, f"{s.seconds:.0f}", s.reason or "-"] for s in check.steps]
    title = f"Steps: {check.spent_s:.0f} of {check.budget_s:.0f} s"
    return [*shown, Block(title, ["step", "state", "s", "why"], rows, frozenset(), labels=frozenset({0, 1, 3}))]


def _ladder(name: str, check: Check) -> Block:
    found = [r for r in check.ladder if r.capture == name]
    rows = [
        [
            TITLES.get(r.protocol, r.protocol), "mixed" if r.answers == "neither" else r.answers, show.us(r.measured_us),
            show.interval(r.ci95_us), show.count(r.n), show.us(r.predicted_us), _error(r.error),
        ]
        for r in found
    ]  # fmt: skip
    reasons: dict[str, list[str]] = {}
    for r in found:
        if r.reason:
            reasons.setdefault(r.reason, []).append(r.protocol)
    notes = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    columns = ["protocol", "answers", "measured p50", "95% CI", "n", "predicted", "error"]
    return Block(f"{name} on {check.device} (per call, us)", columns, rows, frozenset(), notes, labels=frozenset({0}))


def _errors(check: Check) -> Block:
    """Return the error by protocol, one column for each capture, and the worst."""
    names = list(dict.fromkeys(r.capture for r in check.ladder))
    by_cell = {(r.protocol, r.capture): r.error for r in check.ladder}
    over = {r.protocol for r in check.ladder if r.within is False}
    rows = []
    for protocol in dict.fromkeys(r.protocol for r in check.ladder if r.protocol != "profiler_self_time"):
        errors = [by_cell.get((protocol, name)) for name in names]
        known = [e for e in errors if e is not None]
        worst = max(known, key=abs, default=None)
        mark = "" if worst is None else "OVER" if protocol in over else "within"
        rows.append([protocol, *(_error(e) for e in errors), _error(worst), mark or show.NA])
    notes = [
        "error = predicted / measured - 1; profiler self-time is not predicted: the model takes its kernels from there",
        "floor: "
        + ", ".join(f"{c.capture} {c.floor_us:.2f} us" for c in check.captures)
        + " (an event pair around nothing, and a step of the clock)",
    ]
    columns = ["protocol", *names, "worst", f"{PREDICTION_SHARE:.0%} or floor"]
    return Block("Prediction error per protocol", columns, rows, frozenset(), notes, labels=frozenset({0}))


def _captures(check: Check) -> Block:
    rows = [
        [
            c.capture, _error(c.agreement), _word(c.agrees), {True: "right", False: "WRONG", None: "not checked"}[c.passed],
            "yes" if c.steady else "NO", show.count(c.sm_clock_mhz),
        ]
        for c in check.captures
    ]  # fmt: skip
    notes = [f"{c.capture}: {c.verdict}" for c in check.captures]
    notes += [f"{c.capture}: {c.explanation}" for c in check.captures if _word(c.agrees) != "within"]
    columns = ["capture", "graph vs self-time", f"{DEVICE_SHARE:.0%} or floor", "result", "steady", "SM MHz"]
    return Block("Captures", columns, rows, frozenset(), notes, labels=frozenset({0}))


def _word(agrees: bool | None) -> str:
    return show.NA if agrees is None else "within" if agrees else "OVER"


def _error(value: float | None) -> str:
    return show.NA if value is None else f"{value:+.1%}"


def _said(check: Check) -> list[str]:
    left_out = [s.step for s in check.steps if s.state == "left out"]
    head = [*(f"wrong: {f}" for f in check.wrong()), *(f"not finished: {f}" for f in check.unfinished())]
    head = head or ["all that was measured lies within its targets"]
    if left_out:
        head.append(f"left out, as the time was spent: {', '.join(left_out)}")
    return [*head, "; ".join(f"{k} {v}" for k, v in check.versions.items())]


def text(check: Check) -> str:
    """Return the tables as text of 100 columns."""
    return render_blocks(blocks(check), _said(check))


def as_markdown(check: Check) -> str:
    """Return the same as Markdown."""
    lines = [f"### GPU check on {markdown(check.device)}", ""]
    for block in blocks(check):
        lines += [f"**{markdown(block.title)}**", "", *pipe_table(block), ""]
        lines += [f"- {markdown(note, 600)}" for note in block.notes] + ([""] if block.notes else [])
    return "\n".join([*lines, *(f"- {markdown(line, 600)}" for line in _said(check))]) + "\n"
