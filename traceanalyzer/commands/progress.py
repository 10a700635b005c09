"""A progress bar on standard error for long reads, and only when a person is there to see it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from traceanalyzer.trace.source import Progress

_WORTH_SHOWING_BYTES = 24 << 20


@contextmanager
def reading_progress(enabled: bool) -> Iterator[Progress | None]:
    """Yield a callback for :func:`traceanalyzer.read`, or None when standard error is no terminal."""
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    bar: list[object] = []

    def update(done: int, size: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        if not bar:
            if size is not None and size < _WORTH_SHOWING_BYTES:
                return
            if size is None and done < _WORTH_SHOWING_BYTES:
                return
            shown = Progress(
                TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            shown.start()
            shown.add_task("reading", total=size)
            bar.append(shown)
        shown_bar = bar[0]
        assert isinstance(shown_bar, Progress)
        shown_bar.update(shown_bar.task_ids[0], completed=done)

    try:
        yield update
    finally:
        if bar:
            bar[0].stop()  # type: ignore[attr-defined]
