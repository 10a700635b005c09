"""Ids of Nsight Systems: processes, threads and names packed into numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.database import Database
from traceanalyzer.trace.store import Interner, Store
from traceanalyzer.trace.tables import NO_ID

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

_LOW = 0xFFFFFF
_VARIANT = re.compile(r"(?:_v\d+|_ptsz|_ptds)+\Z")


def api_name(name: str) -> str:
    """Return the name of a host call without the version and stream suffixes that Nsight Systems adds."""
    return _VARIANT.sub("", name)


class Processes:
    """Codes of the processes and threads that a store knows, from Nsight's packed 64-bit ids.

    The upper bits of an id, hardware and virtual machine included, tell processes apart; the text is the operating
    system's number alone, with the upper bits behind it where two processes have the same number.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._text_of: dict[int, str] = {}
        self._taken: dict[str, int] = {}

    def of_pid(self, packed: Int64) -> Int32:
        """Return the process code of each packed id (``globalPid`` or ``globalTid``)."""
        return _coded(packed >> 24, lambda value: self._store.pids[self._text(value)])

    def of_tid(self, packed: Int64) -> Int32:
        """Return the thread code of each ``globalTid``."""
        return _coded(packed & _LOW, lambda value: self._store.tids[str(value)])

    def _text(self, process: int) -> str:
        text = self._text_of.get(process)
        if text is None:
            text = str(process & _LOW)
            if self._taken.setdefault(text, process) != process:
                text = f"{text}@{(process >> 24) & _LOW:x}"
            self._text_of[process] = text
        return text


def _coded(values: Int64, code_of: Callable[[int], int]) -> Int32:
    used, place = np.unique(values, return_inverse=True)
    return np.array([code_of(v) for v in used.tolist()], dtype=np.int32)[place.reshape(-1)]


class Ids:
    """String ids of a block of rows: the distinct ones, and which of them each row has."""

    def __init__(self, ids: Int64) -> None:
        self.used, place = np.unique(ids, return_inverse=True)
        self._place = place.reshape(-1)

    def coded(self, code_of: dict[int, int]) -> Int32:
        """Return the code of each row's id, by a table that holds every id."""
        return np.array([code_of[i] for i in self.used.tolist()], dtype=np.int32)[self._place]


def codes_of_names(
    database: Database, blocks: Iterable[Ids], into: Interner, spelling: Callable[[str], str] = str
) -> dict[int, int]:
    """Return the code of every string id in use, interned by its text; an id without text gets ``string N``."""
    wanted: set[int] = set().union(*(ids.used.tolist() for ids in blocks))
    texts = database.strings("StringIds", "id", "value", wanted - {NO_ID})
    return {i: into[spelling(texts[i]) if i in texts else "no name" if i == NO_ID else f"string {i}"] for i in wanted}
