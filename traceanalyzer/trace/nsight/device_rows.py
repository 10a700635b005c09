"""Kernels, copies, fills and graph launches of an Nsight Systems database."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.database import Block, Database
from traceanalyzer.trace.joins import lengths
from traceanalyzer.trace.launch_config import CONFIG_COLUMNS, config_codes
from traceanalyzer.trace.nsight.identity import Ids, Processes, codes_of_names
from traceanalyzer.trace.store import NO_PROCESS, Store
from traceanalyzer.trace.tables import NO_ID

Int64 = npt.NDArray[np.int64]

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"

_PLACE = ("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid")
_LEAST_STREAM = 1 << 31
_ALL_BITS = 1 << 32
_COPY_KINDS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "unified HtoD", 12: "unified DtoH", 13: "unified DtoD",
}  # fmt: skip
_MIGRATIONS = (11, 12, 13)
_MEMORY = {
    0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static",
}  # fmt: skip


@dataclass
class Migrations:
    """Page moves of unified memory, which the driver made: no copies of the program, and no work of a stream."""

    rows: int = 0
    total_ns: int = 0


def read_kernels(database: Database, store: Store, processes: Processes) -> None:
    """Put the kernels into the store; a kernel is named by its demangled name, else by its short one."""
    columns = {
        "gridX": "grid_x", "gridY": "grid_y", "gridZ": "grid_z", "blockX": "block_x", "blockY": "block_y",
        "blockZ": "block_z", "registersPerThread": "registers",
    }  # fmt: skip
    assert {*columns.values(), "shared"} == set(CONFIG_COLUMNS)
    shared = ("staticSharedMemory", "dynamicSharedMemory")
    wanted = [*_PLACE, "demangledName", "shortName", "graphNodeId", *columns, *shared]
    found: list[tuple[dict[str, npt.NDArray[np.generic]], Ids]] = []
    for block in database.numbers(KERNELS, wanted):
        given = {ours: block[theirs] for theirs, ours in columns.items()}
        static, dynamic = (block[c] for c in shared)
        either = (static != NO_ID) | (dynamic != NO_ID)
        parts = np.where(static == NO_ID, 0, static) + np.where(dynamic == NO_ID, 0, dynamic)
        given["shared"] = np.where(either, parts, NO_ID)
        names = np.where(block["demangledName"] == NO_ID, block["shortName"], block["demangledName"])
        placed = _placed(block, processes)
        found.append(
            (placed | {"config": config_codes(given, store.configs), "graph_node": block["graphNodeId"]}, Ids(names))
        )
    code_of = codes_of_names(database, [names for _, names in found], store.names)
    for columns_of_block, ids in found:
        store.put(RowKind.KERNEL, columns_of_block | {"name": ids.coded(code_of)})


def read_copies(database: Database, store: Store, processes: Processes) -> Migrations:
    """Put copies and fills into the store; return the page moves of unified memory, which are neither."""
    moved = Migrations()
    wanted = [*_PLACE, "bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"]
    for block in database.numbers(COPIES, wanted):
        key = (block["copyKind"] & 0xFF) << 16 | (block["srcKind"] & 0xFF) << 8 | (block["dstKind"] & 0xFF)
        used, place = np.unique(key, return_inverse=True)
        names = np.array(
            [store.names[_copy_name(k >> 16, k >> 8 & 0xFF, k & 0xFF)] for k in used.tolist()], dtype=np.int32
        )
        columns = _of_memory(block, processes, store) | {"name": names[place.reshape(-1)]}
        migration = np.isin(block["copyKind"], _MIGRATIONS)
        moved.rows += int(np.count_nonzero(migration))
        whole = migration & (block["start"] != NO_ID) & (block["end"] >= block["start"])
        moved.total_ns += int((block["end"][whole] - block["start"][whole]).sum())
        store.put(RowKind.MEMCPY, {c: v[~migration] for c, v in columns.items()})
    for block in database.numbers(FILLS, [*_PLACE, "bytes", "memKind", "graphNodeId"]):
        used, place = np.unique(block["memKind"], return_inverse=True)
        names = np.array([store.names[f"Memset ({_MEMORY.get(k, 'Unknown')})"] for k in used.tolist()], dtype=np.int32)
        store.put(RowKind.MEMSET, _of_memory(block, processes, store) | {"name": names[place.reshape(-1)]})
    return moved


def read_graphs(database: Database, store: Store, processes: Processes) -> int:
    """Put graph launches that were recorded as a whole into the store; return how many there are."""
    before = store.rows
    for block in database.numbers(GRAPHS, [*_PLACE, "graphId"]):
        used, place = np.unique(block["graphId"], return_inverse=True)
        texts = ["CUDA graph" if i == NO_ID else f"CUDA graph {i}" for i in used.tolist()]
        names = store.names.codes(texts)[place.reshape(-1)]
        store.put(RowKind.GRAPH, _placed(block, processes) | {"config": _no_config(len(names), store), "name": names})
    return store.rows - before


def _placed(block: Block, processes: Processes) -> dict[str, npt.NDArray[np.generic]]:
    """Return where and when the rows of a block ran, as columns of a store."""
    start, end, stream = block["start"], block["end"], block["streamId"]
    process = processes.of_pid(block["globalPid"])
    context = np.where(block["greenContextId"] > 0, block["greenContextId"] | _ALL_BITS, block["contextId"])
    return {
        "start_ns": start,
        "dur_ns": lengths(start, end),
        "pid": process,
        "owner": np.where(block["globalPid"] == NO_ID, NO_PROCESS, process).astype(np.int32),
        "device": np.where(block["deviceId"] == NO_ID, 0, block["deviceId"]),
        "context": context,
        "stream": np.where(stream == NO_ID, 0, np.where((stream >= _LEAST_STREAM) & (stream < _ALL_BITS), stream - _ALL_BITS, stream)),
        "corr": np.where(block["correlationId"] > 0, block["correlationId"], NO_ID),
    }  # fmt: skip


def _of_memory(block: Block, processes: Processes, store: Store) -> dict[str, npt.NDArray[np.generic]]:
    return _placed(block, processes) | {
        "moved_bytes": block["bytes"],
        "graph_node": block["graphNodeId"],
        "config": _no_config(len(block["start"]), store),
    }


def _no_config(n: int, store: Store) -> npt.NDArray[np.int32]:
    return np.broadcast_to(config_codes({}, store.configs), n)


def _copy_name(kind: int, source: int, destination: int) -> str:
    """Return the name that PyTorch's profiler would give the copy, so that both can be compared."""
    ends = f" ({_MEMORY.get(source, 'Unknown')} -> {_MEMORY.get(destination, 'Unknown')})"
    return f"Memcpy {_COPY_KINDS.get(kind, 'Unknown')}{ends}"
