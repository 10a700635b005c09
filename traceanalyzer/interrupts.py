"""Ctrl-C and SIGTERM: the process ends at once, or cleans up first where there is something to clean up.

A command is mostly imports, reading and arithmetic: there a signal ends the process without a word and without the noise
of half-finished imports. A partial file, a progress bar on the terminal or a child process must be cleaned up, and so a
signal is an exception inside of :func:`cleaning_up` alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_held = 0
_came = 0


def install() -> None:
    """Let the signals end this process; one that the caller ignores (nohup, ``&`` in a script) stays ignored."""
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def came() -> int:
    """Return the number of the signal that came, 0 for none."""
    return _came


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Turn a signal inside into KeyboardInterrupt, so that whoever holds a file, a child or the terminal lets go of it."""
    global _held  # noqa: PLW0603 - a signal handler knows the process, no object of it
    _held += 1
    try:
        yield
    finally:
        _held -= 1


@contextmanager
def at_once() -> Iterator[None]:
    """Let signals end the process by themselves inside, where a library computes for long and no handler of ours would run."""
    mine = [
        n for n in (getattr(signal, name, None) for name in _SIGNALS) if n is not None and signal.getsignal(n) is _stop
    ]
    for number in mine:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
    global _came  # noqa: PLW0603
    if not _held or _came:
        os._exit(128 + number)
    _came = number
    # an exception that strikes in a destructor would be told to the user
    sys.unraisablehook = lambda _: None
    raise KeyboardInterrupt
