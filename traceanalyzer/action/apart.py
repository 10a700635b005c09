"""Runs a piece of work in a process of its own, so that a trace that does not fit into memory costs no other its report."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from traceanalyzer.errors import TraceAnalyzerError, fault_line
from traceanalyzer.interrupts import cleaning_up

Result = TypeVar("Result")


class WorkFailed(Exception):
    """The work has no result; the message says why, in one line."""


def apart(work: Callable[..., Result], *arguments: object) -> Result:
    """Return what the work returns in a child process. Raises :class:`WorkFailed` where it fails, crashes or is killed."""
    # forked where that is safe, so that nothing is imported a second time
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    answers, answer = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(answer, work, arguments))
    with cleaning_up():
        child.start()
        answer.close()
        try:
            failure, result = answers.recv()
        except EOFError:
            child.join()
            raise WorkFailed(_ended(child.exitcode)) from None
        finally:
            child.kill()
            child.join()
    if failure is not None:
        raise WorkFailed(failure)
    found: Result = result
    return found


def _answer(answer: Connection, work: Callable[..., object], arguments: tuple[object, ...]) -> None:
    answer.send(attempt(work, *arguments))
    answer.close()


def attempt(work: Callable[..., Result], *arguments: object) -> tuple[str | None, Result | None]:
    """Return why the work failed, in one line, or None and its result."""
    try:
        return None, work(*arguments)
    except TraceAnalyzerError as error:
        return error.one_line(), None
    except MemoryError:
        return "out_of_memory: the trace does not fit; record a shorter window", None
    except Exception as error:
        return fault_line(error), None


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}: the memory may not suffice; record a shorter window"
    return f"its process ended with exit code {code} and gave no answer"
