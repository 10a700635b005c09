"""The options that bound what a file may make us do, shared by the commands that read traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from traceanalyzer.options import ReadLimits

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULTS = ReadLimits()


def limit_options(function: F) -> F:
    """Add --max-bytes, --max-rows, --max-depth, --max-event-bytes and --jobs to a command."""
    option = click.option(
        "--jobs", type=click.IntRange(0, 1024), default=_DEFAULTS.jobs, show_default=True, help="Processes that read a large trace; 0 is one per core."
    )  # fmt: skip
    return bound_options(option(function))


def bound_options(function: F) -> F:
    """Add --max-bytes, --max-rows, --max-depth and --max-event-bytes to a command."""
    for name, least, most, text in (
        ("max_event_bytes", 1, None, "Longest event."),
        ("max_depth", 1, 10_000, "Deepest nesting of an event."),
        ("max_rows", 1, None, "Most rows kept in memory, about 100 bytes each."),
        ("max_bytes", 1, None, "Longest (decompressed) input read."),
    ):
        function = click.option(
            f"--{name.replace('_', '-')}", name, type=click.IntRange(least, most), default=getattr(_DEFAULTS, name),
            show_default=True, help=text,
        )(function)  # fmt: skip
    return function
