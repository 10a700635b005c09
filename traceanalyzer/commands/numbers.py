"""Numbers of options: a limit that is not a number limits nothing, so it is refused like one out of range."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of floats without NaN, which no bound of :class:`click.FloatRange` refuses, and without infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a usage error for anything else."""
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{found} is not a finite number.", param, ctx)
        return found
