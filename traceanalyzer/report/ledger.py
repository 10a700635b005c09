"""Rows of the report for the time ledger."""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.analysis.ledger import DeviceLedger, LedgerItem, Worth, items, largest
from traceanalyzer.analysis.ledger.lines import short_line
from traceanalyzer.analysis.ledger.recorded import operators_recorded
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.worth.changes import CHANGES
from traceanalyzer.report import model

MOST_ITEMS = 40
"""Items a window lists; the classes have the time of all of them."""
MOST_CAUSES = 10
"""Causes a device lists with the ranges put together, which is how the verdict adds them up."""


def _us(ns: float) -> float:
    return round(ns / 1000, 6)


def ledger_rows(analysis: Analysis, clean: Callable[[str], str]) -> list[model.LedgerRow]:
    """Return the ledger of each device over its span, then of each operation."""
    return [_row(analysis, found, clean) for found in (*analysis.ledgers, *analysis.op_ledgers)]


def _row(analysis: Analysis, ledger: DeviceLedger, clean: Callable[[str], str]) -> model.LedgerRow:
    device = analysis.trace.devices[ledger.device]
    whole = ledger.window == "span"
    found = items(ledger)
    return model.LedgerRow(
        device=device.number,
        owner=device.owner,
        window=clean(ledger.window),
        span_us=_us(ledger.span_ns),
        classes={c.label: _us(ns) for c, ns in ledger.classes_ns().items()},
        drained_by={d.label: _us(ns) for d, ns in ledger.drained_ns().items()},
        launch_latency_limit_us=_us(ledger.limit_ns),
        before_first_us=_us(ledger.before_first.ns) if whole else None,
        after_last_us=_us(ledger.after_last.ns) if whole else None,
        before_first={c.label: _us(ns) for c, ns in ledger.before_first.classes.items()} if whole else {},
        after_last={c.label: _us(ns) for c, ns in ledger.after_last.classes.items()} if whole else {},
        items=[_item(analysis, ledger, i, clean) for i in found[:MOST_ITEMS]],
        items_left_out=max(0, len(found) - MOST_ITEMS),
        causes=[_item(analysis, ledger, i, clean) for i in largest(ledger, MOST_CAUSES)] if whole else [],
        operators_recorded=operators_recorded(analysis.trace, ledger),
        worth=worth_rows(ledger.worth, clean),
        worth_units=0 if ledger.worth.reason else ledger.worth.units,
        unit=clean(ledger.unit.name) if ledger.unit else "",
        unit_kind=str(ledger.unit.kind) if ledger.unit else "",
    )


def worth_rows(worth: Worth, clean: Callable[[str], str]) -> list[model.WorthRow]:
    """Return what each change is worth, or for each why none can be told."""
    if worth.reason:
        return [model.WorthRow(change, reason=clean(worth.reason)) for change in CHANGES]
    return [
        model.WorthRow(clean(c.change), reason=clean(c.reason))
        if c.period_ns is None or c.now_ns is None or c.factor is None
        else model.WorthRow(
            clean(c.change), _us(c.period_ns), _us(c.now_ns), round(c.factor, 6), clean(c.behind) or None
        )
        for c in worth.changes
    ]


def _item(
    analysis: Analysis, ledger: DeviceLedger, item: LedgerItem, clean: Callable[[str], str]
) -> model.LedgerItemRow:
    when = ledger.when(item.segments)
    trace, origin = analysis.trace, analysis.trace.meta.origin_ns
    return model.LedgerItemRow(
        class_=item.cls.label,
        name=clean(item.name),
        within=clean(item.within),
        us=_us(item.ns),
        share=round(item.ns / ledger.span_ns, 6) if ledger.span_ns else 0.0,
        count=item.count,
        longest_us=_us(item.longest_ns),
        example_at_us=_us(item.example_ns - origin),
        median_example_at_us=_us(item.median_example_ns - origin),
        before=clean(trace.names[trace.activities.name[item.row]]),
        drained_by={d.label: _us(ns) for d, ns in item.drained.items()},
        when=str(when.when),
        every=when.every,
        line=item.line if analysis.options.show_paths else clean(short_line(item.line)),
        period_us=_us(when.period_ns) if when.period_ns else None,
        ranges=item.ranges,
    )
