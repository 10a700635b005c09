"""The ladder of one operation as a chart: what each protocol would have read, on one axis with its self-time."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.charts import protocol_titles
from traceanalyzer.render.page.svg import ChartMark, ChartRow, RowChart, short_time, time_axis
from traceanalyzer.report.units import OpRow


def ladder_chart(op: OpRow, name: str, wrong: bool) -> RowChart:
    """Return a row per protocol with its closed form, this trace replayed, and what a capture measured (not of a wrong result)."""
    own = op.self_time_p50_us
    known = [op.readings, op.readings_replayed, *([] if wrong else [op.readings_measured])]
    values = [v for readings in known for v in readings.values() if v is not None]
    axis = time_axis([*values, *([own] if own else [])])
    rows = []
    for protocol, title in protocol_titles(op).items():
        closed, replayed = op.readings.get(protocol), op.readings_replayed.get(protocol)
        measured = None if wrong else op.readings_measured.get(protocol)
        if closed is None and replayed is None and measured is None:
            continue
        marks = (
            [ChartMark("span", "excess", *sorted((axis.at(own), axis.at(closed))))]
            if own and closed is not None
            else []
        )
        texts = []
        for value, shape, word in (
            (replayed, "ring", "replayed"),
            (closed, "dot", ""),
            (measured, "diamond", "measured"),
        ):
            if value is not None:
                marks.append(ChartMark(shape, "fg" if shape != "diamond" else "measured", axis.at(value)))
                # the replay says something of its own only where it differs from the closed form
                if shape != "ring" or closed is None or abs(value - closed) > 0.05 * max(value, closed):
                    texts.append(f"{word} {show.time(value)}".strip())
        rows.append(ChartRow(title, ", ".join(reversed(texts)), marks))
    return RowChart(
        title=terminal(f"{name}: what each protocol would have read, per call", 200),
        rows=rows,
        ticks=axis.ticks(short_time),
        axis="logarithmic" if axis.logarithmic else "",
        lines=[(axis.at(own), 0.0, "self")] if own else [],
    )  # fmt: skip
