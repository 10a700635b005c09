"""The JSON of rocprofv3 (``--output-format json``): buffer records by kind, with tables of agents and kernel symbols.

Only what is used is built from the text; it is decoded as a whole. The command line, environment and host in its metadata are not
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import DEVICE_KINDS, RowKind
from traceanalyzer.trace.joins import lengths
from traceanalyzer.trace.launch_config import config_codes
from traceanalyzer.trace.remarks import Remark, RemarkCode
from traceanalyzer.trace.rocm.names import UNRECORDED, copy_name, device_kind
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import BAD_TIME, Store
from traceanalyzer.trace.tables import NO_ID

_BEGINS = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:')
_GPU = 2
_COPY_STREAM = -1
_RANGES = ("roctxRangePushA", "roctxRangeStartA", "roctxThreadRangeA", "roctxProcessRangeA")
_HOST = ("hip_api", "hip_runtime_api", "hip_compiler_api", "rccl_api", "hsa_api")


class _Handle(Struct, gc=False):
    handle: int = 0


class _Ids(Struct, gc=False):
    internal: int = 0


class _Dims(Struct, gc=False):
    x: int = 0
    y: int = 0
    z: int = 0


class _Dispatch(Struct, gc=False):
    agent_id: _Handle = msgspec.field(default_factory=_Handle)
    queue_id: _Handle = msgspec.field(default_factory=_Handle)
    kernel_id: int = 0
    group_segment_size: int = 0
    workgroup_size: _Dims = msgspec.field(default_factory=_Dims)
    grid_size: _Dims = msgspec.field(default_factory=_Dims)


class _KernelRecord(Struct, gc=False):
    start_timestamp: int = 0
    end_timestamp: int = 0
    correlation_id: _Ids = msgspec.field(default_factory=_Ids)
    dispatch_info: _Dispatch = msgspec.field(default_factory=_Dispatch)


class _CopyRecord(Struct, gc=False):
    start_timestamp: int = 0
    end_timestamp: int = 0
    kind: int = 0
    operation: int = 0
    correlation_id: _Ids = msgspec.field(default_factory=_Ids)
    dst_agent_id: _Handle = msgspec.field(default_factory=_Handle)
    src_agent_id: _Handle = msgspec.field(default_factory=_Handle)
    bytes: int = -1


class _HostRecord(Struct, gc=False):
    start_timestamp: int = 0
    end_timestamp: int = 0
    kind: int = 0
    operation: int = 0
    thread_id: int = 0
    correlation_id: _Ids = msgspec.field(default_factory=_Ids)


class _Records(Struct):
    kernel_dispatch: list[_KernelRecord] = []
    memory_copy: list[_CopyRecord] = []
    hip_api: list[_HostRecord] = []
    hip_runtime_api: list[_HostRecord] = []
    hip_compiler_api: list[_HostRecord] = []
    hsa_api: list[_HostRecord] = []
    rccl_api: list[_HostRecord] = []
    marker_api: list[_HostRecord] = []


class _Operations(Struct):
    kind: str = ""
    operations: list[str] = []


class _Marker(Struct):
    key: int = 0
    value: str = ""


class _Strings(Struct):
    buffer_records: list[_Operations] = []
    marker_api: list[_Marker] = []


class _Agent(Struct):
    id: _Handle = msgspec.field(default_factory=_Handle)
    type: int = 0
    name: str = ""
    product_name: str = ""
    logical_node_type_id: int = -1


class _Symbol(Struct, gc=False):
    kernel_id: int = 0
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    arch_vgpr_count: int = 0
    accum_vgpr_count: int = 0


class _Metadata(Struct):
    pid: int = 0


class _Process(Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    agents: list[_Agent] = []
    strings: _Strings = msgspec.field(default_factory=_Strings)
    kernel_symbols: list[_Symbol] = []
    buffer_records: _Records = msgspec.field(default_factory=_Records)


class _File(Struct):
    processes: list[_Process] = msgspec.field(name="rocprofiler-sdk-tool")


def is_rocprofv3(head: bytes) -> bool:
    """Return whether bytes begin rocprofv3's JSON."""
    return _BEGINS.match(head) is not None


