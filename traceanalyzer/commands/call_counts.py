"""The options of how often a function is called, shared by the commands that measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_MOST = 100_000


def call_options(function: F) -> F:
    """Add --iters and --warmup to a command: numbers of calls."""
    for name, default, least, text in (
        ("warmup", 10, 0, "Fewest calls of the warm-up."),
        ("iters", 100, 1, "Calls per protocol."),
    ):
        function = click.option(
            f"--{name}", default=default, show_default=True, type=click.IntRange(least, _MOST), metavar="N", help=text
        )(function)
    return function
