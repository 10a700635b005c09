"""rpd: the SQLite database of rocmProfileData. ``rocpd_api_ops`` says which call made which device operation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.joins import Lookup, coded, lengths
from traceanalyzer.trace.launch_config import CONFIG_COLUMNS, config_codes
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.rocm.names import UNRECORDED, device_kind, host_kind
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.store import NO_PROCESS, Store
from traceanalyzer.trace.tables import NO_ID

Int64 = npt.NDArray[np.int64]

_IN_WORK_ITEMS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
_AXES = tuple("XYZ")


def is_rpd(database: Database) -> bool:
    """Return whether the tables are those of rpd."""
    return database.has("rocpd_op", "start", "end") and database.has("rocpd_string", "id", "string")


def decode(database: Database, limits: ReadLimits) -> Store:
    """Return the rows of an rpd database."""
    store = Store(database.name, Salvage(), limits.max_rows)
    store.flavour, store.format, store.step_ns = "rpd", "rpd SQLite", 1
    store.doubtful |= UNRECORDED
    api = _all(database, "rocpd_api", ["id", "pid", "tid", "start", "end", "apiName_id", "args_id"])
    ops = _all(database, "rocpd_op", ["id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"])
    wanted = {
        i
        for column in (api["apiName_id"], api["args_id"], ops["description_id"], ops["opType_id"])
        for i in distinct(column).tolist()
    }
    text = database.strings("rocpd_string", "id", "string", wanted - {NO_ID})
    links = _all(database, "rocpd_api_ops", ["api_id", "op_id"])
    api_of_op = Lookup(links["op_id"], links["api_id"]).find(ops["id"])
    place_of_api = Lookup(api["id"], np.arange(len(api["id"]))).find(api_of_op)
    owner = (
        np.where(place_of_api == NO_ID, NO_ID, api["pid"][np.maximum(place_of_api, 0)])
        if len(api["id"])
        else place_of_api
    )
    _put_calls(api, text, store)
    _put_ops(database, ops, text, api_of_op, owner, api, store)
    store.events = store.rows + sum(store.skipped.values())
    if not len(store.column(RowKind.CALL, "start_ns")):
        store.remarks.append(
            Remark(RemarkCode.NO_HOST_CALLS, {"how": "run the program under runTracer.sh, which records them"})
        )
    return store


def _all(database: Database, table: str, columns: list[str]) -> dict[str, Int64]:
    blocks = list(database.numbers(table, columns))
    return {c: np.concatenate([b[c] for b in blocks]) if blocks else np.empty(0, dtype=np.int64) for c in columns}


def _put_calls(api: dict[str, Int64], text: dict[int, str], store: Store) -> None:
    """Put calls, marked ranges and the profiler's own rows into the store."""
    width = int(api["args_id"].max(initial=0)) + 2
    args = np.where(api["args_id"] == NO_ID, width - 1, api["args_id"])
    if not len(args) or width > 1 << 31 or int(api["apiName_id"].max(initial=0)) > 1 << 31 or (args < 0).any():
        pairs, place = np.unique(np.stack([api["apiName_id"], args], axis=1), axis=0, return_inverse=True)
        told = [(a, b) for a, b in pairs.tolist()]
    else:
        keys, place = np.unique(api["apiName_id"] * width + args, return_inverse=True)
        told = [divmod(k, width) for k in keys.tolist()]
    place = place.reshape(-1)
    found = [host_kind(text.get(a, f"call {a}"), text.get(b, "")) for a, b in told]
    kinds = np.array([int(k) for k, _ in found], dtype=np.int8)[place]
    rows: dict[str, npt.NDArray[np.generic]] = {
        "start_ns": api["start"], "dur_ns": lengths(api["start"], api["end"]), "corr": api["id"],
        "pid": coded(api["pid"], store.pids), "tid": coded(api["tid"], store.tids),
    }  # fmt: skip
    for kind in (RowKind.CALL, RowKind.RANGE, RowKind.OVERHEAD):
        table = store.apis if kind is RowKind.CALL else store.names
        codes = np.array([table[name] if k is kind else 0 for k, name in found], dtype=np.int32)[place]
        mask = kinds == kind
        store.put(kind, {c: v[mask] for c, v in rows.items()} | {"name": codes[mask]})


