"""TA208 rank-inversion: a timing protocol ranks two operations against their self-times.

What it checks
    Two operations that do the same: the operations of two traces that are compared, or two operations of one
    capture that took the same inputs.

Why it matters
    A protocol with dispatch in its reading ranks dispatchers. The slower kernel then wins the benchmark, and the
    table is believed.

How it is decided
    The ladder of both, on one machine: latency, record, synchronise, gap and clear are the same for both, so that
    dispatch and kernels alone tell them apart (with a synchronise in each call the order flips if the difference of
    the dispatches exceeds that of the kernels; readings a capture measured on both sides are taken as they are). The
    self-times must differ by their interval, the other reading by over 1 % and by more than the intervals of what
    it is made of. DERIVED.

Example
    By self-time B is 1.4x faster (10 us against 14); with a synchronise in each call A would look 1.3x faster,
    because B's dispatch is 20 us longer.

What to do
    Quote both: device self-time, and what a call costs end to end, each with its protocol.

When it is wrong
    The operations do different work, or the profiler inflates the dispatch of one more than of the other.

References
    docs/methodology.md, the model; docs/compare.md, the ladder of both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.operations import OpFacts
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.queue import Grade
from traceanalyzer.doctor.comparison_rule import ComparisonRule, PairExample
from traceanalyzer.doctor.example import Event, captured, host_range, kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.finding import Abstained, Finding, Param, Severity
from traceanalyzer.doctor.message import PROTOCOLS, Message, sentence
from traceanalyzer.doctor.rule import Example, Rule
from traceanalyzer.doctor.subject import Subject, SubjectKind
from traceanalyzer.options import SAME_WITHIN

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.comparison import Compared
    from traceanalyzer.analysis.compare.ladder import Ladders
    from traceanalyzer.analysis.compare.sides import ComparedWork
    from traceanalyzer.trace.sidecar import Sidecar

_SIDES = "by self-time {quick} is {own_ratio:times} faster; {protocol:protocol} {slow} "
_OPERATIONS = "by self-time {quick:name} is {own_ratio:times} faster; {protocol:protocol} {slow:name} "
_LOOKED, _WOULD_LOOK = "looked {other_ratio:times} faster", "would look {other_ratio:times} faster"
_BECAUSE = "[[, because the dispatch of {longer} is {longer_ns:time} longer]]"
_NAMED = "[[, because the dispatch of {longer:name} is {longer_ns:time} longer]]"
SENTENCES = {
    "sides-measured": _SIDES + _LOOKED + _BECAUSE,
    "sides-modelled": _SIDES + _WOULD_LOOK + _BECAUSE,
    "operations-measured": _OPERATIONS + _LOOKED + _NAMED,
    "operations-modelled": _OPERATIONS + _WOULD_LOOK + _NAMED,
}
"""A flip in words: of two sides of a comparison or of two operations, of a protocol that was measured or is modelled."""


def inversion(found: Ladders, base: str = "", head: str = "") -> tuple[str, dict[str, Param]] | None:
    """Return the message code and parameters of a flip, of a measured protocol if there is one; None where there is none.

    ``base`` and ``head`` are the names of two operations; without them the sides are called base and head.
    """
    kind = "operations" if base else "sides"
    base, head = base or "base", head or "head"
    b, h = found.base_us, found.head_us
    own = (b["profiler_self_time"], h["profiler_self_time"])
    flips = [p for p in PROTOCOLS if p in found.flips and b[p] and h[p]]
    if not flips or not own[0] or not own[1]:
        return None
    protocol = min(flips, key=lambda p: p not in found.measured)
    x, y = b[protocol] or 1.0, h[protocol] or 1.0
    quick, slow = (head, base) if own[1] < own[0] else (base, head)
    params: dict[str, Param] = {
        "quick": quick, "slow": slow, "own_ratio": max(own[0] / own[1], own[1] / own[0]), "protocol": protocol, "other_ratio": max(x / y, y / x),
        "longer": None, "longer_ns": None,
    }  # fmt: skip
    if found.base_symbols is not None and found.head_symbols is not None:
        longer = found.head_symbols.total_dispatch - found.base_symbols.total_dispatch
        if (longer > 0) == (quick == head) and longer:
            params |= {"longer": quick, "longer_ns": abs(longer)}
    return f"{kind}-{'measured' if protocol in found.measured else 'modelled'}", params


def inversion_sentence(found: Ladders) -> str:
    """Return a flip of the two sides of a comparison as a sentence, empty where there is none."""
    flip = inversion(found)
    return sentence(SENTENCES[flip[0]], flip[1]) if flip else ""


def _two_calls() -> tuple[Event, ...]:
    """Return 30 calls each of a kernel of 10 us behind 40 us of dispatch and one of 14 behind 20, in turns."""
    events: list[Event] = []
    at = 1000.0
    for i in range(30):
        for name, dispatch, own in (("quick", 40.0, 10.0), ("slow", 20.0, 14.0)):
            at += dispatch
            corr = 2 * i + (name == "slow") + 1
            events.append(host_range(f"traceanalyzer.call:{name}", at - dispatch + 0.5, dispatch + 1.5))
            events += [launch(at, corr, 2.0), kernel(at + 6, own, corr, f"{name}_kernel")]
    return tuple(events)


def _same_inputs(same: bool) -> Sidecar:
    record = captured().operations[0]
    quick = replace(record, name="quick", inputs={"x": "float32 4x300"})
    slow = replace(record, name="slow", inputs={"x": "float32 4x300" if same else "float32 8x300"})
    return replace(captured(), operations=[quick, slow])


class RankInversion(Rule, ComparisonRule):
    """A timing protocol ranks two operations against their self-times."""

    code = "TA208"
    name = "rank-inversion"
    family = "queue"
    thresholds = (SAME_WITHIN,)
    messages: ClassVar[dict[str, Message]] = {
        code: Message(
            f"the ranking depends on the protocol: {text}",
            f"{text[0].upper()}{text[1:]}. The order flips under: {{flips}}.",
        )
        for code, text in SENTENCES.items()
    }
    positive = Examples(
        lambda: (
            Example(
                "two operations of one capture, of the same inputs",
                _two_calls(),
                ("TA201", "TA202"),
                sidecar=lambda: _same_inputs(True),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("two operations that nothing says do the same", _two_calls()),
            Example("two operations of different inputs", _two_calls(), sidecar=lambda: _same_inputs(False)),
        )
    )
    pair_positive = Examples(
        lambda: (PairExample("a quicker kernel behind a slower dispatch", loop(40, 20, 14), loop(40, 40, 10)),)
    )
    pair_negative = Examples(
        lambda: (
            PairExample("a quicker kernel, the same dispatch", loop(40, 20, 14), loop(40, 20, 10)),
            PairExample("quicker kernel and dispatch", loop(40, 40, 14), loop(40, 20, 10)),
        )
    )

    def check_pair(self, compared: Compared) -> list[Finding] | Abstained:
        """Return what the module's documentation says, of two traces."""
        silent = [
            f"{n}: {s.host_broken}" for n, s in (("base", compared.base), ("head", compared.head)) if s.host_broken
        ]
        if silent:
            return self.abstain(f"the ladder needs dispatch; {'; '.join(silent)}")
        if compared.refused or compared.broken:
            return []
        found = []
        for row in compared.inverted:
            if row.ladders is not None and (flip := inversion(row.ladders)):
                found.append(self._found(row.shown.name, row.ladders, flip, Severity.WARNING))
        return found

    def check(self, analysis: Analysis) -> list[Finding] | Abstained:
        """Return what the module's documentation says, of two operations in one capture."""
        sidecar = analysis.trace.meta.sidecar
        inputs = {o.name: o.inputs for o in sidecar.operations if o.inputs} if sidecar else {}
        known = [op for op in analysis.operations if op.iterations.name in inputs and op.symbols and len(op.self_ns)]
        found: list[Finding] = []
        if len(known) < 2:
            return found
        # what a comparison needs is loaded where there is one
        from traceanalyzer.analysis.compare.ladder import ladders
        from traceanalyzer.analysis.compare.statistics import compare_medians, verdict_of

        limit = analysis.options.threshold(SAME_WITHIN)
        for n, first in enumerate(known[:8]):
            for second in known[n + 1 : 8]:
                if inputs[first.iterations.name] != inputs[second.iterations.name]:
                    continue
                a, b = _work(first), _work(second)
                verdict = verdict_of(compare_medians(a.times, b.times, limit), limit)
                winner = {"FASTER": "head", "SLOWER": "base"}.get(verdict, "tie")
                pair = ladders(a, b, winner, True, limit)
                if pair.flips and (flip := inversion(pair, a.name, b.name)):
                    found.append(self._found(f"{a.name}, {b.name}", pair, flip, Severity.NOTE))
        return found

    def _found(self, subject: str, pair: Ladders, flip: tuple[str, dict[str, Param]], severity: Severity) -> Finding:
        numbers: dict[str, float | int | str | None] = {}
        for protocol in ("profiler_self_time", *pair.flips):
            for side, values in (("base", pair.base_us), ("head", pair.head_us)):
                value = values[protocol]
                numbers[f"{side}_{protocol}_us"] = None if value is None else round(value, 3)
        for side, symbols in (("base", pair.base_symbols), ("head", pair.head_symbols)):
            if symbols is not None:
                numbers[f"{side}_dispatch_us"] = round(symbols.total_dispatch / 1000, 3)
        return self.say(
            flip[0],
            severity,
            Grade.DERIVED,
            Subject(SubjectKind.OPERATION, name=subject),
            flip[1] | {"flips": ", ".join(pair.flips)},
            numbers=numbers,
            remedy=[
                "quote device self-time and end-to-end time as two numbers, each with its protocol",
                "shorten the dispatch (a graph, fewer Python layers) if end-to-end is what counts",
            ],
        )


def _work(op: OpFacts) -> ComparedWork:
    """Return an operation of one trace as a side of a comparison; both come from one machine, so every symbol is shared."""
    from traceanalyzer.analysis.compare.sides import ComparedWork
    from traceanalyzer.analysis.compare.statistics import Times

    own = Times(len(op.self_ns), stats.median(op.self_ns) or 0.0, op.self_ns)
    dispatch = (op.dispatch_ns / 1000).tolist()
    seen = frozenset({"latency", "record", "sync", "gap", "clear", "clear_dispatch"})
    name = op.iterations.name
    return ComparedWork(name, name, own, dispatch_samples_us=dispatch, symbols=op.symbols, seen=seen)
