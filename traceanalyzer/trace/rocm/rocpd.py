"""rocpd: the SQLite database that rocprofv3 writes by default since ROCm 7.

Table names end in a GUID; a merged database has several sets of tables. Two layouts are in use: rows with their own times,
process, agent and queue, and rows that point to ``rocpd_timestamp`` and ``rocpd_track``. ``stack_id`` of an event is the
correlation id that joins calls and device rows. Written after the public schema; no file of a user was at hand.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np
import numpy.typing as npt

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.joins import Lookup, coded, lengths
from traceanalyzer.trace.launch_config import config_codes
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.rocm.names import UNRECORDED, copy_name, device_kind
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import NO_ID

Int64 = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[np.generic]]

_DISPATCH = re.compile(r"\Arocpd_kernel_dispatch(_?[0-9a-fA-F_-]*)\Z")
_COPY_STREAM = -1
_PLACE = ("pid", "tid", "agent_id", "queue_id")


class _Said(msgspec.Struct):
    message: str = ""


def is_rocpd(database: Database) -> bool:
    """Return whether the tables are those of rocprofv3's database."""
    return bool(_suffixes(database))


def _suffixes(database: Database) -> list[str]:
    return sorted(m[1] for name in database.tables if (m := _DISPATCH.match(name)))


def decode(database: Database, limits: ReadLimits) -> Store:
    """Return the rows of every set of tables of a rocpd database."""
    store = Store(database.name, Salvage(), limits.max_rows)
    store.flavour, store.format, store.step_ns = "rocpd", "rocpd SQLite", 1
    store.doubtful |= UNRECORDED
    for suffix in _suffixes(database):
        _Tables(database, suffix, store).read()
    store.events = store.rows + sum(store.skipped.values())
    if not len(store.column(RowKind.CALL, "start_ns")):
        store.remarks.append(Remark(RemarkCode.NO_HOST_CALLS, {"how": "record with --hip-trace, or --sys-trace"}))
    return store


