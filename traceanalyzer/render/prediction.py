"""What each timing protocol would read, from numbers alone, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import LADDER_TITLES
from traceanalyzer.render.json_v1 import dump


@dataclass(frozen=True)
class Prediction:
    """Readings by protocol for these dispatch and kernel times, all in microseconds."""

    readings: dict[str, float]
    dispatch_us: Sequence[float]
    kernel_us: Sequence[float]

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (protocol, reading, reading over self-time) as cells."""
        own = self.readings["profiler_self_time"]
        return [(LADDER_TITLES[p], f"{v:.3f}", f"{v / own:.2f}x" if own else show.NA) for p, v in self.readings.items()]


def text_prediction(prediction: Prediction, settings: RenderSettings) -> str:  # noqa: ARG001 - three short columns
    """Return the readings as aligned columns."""
    rows = prediction.rows()
    width = max(len(title) for title, _, _ in rows)
    lines = [f"{'protocol':{width}}  {'reading us':>12}  of self-time"]
    return "\n".join([*lines, *(f"{a:{width}}  {b:>12}  {c:>12}" for a, b, c in rows)])


def markdown_prediction(prediction: Prediction, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the readings as a table."""
    head = ["| protocol | reading us | of self-time |", "| --- | ---: | ---: |"]
    return "\n".join([*head, *(f"| {a} | {b} | {c} |" for a, b, c in prediction.rows())])


def json_prediction(prediction: Prediction, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the readings with what they were made from."""
    return dump(
        {
            "schema": "traceanalyzer.predict/1",
            "readings": prediction.readings,
            "dispatch_us": list(prediction.dispatch_us),
            "kernel_us": list(prediction.kernel_us),
        }
    )
