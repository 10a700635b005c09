"""The sentence that leads a report, in the order of decisions: can the rows be believed, is a claim at risk, what limits the run."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer import number_text
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import QueueState
from traceanalyzer.doctor.advice import short_of
from traceanalyzer.doctor.causes import DeviceCauses, Family, causes
from traceanalyzer.doctor.finding import Finding, Severity
from traceanalyzer.doctor.measured import measured
from traceanalyzer.doctor.message import sentence, show_share, show_us, shown_name
from traceanalyzer.doctor.registry import LEADS
from traceanalyzer.report.model import Verdict
from traceanalyzer.report.soundness import SOUND_BUSY, Sound, sound_operation

WRONG_RESULT = "TA710"
LOST = "TA103"
FAMILY_OF_RULE = {
    "TA201": Family.DISPATCH, "TA211": Family.DISPATCH, "TA206": Family.DISPATCH, "TA301": Family.WAITS, "TA302": Family.WAITS, "TA307": Family.WAITS,
    "TA308": Family.PAUSE, "TA306": Family.DATA, "TA401": Family.CODE, "TA402": Family.CODE, "TA407": Family.CODE, "TA408": Family.CODE,
    "TA305": Family.MEMORY, "TA106": Family.PROFILER, "TA310": Family.COMMUNICATION, "TA311": Family.COPIES, "TA209": Family.DEVICE, "TA210": Family.DEVICE,
}  # fmt: skip
"""Which family of costs a rule's finding names; other rules speak of something else than lost time."""
IN_COPY_CALL = ("TA302", "copy-call")
"""A copy's own call: not what the host does after it."""
CONSEQUENCES = ("TA202", "TA205", "TA207")
"""What a timer reads follows from what holds the device up: that is named first."""
MUCH_UNKNOWN = 0.2
"""A part of the span this large without a known cause is said."""
FEW_UNITS = 3
LITTLE_WORTH = 0.02
WORK_BEHIND = ("TA302", "work-behind")
"""The host's own work behind a read-back: named by a wait, and not ended with it."""
ONE_TIME = (
    LedgerClass.COMPILE,
    LedgerClass.CODE_LOAD,
    LedgerClass.GRAPH_SETUP,
    LedgerClass.DATA_LOADING,
    LedgerClass.ALLOCATION,
)
SECOND = 0.25
"""A second cause of this share of the span is named with the first."""
LEAST_ROWS = 20
WORTH = "{change:without} {unit:unit} would take {then_ns:time}, not {now_ns:time}"


def verdict(analysis: Analysis, findings: list[Finding]) -> Verdict:
    """Return the verdict of :func:`_verdict`, which also says of a claim that nothing in the trace can judge it."""
    found = _verdict(analysis, findings)
    claims = analysis.options.claims
    if not claims or analysis.operations:
        return found
    said = f" The claim of {claims[0].text} was not judged: no operation was found; mark its calls (record_function, then --range NAME)."
    return Verdict(found.status, found.headline + said)


