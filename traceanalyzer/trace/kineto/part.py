"""What a worker process found in one part of a trace, and how the parts become the columns that one process would have made.

A worker numbers names, processes and the like by itself. A part brings the texts that are new in it, and its codes are translated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any, TypeVar

import numpy as np
from msgspec import DecodeError, Raw

from traceanalyzer.options import ReadLimits
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.file_faults import FileNote
from traceanalyzer.trace.frames import FrameBatch
from traceanalyzer.trace.kineto.columns import Columns, parse_config
from traceanalyzer.trace.kineto.ids import id_text
from traceanalyzer.trace.kineto.row_decoder import RowDecoder
from traceanalyzer.trace.kineto.rows import KinetoRow
from traceanalyzer.trace.row_faults import Damage
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.store import Array, Interner, Store

K = TypeVar("K")
_COUNTS = ("events", "own_events", "python_rows")
_MOST_TEXTS = 100_000
_FIELDS = ("pid", "tid", "ts", "dur", "args")


@record()
class DecodedPart:
    """The rows of one part: ``puts`` in the order found, with codes of the worker; ``order`` counts from the part's first event.

    ``texts`` are the values, by table, that the worker has numbered since its last part; ``afresh``: it has begun to number anew.
    """

    afresh: bool
    counts: dict[str, int]
    step_ns: int
    puts: list[tuple[RowKind, dict[str, Array]]]
    frames: list[FrameBatch]
    texts: dict[str, list[Any]]
    skipped: Counter[str]
    unknown: Counter[str]
    process_names: dict[str, str]
    process_labels: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    gpu_op_pids: set[str]
    flows: list[tuple[Array, ...]]
    halves: list[tuple[RowKind, str, str, tuple[bytes, ...]]]
    own_record: bytes
    repaired: Counter[Damage]
    excluded: Counter[Damage]
    notes: list[FileNote]


class _PartStore(Store):
    """A store that passes rows on, as they are put."""

    puts: list[tuple[RowKind, dict[str, Array]]]

    def put(self, kind: RowKind, columns: Any) -> None:
        if len(columns["start_ns"]):
            self.puts.append((kind, dict(columns)))


class PartReader:
    """The work of a worker process: the text of a part in, a :class:`DecodedPart` out, None for text that is no JSON array."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._begin()

    def __call__(self, text: memoryview) -> DecodedPart | None:
        """Return what is in a part."""
        self._empty()
        try:
            rows = self._decoder.decode(text)
        except (DecodeError, RecursionError):
            return None
        self._columns.add(rows)
        return self._part()

    def _begin(self) -> None:
        self._salvage = Salvage()
        self._store = _PartStore("", self._salvage, self._limits.max_rows, id_text=id_text, config=parse_config)
        self._decoder = RowDecoder(self._salvage)
        self._columns = Columns(self._store)
        self._tables = _tables(self._columns)
        self._told = dict.fromkeys(self._tables, 0)
        self._afresh = True

    def _empty(self) -> None:
        if sum(len(t) for t in self._tables.values()) > _MOST_TEXTS:
            self._begin()
        store, columns = self._store, self._columns
        store.puts, store.frames, store.step_ns = [], [], 1000
        for name in _COUNTS:
            setattr(store, name, 0)
        store.skipped, store.unknown = Counter(), Counter()
        self._salvage.repaired, self._salvage.excluded, self._salvage.notes = Counter(), Counter(), []
        columns.begin()

    def _part(self) -> DecodedPart:
        store, columns, salvage = self._store, self._columns, self._salvage
        texts = {}
        for name, table in self._tables.items():
            if new := table.values_in_order[self._told[name] :]:
                texts[name] = new
                self._told[name] += len(new)
        afresh, self._afresh = self._afresh, False
        return DecodedPart(
            afresh, {c: getattr(store, c) for c in _COUNTS}, store.step_ns, store.puts, store.frames, texts, store.skipped, store.unknown,
            columns.process_names, columns.process_labels, columns.thread_names, columns.gpu_op_pids, columns.flows,
            [(kind, ph, row.name, tuple(bytes(getattr(row, f)) for f in _FIELDS)) for kind, ph, row in columns.halves],
            columns.own_record, salvage.repaired, salvage.excluded, salvage.notes,
        )  # fmt: skip


@record()
class Merger:
    """Adds parts to the columns of the whole file, in the order in which they lie in it."""

    columns: Columns
    _codes: dict[int, dict[str, Array]] = field(default_factory=dict)

    def add(self, worker: int, part: DecodedPart) -> None:
        """Take one part that this worker has read."""
        columns, store, salvage = self.columns, self.columns.store, self.columns.salvage
        codes = self._numbered(worker, part)
        first = store.events + store.own_events
        for name, count in part.counts.items():
            setattr(store, name, getattr(store, name) + count)
        store.step_ns = min(store.step_ns, part.step_ns)
        store.skipped.update(part.skipped)
        store.unknown.update(part.unknown)
        salvage.repaired.update(part.repaired)
        salvage.excluded.update(part.excluded)
        for note in part.notes:
            salvage.note(*note)
        columns.own_record = columns.own_record or part.own_record
        columns.gpu_op_pids |= part.gpu_op_pids
        _first_by_text(columns.process_names, part.process_names)
        _first_by_text(columns.process_labels, part.process_labels)
        _first_by_text(columns.thread_names, part.thread_names)
        for keys, pids, tids, times in part.flows:
            columns.flows.append((codes["flow_keys"][keys], codes["pids"][pids], codes["tids"][tids], times))
        for kind, ph, name, texts in part.halves:
            columns.halves.append((kind, ph, KinetoRow(name, ph, *map(Raw, texts))))
        for kind, found in part.puts:
            for column, values in found.items():
                if column == "order":
                    found[column] = values + first
                elif (table := _table_of(kind, column)) is not None:
                    found[column] = codes[table][values]
            store.put(kind, found)
        for batch in part.frames:
            columns.put_frames(batch.coded(codes["frame_names"], codes["pids"], codes["tids"]))

    def _numbered(self, worker: int, part: DecodedPart) -> dict[str, Array]:
        """Return our code of each code of the worker, by table."""
        tables = _tables(self.columns)
        if part.afresh:
            self._codes[worker] = {name: np.empty(0, dtype=np.int32) for name in tables}
        codes = self._codes[worker]
        for name, values in part.texts.items():
            codes[name] = np.concatenate([codes[name], tables[name].codes_of_values(values)])
        return codes


def _first_by_text(mine: dict[K, str], theirs: dict[K, str]) -> None:
    for key, value in theirs.items():
        mine[key] = min(value, mine.get(key, value))


def _tables(columns: Columns) -> dict[str, Interner]:
    store = columns.store
    return {
        "names": store.names, "frame_names": store.frame_names, "pids": store.pids, "tids": store.tids, "apis": store.apis,
        "configs": store.configs, "notes": columns.notes, "flow_keys": columns.flow_keys,
    }  # fmt: skip


def _table_of(kind: RowKind, column: str) -> str | None:
    if column == "name":
        return "apis" if kind is RowKind.CALL else "names"
    return {"pid": "pids", "tid": "tids", "config": "configs", "note": "notes"}.get(column)