def decode(source: Source, pieces: Iterator[bytes], limits: ReadLimits) -> Store:
    """Return the rows of rocprofv3's JSON.

    Raises :class:`~traceanalyzer.errors.TraceFormatError` when the text breaks off or holds other types.
    """
    text = b"".join(pieces)
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TraceFormatError(
            "truncated" if "truncated" in str(error) else "not_a_trace",
            f"'{source.given}' is rocprofv3's JSON and cannot be read ({str(error)[:120]})",
            hint="record it again; was the process killed while it wrote?",
        ) from None
    store = Store(source.name, Salvage(), limits.max_rows)
    store.flavour, store.format, store.step_ns = (
        "rocprofv3",
        f"{'gzip, ' if source.compressed else ''}rocprofv3 JSON",
        1,
    )
    store.doubtful |= UNRECORDED
    for process in found.processes:
        _add(process, store)
    store.events = store.rows + sum(store.skipped.values())
    if not len(store.column(RowKind.CALL, "start_ns")):
        store.remarks.append(Remark(RemarkCode.NO_HOST_CALLS, {"how": "record with --hip-trace, or --sys-trace"}))
    return store


def _add(process: _Process, store: Store) -> None:
    pid = store.pids[str(process.metadata.pid)]
    gpus = [a for a in process.agents if a.type == _GPU]
    numbers = {a.id.handle: a.logical_node_type_id if a.logical_node_type_id >= 0 else i for i, a in enumerate(gpus)}
    for agent in gpus:
        name = agent.product_name or agent.name
        store.device_names[str(process.metadata.pid), numbers[agent.id.handle]] = name[:100]
    records = process.buffer_records
    _add_kernels(records.kernel_dispatch, process.kernel_symbols, numbers, pid, store)
    _add_copies(records.memory_copy, process.strings.buffer_records, numbers, pid, store)
    for category in _HOST:
        _add_calls(getattr(records, category), process.strings.buffer_records, pid, store)
    _add_ranges(records.marker_api, process.strings, pid, store)


def _times(starts: list[int], ends: list[int]) -> dict[str, npt.NDArray[np.generic]]:
    """Return start and length of records; stamps that no clock shows have no usable time."""
    sound = range(1 << 62)
    start = np.array([s if s in sound else BAD_TIME for s in starts], dtype=np.int64)
    end = np.array([e if e in sound else BAD_TIME for e in ends], dtype=np.int64)
    return {"start_ns": start, "dur_ns": lengths(start, end)}


def _ids(records: list[_KernelRecord] | list[_CopyRecord] | list[_HostRecord]) -> npt.NDArray[np.int64]:
    found = [r.correlation_id.internal for r in records]
    return np.array([i if 0 < i < 1 << 62 else NO_ID for i in found], dtype=np.int64)


