"""From an Nsight Systems database to a filled store.

PROCESSES, TARGET_INFO_SYSTEM_ENV and ANALYSIS_FILE hold command lines, environments and file names: they are never read.
"""

from __future__ import annotations

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.names import scrub_paths
from traceanalyzer.trace.nsight import device_rows, host_rows
from traceanalyzer.trace.nsight.identity import Processes
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import NO_ID

_TELLING = ("CUDA", "CUPTI", "NVTX", "driver")
_INFO = 1
_VERSIONS = {
    "META_DATA_EXPORT": {"EXPORT_PRODUCT_VERSION": "nsight_systems"},
    "EXPORT_META_DATA": {"EXPORT_PRODUCT_VERSION": "nsight_systems", "PRODUCT_VERSION": "nsight_systems"},
}
_OWN_TABLES = ("StringIds", "NVTX_EVENTS", "TARGET_INFO_GPU", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT")


def is_nsight(database: Database) -> bool:
    """Return whether the tables are those of an Nsight Systems export."""
    tables = database.tables
    return ("StringIds" in tables and any(t in tables for t in _OWN_TABLES[1:])) or (
        "StringIds" in tables and any(t.startswith("CUPTI_ACTIVITY_KIND_") for t in tables)
    )


def decode(database: Database, limits: ReadLimits) -> Store:
    """Return the rows of an Nsight Systems export.

    Raises :class:`~traceanalyzer.errors.TraceFormatError` when the database cannot be read.
    """
    store = Store(database.name, Salvage(), limits.max_rows)
    store.flavour, store.format = "nsight", "Nsight Systems SQLite"
    store.step_ns, store.streams_per_context = 1, True
    store.doubtful |= {RecordedPart.OVERHEADS, RecordedPart.INSTRUMENTATION, RecordedPart.OPERATORS}
    store.ids_ascend = True
    processes = Processes(store)
    for table in (device_rows.KERNELS, device_rows.COPIES, device_rows.FILLS, device_rows.GRAPHS, host_rows.CALLS):
        if table in database.tables and not database.has(table, "start", "end"):
            raise TraceFormatError(
                "not_a_trace", f"'{database.name}': table {table} has no columns start and end", hint="export it again"
            )
    device_rows.read_kernels(database, store, processes)
    migrations = device_rows.read_copies(database, store, processes)
    graphs = device_rows.read_graphs(database, store, processes)
    host_rows.read_calls(database, store, processes)
    host_rows.read_ranges(database, store, processes)
    host_rows.read_overheads(database, store, processes)
    store.events = store.rows + sum(store.skipped.values()) + migrations.rows
    _device_names(database, store)
    _session(database, store)
    if graphs:
        store.remarks.append(Remark(RemarkCode.GRAPHS_WHOLE, {"rows": graphs}))
    if migrations.rows:
        store.remarks.append(Remark(RemarkCode.MIGRATIONS, {"rows": migrations.rows, "total_ns": migrations.total_ns}))
    _missing(database, store)
    return store


def _device_names(database: Database, store: Store) -> None:
    """Name the devices: through TARGET_INFO_CUDA_DEVICE, per process; else where all GPUs have one name."""
    names: dict[int, str] = {}
    for table in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"):  # the second until 2021
        for ids, texts in database.blocks(table, ["id"], ["name"]):
            names.update((i, t[:100]) for i, t in zip(ids["id"].tolist(), texts["name"], strict=True) if t)
    pids: dict[int, list[str]] = {}
    for text in store.pids.values_in_order:
        pids.setdefault(int(text.split("@")[0]), []).append(text)
    for block in database.numbers("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"]):
        for gpu, number, pid in zip(*(block[c].tolist() for c in ("gpuId", "cudaId", "pid")), strict=True):
            for text in pids.get(pid, []):
                if gpu in names and number != NO_ID:
                    store.device_names[text, number] = names[gpu]
    if not store.device_names and len(set(names.values())) == 1:
        name = next(iter(names.values()))
        used = {int(n) for kind in DEVICE_KINDS for n in set(store.column(kind, "device").tolist())}
        store.device_names.update((("", number), name) for number in used)


def _session(database: Database, store: Store) -> None:
    for block in database.numbers("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"]):
        started = int(block["utcEpochNs"][0])
        store.base_ns = started if 0 < started < 1 << 62 else 0
        break
    for table, keys in _VERSIONS.items():
        if database.has(table, "name", "value"):
            for _, texts in database.blocks(table, [], ["name", "value"]):
                for name, value in zip(texts["name"], texts["value"], strict=True):
                    if name in keys:
                        store.versions[keys[name]] = value[:40]


def _missing(database: Database, store: Store) -> None:
    """Say which of the three things are not there, with what the profiler itself says of it."""
    device = sum(len(store.column(kind, "start_ns")) for kind in DEVICE_KINDS)
    calls, ranges = (len(store.column(kind, "start_ns")) for kind in (RowKind.CALL, RowKind.RANGE))
    if device:
        return
    if calls:
        store.remarks.append(Remark(RemarkCode.NO_DEVICE_TABLE, {"calls": calls}))
    elif ranges:
        store.remarks.append(Remark(RemarkCode.ANNOTATIONS_ONLY, {"ranges": ranges}))
    else:
        store.remarks.append(Remark(RemarkCode.NO_CUDA))
    for block, texts in database.blocks("DIAGNOSTIC_EVENT", ["severity"], ["text"]):
        for severity, text in zip(block["severity"].tolist(), texts["text"], strict=True):
            if (severity > _INFO or "might be missing" in text) and any(word in text for word in _TELLING):
                sentence = " ".join(scrub_paths(text).split())[:300]
                remark = Remark(RemarkCode.DIAGNOSTIC, {"text": sentence})
                if remark not in store.remarks and len(store.remarks) < 8:
                    store.remarks.append(remark)