def _verdict(analysis: Analysis, findings: list[Finding]) -> Verdict:
    """Return the verdict: cannot-judge on an integrity error or without anything that could be judged, suspect on a warning."""
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if errors:
        # nothing makes up for a wrong result, not even that the times cannot be judged
        wrong = next((f" Also: {f.headline}." for f in findings if f.rule == WRONG_RESULT), "")
        return Verdict("cannot-judge", f"Cannot judge: {errors[0].headline}. {_first_remedy(errors[0])}{wrong}")
    if analysis.trace.meta.salvage.incomplete:
        return Verdict(
            "suspect",
            f"Suspect: incomplete trace, it ends at byte {analysis.trace.meta.salvage.first_offset}; the numbers cover "
            "the part that was read. Record it again.",
        )
    warnings = [f for f in findings if f.severity is Severity.WARNING]
    rows = sorted((f for f in warnings if f.rule.startswith("TA1") and f.cost is None), key=_rows_first)
    limits = _limits(analysis, findings)
    # what is only noted, as a pause that no row explains, does not hide the costliest cause that is asserted
    limit = next((f for f in limits if f.severity is Severity.WARNING), limits[0] if limits else None)
    risk = _claim_at_risk(analysis, warnings)
    device = _worst(analysis)
    if (
        (unknown := _unknown_queue(analysis))
        and not _busy_enough(analysis, device)
        and risk is None
        and (limit is None or limit.severity is not Severity.WARNING)
    ):
        extra = f" Also: {rows[0].headline}." if rows else ""
        return Verdict(
            "cannot-judge", f"Cannot judge: queue state unknown, {unknown}.{extra} Self-times and gaps remain valid."
        )
    if risk is not None:
        second = _second(limits, risk) if risk.rule in FAMILY_OF_RULE else []
        extra = _also(
            [*rows, *second, *([limit] if limit and limit.severity is Severity.WARNING else []), *warnings], risk
        )
        return Verdict(
            "suspect",
            f"Suspect: {_sentence(risk.headline.rstrip('.') + _where(analysis, risk))} {_first_remedy(risk)}{extra}"
            f"{_without_cause(analysis, risk)}{_confirmed(analysis)}",
        )
    if rows and (limit is None or limit.severity is not Severity.WARNING or _spoils(rows[0], limit)):
        extra = _also([limit] if limit and limit.severity is Severity.WARNING else [], rows[0])
        return Verdict(
            "suspect",
            f"Suspect: {_sentence(rows[0].headline)} {_first_remedy(rows[0])}{extra}{_without_cause(analysis, rows[0])}",
        )
    if limit is not None and limit.severity is Severity.WARNING:
        return Verdict(
            "suspect",
            f"Suspect: {_limited(analysis, device, limit)} {_short_remedy(limit)}{_also([*rows, *_second(limits, limit)], limit)}"
            f"{_without_cause(analysis, limit)}",
        )
    if warnings:
        lead = min(warnings, key=_lead)
        return Verdict(
            "suspect",
            f"Suspect: {_sentence(lead.headline)} {_first_remedy(lead)}{_also(rows, lead)}"
            f"{_without_cause(analysis, lead)}{_confirmed(analysis)}",
        )
    return _nothing_found(analysis, device, limit)


def _worst(analysis: Analysis) -> DeviceCauses | None:
    """Return the device that an OK depends on: of those with a fifth of all work the least busy."""
    found = causes(analysis)
    work = [int(d.ledger.ns[~d.is_idle].sum()) for d in found]
    working = [d for d, ns in zip(found, work, strict=True) if 5 * ns >= sum(work)]
    return min(working, key=lambda d: d.busy_share, default=None)


def _unknown_queue(analysis: Analysis) -> str:
    """Return why no device's queue can be judged; empty where one can."""
    unknown = [d for d in analysis.devices if d.queue.state is QueueState.UNKNOWN]
    return unknown[0].queue.reason if unknown and len(unknown) == len(analysis.devices) else ""


def _busy_enough(analysis: Analysis, device: DeviceCauses | None) -> bool:
    """Return whether the rows alone show a device that is not held back: many of them, busy, and linked to a host whose clock agrees."""
    if device is None or analysis.clocks.state is ClockState.DISAGREE or analysis.coverage.linked < LEAST_ROWS:
        return False
    return device.busy_share >= SOUND_BUSY


def _claim_at_risk(analysis: Analysis, warnings: list[Finding]) -> Finding | None:
    """Return the warning that says why a timer around the operations under test reads something else; None where none are, or nothing does."""
    always = {
        "TA710",
        "TA711",
        "TA706",
        "TA709",
        "TA304",
        "TA309",
        "TA703",
        "TA701",
        "TA505",
        "TA303",
        "TA503",
        "TA707",
    }
    tested = bool(measured(analysis))
    at_risk = {*LEADS, *FAMILY_OF_RULE} if tested else always
    mine = [f for f in warnings if not f.rule.startswith("TA1") and (f.rule in always or f.rule in at_risk)]
    if not mine:
        return None
    lead = min(mine, key=_lead)
    costs = [f for f in mine if f.rule in FAMILY_OF_RULE]
    if costs and (lead.rule in FAMILY_OF_RULE or lead.rule in CONSEQUENCES):
        # of causes that cost time the costliest leads, in whatever order the rules are
        part = _part_of_longest(analysis)
        return _costliest(
            max(costs, key=lambda f: (part(f) * _weight(f, f.cost.share if f.cost else 0.0), -_lead(f))), costs
        )
    return lead


