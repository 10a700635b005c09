"""The interface of every output format: a renderer has a name, makes one kind of file, and turns finished data into text.

A renderer is a function ``(data, settings) -> str`` in a module of its own, and one entry in a list of
:mod:`traceanalyzer.render.formats`. A command offers the names of its product's list and calls :func:`render`; it knows
no format by name. Modules are imported when their format is asked for, so that ``--help`` loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from traceanalyzer.record import record

if TYPE_CHECKING:
    from traceanalyzer.report.charts.model import ComparisonFigures
    from traceanalyzer.report.compare.model import ComparisonData

WIDTH = 100
"""Columns of a text output that goes to no terminal."""


@record(frozen=True)
class RenderSettings:
    """What a reader may ask of an output; a renderer uses what applies to it.

    ``top``: rows per table, None for the format's own number. ``command``: the command line that makes the output again,
    empty where it is not known. ``width`` and ``color``: of the terminal. ``full``: every section of the text report.
    ``sections``: only these sections of it, in full.
    """

    top: int | None = None
    command: str = ""
    width: int = WIDTH
    color: bool = False
    full: bool = False
    sections: tuple[str, ...] = ()


@record(frozen=True)
class Renderer:
    """One output format of one product; ``place`` is ``module:function`` below ``traceanalyzer.render``."""

    name: str
    media_type: str
    extension: str
    place: str

    def __call__(self, data: Any, settings: RenderSettings) -> str:
        """Return the data in this format."""
        module, _, function = self.place.partition(":")
        text: str = self._function(module, function)(data, settings)
        return text

    @staticmethod
    def _function(module: str, function: str) -> Callable[[Any, RenderSettings], str]:
        found: Callable[[Any, RenderSettings], str] = getattr(import_module(f"traceanalyzer.render.{module}"), function)
        return found


class ComparisonResult(Protocol):
    """A comparison as its renderers need it."""

    @property
    def data(self) -> ComparisonData: ...  # noqa: D102
    @property
    def figures(self) -> ComparisonFigures: ...  # noqa: D102


def names(renderers: Sequence[Renderer]) -> list[str]:
    """Return the names that ``--format`` takes, the default first."""
    return [r.name for r in renderers]


def render(renderers: Sequence[Renderer], name: str, data: Any, settings: RenderSettings | None = None) -> str:
    """Return the data in the format of this name. Raises KeyError for a name that is not in the list."""
    by_name = {r.name: r for r in renderers}
    return by_name[name](data, settings or RenderSettings())
