"""What changes would be worth, in words: the period with each change made, never a sum of changes."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.report.model import LedgerRow, WorthRow

WORDS = {
    "launches_free": "launches free", "no_synchronise": "no synchronise", "no_copy_calls": "no waiting copies",
    "no_host_waits": "no waits for the device", "no_allocation": "no allocation", "no_data_loading": "no data loading",
    "no_compile": "no compilation", "largest_kernel_halved": "largest kernel 2x faster", "everything_free": "no host time",
}  # fmt: skip
"""Of each change of the replays its name in text."""
SITE = "no_site:"
HALVED, FLOOR = "largest_kernel_halved", "everything_free"
_ALWAYS = (HALVED, FLOOR)
_WORTH_IT = 1.02
_SHOWN = 2
_NAME = 40


def word(change: str) -> str:
    """Return the name of a change in text."""
    if change.startswith(SITE):
        return f"without {terminal(change.removeprefix(SITE), _NAME)}"
    return WORDS.get(change, terminal(change, _NAME))


def changes(row: LedgerRow) -> list[WorthRow]:
    """Return the changes that are worth 2 % or more, largest first; then a faster kernel in any case, and the floor if lower."""
    known = [w for w in row.worth if w.factor is not None]
    large = [w for w in known if w.change not in _ALWAYS and (w.factor or 0.0) >= _WORTH_IT]
    # a site that is worth what a whole kind of change is worth is the better advice: it says where
    large.sort(key=lambda w: (-(w.factor or 0.0), not w.change.startswith(SITE)))
    floor = [
        w
        for w in known
        if w.change == FLOOR and (w.factor or 0.0) >= _WORTH_IT * max((x.factor or 0.0 for x in large), default=1.0)
    ]
    return [*large[:_SHOWN], *(w for w in known if w.change == HALVED), *floor]


def parts(row: LedgerRow) -> list[str]:
    """Return what a device's unit of work would take with each change made; the reason where that cannot be said."""
    found = changes(row)
    if not found:
        reasons = {w.reason for w in row.worth}
        # reasons of single changes (nothing is copied) are no reason why no change can be judged
        return [f"worth of a change not judged: {terminal(reasons.pop() or '', 120)}"] if len(reasons) == 1 else []
    now = show.duration(found[0].now_us)
    texts = [f"{word(w.change)} {show.duration(w.period_us)} ({show.ratio(w.factor)})" for w in found]
    return [f"worth, of {now} per {_unit(row)}: {texts[0]}", *texts[1:]]


def _unit(row: LedgerRow) -> str:
    return row.unit_kind or "call"


def best(row: LedgerRow) -> str:
    """Return the change that is worth most as half a sentence, empty where none is worth 2 %."""
    found = [w for w in changes(row) if w.change not in _ALWAYS]
    if not found:
        return ""
    w = found[0]
    return f"{word(w.change)} would make {show.duration(w.now_us)} per {_unit(row)} {show.duration(w.period_us)} ({show.ratio(w.factor)})"


def table(row: LedgerRow, device: str) -> Block | None:
    """Return every change with its period and factor, or why it was not judged."""
    if not row.worth:
        return None
    judged = [w for w in row.worth if w.factor is not None]
    cells = [
        [
            word(w.change), w.change.partition(":")[0], show.time(w.period_us), show.time(w.now_us), show.ratio(w.factor),
            _behind(w.behind) if w.behind else "",
        ]
        for w in judged
    ]  # fmt: skip
    reasons: dict[str, list[str]] = {}
    for w in row.worth:
        if w.factor is None:
            reasons.setdefault(w.reason or "no reason", []).append(word(w.change))
    notes = [f"not judged: {', '.join(which)}: {terminal(reason, 200)}" for reason, which in reasons.items()]
    if judged:
        notes += [
            f"replays of {show.plural(row.worth_units, _unit(row))}; one-time costs are left out; worths do not add",
            "hidden by: the change is worth nothing until that is gone too",
        ]
    columns = ["change", "in JSON", "period", "now", "factor", "hidden by"]
    title = f"What a change would be worth on {device}"
    return Block(title, columns, cells, frozenset(), notes, labels=frozenset({0, 1, 5}))


def _behind(change: str) -> str:
    return "the device's own work" if change == "device" else word(change)
