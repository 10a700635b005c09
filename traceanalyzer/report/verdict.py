"""The one sentence: can this be trusted?"""

from __future__ import annotations

from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import QueueState
from traceanalyzer.doctor.finding import Finding, Severity
from traceanalyzer.doctor.registry import LEADS
from traceanalyzer.doctor.rule import show_us
from traceanalyzer.report.model import Verdict

WRONG_RESULT = "TA710"


def verdict(analysis: Analysis, findings: list[Finding]) -> Verdict:
    """Return the verdict of :func:`_verdict`, which also says of a claim that nothing in the trace can judge it."""
    found = _verdict(analysis, findings)
    claims = analysis.options.claims
    if not claims or analysis.operations:
        return found
    said = f" The claim of {claims[0].text} was not judged: no operation was found; mark its calls (record_function, then --range NAME)."
    return Verdict(found.status, found.headline + said)


def _verdict(analysis: Analysis, findings: list[Finding]) -> Verdict:
    """Return the verdict: cannot-judge on an integrity error or without any queue state, suspect on a warning.

    An error means that numbers are missing or unsound; a device whose queue state is unknown cannot be
    called good either.
    """
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if errors:
        # nothing makes up for a wrong result, not even that the times cannot be judged
        wrong = next((f" Also: {f.headline}." for f in findings if f.rule == WRONG_RESULT), "")
        return Verdict("cannot-judge", f"Cannot judge: {errors[0].headline}. {_first_remedy(errors[0])}{wrong}")
    unknown = [d for d in analysis.devices if d.queue.state is QueueState.UNKNOWN]
    warnings = [f for f in findings if f.severity is Severity.WARNING]
    if analysis.trace.meta.salvage.incomplete:
        return Verdict(
            "suspect",
            f"Suspect: incomplete trace, it ends at byte {analysis.trace.meta.salvage.first_offset}; the numbers cover "
            "the part that was read. Record it again.",
        )
    decided = any(not f.rule.startswith("TA1") for f in warnings)
    if unknown and len(unknown) == len(analysis.devices) and not decided:
        extra = f" Also: {warnings[0].headline}." if warnings else ""
        return Verdict(
            "cannot-judge",
            f"Cannot judge: queue state unknown, {unknown[0].queue.reason}.{extra} Self-times and gaps stand.",
        )
    if warnings:
        lead = min(warnings, key=lambda f: LEADS.index(f.rule) if f.rule in LEADS else len(LEADS))
        also = [f for f in warnings if f is not lead and f.rule.startswith("TA1")]
        extra = f" Also: {also[0].headline}." if also else ""
        if not extra and (rest := [f for f in warnings if f.rule not in (lead.rule, "TA202")]):
            extra = f" Also: {rest[0].headline.split('. ')[0].rstrip('.')}."
        headline = lead.headline if lead.headline.endswith(".") else f"{lead.headline}."
        return Verdict("suspect", f"Suspect: {headline} {_first_remedy(lead)}{extra}{_confirmed(analysis)}")
    return Verdict("ok", f"OK: {_good_news(analysis)}")


def _confirmed(analysis: Analysis) -> str:
    """Return that a capture's two device protocols agree, which no fault of the queue takes away; empty otherwise."""
    sidecar = analysis.trace.meta.sidecar
    records = sidecar.operations if sidecar else []
    if len(records) != 1 or records[0].agreement.agree is not True or records[0].agreement.difference is None:
        return ""
    return f" The self-time is confirmed by the capture's unrolled graph ({records[0].agreement.difference:+.1%})."


def _first_remedy(finding: Finding) -> str:
    if not finding.remedy:
        return ""
    text = finding.remedy[0]
    return text[0].upper() + text[1:] + "."


def _good_news(analysis: Analysis) -> str:
    device = max(analysis.devices, key=lambda d: d.idle.busy_ns)
    queue, idle = device.queue, device.idle
    busy = idle.busy_ns / idle.span_ns if idle.span_ns else 0.0
    met = queue.starved + queue.starved_after_sync + queue.dry
    # launches behind a running kernel count among those that met an empty queue, not among the starved
    found = "the stream empty"
    if queue.dry:
        some = f"{met - queue.dry} an empty stream, " if met > queue.dry else ""
        found = f"nothing queued ({some}{queue.dry} only a kernel about to end)"
    text = {
        QueueState.GPU_BOUND: f"the queue stays ahead of the device; {met} of {queue.counted} launches found {found}",
        QueueState.SYNC_BOUND: f"synchronises empty the queue before {queue.starved_after_sync} of {queue.counted} launches",
        QueueState.MIXED: f"no single cause: {met} of {queue.counted} launches found {found}",
    }.get(queue.state, "nothing found against these numbers")
    if idle.long_count and idle.long_ns > 0.1 * idle.span_ns:
        text += f", and {idle.long_count} long pauses hold {show_us(idle.long_ns)} of the {show_us(idle.span_ns - idle.busy_ns)} idle"
    return f"{text}. The device is busy {busy:.1%} of its span; quote self-time p50 with its interval and n."
