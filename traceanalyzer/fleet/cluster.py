"""A fleet on a cluster: traces through ``dask.distributed``, each in a process of its own on the worker that gets it.

As many traces are in flight as the cluster has threads, so that a worker that is lost costs only what it was analysing. A trace
is never tried again: what a lost worker was at is a fault. Results come back as bytes; only the one who asks writes files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from traceanalyzer._version import __version__
from traceanalyzer.errors import OptionError
from traceanalyzer.fleet.pool import PoolOptions, Slot
from traceanalyzer.fleet.worker import Answer, TraceJob

try:
    import distributed
except ImportError:
    raise OptionError(
        "missing_extra",
        "--scheduler needs dask.distributed, which is not installed",
        hint="install the extra: pip install '.[cluster]'",
    ) from None

_WAIT_SECONDS = 30
_ASK_SECONDS = 5.0
"""How old the number of threads may be: workers come and go."""
_slots: dict[int, Slot] = {}
"""On a worker: the slot of each of its threads."""


def _analyse(job: TraceJob, timeout_s: float | None) -> Answer:
    """Run on a worker: analyse a trace in the slot of this thread. Without a bound its memory is the worker's, shared by its threads."""
    worker = distributed.get_worker()
    if not job.memory_bytes:
        limit = getattr(worker.memory_manager, "memory_limit", None) or 0
        job = replace(job, memory_bytes=int(0.9 * limit / worker.state.nthreads))
    slot = _slots.setdefault(threading.get_ident(), Slot())
    return slot.run(job, timeout_s)


async def _stop() -> None:
    """Run on a worker: end what it analyses for a fleet that was stopped."""
    for thread in list(_slots):
        _slots.pop(thread).close()


class Cluster:
    """Runs jobs on the cluster of a scheduler. A context, as :class:`~traceanalyzer.fleet.pool.Pool` is."""

    def __init__(self, options: PoolOptions, address: str) -> None:
        self._options = options
        self._client = _client(address)
        self._ended = False
        self._patience = _patience(self._client, 0)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client.status == "running":
            if not self._ended:
                self._client.run(_stop, wait=False)
            _patience(self._client, self._patience)
        self._client.close(timeout=1)

    def run(self, jobs: Iterable[TraceJob]) -> Iterator[Answer]:
        """Yield an answer per job as they come. Raises OptionError when the scheduler is lost."""
        waiting = [replace(job, memory_bytes=self._options.memory_bytes) for job in jobs]
        waiting.reverse()
        flying: dict[str, TraceJob] = {}
        done = distributed.as_completed(loop=self._client.loop)
        threads, asked = self._threads(), time.monotonic()
        while waiting or flying:
            while waiting and len(flying) < threads:
                job = waiting.pop()
                future = self._client.submit(_analyse, job, self._options.timeout_s, pure=False, retries=0)
                flying[future.key] = job
                done.add(future)
            future = next(done)
            job = flying.pop(future.key)
            yield self._answer(future, job)
            future.release()
            if time.monotonic() - asked > _ASK_SECONDS:
                threads, asked = self._threads(), time.monotonic()
        self._ended = True

    def _threads(self) -> int:
        try:
            return max(1, sum(map(int, self._client.nthreads().values())))
        except (OSError, AttributeError):
            raise _lost() from None

    def _answer(self, future: Any, job: TraceJob) -> Answer:
        if future.status == "finished":
            found = future.result()
            assert isinstance(found, Answer)
            return found
        if future.status == "cancelled" or self._client.status != "running":
            raise _lost()
        error = future.exception()
        if isinstance(error, distributed.KilledWorker):
            return Answer(job.source, code="worker_lost", known={"elapsed_ns": 0})
        return Answer(job.source, code="internal_error", known={"elapsed_ns": 0, "place": type(error).__name__})


def _lost() -> OptionError:
    return OptionError(
        "no_scheduler", "the scheduler is gone", hint="what is done is kept: start it, and run the same command again"
    )


def _client(address: str) -> Any:
    """Return a client of a scheduler whose workers can do the work. Raises OptionError for any other."""
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is told as faults
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise OptionError(
            "no_scheduler",
            f"no scheduler answers at '{address}' ({type(error).__name__})",
            hint="start it: dask scheduler",
        ) from None
    try:
        client.wait_for_workers(1, timeout=_WAIT_SECONDS)
    except (OSError, TimeoutError):
        client.close(timeout=1)
        raise OptionError(
            "no_workers", f"the scheduler at '{address}' has no worker", hint=f"start some: dask worker {address}"
        ) from None
    found = client.run(_version_there, on_error="return")
    other = {worker: v for worker, v in found.items() if v != __version__}
    if other:
        worker, version = next(iter(other.items()))
        lacks = version if isinstance(version, str) else "no traceanalyzer with the extra fleet"
        client.close(timeout=1)
        raise OptionError(
            "bad_worker",
            f"{len(other)} of {len(found)} workers have another version than {__version__} ({worker}: {lacks})",
            hint="install the same version with '.[cluster]' on every worker",
        )
    return client


def _version_there() -> str:
    import pyarrow  # noqa: F401 - a worker without it cannot answer

    return __version__


def _patience(client: Any, failures: int) -> int:
    """Set how many lost workers a scheduler takes before it gives up a task; return what it was. The function goes there by value."""

    def on_scheduler(dask_scheduler: Any, failures: int) -> int:
        before: int = dask_scheduler.allowed_failures
        dask_scheduler.allowed_failures = failures
        return before

    return int(client.run_on_scheduler(on_scheduler, failures=failures))
