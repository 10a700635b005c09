"""The back-test: where the head is the base with one thing changed, what the base's ledger had said that would be worth."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.analysis.compare.unit_ratios import UnitResult
from traceanalyzer.report.compare.unit_model import BackTest
from traceanalyzer.report.model import WorthRow

_FEWER = 0.5
_MOST_OF_IT = 0.5
_SAME_WORK = 0.8
_SAME_UNIT = 0.1
_CHANGE_OF = {
    "data_loading": "no_data_loading", "allocation": "no_allocation", "compile": "no_compile", "copy_call": "no_copy_calls", "synchronise": "no_synchronise",
}  # fmt: skip


def back_test(result: UnitResult, worth: Sequence[WorthRow]) -> BackTest | None:
    """Return the prediction for the one thing that changed, None where more did, or nothing was predicted.

    Half of the launches gone with the same kernels is a graph (``launches_free``); a class of host time that holds over half of what
    was saved, and is gone, is the change that takes it away.
    """
    period = result.measured.get("period")
    if period is None or not period.ratio.ratio or result.pair.work.least < _SAME_WORK or not result.ledger.terms:
        return None
    change = _change(result)
    found = next((w for w in worth if w.change == change and w.factor), None)
    if found is None or found.factor is None or not found.now_us:
        return None
    # the prediction is of this unit: what was replayed takes as long
    if abs(found.now_us * 1000 / period.base.p50_ns - 1) > _SAME_UNIT:
        return None
    return BackTest(change, round(found.factor, 6), round(1 / period.ratio.ratio, 6))


def _change(result: UnitResult) -> str:
    base, head = result.launches
    if base > 0 and head < _FEWER * base:
        return "launches_free"
    saved = sum(t.saved_ns for t in result.ledger.terms)
    first = result.ledger.terms[0]
    gone = first.saved_ns > _MOST_OF_IT * saved > 0 and first.head_ns < 0.1 * first.base_ns
    return _CHANGE_OF.get(first.cls, "") if gone else ""
