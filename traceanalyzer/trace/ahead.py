"""Reads ahead in a second thread: inflating and reading release the interpreter while rows are decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Full, Queue

_PIECES_AHEAD = 2


def read_ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces in order, up to two of them prepared ahead; an error surfaces where it belongs.

    The thread ends when the consumer stops early, too.
    """
    queue: Queue[bytes | BaseException | None] = Queue(_PIECES_AHEAD)
    stopped = threading.Event()

    def offer(item: bytes | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                queue.put(item, timeout=0.1)
            except Full:  # look again whether anybody still wants it
                continue
            return

    def work() -> None:
        try:
            for piece in pieces:
                offer(piece)
                if stopped.is_set():
                    return
            offer(None)
        except BaseException as error:
            offer(error)

    thread = threading.Thread(target=work, name="read-ahead", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