def _put_ops(
    database: Database, ops: dict[str, Int64], text: dict[int, str], api_of_op: Int64, owner: Int64, api: dict[str, Int64], store: Store
) -> None:  # fmt: skip
    known = sorted(
        {p for p in owner.tolist() if p != NO_ID} or {p for p in distinct(api["pid"]).tolist() if p != NO_ID}
    )
    alone = store.pids[str(known[0])] if len(known) == 1 else store.pids[""]
    process = np.full(len(owner), alone, dtype=np.int32)
    codes = {p: store.pids[str(p)] for p in known}
    has_owner = owner != NO_ID
    process[has_owner] = [codes[p] for p in owner[has_owner].tolist()]
    names, kinds = [], []
    told: dict[tuple[int, int], tuple[str, RowKind]] = {}
    for pair in zip(ops["description_id"].tolist(), ops["opType_id"].tolist(), strict=True):
        if pair not in told:
            description, op_type = text.get(pair[0], ""), text.get(pair[1], "")
            told[pair] = description or op_type or "no name", device_kind(op_type, description or op_type)
        names.append(told[pair][0])
        kinds.append(told[pair][1])
    kind_of = np.array([int(k) for k in kinds], dtype=np.int8)
    if waits := int(np.count_nonzero(kind_of == RowKind.SKIP)):
        store.skipped["marker or barrier in a queue"] += waits
    copies = _all(database, "rocpd_copyapi", ["api_ptr_id", "size", "kind"])
    moved = Lookup(copies["api_ptr_id"], copies["size"]).find(api_of_op)
    rows: dict[str, npt.NDArray[np.generic]] = {
        "start_ns": ops["start"], "dur_ns": lengths(ops["start"], ops["end"]), "corr": api_of_op, "pid": process,
        "owner": np.where(has_owner, process, NO_PROCESS), "device": np.where(ops["gpuId"] == NO_ID, 0, ops["gpuId"]),
        "stream": np.where(ops["queueId"] == NO_ID, 0, ops["queueId"]), "name": store.names.codes(names),
        "moved_bytes": moved, "config": _configs(database, api_of_op, api, text, store),
    }  # fmt: skip
    for kind in DEVICE_KINDS:
        mask = kind_of == kind
        store.put(kind, {c: v[mask] for c, v in rows.items()})


def _configs(
    database: Database, api_of_op: Int64, api: dict[str, Int64], text: dict[int, str], store: Store
) -> npt.NDArray[np.int32]:
    """Return the configuration of each operation, by the call that made it; some calls count the grid in work-items."""
    wanted = ["api_ptr_id", *(f"{what}{a}" for what in ("grid", "workgroup") for a in _AXES), "groupSegmentSize"]
    table = _all(database, "rocpd_kernelapi", wanted)
    place = Lookup(table["api_ptr_id"], np.arange(len(table["api_ptr_id"]))).find(api_of_op)
    has = place != NO_ID
    at = np.where(has, place, 0)

    def column(name: str) -> Int64:
        return np.where(has, table[name][at], NO_ID) if len(table["api_ptr_id"]) else np.full(len(at), NO_ID)

    name_of_api = Lookup(api["id"], api["apiName_id"]).find(api_of_op)
    in_items = np.isin(name_of_api, [i for i, name in text.items() if name in _IN_WORK_ITEMS])
    columns = dict.fromkeys(CONFIG_COLUMNS, np.full(len(at), NO_ID, dtype=np.int64))
    for axis in _AXES:
        grid, block = column(f"grid{axis}"), column(f"workgroup{axis}")
        known = (grid > 0) & (block > 0)
        blocks = np.where(in_items, -(-grid // np.where(known, block, 1)), grid)
        columns[f"grid_{axis.lower()}"] = np.where(known, blocks, NO_ID)
        columns[f"block_{axis.lower()}"] = np.where(known, block, NO_ID)
    columns["shared"] = np.where(columns["grid_x"] == NO_ID, NO_ID, column("groupSegmentSize"))
    return config_codes(columns, store.configs)