class _Tables:
    """One set of tables, whose names end in the same GUID."""

    def __init__(self, database: Database, suffix: str, store: Store) -> None:
        self._database, self._suffix, self._store = database, suffix, store
        self._instants = self._lookup("rocpd_timestamp", "value")
        self._tracks = {column: self._lookup("rocpd_track", column) for column in _PLACE}
        self._pids = self._lookup("rocpd_info_process", "pid")
        self._tids = self._lookup("rocpd_info_thread", "tid")
        self._events = {c: self._lookup("rocpd_event", c) for c in ("stack_id", "category_id")}
        self._numbers: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def read(self) -> None:
        """Put agents, kernels, copies and regions into the store."""
        self._read_agents()
        self._read_kernels()
        self._read_copies()
        self._read_regions()

    def _all(self, table: str, columns: list[str]) -> dict[str, Int64]:
        blocks = list(self._database.numbers(table + self._suffix, columns))
        return {c: np.concatenate([b[c] for b in blocks]) if blocks else np.empty(0, dtype=np.int64) for c in columns}

    def _lookup(self, table: str, column: str) -> Lookup:
        found = self._all(table, ["id", column])
        return Lookup(found["id"], found[column])

    def _strings(self, ids: Int64) -> dict[int, str]:
        wanted = set(distinct(ids).tolist()) - {NO_ID}
        return self._database.strings("rocpd_string" + self._suffix, "id", "string", wanted)

    def _read_agents(self) -> None:
        table = "rocpd_info_agent" + self._suffix
        order = 0
        for ids, texts in self._database.blocks(table, ["id", "type_index"], ["type", "product_name", "name"]):
            for i, (agent, number) in enumerate(zip(ids["id"].tolist(), ids["type_index"].tolist(), strict=True)):
                if texts["type"][i] == "GPU":
                    self._numbers[agent] = order if number == NO_ID else number
                    self._names[agent] = (texts["product_name"][i] or texts["name"][i])[:100]
                    order += 1

    def _placed(self, rows: dict[str, Int64]) -> dict[str, Int64]:
        """Return start, end, process, thread, agent and queue of rows of either layout."""
        found = {}
        for column, by_id in (("start", "start_id"), ("end", "end_id")):
            found[column] = np.where(rows[column] != NO_ID, rows[column], self._instants.find(rows[by_id]))
        for column in _PLACE:
            found[column] = np.where(rows[column] != NO_ID, rows[column], self._tracks[column].find(rows["track_id"]))
        for column, table in (("pid", self._pids), ("tid", self._tids)):
            # in one layout these are numbers of rows, in the other the operating system's own
            known = table.find(found[column])
            found[column] = np.where(known != NO_ID, known, found[column])
        return found

    _WANTED = ("start", "end", "start_id", "end_id", "track_id", *_PLACE, "event_id")

    def _of_device(self, rows: dict[str, Int64], place: dict[str, Int64], agents: Int64) -> Columns:
        store = self._store
        pid = coded(place["pid"], store.pids)
        used, code = np.unique(agents, return_inverse=True)
        device = np.array([self._numbers.get(a, 0) for a in used.tolist()], dtype=np.int64)[code.reshape(-1)]
        for agent in used.tolist():
            for process in {store.pids.values_in_order[p] for p in distinct(pid).tolist()}:
                if agent in self._names:
                    store.device_names[process, self._numbers[agent]] = self._names[agent]
        ids = self._events["stack_id"].find(rows["event_id"])
        return {
            "start_ns": place["start"], "dur_ns": lengths(place["start"], place["end"]), "pid": pid, "owner": pid,
            "device": device, "corr": np.where(ids > 0, ids, NO_ID),
        }  # fmt: skip

    def _read_kernels(self) -> None:
        axes = [f"{what}_size_{a}" for what in ("workgroup", "grid") for a in "xyz"]
        rows = self._all("rocpd_kernel_dispatch", [*self._WANTED, "kernel_id", "group_segment_size", *axes])
        if not len(rows["kernel_id"]):
            return
        names = self._symbol_names()
        used, code = np.unique(rows["kernel_id"], return_inverse=True)
        texts = [names.get(k, f"kernel {k}") for k in used.tolist()]
        columns: dict[str, Int64] = {"shared": rows["group_segment_size"]}
        columns["registers"] = np.full(len(code.reshape(-1)), NO_ID, dtype=np.int64)
        for axis in "xyz":
            block, items = rows[f"workgroup_size_{axis}"], rows[f"grid_size_{axis}"]
            known = (block > 0) & (items > 0)
            columns[f"block_{axis}"] = np.where(known, block, NO_ID)
            columns[f"grid_{axis}"] = np.where(known, -(-items // np.where(known, block, 1)), NO_ID)  # in work-items
        place = self._placed(rows)
        found = self._of_device(rows, place, place["agent_id"]) | {
            "stream": np.where(place["queue_id"] == NO_ID, 0, place["queue_id"]),
            "name": self._store.names.codes(texts)[code.reshape(-1)],
            "config": config_codes(columns, self._store.configs),
        }
        kinds = np.array([int(device_kind("", t)) for t in texts], dtype=np.int8)[code.reshape(-1)]
        for kind in DEVICE_KINDS:
            mask = kinds == kind
            self._store.put(kind, {c: v[mask] for c, v in found.items()})

    def _symbol_names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        table = "rocpd_info_kernel_symbol" + self._suffix
        for ids, texts in self._database.blocks(table, ["id"], ["display_name", "kernel_name"]):
            for i, symbol in enumerate(ids["id"].tolist()):
                names[symbol] = texts["display_name"][i] or texts["kernel_name"][i].removesuffix(".kd")
        return names

    def _read_copies(self) -> None:
        """Put copies of the copy engines on a lane of their own: they run at the same time as the queues."""
        rows = self._all("rocpd_memory_copy", [*self._WANTED, "name_id", "size", "dst_agent_id", "src_agent_id"])
        n = len(rows["name_id"])
        if not n:
            return
        place = self._placed(rows)
        on_gpu = np.isin(rows["dst_agent_id"], list(self._numbers))
        texts = self._strings(rows["name_id"])
        used, code = np.unique(rows["name_id"], return_inverse=True)
        names = self._store.names.codes([copy_name(texts.get(i, "copy")) for i in used.tolist()])
        found = self._of_device(rows, place, np.where(on_gpu, rows["dst_agent_id"], rows["src_agent_id"])) | {
            "stream": np.full(n, _COPY_STREAM, dtype=np.int64), "name": names[code.reshape(-1)], "moved_bytes": rows["size"],
            "config": np.broadcast_to(config_codes({}, self._store.configs), n),
        }  # fmt: skip
        self._store.put(RowKind.MEMCPY, found)

    def _read_regions(self) -> None:
        """Put host calls into the store, and marked ranges, which are named by the message of their event."""
        rows = self._all("rocpd_region", [*self._WANTED, "name_id"])
        if not len(rows["name_id"]):
            return
        place = self._placed(rows)
        categories = self._events["category_id"].find(rows["event_id"])
        said = self._strings(categories)
        marked = np.isin(categories, [i for i, text in said.items() if text.startswith("MARKER")])
        texts = self._strings(rows["name_id"])
        ids = self._events["stack_id"].find(rows["event_id"])
        columns: Columns = {
            "start_ns": place["start"], "dur_ns": lengths(place["start"], place["end"]),
            "pid": coded(place["pid"], self._store.pids), "tid": coded(place["tid"], self._store.tids),
        }  # fmt: skip
        used, code = np.unique(rows["name_id"][~marked], return_inverse=True)
        apis = self._store.apis.codes([texts.get(i, f"call {i}") for i in used.tolist()])[code.reshape(-1)]
        calls = {c: v[~marked] for c, v in columns.items()} | {
            "corr": np.where(ids > 0, ids, NO_ID)[~marked],
            "name": apis,
        }
        self._store.put(RowKind.CALL, calls)
        messages = self._messages(set(rows["event_id"][marked].tolist()))
        names = [
            messages.get(event) or texts.get(name, "range")
            for event, name in zip(rows["event_id"][marked].tolist(), rows["name_id"][marked].tolist(), strict=True)
        ]
        ranges = {c: v[marked] for c, v in columns.items()} | {"name": self._store.names.codes(names)}
        self._store.put(RowKind.RANGE, ranges)

    def _messages(self, events: set[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        if not events:
            return found
        for ids, texts in self._database.blocks("rocpd_event" + self._suffix, ["id"], ["extdata"]):
            for event, text in zip(ids["id"].tolist(), texts["extdata"], strict=True):
                if event in events:
                    try:
                        found[event] = msgspec.json.decode(text, type=_Said).message
                    except (msgspec.DecodeError, RecursionError):
                        continue
        return found
