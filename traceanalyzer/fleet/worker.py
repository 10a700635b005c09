"""The process that analyses traces: it forks a child for each, so that none can take anything but itself along.

It is started by :class:`traceanalyzer.fleet.pool.Slot` and talks in frames over its standard input and output: a length of
eight bytes, then a pickle. A request is a :class:`TraceJob`, the answers are ``"started"`` and an :class:`Answer`. The child writes its
rows into a file without a name; they count only if it ends in peace. Where there is no fork (Windows) the process analyses one
trace itself and ends. It ends, with its child, when its standard input does.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import select
import signal
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO

from traceanalyzer.fleet.scan import TraceSource
from traceanalyzer.options import AnalysisOptions

_LENGTH = struct.Struct("<Q")
KINDS = ("arrow", "ranks", "ranks+hta")
"""What comes back of a trace: rows of all tables as Arrow streams, or what `ranks` keeps, with HolisticTraceAnalysis' numbers or not."""


@dataclass(frozen=True)
class TraceJob:
    """One trace to analyse. ``memory_bytes`` bounds the data of its process, 0 for no bound."""

    source: TraceSource
    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    commit: str | None = None
    memory_bytes: int = 0
    kind: str = "arrow"


@dataclass(frozen=True)
class Answer:
    """What came of a trace: ``tables`` by name, or the ``code`` of a fault with what is known of it (columns of the table faults)."""

    source: TraceSource
    tables: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    known: dict[str, Any] = field(default_factory=dict)


def write_frame(file: BinaryIO | IO[bytes], value: object) -> None:
    """Write one frame."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def read_frame(file: BinaryIO | IO[bytes]) -> Any:
    """Return the next frame. Raises EOFError at the end, and where a frame breaks off."""
    (length,) = _LENGTH.unpack(_exactly(file, _LENGTH.size))
    return pickle.loads(_exactly(file, length))


def _exactly(file: BinaryIO | IO[bytes], n: int) -> bytes:
    data = file.read(n)
    if data is None or len(data) < n:
        raise EOFError
    return data


def analyse_one(job: TraceJob) -> Answer:
    """Return the rows of a trace, or the fault that it ended in. Raises nothing that a file can cause."""
    from traceanalyzer.errors import TraceAnalyzerError

    began, spent = time.monotonic_ns(), _cpu_ns()

    def fault(code: str, **known: Any) -> Answer:
        return Answer(job.source, code=code, known=known | _used(began, spent))

    try:
        if job.kind != "arrow":
            from traceanalyzer.fleet.one_rank import one_rank

            return Answer(job.source, {"rank": one_rank(Path(job.source.path), job.options, job.kind == "ranks+hta")})
        from traceanalyzer.fleet.rows import reduce_trace

        rows = reduce_trace(job.source, job.options, job.commit)
        rows["runs"][0].update(_used(began, spent))
        from traceanalyzer.fleet.store import to_stream

        tables = {table: to_stream(table, found) for table, found in rows.items() if found}
        return Answer(job.source, tables)
    except TraceAnalyzerError as error:
        line = {} if job.kind == "arrow" else {"line": error.one_line()}  # tables hold no prose
        return fault(error.kind, offset_bytes=error.offset, **line)
    except MemoryError:
        return fault("out_of_memory")
    except Exception as error:  # a fault of ours costs one trace, not the job
        return fault("internal_error", place=_place(error))


def _used(began: int, spent: int) -> dict[str, int]:
    return {
        "elapsed_ns": time.monotonic_ns() - began, "cpu_ns": _cpu_ns() - spent, "peak_memory_bytes": _peak_bytes(),
    }  # fmt: skip


def _cpu_ns() -> int:
    """Return the CPU time of this process and of those that decoded for it."""
    used = os.times()
    return round((used.user + used.system + used.children_user + used.children_system) * 1e9)


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def _place(error: BaseException) -> str:
    place, at = "", error.__traceback__
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("traceanalyzer"):
            place = f"{module}:{at.tb_lineno}"
        at = at.tb_next
    return f"{type(error).__name__} {place}"


def _bound(memory_bytes: int) -> None:
    """Bound the process's memory, and let the kernel take it before any other when memory runs out."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - Linux only
        file.write("800")
    if not memory_bytes:
        return
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        which = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        resource.setrlimit(which, (memory_bytes, memory_bytes))


def _preload(kind: str) -> None:
    """Load once what every child needs, by analysing the trace that is part of the installation."""
    import gc

    demo = Path(__file__).resolve().parents[1] / "demo" / "cpu_bound_loop.json"
    analyse_one(TraceJob(TraceSource(str(demo), demo.name, 0, 0), kind=kind))
    gc.disable()
    gc.freeze()


def _in_child(job: TraceJob, out: BinaryIO, pipes: tuple[int, ...]) -> None:
    # never returns; the pipes are let go, so that whoever reads them sees their end when the parent of the fork dies
    try:
        for pipe in pipes:
            os.close(pipe)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _bound(job.memory_bytes)
        write_frame(out, analyse_one(job))
        os._exit(0)
    except BaseException:
        os._exit(70)


def _forked(job: TraceJob, wake: int, requests: io.BufferedReader, replies: BinaryIO) -> Answer:
    """Analyse a trace in a child and return what came of it; ends this process when the one that asked is gone."""
    began = time.monotonic_ns()
    with tempfile.TemporaryFile(buffering=0) as out:
        child = os.fork()
        if not child:
            _in_child(job, out, (requests.fileno(), replies.fileno()))
        while True:
            done, status, used = os.wait4(child, os.WNOHANG)
            if done:
                break
            ready: list[Any] = select.select([wake, requests.fileno()], [], [], 5)[0]
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 512)
            if requests.fileno() in ready and not requests.peek(1):
                os.killpg(0, signal.SIGKILL)  # nobody waits for an answer any more
        if status == 0:
            out.seek(0)
            found = read_frame(out)
            assert isinstance(found, Answer)
            return found
    size = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024
    known = {
        "elapsed_ns": time.monotonic_ns() - began, "cpu_ns": int((used.ru_utime + used.ru_stime) * 1e9), "peak_memory_bytes": size,
    }  # fmt: skip
    if os.WIFSIGNALED(status):
        return Answer(job.source, code="killed", known=known | {"signal": os.WTERMSIG(status)})
    return Answer(job.source, code="exited", known=known | {"exit_code": os.WEXITSTATUS(status)})


def main() -> None:
    """Serve requests until standard input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no frame
    requests = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    forks = hasattr(os, "fork")
    wake = -1
    if forks:
        wake, wakes = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wakes, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes)
    loaded = ""
    while True:
        try:
            job = read_frame(requests)
            if loaded != job.kind:
                loaded = job.kind
                _preload(job.kind.partition("+")[0])
            write_frame(replies, "started")
            if forks:
                write_frame(replies, _forked(job, wake, requests, replies))
            else:
                write_frame(replies, analyse_one(replace(job, memory_bytes=0)))
                return
        except (EOFError, BrokenPipeError):
            return
