"""Runs traces through worker processes: several at a time, each with a limit of time, and no fault of one costs another."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import IO

from traceanalyzer.fleet.worker import Answer, TraceJob, read_frame, write_frame

_SERVE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from traceanalyzer.fleet.worker import main; main()"
"""Python puts the current folder in front of where it looks for modules; a folder of traces is no place for that."""
_STARTS = 3
"""How often a worker that ends before it has begun a trace is started again."""


class Slot:
    """One place in which one trace at a time is analysed; it starts its worker process again where that has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def run(self, job: TraceJob, timeout_s: float | None) -> Answer:
        """Return what came of a trace; a worker that is killed or takes too long is an answer too."""
        if job.source.code:
            return Answer(job.source, code=job.source.code, known={"elapsed_ns": 0})
        for _ in range(_STARTS):
            found = self._once(job, timeout_s)
            if found is not None:
                return found
        return Answer(job.source, code="worker_lost", known={"elapsed_ns": 0})

    def _once(self, job: TraceJob, timeout_s: float | None) -> Answer | None:
        """Return the answer, or None where the worker ended before it had begun."""
        began, late, started = time.monotonic_ns(), threading.Event(), False
        process = self._started()
        if process is None:
            return Answer(job.source, code="worker_lost", known={"elapsed_ns": 0})
        out, into = process.stdout, process.stdin
        assert out is not None and into is not None

        def over() -> None:
            late.set()
            _kill(process)

        timer: threading.Timer | None = None
        try:
            write_frame(into, job)
            started = read_frame(out) == "started"
            if timeout_s is not None:
                timer = threading.Timer(timeout_s, over)
                timer.daemon = True
                timer.start()
            found = read_frame(out)
            assert isinstance(found, Answer)
            if process.poll() is not None or not hasattr(os, "fork"):
                self._forget(process)
            return found
        except (EOFError, OSError, ValueError):
            _kill(process)
            status = process.wait()
            self._forget(process)
            known = {"elapsed_ns": time.monotonic_ns() - began}
            if late.is_set():
                return Answer(job.source, code="timeout", known=known)
            if not started:
                return None
            return Answer(
                job.source, code="killed", known=known | {"signal": -status if status < 0 else signal.SIGKILL}
            )
        finally:
            if timer is not None:
                timer.cancel()

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._closed:
                return None
            if self._process is None or self._process.poll() is not None:
                debug = bool(os.environ.get("TRACEANALYZER_DEBUG"))
                # a session of its own: Ctrl-C goes to the one who asks, and a kill takes its children along
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _SERVE, json.dumps(sys.path), "traceanalyzer-fleet-worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=None if debug else subprocess.DEVNULL, start_new_session=True, env=_environment(),
                )  # fmt: skip
            return self._process

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if self._process is process:
                self._process = None
        _close(process.stdin)
        _close(process.stdout)

    def close(self) -> None:
        """End the worker and whatever it runs, at once."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()


def _environment() -> dict[str, str]:
    # a worker of dask gives freed memory back at once, which is for arrays that live long: here it costs time and gains nothing
    return {k: v for k, v in os.environ.items() if k != "MALLOC_TRIM_THRESHOLD_"}


def _close(file: IO[bytes] | None) -> None:
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            file.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)  # its group is its own, and outlives it while a child runs
        else:
            process.kill()


@dataclass(frozen=True)
class PoolOptions:
    """How many traces run at a time, and what one may take. ``timeout_s`` None and ``memory_bytes`` 0 are no bound."""

    jobs: int = 1
    timeout_s: float | None = None
    memory_bytes: int = 0


@dataclass
class Pool:
    """A context in which :meth:`run` may be called once; leaving it ends every worker."""

    options: PoolOptions = field(default_factory=PoolOptions)
    _slots: list[Slot] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in self._slots:
            slot.close()

    def run(self, jobs: Iterable[TraceJob]) -> Iterator[Answer]:
        """Yield an answer per job as they come. At most a few answers wait in memory."""
        todo: queue.SimpleQueue[TraceJob | None] = queue.SimpleQueue()
        done: queue.Queue[Answer] = queue.Queue(maxsize=2 * self.options.jobs)
        waiting = [replace(job, memory_bytes=self.options.memory_bytes) for job in jobs]
        for job in waiting:
            todo.put(job)
        count = min(self.options.jobs, len(waiting))
        for _ in range(count):
            todo.put(None)
        self._slots = [Slot() for _ in range(count)]
        for slot in self._slots:
            thread = threading.Thread(target=self._serve, args=(slot, todo, done), daemon=True)
            thread.start()
            self._threads.append(thread)
        for _ in waiting:
            yield done.get()

    def _serve(self, slot: Slot, todo: queue.SimpleQueue[TraceJob | None], done: queue.Queue[Answer]) -> None:
        while (job := todo.get()) is not None:
            done.put(slot.run(job, self.options.timeout_s))
