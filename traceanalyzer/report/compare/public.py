"""A comparison as Python users see it: pandas frames, dict, Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from traceanalyzer.report.compare.model import CompareVerdict, ComparisonData, KernelComparison, OpComparison

if TYPE_CHECKING:
    import pandas as pd

    from traceanalyzer.report.charts.model import ComparisonFigures, Figures


class Comparison:
    """What :func:`traceanalyzer.compare` returns.

    ``ops`` and ``kernels`` are pandas frames with the columns documented in docs/schema.md; ``data`` is the frozen
    comparison.
    """

    def __init__(self, data: ComparisonData, sides: tuple[Figures | None, Figures | None] = (None, None)) -> None:
        self.data = data
        self._sides = sides

    @property
    def verdict(self) -> CompareVerdict:
        """Status (``faster``, ``slower``, ``same``, ``undecided``, ``cannot-judge``) and headline; about head, against base."""
        return self.data.verdict

    @property
    def ops(self) -> pd.DataFrame:
        """One row per operation of either side."""
        from traceanalyzer.report.frames import typed_frame

        return typed_frame(OpComparison, [asdict(row) for row in self.data.ops])

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel and configuration of either side, largest total first."""
        from traceanalyzer.report.frames import typed_frame

        return typed_frame(KernelComparison, [asdict(row) for row in self.data.kernels])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON comparison, version 1, as a dict."""
        return self.data.to_dict()

    def to_json(self) -> str:
        """Return the JSON comparison, version 1, as text."""
        from traceanalyzer.render.json_v1 import dump

        return dump(self.data.to_dict())

    def to_markdown(self) -> str:
        """Return the comparison for a pull request."""
        from traceanalyzer.render.compare.markdown import render_comparison_markdown

        return render_comparison_markdown([self.data])

    def to_html(self) -> str:
        """Return the page that ``--format html`` writes; it has timelines if the options asked for ``figures``."""
        from traceanalyzer.render.compare.page import render_comparison_page

        return render_comparison_page([self.data], [self.figures])

    @property
    def figures(self) -> ComparisonFigures:
        """What the page draws: both sides' values on one axis, and the texts of the rules that fired."""
        from traceanalyzer.report.compare.charts import comparison_figures

        return comparison_figures(self.data, *self._sides)

    def __repr__(self) -> str:
        return f"<traceanalyzer comparison of {self.data.base.name} and {self.data.head.name}: {self.data.verdict.headline}>"
