"""What a decoder fills and :mod:`traceanalyzer.trace.assemble` makes a trace of: typed columns, batch by batch.

Nothing here knows a file format. A decoder gives each kind of row as arrays; ids it does not know are filled in as absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.frames import FrameBatch
from traceanalyzer.trace.launch_names import ApiClass, classify_api
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.remarks import Remark
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.tables import NO_ID, Config

BAD_TIME = NO_ID
"""Stands for "no usable time" until the row is excluded; never leaves :mod:`traceanalyzer.trace`."""
NO_PROCESS = -1
"""Stands for "the host process that owns the row is not known" in a column of process codes."""

Array = npt.NDArray[Any]

_COMMON = {"start_ns": BAD_TIME, "dur_ns": BAD_TIME, "pid": 0, "tid": 0, "name": 0}
_DEVICE = _COMMON | dict.fromkeys(
    ("device", "context", "stream", "external", "moved_bytes", "graph_node", "corr"), NO_ID
)
_DEVICE |= {"owner": NO_PROCESS, "config": 0, "order": 0}
_COLUMNS: dict[RowKind, dict[str, int]] = dict.fromkeys(RowKind, _COMMON)
_COLUMNS |= dict.fromkeys(DEVICE_KINDS, _DEVICE)
_COLUMNS[RowKind.UNKNOWN] = _COMMON | {"corr": NO_ID, "note": 0, "order": 0}
_COLUMNS[RowKind.CALL] = _COMMON | {"corr": NO_ID, "external": NO_ID, "order": 0}
_COLUMNS[RowKind.DEVICE_SYNC] = _COMMON | {"device": NO_ID, "stream": NO_ID}

DEVICE_COLUMNS = tuple(_DEVICE)
CALL_COLUMNS = tuple(_COLUMNS[RowKind.CALL])
_CODES = frozenset({"pid", "tid", "name", "config", "owner", "note"})


class Interner(dict[Any, int]):
    """Gives equal keys equal small numbers, in order of first sight; ``values_in_order`` lists them back."""

    def __init__(self, normalise: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self._normalise = normalise
        self.values_in_order: list[Any] = []
        self._of_value: dict[Any, int] = {}

    def __missing__(self, key: Any) -> int:
        value = self._normalise(key) if self._normalise else key
        number = self._of_value.get(value)
        if number is None:
            number = self._of_value[value] = len(self.values_in_order)
            self.values_in_order.append(value)
        self[key] = number
        return number

    def codes(self, keys: Iterable[Any], count: int = -1) -> npt.NDArray[np.int32]:
        """Return the number of each key."""
        return np.fromiter(map(self.__getitem__, keys), dtype=np.int32, count=count)

    def codes_of_values(self, values: Iterable[Any]) -> npt.NDArray[np.int32]:
        """Return the number of each value, as another table of the kind has listed them: they are not normalised again."""
        numbers = []
        for value in values:
            number = self._of_value.get(value)
            if number is None:
                number = self._of_value[value] = len(self.values_in_order)
                self.values_in_order.append(value)
            numbers.append(number)
        return np.array(numbers, dtype=np.int32)

    def renumber(self, order: list[int]) -> None:
        """Give the values the numbers of their places in ``order``, which lists the present numbers."""
        self.values_in_order = [self.values_in_order[i] for i in order]
        self._of_value = {value: number for number, value in enumerate(self.values_in_order)}
        self.clear()


class Store:
    """The rows of one trace by kind, and what else the file says.

    Columns of every kind: ``start_ns``, ``dur_ns`` (:data:`BAD_TIME` where there is none), ``pid``, ``tid`` (codes of ``pids``
    and ``tids``) and ``name`` (code of ``names``, of ``apis`` for host calls). Python frames, with codes of ``frame_names``, are
    in ``frames`` instead. Host calls and device rows: ``corr`` (joins
    them), ``external``, ``order`` (place in the file). Device rows: ``device`` and ``stream`` number, ``context``, ``config`` (code of
    ``configs``), ``moved_bytes``, ``graph_node``, ``owner`` (code of the host process that launched the row, where the file says
    so: then only calls of that process can be its launch).

    ``configs`` interns :class:`~traceanalyzer.trace.tables.Config`; code 0 of a device row is the first of them.
    ``device_names`` is keyed by (process text, device number), with an empty process for "in every process".
    ``doubtful``: parts of a run that this profiler does not record, or not always. ``ids_ascend``: correlation ids of a process grow
    with time. ``streams_per_context``: streams of one number in two contexts are two streams.
    ``step_ns`` is the finest step in which times of device rows are written.
    """

    def __init__(
        self, name: str, salvage: Salvage, max_rows: int, *,
        id_text: Callable[[Any], str] | None = None, config: Callable[[Any], Config] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.salvage = salvage
        self.names = Interner()
        self.frame_names = Interner()
        self.frames: list[FrameBatch] = []
        self.pids = Interner(id_text)
        self.tids = Interner(id_text)
        self.apis = Interner()
        self.configs = Interner(config)
        self.skipped: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.device_names: dict[tuple[str, int], str] = {}
        self.flavour = "kineto"
        self.format = ""
        self.events = 0
        self.own_events = 0
        self.python_rows = 0
        self.rows = 0
        self.step_ns = 1000
        self.base_ns = 0
        self.flags: dict[str, int] = {}
        self.versions: dict[str, str] = {}
        self.simulated = False
        self.rank: int | None = None
        self.world_size: int | None = None
        self.streams_per_context = False
        self.remarks: list[Remark] = []
        self.doubtful: set[RecordedPart] = set()
        self.chrome_json = False
        self.ids_ascend = False
        self._max_rows = max_rows
        self._columns: dict[RowKind, dict[str, list[Array]]] = {}

    def put(self, kind: RowKind, columns: Mapping[str, Array]) -> None:
        """Add rows of one kind; columns that are not given are absent in every row.

        Raises TraceFormatError when the store holds more rows than the limit allows.
        """
        n = len(columns["start_ns"])
        if not n:
            return
        self.rows += n
        into = self._columns.setdefault(kind, {})
        for column, absent in _COLUMNS[kind].items():
            given = columns.get(column)
            if given is None:
                given = np.broadcast_to(np.int32(absent) if column in _CODES else np.int64(absent), n)
            into.setdefault(column, []).append(given)
        self.check_rows()

    def check_rows(self) -> None:
        """Raise TraceFormatError when the store holds more rows than the limit allows."""
        if self.rows > self._max_rows:
            raise TraceFormatError(
                "too_large",
                f"more than {self._max_rows} rows to keep",
                hint="record a shorter window, or raise the limit with --max-rows",
            )

    def column(self, kind: RowKind, name: str) -> Array:
        """Return one column of one kind, empty when there is no such row."""
        parts = self._columns.get(kind, {}).get(name)
        if not parts:
            return np.empty(0, dtype=np.int32 if name in _CODES else np.int64)
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0]

    def replace(self, kind: RowKind, name: str, values: Array) -> None:
        """Put other values in place of a column: a decoder that knows more once it has seen all rows."""
        self._columns[kind][name] = [values]

    def take_out(self, kind: RowKind) -> dict[str, Array]:
        """Return all columns of one kind and forget its rows."""
        found = {c: self.column(kind, c) for c in _COLUMNS[kind]}
        self._columns.pop(kind, None)
        self.rows -= len(found["start_ns"])
        return found

    def api_classes(self) -> npt.NDArray[np.int8]:
        """Return the :class:`ApiClass` of each interned API name."""
        return np.array([classify_api(a) for a in self.apis.values_in_order] or [ApiClass.OTHER], dtype=np.int8)
