"""A progress bar on standard error for long reads, and only when a person is there to see it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.trace.source import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_WORTH_SHOWING_BYTES = 8 << 20
_DRAWN_EVERY_S = 0.1


@contextmanager
def reading_progress(enabled: bool) -> Iterator[Progress | None]:
    """Yield a callback for :func:`traceanalyzer.read`, or None when standard error is no terminal."""
    if not _wanted(enabled):
        yield None
        return
    bar = _Bar()
    with cleaning_up():  # a bar that is left behind hides the cursor
        try:
            yield bar.update
        finally:
            bar.stop()


def _wanted(enabled: bool) -> bool:
    return enabled and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class _Bar:
    """Starts with the first large file, so that short reads import nothing and show nothing."""

    def __init__(self) -> None:
        self._shown: RichProgress | None = None
        self._drawn = 0.0

    def update(self, done: int, size: int | None) -> None:
        """Show that ``done`` bytes of ``size`` (None for a pipe) have been read."""
        if self._shown is None:
            if (size if size is not None else done) < _WORTH_SHOWING_BYTES:
                return
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._shown = RichProgress(
                TextColumn("reading"),
                BarColumn(),
                DownloadColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                # drawn by those who call: a process with a thread of its own could not be copied to read faster
                auto_refresh=False,
            )
            self._shown.start()
            self._shown.add_task("reading", total=size)
        now = time.monotonic()
        due = now >= self._drawn + _DRAWN_EVERY_S
        self._drawn = now if due else self._drawn
        self._shown.update(self._shown.task_ids[0], completed=done, refresh=due)

    def stop(self) -> None:
        """Take the bar away, if it was shown."""
        if self._shown is not None:
            self._shown.stop()


@contextmanager
def step_progress(enabled: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows what is being done; it does nothing when standard error is no terminal."""
    if not _wanted(enabled):
        yield lambda *_: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        # steps of 0: how many there will be is not known
        yield lambda what, step, steps: status.update(
            f"{what} {step} of {steps}" if steps > 1 else f"{what} {step or ''}"
        )