def _limits(analysis: Analysis, findings: list[Finding]) -> list[Finding]:
    """Return the findings on what limits the run, the lead first: the largest of the families with the largest weight.

    Of several devices the one that loses most time leads, not the one that loses the largest part of a shorter span.
    """
    shares: dict[tuple[int | None, str, Family], float] = {}
    part = _part_of_longest(analysis)
    for device in causes(analysis):
        subject = device.subject
        for family, mask in device.families.items():
            shares[subject.device, subject.owner, family] = device.share(mask)
    costly = [f for f in findings if f.rule in FAMILY_OF_RULE and f.cost is not None]

    def order(f: Finding) -> tuple[float, float]:
        share = f.cost.share if f.cost else 0.0
        family = shares.get((f.subject.device, f.subject.owner, _family(f)), 0.0)
        return part(f) * _weight(f, max(share, family)), part(f) * share

    found = sorted(costly, key=order, reverse=True)
    first = _costliest(found[0], found) if found else None
    return sorted(found, key=lambda f: f is not first)


def _part_of_longest(analysis: Analysis) -> Callable[[Finding], float]:
    """Return what gives the span of a finding's device as a part of the longest span: shares of several devices compare as times."""
    spans = {(d.subject.device, d.subject.owner): d.ledger.span_ns for d in causes(analysis)}
    longest = max(spans.values(), default=0) or 1
    return lambda f: spans.get((f.subject.device, f.subject.owner), longest) / longest


def _costliest(lead: Finding, findings: list[Finding]) -> Finding:
    """Return the costliest finding of the lead's rule: of several devices, and of several forms, since one replay ends them all."""
    same = [f for f in findings if (f.rule, f.severity) == (lead.rule, lead.severity) and f.cost]
    return max(same, key=lambda f: (f.cost.ns if f.cost else 0, f is lead), default=lead)


def _weight(f: Finding, cost: float) -> float:
    """Return by what a family is compared: what its end is worth where a replay tells, but no more than it cost, else what it cost.

    A wait may be worth more than the idle time behind it, because the host would run ahead. Launches that are free within a
    unit are worth nothing to a unit of one launch; its dispatch limits it all the same. So does the host's work behind a wait,
    which no end of the wait takes away.
    """
    worth = f.cost.worth if f.cost else None
    family = _family(f)
    if worth is None or (family is Family.DISPATCH and worth < LITTLE_WORTH):
        return cost
    if (f.rule, f.code) == WORK_BEHIND:
        return cost
    return worth if family is Family.WAITS else min(cost, worth)


def _family(f: Finding) -> Family:
    """Return which family of costs a finding names."""
    return Family.COPIES if (f.rule, f.code) == IN_COPY_CALL else FAMILY_OF_RULE[f.rule]


def _spoils(rows: Finding, limit: Finding) -> bool:
    """Return whether what is wrong with the rows matters more than what limits the run: impossible times do, a few lost rows do not."""
    share = rows.numbers.get("share")
    if rows.rule == LOST and isinstance(share, float):
        return share > max(MUCH_UNKNOWN, limit.cost.share if limit.cost else 0.0)
    return rows.rule == "TA104"


def _rows_first(f: Finding) -> tuple[bool, float]:
    share = f.numbers.get("share")
    return f.rule == LOST, -share if isinstance(share, float) else 0.0


def _lead(f: Finding) -> int:
    return LEADS.index(f.rule) if f.rule in LEADS else len(LEADS)


def _also(others: list[Finding], lead: Finding) -> str:
    for f in others:
        same = f.rule == lead.rule and not (f.rule in FAMILY_OF_RULE and _family(f) is not _family(lead))
        if f is not lead and not same and f.rule != "TA202":
            return f" Also: {f.brief or f.headline}."
    return ""


