"""Numbers of options: each is read by :mod:`traceanalyzer.quantities`, whatever the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traceanalyzer import quantities
from traceanalyzer.errors import OptionError
from traceanalyzer.quantities import UNIT_NS, QuantityError

if TYPE_CHECKING:
    _Number = click.ParamType[float]
    _AnyType = click.ParamType[Any]
else:  # a generic type from click 8.2 on
    _Number = _AnyType = click.ParamType


class Duration(_Number):
    """A time with a unit, e.g. ``40us``; a number alone is in the unit ``bare``, in which the value is given, too."""

    name = "duration"

    def __init__(self, bare: str, *, positive: bool = False) -> None:
        self._bare = bare
        self._positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the time; a usage error for what is none."""
        if isinstance(value, float | int):
            return float(value)
        found = _read(self, quantities.duration_ns, str(value), param, ctx, self._bare) / UNIT_NS[self._bare]
        if self._positive and not found:
            self.fail(f"{value!r} is no time above 0", param, ctx)
        return found


class Percentage(_Number):
    """A percentage, with or without the sign."""

    name = "percentage"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the percentage; a usage error for what is none."""
        return (
            float(value) if isinstance(value, float | int) else _read(self, quantities.percent, str(value), param, ctx)
        )


class Number(_Number):
    """A finite number from 0 up."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a usage error for what is none."""
        return (
            float(value) if isinstance(value, float | int) else _read(self, quantities.number, str(value), param, ctx)
        )


class Size(_AnyType):
    """A size in bytes with a binary unit, e.g. ``4GiB``; a number alone is bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the size; a usage error for what is none."""
        return value if isinstance(value, int) else int(_read(self, quantities.size_bytes, str(value), param, ctx))


def _read(
    kind: _AnyType, reader: Any, text: str, param: click.Parameter | None, ctx: click.Context | None, *more: str
) -> float:
    try:
        found: float = reader(text, *more)
    except QuantityError as error:
        kind.fail(f"{_shown(text)} {error}", param, ctx)
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def parse_threshold(name: str, value: object, where: str = "--threshold") -> float:
    """Return the value of a threshold: a number, a share in percent, or a time where the name ends in ``_us``.

    Raises OptionError for anything else, settings of the wrong kind included.
    """
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    try:
        if name.endswith("_us"):
            return quantities.duration_ns(text, "us") / UNIT_NS["us"]
        return quantities.number(text)
    except QuantityError as error:
        raise OptionError(
            "bad_threshold",
            f"{where} {name}: {_shown(str(value))} {error}",
            hint="e.g. starved_fraction=0.6 or long_pause_us=100us",
        ) from None


def parse_times(text: str, what: str) -> tuple[float, ...]:
    """Return nanoseconds of times with commas, microseconds where no unit is given. Raises OptionError for anything else."""
    try:
        return tuple(quantities.duration_ns(part, "us") for part in text.split(","))
    except QuantityError as error:
        raise OptionError(
            "bad_time", f"{what} {_shown(text)} {error}", hint=f"e.g. {what} 40us or {what} 40,5"
        ) from None
