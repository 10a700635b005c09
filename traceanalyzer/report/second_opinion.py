"""HTA's numbers next to ours, with every difference taken apart.

A cause is never guessed. HTA's own code is run again with one habit after the other taken away
(:mod:`traceanalyzer.peers.hta_process`); what each step changes is that habit's share. What then is left must equal HTA's
definition recomputed from our tables; the step from there to our definition is the last share. Anything else stands as
unexplained.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from traceanalyzer.analysis import hta_definitions as by_hta
from traceanalyzer.analysis import stats
from traceanalyzer.analysis.breakdown import breakdowns
from traceanalyzer.analysis.hta_definitions import Quantities
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.peers.hta import VARIANTS, HtaFigures, HtaResult
from traceanalyzer.report.opinion import Cause, OpinionRow, SecondOpinion
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.names import scrub_paths, short_names

KERNELS, STREAMS = 3, 2
SMALLEST_US = 0.0015
"""Differences up to a nanosecond and a half are the rounding of a decimal; nothing is said of them."""

ROUNDING = "times cut to whole microseconds"
FLOATS = "times kept as 64-bit floats"
REAGGREGATED = "its table sums its own sums once there are more than 10 names (num_kernels)"
BY_NAME = "kernels classified by name, not by category"
WHOLE_GAP = "a gap goes whole to one cause; ours is split at the launch call"

_Getter = Callable[[HtaFigures], float | None]


def second_opinion(analysis: Analysis, found: HtaResult) -> SecondOpinion:
    """Return the comparison of a report of a whole trace with what HTA says of the same file."""
    tool = found.version or "HolisticTraceAnalysis"
    if found.error:
        return SecondOpinion(tool, scrub_paths(found.error))
    try:
        floats = by_hta.quantities(analysis.trace, analysis.waits, as_floats=True)
        exact = by_hta.quantities(analysis.trace, analysis.waits, as_floats=False)
    except ValueError as error:
        return SecondOpinion(tool, str(error))
    return SecondOpinion(tool, "", _Comparison(analysis, found, floats, exact).rows())


def _us(ns: float | None) -> float | None:
    return None if ns is None else round(float(ns) / 1000, 6)


class _Comparison:
    def __init__(self, analysis: Analysis, found: HtaResult, floats: Quantities, exact: Quantities) -> None:
        self._analysis = analysis
        self._found = found
        self._floats, self._exact = floats, exact
        self._shipped = found.figures.get("shipped", HtaFigures())
        self._clean: Callable[[str], str] = (lambda text: text) if analysis.options.show_paths else scrub_paths
        counts = found.counts
        dropped = f"{counts.get('dropped_rows', 0):,} of {counts.get('rows_on_streams', 0):,} rows dropped: its last ProfilerStep, and rows without a host call"
        lost = f"{_rows(counts.get('rows_joined_to_the_first_event', 0), 'row')} without a launch joined to the first event of the file"
        taken = _taken_for_device_work(counts)
        unsound = f"{_rows(counts.get('unsound_device_rows', 0), 'device row')} with a time that cannot be true, which ours leaves out"
        causes = {
            "shipped": "", "all_rows": dropped, "device_rows": taken, "sound_rows": unsound, "unrounded": ROUNDING, "joined": lost,
        }  # fmt: skip
        # each variant with what was taken away to get there
        self._variants = [(name, found.figures[name], causes[name]) for name in VARIANTS if name in found.figures]

    def rows(self) -> list[OpinionRow]:
        rows = [*self._device(), *self._idle(), *self._kernels(), *self._launches()]
        several = len(self._analysis.devices)
        if several > 1:
            note = f"it takes {several} devices for one; ours are separate"
            rows = [OpinionRow(r.quantity, r.unit, None, r.theirs, note=note) for r in rows]
        return rows

    # -- one row ------------------------------------------------------------------------------------------

    def _row(
        self, quantity: str, ours: float | None, get: _Getter, floats: float | None, exact: float | None, definition: str,
        *, unit: str = "us", question: str = "temporal", shown: tuple[float | None, str] | None = None, note: str = "",
    ) -> OpinionRow:  # fmt: skip
        """Return a quantity with the shares of its difference.

        ``get`` reads it from HTA's figures; ``shown`` is what HTA's own call returns where that differs already, with the
        reason. ``floats`` and ``exact`` are HTA's definition on our tables, ``definition`` what leads from there to ours.
        """
        steps = [(get(figures), cause) for _, figures, cause in self._variants]
        if shown is not None:
            steps = [(shown[0], ""), (steps[0][0] if steps else None, shown[1]), *steps[1:]]
        theirs = steps[0][0] if steps else None
        if theirs is None:
            return OpinionRow(
                quantity, unit, ours, None, note=note or self._why_not(question), theirs_unrounded=self._unrounded(get)
            )
        causes: list[Cause] = []
        at, pending = theirs, []
        for value, cause in steps[1:]:
            pending.append(cause)
            if value is not None:
                _add(causes, " and ".join(pending), value - at)
                at, pending = value, []
        left = None
        if ours is None or floats is None or exact is None:
            left = None if ours is None else ours - at
        else:
            left = floats - at
            _add(causes, FLOATS, exact - floats)
            _add(causes, definition, ours - exact)
        unexplained = None if left is None or abs(left) <= SMALLEST_US else round(left, 6)
        return OpinionRow(quantity, unit, ours, round(theirs, 6), causes, unexplained, note)

    def _why_not(self, question: str) -> str:
        reason = self._shipped.failed.get(question, "")
        return f"it gives no number ({reason.rstrip(': ')})" if reason else "it gives no number"

    def _unrounded(self, get: _Getter) -> float | None:
        """Return what HTA gives once it does not round, if it gave nothing in the step before."""
        values = [(name, get(figures)) for name, figures, _ in self._variants]
        for (_, before), (name, value) in pairwise(values):
            if name == "unrounded" and before is None:
                return value
        return None

    # -- the quantities -----------------------------------------------------------------------------------

    def _device(self) -> list[OpinionRow]:
        floats, exact = self._floats, self._exact
        found = breakdowns(self._analysis.trace)
        ours = found[0] if len(found) == 1 else None
        span, busy, idle, compute = (
            (ours.span_ns, ours.busy_ns, ours.idle_ns, ours.compute_ns) if ours else (None, None, None, None)
        )

        def row(name: str, own: int | None, get: _Getter, as_floats: int, as_exact: int, cause: str = "") -> OpinionRow:
            return self._row(name, _us(own), get, _us(as_floats), _us(as_exact), cause)

        return [
            row("span", span, lambda f: f.span_us, floats.span_ns, exact.span_ns),
            row("busy", busy, lambda f: f.busy_us, floats.busy_ns, exact.busy_ns),
            row(
                "idle", idle, lambda f: f.idle_us, floats.span_ns - floats.busy_ns, exact.span_ns - exact.busy_ns
            ),
            row("compute", compute, lambda f: f.compute_us, floats.compute_ns, exact.compute_ns, BY_NAME),
        ]  # fmt: skip

    def _idle(self) -> list[OpinionRow]:
        lanes = self._analysis.trace.lanes
        streams = sorted(self._analysis.streams, key=lambda s: -int(s.gaps_ns.sum()))[:STREAMS]
        names = (
            ("host_wait", "host wait"),
            ("kernel_wait", "launch wait (its kernel wait)"),
            ("other", "unattributed (its other)"),
        )
        result = []
        for stream in streams:
            number = lanes[stream.lane].stream
            own = {
                "host_wait": stream.host_wait_ns,
                "kernel_wait": stream.launch_wait_ns,
                "other": stream.unattributed_ns,
            }
            for category, title in names:

                def get(figures: HtaFigures, category: str = category, number: int = number) -> float | None:
                    of_stream = figures.idle.get(str(number))
                    # a category without a gap has no row in its table
                    return None if of_stream is None else (of_stream.get(category) or 0.0)

                result.append(
                    self._row(
                        f"stream {number} {title}", _us(own[category]), get, _us(self._floats.idle.get(number, {}).get(category)),
                        _us(self._exact.idle.get(number, {}).get(category)), WHOLE_GAP, question="idle",
                    )
                )  # fmt: skip
        return [r for r in result if r.ours or r.theirs]

    def _kernels(self) -> list[OpinionRow]:
        trace, rows = self._analysis.trace, self._analysis.trace.activities
        kernel = rows.kind == RowKind.KERNEL
        totals = np.zeros(len(trace.names), dtype=np.int64)
        np.add.at(totals, rows.name[kernel], rows.dur_ns[kernel])
        counts = np.bincount(rows.name[kernel], minlength=len(trace.names))
        top = [int(n) for n in np.argsort(-totals, kind="stable")[:KERNELS] if counts[n]]
        shown = dict(zip(top, short_names([self._clean(trace.names[n]) for n in top]), strict=True))
        result = []
        for number in top:
            name, total, count = trace.names[number], int(totals[number]), int(counts[number])
            listed = self._exact.kernels.get(name)
            for column, ours, exact in (
                ("sum", total, listed and listed[1]),
                ("mean", total / count, listed and listed[1] / listed[0]),
            ):
                result.append(self._kernel(name, shown[number], column, _us(ours), _us(exact)))
        return result

    def _kernel(self, name: str, shown: str, column: str, ours: float | None, exact: float | None) -> OpinionRow:
        def get(figures: HtaFigures) -> float | None:
            return figures.every_kernel.get(name, {}).get(column)

        in_table = self._shipped.kernels.get(name, {}).get(column)
        note = ""
        if in_table is None:
            folded = get(self._shipped) is not None
            note = (
                f'folded into "others": its table keeps {len(self._shipped.kernels)} names'
                if folded
                else "not in its table"
            )
        title = "total" if column == "sum" else column
        return self._row(
            f"{shown}: {title}",
            ours,
            get,
            exact,
            exact,
            BY_NAME,
            question="kernels",
            shown=(in_table, REAGGREGATED),
            note=note,
        )

    def _launches(self) -> list[OpinionRow]:
        analysis, floats, exact = self._analysis, self._floats, self._exact
        unknown = by_hta.unknown_launch_calls(analysis.trace, analysis.waits)
        named = ", ".join(f"{api} {n:,}" for api, n in list(unknown.items())[:4]) + (
            ", ..." if len(unknown) > 4 else ""
        )
        cause = f"launch calls it does not know: {named}"
        delays = by_hta.delays_ns(analysis.trace, analysis.waits)
        rows = self._row(
            "device rows joined to a launch", float(analysis.coverage.linked), _launch_rows, float(floats.launch_rows),
            float(exact.launch_rows), cause, unit="rows", question="launches",
        )  # fmt: skip
        delay = self._row(
            "launch delay p50 (call's end to start)", _us(stats.median(delays)), lambda f: f.delay_p50_us, _us(floats.delay_p50_ns),
            _us(exact.delay_p50_ns), cause, question="launches",
            note="it joins no row" if not self._shipped.launch_rows else "",
        )  # fmt: skip
        return [rows, delay] if delay.ours is not None or delay.theirs is not None else [rows]


def _launch_rows(figures: HtaFigures) -> float | None:
    return None if figures.launch_rows is None else float(figures.launch_rows)


def _add(causes: list[Cause], cause: str, amount: float) -> None:
    if abs(amount) > SMALLEST_US:
        causes.append(Cause(cause or "another definition", round(amount, 6)))


def _taken_for_device_work(counts: dict[str, int]) -> str:
    parts = []
    for key, word in (
        ("host_rows_on_streams", "host row"),
        ("sync_rows_on_streams", "synchronisation record"),
    ):
        if counts.get(key):
            parts.append(_rows(counts[key], word))
    taken = (
        f"{' and '.join(parts)} with a stream argument taken for device work" if parts else "rows taken for device work"
    )
    if missed := counts.get("device_rows_without_stream"):
        taken += f", {_rows(missed, 'device row')} without one left out"
    return taken


def _rows(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