def _second(limits: list[Finding], lead: Finding) -> list[Finding]:
    """Return the costliest finding of another family on the same device that costs so much that the lead is half of the answer only."""
    others = [
        f
        for f in limits
        if f.subject == lead.subject
        and _family(f) is not _family(lead)
        and f.cost is not None
        and f.cost.share >= SECOND
    ]
    return sorted(others, key=lambda f: -f.cost.share if f.cost else 0.0)[:1]


def _without_cause(analysis: Analysis, lead: Finding) -> str:
    """Return how much of the device's span has no cause in the trace, where it is much: the causes that are named are not all."""
    if analysis.clocks.state is ClockState.DISAGREE:
        return ""
    found = causes(analysis)
    device = next((d for d in found if d.subject == lead.subject), found[0] if len(found) == 1 else None)
    if device is None or (unknown := device.share(device.families[Family.UNKNOWN])) < MUCH_UNKNOWN:
        return ""
    return f" {show_share(unknown)} of the span has no cause in the trace ({_unknown(device)})."


def _where(analysis: Analysis, f: Finding) -> str:
    """Return the device of a finding, where the trace has several and the headline does not tell."""
    several = len(causes(analysis)) > 1 and f.subject.device is not None and f.rule in FAMILY_OF_RULE
    return f" ({f.subject})" if several else ""


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _limited(analysis: Analysis, device: DeviceCauses | None, limit: Finding) -> str:
    """Return the headline of a limit, with how busy the device is, and that the window is short where it is."""
    text = limit.headline
    where = _where(analysis, limit)
    mine = next((d for d in causes(analysis) if d.subject == limit.subject), device)
    told = mine is None or FAMILY_OF_RULE[limit.rule] is Family.COMMUNICATION
    busy = "" if told or mine is None else f"; it is busy {show_share(mine.busy_share)}"
    worth = ""
    if limit.cost is not None and (limit.cost.worth or 0.0) >= LITTLE_WORTH and limit.params.get("then_ns") is not None:
        worth = "; " + sentence(WORTH, limit.params)
    window = " in this window" if busy and _units(analysis) < FEW_UNITS else ""
    return f"{text}{where}{busy}{window}{worth}."


def _units(analysis: Analysis) -> int:
    """Return how often the trace repeats: the most iterations of an operation, or replays of a graph."""
    counts = [len(op.worked) for op in analysis.operations] + [len(r.opening) for r in analysis.replays]
    return max(counts, default=0)


def _confirmed(analysis: Analysis) -> str:
    """Return that a capture's two device protocols agree, which no fault of the queue takes away; empty otherwise."""
    sidecar = analysis.trace.meta.sidecar
    records = sidecar.operations if sidecar else []
    if len(records) != 1 or records[0].agreement.agree is not True or records[0].agreement.difference is None:
        return ""
    return f" The self-time is confirmed by the capture's unrolled graph ({number_text.change(records[0].agreement.difference)})."


def _first_remedy(finding: Finding) -> str:
    if not finding.remedy:
        return ""
    text = finding.remedy[0]
    return text[0].upper() + text[1:] + "."


