"""Processes that decode parts of a trace: copies of this one, which get text through shared memory and answer through pipes.

The processes are forked, so nothing is imported a second time and no script of a user is run again. They end with this process,
however it ends: their pipes close. Whatever goes wrong with one of them is :class:`WorkerLost`; the text of parts that are not
settled is still here then.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import struct
import sys
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

_TASK = struct.Struct("<QQ?")
_ANSWER = struct.Struct("<QQ")
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031
_QUEUED = 2  # parts that wait at a worker: it never waits for us
_BELOW_LIMIT = 32

Work = Callable[[memoryview], Any]
"""Makes the answer to one part, whose text is a JSON array; None where the text is not one. The text is gone afterwards."""


class WorkerLost(Exception):
    """A worker process has ended, was killed, or cannot be reached."""


class _Worker:
    """One process and our ends of its pipes."""

    def __init__(self, pid: int, tasks: int, answers: int) -> None:
        self.pid = pid
        self.tasks = tasks
        self.answers = answers
        self.waiting = 0
        self.afresh = False


class Crew:
    """``count`` processes, which take parts of at most ``part_bytes`` bytes and answer them in the order they came.

    ``start`` makes the work of a process, in that process, and again whenever it has to forget what it knew. Raises
    :class:`WorkerLost` where no process can be made.
    """

    def __init__(self, count: int, part_bytes: int, start: Callable[[], Work]) -> None:
        self.part_bytes = part_bytes
        self._slot_bytes = part_bytes + 2
        n_slots = _QUEUED * count
        self._memory = mmap.mmap(-1, n_slots * self._slot_bytes)
        self._view = memoryview(self._memory)
        self._free = list(range(n_slots))
        self._pending: deque[tuple[_Worker, int, int]] = deque()
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._workers.append(self._forked(start))
        except OSError as error:
            self.close()
            raise WorkerLost from error

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- the process that hands out -------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether an answer has to be taken before another part can be given."""
        return not self._free

    @property
    def pending(self) -> int:
        """How many parts have not been answered."""
        return len(self._pending)

    def give(self, text: memoryview) -> None:
        """Hand out the text between the brackets of a JSON array."""
        worker = min(self._workers, key=lambda w: w.waiting)
        slot = self._free.pop()
        begin, size = slot * self._slot_bytes, len(text)
        self._view[begin : begin + 1] = b"["
        self._view[begin + 1 : begin + 1 + size] = text
        self._view[begin + 1 + size : begin + 2 + size] = b"]"
        try:
            os.write(worker.tasks, _TASK.pack(slot, size, worker.afresh))
        except OSError as error:
            self._free.append(slot)
            raise WorkerLost from error
        worker.afresh = False
        worker.waiting += 1
        self._pending.append((worker, slot, size))

    def take(self) -> tuple[int, Any]:
        """Return the number of the worker and its answer to the part that was given first of those not answered.

        The part is settled with this; on :class:`WorkerLost` it is not.
        """
        worker, slot, _ = self._pending[0]
        answer = _received(worker.answers)
        self._pending.popleft()
        worker.waiting -= 1
        self._free.append(slot)
        self._last = slot
        return self._workers.index(worker), answer

    def texts(self) -> list[bytes]:
        """Return the texts of all parts that have not been answered."""
        return [self._text(slot, size) for _, slot, size in self._pending]

    def last_text(self, size: int) -> bytes:
        """Return the text of the part that was answered last; nothing may have been given since."""
        return self._text(self._last, size)

    def _text(self, slot: int, size: int) -> bytes:
        begin = slot * self._slot_bytes + 1
        return bytes(self._view[begin : begin + size])

    def forget(self) -> None:
        """Throw the answers away that are still to come; the workers forget what they knew, for we do not know it."""
        while self._pending:
            self.take()
        for worker in self._workers:
            worker.afresh = True

    def close(self) -> None:
        """End the processes. Whoever they were, none is left behind."""
        workers, self._workers = self._workers, []
        for worker in workers:
            for end in (worker.tasks, worker.answers):
                os.close(end)
            _end(worker.pid)
        self._pending.clear()
        with suppress(BufferError):  # an exception may have left a slice behind
            self._view.release()
            self._memory.close()

    def _forked(self, start: Callable[[], Work]) -> _Worker:
        ends: list[int] = []
        try:
            ends += os.pipe()
            ends += os.pipe()
            with warnings.catch_warnings():
                # threads of ours there are none; those of a library for linear algebra do not live on in a copy
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError:
            for end in ends:
                os.close(end)
            raise
        tasks_in, tasks_out, answers_in, answers_out = ends
        if pid == 0:
            _live(lambda: self._serve(tasks_in, answers_out, start), (tasks_out, answers_in))
        os.close(tasks_in)
        os.close(answers_out)
        _widen(answers_in)
        return _Worker(pid, tasks_out, answers_in)

    # -- in a worker --------------------------------------------------------------------------------------------

    def _serve(self, tasks: int, answers: int, start: Callable[[], Work]) -> None:
        for other in self._workers:
            # or an older sister would not learn that our parent has ended
            os.close(other.tasks)
            os.close(other.answers)
        work = start()
        while len(task := os.read(tasks, _TASK.size)) == _TASK.size:
            slot, size, afresh = _TASK.unpack(task)
            if afresh:
                work = start()
            begin = slot * self._slot_bytes
            _send(answers, work(self._view[begin : begin + size + 2]))


def _live(serve: Callable[[], None], parents_ends: tuple[int, ...]) -> NoReturn:
    """Be a worker until there is no more work; never return to the code that was copied."""
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        gc.disable()
        for end in parents_ends:
            os.close(end)
        # what is nested so deeply that it depends on who reads it is left to our parent
        sys.setrecursionlimit(max(64, sys.getrecursionlimit() - _BELOW_LIMIT))
        serve()
        code = 0
    finally:
        os._exit(code)


def _send(to: int, answer: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    views = [b.raw() for b in buffers]
    sizes = struct.pack(f"<{len(views)}Q", *map(len, views))
    message: list[bytes | memoryview] = [_ANSWER.pack(len(body), len(views)), sizes, body, *views]
    for piece in message:
        view = memoryview(piece)
        while view:
            view = view[os.write(to, view) :]


def _received(source: int) -> Any:
    head = _ANSWER.unpack(_exactly(source, _ANSWER.size))
    sizes = struct.unpack(f"<{head[1]}Q", _exactly(source, 8 * head[1]))
    rest = memoryview(_exactly(source, head[0] + sum(sizes)))
    buffers, at = [], head[0]
    for size in sizes:
        buffers.append(rest[at : at + size])
        at += size
    return pickle.loads(rest[: head[0]], buffers=buffers)  # what our own copy has written


def _exactly(source: int, size: int) -> bytearray:
    found = bytearray(size)
    view = memoryview(found)
    try:
        while view:
            got = os.readv(source, [view])
            if not got:
                raise WorkerLost
            view = view[got:]
    except OSError as error:
        raise WorkerLost from error
    return found


def _widen(pipe: int) -> None:
    """Let a worker put a whole answer into its pipe, so that it need not wait for us."""
    import fcntl

    with suppress(OSError):  # a limit of the system; it is slower then
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)


def _end(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    with suppress(OSError):  # a program that uses us may collect its children itself
        os.waitpid(pid, 0)