def _small(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array([v if -(1 << 62) < v < 1 << 62 else NO_ID for v in values], dtype=np.int64)


def _add_kernels(
    records: list[_KernelRecord], symbols: list[_Symbol], numbers: dict[int, int], pid: int, store: Store
) -> None:
    if not records:
        return
    symbol_of = {s.kernel_id: s for s in symbols}
    unnamed = _Symbol()
    infos = [r.dispatch_info for r in records]
    used = [symbol_of.get(i.kernel_id, unnamed) for i in infos]
    names = [
        s.formatted_kernel_name or s.kernel_name.removesuffix(".kd") or f"kernel {i.kernel_id}"
        for s, i in zip(used, infos, strict=True)
    ]
    kinds = {name: device_kind("", name) for name in set(names)}
    columns: dict[str, npt.NDArray[np.int64]] = {"shared": _small([i.group_segment_size for i in infos])}
    columns["registers"] = _small([(s.arch_vgpr_count + s.accum_vgpr_count) or NO_ID for s in used])
    for axis in "xyz":
        block = _small([getattr(i.workgroup_size, axis) for i in infos])
        items = _small([getattr(i.grid_size, axis) for i in infos])
        known = (block > 0) & (items > 0)
        columns[f"block_{axis}"] = np.where(known, block, NO_ID)
        columns[f"grid_{axis}"] = np.where(known, -(-items // np.where(known, block, 1)), NO_ID)  # in work-items
    n = len(records)
    rows = _times([r.start_timestamp for r in records], [r.end_timestamp for r in records]) | {
        "pid": np.full(n, pid, np.int32), "owner": np.full(n, pid, np.int32), "corr": _ids(records),
        "device": np.array([numbers.get(i.agent_id.handle, 0) for i in infos], dtype=np.int64),
        "stream": _small([i.queue_id.handle for i in infos]), "name": store.names.codes(names),
        "config": config_codes(columns, store.configs),
    }  # fmt: skip
    _put(rows, np.array([int(kinds[name]) for name in names], dtype=np.int8), store)


def _put(rows: dict[str, npt.NDArray[np.generic]], kinds: npt.NDArray[np.int8], store: Store) -> None:
    for kind in DEVICE_KINDS:
        mask = kinds == kind
        store.put(kind, {c: v[mask] for c, v in rows.items()})


def _add_copies(
    records: list[_CopyRecord], operations: list[_Operations], numbers: dict[int, int], pid: int, store: Store
) -> None:
    """Put copies of the copy engines into the store: on a lane of their own, for they run at the same time as the queues."""
    if not records:
        return
    n = len(records)
    devices = [numbers.get(r.dst_agent_id.handle, numbers.get(r.src_agent_id.handle, 0)) for r in records]
    rows = _times([r.start_timestamp for r in records], [r.end_timestamp for r in records]) | {
        "pid": np.full(n, pid, np.int32), "owner": np.full(n, pid, np.int32), "corr": _ids(records),
        "device": np.array(devices, dtype=np.int64), "stream": np.full(n, _COPY_STREAM, dtype=np.int64),
        "name": store.names.codes([copy_name(_operation(operations, r.kind, r.operation)) for r in records]),
        "moved_bytes": _small([r.bytes if r.bytes >= 0 else NO_ID for r in records]),
        "config": np.broadcast_to(config_codes({}, store.configs), n),
    }  # fmt: skip
    store.put(RowKind.MEMCPY, rows)


def _operation(operations: list[_Operations], kind: int, operation: int) -> str:
    if 0 <= kind < len(operations) and 0 <= operation < len(operations[kind].operations):
        return operations[kind].operations[operation]
    return f"operation {kind}/{operation}"


def _add_calls(records: list[_HostRecord], operations: list[_Operations], pid: int, store: Store) -> None:
    if not records:
        return
    rows = _times([r.start_timestamp for r in records], [r.end_timestamp for r in records]) | {
        "pid": np.full(len(records), pid, np.int32),
        "tid": store.tids.codes([str(r.thread_id) for r in records]),
        "corr": _ids(records),
        "name": store.apis.codes([_operation(operations, r.kind, r.operation) for r in records]),
    }
    store.put(RowKind.CALL, rows)


def _add_ranges(records: list[_HostRecord], strings: _Strings, pid: int, store: Store) -> None:
    """Put marked ranges into the store; marks and calls that end a range are counted."""
    said = {m.key: m.value for m in strings.marker_api}
    names = [_operation(strings.buffer_records, r.kind, r.operation) for r in records]
    kept = [(r, n) for r, n in zip(records, names, strict=True) if n in _RANGES]
    if len(kept) < len(records):
        store.skipped["marker that is no range"] += len(records) - len(kept)
    if not kept:
        return
    rows = _times([r.start_timestamp for r, _ in kept], [r.end_timestamp for r, _ in kept]) | {
        "pid": np.full(len(kept), pid, np.int32),
        "tid": store.tids.codes([str(r.thread_id) for r, _ in kept]),
        "name": store.names.codes([said.get(r.correlation_id.internal) or n for r, n in kept]),
    }
    store.put(RowKind.RANGE, rows)