def _short_remedy(finding: Finding) -> str:
    """Return the part of the first remedy that can be told alone: the finding has all of it."""
    text = short_of(finding.remedy[0]) if finding.remedy else ""
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _nothing_found(analysis: Analysis, device: DeviceCauses | None, limit: Finding | None) -> Verdict:
    """Return OK where the device is busy or the operation under test is sound; else what takes the time, or that nobody knows."""
    if device is None:
        return Verdict("ok", "OK: nothing was found against these numbers.")
    sound = sound_operation(analysis, device)
    busy = f"The device is busy {show_share(device.busy_share)} of its span"
    largest = _largest(device)
    if device.busy_share < SOUND_BUSY and sound is None:
        unknown = device.share(device.families[Family.UNKNOWN])
        if unknown >= max(1 - SOUND_BUSY, largest[1] if largest else 0.0):
            return Verdict(
                "cannot-judge" if unknown >= MUCH_UNKNOWN else "suspect",
                f"{'Cannot judge' if unknown >= MUCH_UNKNOWN else 'Suspect'}: {show_share(unknown)} of the device's span has no cause in the trace ({_unknown(device)}). {busy}.",
            )
        if limit is not None:
            return Verdict("suspect", f"Suspect: {_limited(analysis, device, limit)} {_short_remedy(limit)}")
        if largest is not None:
            return Verdict(
                "suspect", f"Suspect: {busy}; the most idle time, {show_share(largest[1])}, is {largest[0]}."
            )
    parts = []
    if sound is not None and device.busy_share < SOUND_BUSY:
        parts.append(_sound(sound))
        if limit is not None and not (sound.gaps and FAMILY_OF_RULE[limit.rule] is Family.DEVICE):
            parts.append(limit.headline)
    else:
        parts.append(_queue_text(device, analysis))
        if limit is not None and limit.cost is not None and limit.cost.share >= 1 - SOUND_BUSY:
            parts.append(limit.headline)
    unknown = device.share(device.families[Family.UNKNOWN])
    if unknown >= MUCH_UNKNOWN:
        parts.append(f"{show_share(unknown)} of the span has no cause in the trace ({_unknown(device)})")
    tail = f"{busy}; {_quote(analysis)}." if measured(analysis) else f"{busy}."
    tail += _ahead(device)
    return Verdict("ok", f"OK: {'; '.join(parts)}. {tail}")


def _sound(sound: Sound) -> str:
    """Return why an operation can be believed although the device is idle in the trace for more than a tenth of its span."""
    gaps = f" and in its own gaps between kernels {show_share(sound.gaps)}" if sound.gaps else ""
    return (
        f"`{shown_name(sound.name)}` is sound: from call to call the device is busy {show_share(sound.busy)} of the time{gaps}"
        f" (median of {sound.calls} calls)"
    )


def _ahead(device: DeviceCauses) -> str:
    """Return what the host did before the first device row, which no share of the span holds, where it was long."""
    ahead = device.ledger.before_first
    if ahead.ns < MUCH_UNKNOWN * device.ledger.span_ns:
        return ""
    most = max(ahead.classes.items(), key=lambda item: item[1], default=None)
    what = (
        f", {show_us(most[1])} of it {most[0].label.replace('_', ' ')}"
        if most and most[0] in ONE_TIME and 2 * most[1] >= ahead.ns
        else ""
    )
    return f" Not counted: the host ran for {show_us(ahead.ns)} before the first device row{what}."


def _quote(analysis: Analysis) -> str:
    overlapping = any(d.idle.self_time_ns > 1.02 * d.idle.busy_ns for d in analysis.devices)
    return (
        "rows overlap: quote the time per call, not the sum of self-times"
        if overlapping
        else "quote self-time p50 with its interval and n"
    )


def _largest(device: DeviceCauses) -> tuple[str, float] | None:
    """Return the largest item of idle time with a cause, and its share of the span."""
    mask = device.is_idle & ~device.families[Family.UNKNOWN]
    items = device.items(mask, 1)
    if not items:
        return None
    item = items[0]
    return (
        f"{item.cls.label.replace('_', ' ')} ({item.what})" if item.name else item.what,
        item.ns / device.ledger.span_ns,
    )


def _unknown(device: DeviceCauses) -> str:
    texts = {
        "unlinked": "rows without a launch", "unrecorded": "after launches whose rows are missing", "before_window": "work from before the recording may have run",
    }  # fmt: skip
    items = device.items(device.families[Family.UNKNOWN], 1)
    return texts.get(items[0].cls.label, items[0].cls.label) if items else "nothing"


def _queue_text(device: DeviceCauses, analysis: Analysis) -> str:
    facts = next(d for d in analysis.devices if d.device == device.ledger.device)
    queue, idle = facts.queue, facts.idle
    met = queue.starved + queue.starved_after_sync + queue.dry
    if queue.state is QueueState.GPU_BOUND:
        return f"the queue stays ahead of the device ({met:,} of {queue.counted:,} launches came late)"
    if queue.state is QueueState.UNKNOWN or not queue.counted:
        return f"nothing holds the device back for long; it is idle {show_us(idle.span_ns - idle.busy_ns)}"
    return f"the device is kept busy although {met:,} of {queue.counted:,} launches came late"
