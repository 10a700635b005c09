"""Host calls, ranges, operators and profiler overheads of an Nsight Systems database."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.joins import lengths
from traceanalyzer.trace.nsight.identity import Ids, Processes, api_name, codes_of_names
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import NO_ID

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
RANGES = "NVTX_EVENTS"
_RUNTIME_AND_DRIVER = (0, 1)
_PUSH_POP, _START_END = 59, 60
# torch.autograd.profiler.emit_nvtx: "aten::mul, seq = 45328, op_id = 990726, sizes = [[2, 3]]"
_EMITTED = re.compile(r"(.+?), (?:seq|op_id) = \d+")
_OVERHEADS = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")


def read_calls(database: Database, store: Store, processes: Processes) -> None:
    """Put calls into runtime and driver into the store.

    Rows of other event classes repeat calls that are there already (backtraces): they are counted and left out.
    """
    found: list[tuple[dict[str, npt.NDArray[np.generic]], Ids]] = []
    has_class = database.has(CALLS, "eventClass")
    for block in database.numbers(CALLS, ["start", "end", "eventClass", "globalTid", "correlationId", "nameId"]):
        keep = np.isin(block["eventClass"], _RUNTIME_AND_DRIVER) if has_class else np.ones(len(block["start"]), bool)
        if other := int(np.count_nonzero(~keep)):
            store.skipped["call of another event class"] += other
        start, end, thread, corr, names = (
            block[c][keep] for c in ("start", "end", "globalTid", "correlationId", "nameId")
        )
        columns: dict[str, npt.NDArray[np.generic]] = {
            "start_ns": start, "dur_ns": lengths(start, end), "pid": processes.of_pid(thread),
            "tid": processes.of_tid(thread), "corr": np.where(corr > 0, corr, NO_ID),
        }  # fmt: skip
        found.append((columns, Ids(names)))
    code_of = codes_of_names(database, [names for _, names in found], store.apis, api_name)
    for columns, names in found:
        store.put(RowKind.CALL, columns | {"name": names.coded(code_of)})


def read_ranges(database: Database, store: Store, processes: Processes) -> None:
    """Put NVTX ranges into the store; what PyTorch's emit_nvtx wrote are operators.

    A range that never ends has no length: it is counted and left out. Marks and other events are counted as well.
    """
    wanted = ["start", "end", "eventType", "globalTid", "textId"]
    texts = database.strings("StringIds", "id", "value", _text_ids(database))
    for block, text in database.blocks(RANGES, wanted, ["text"]):
        is_range = np.isin(block["eventType"], (_PUSH_POP, _START_END))
        keep = is_range & (block["end"] != NO_ID)
        if marks := int(np.count_nonzero(~is_range)):
            store.skipped["NVTX event that is no range"] += marks
        if opened := int(np.count_nonzero(is_range & ~keep)):
            store.skipped["NVTX range that does not end in the recording"] += opened
        rows = np.flatnonzero(keep)
        ids = block["textId"].tolist()
        names = [text["text"][i] or texts.get(ids[i], "") for i in rows.tolist()]
        emitted = [_EMITTED.match(name) if " = " in name else None for name in names]
        operator = np.array([m is not None for m in emitted], dtype=bool)
        start, end, thread = (block[c][rows] for c in ("start", "end", "globalTid"))
        columns: dict[str, npt.NDArray[np.generic]] = {
            "start_ns": start, "dur_ns": lengths(start, end), "pid": processes.of_pid(thread),
            "tid": processes.of_tid(thread),
            "name": store.names.codes([m[1] if m else n for m, n in zip(emitted, names, strict=True)]),
        }  # fmt: skip
        for kind, mask in ((RowKind.HOST_OP, operator), (RowKind.RANGE, ~operator)):
            store.put(kind, {c: v[mask] for c, v in columns.items()})


def _text_ids(database: Database) -> set[int]:
    found: set[int] = set()
    for block in database.numbers(RANGES, ["textId"]):
        found.update(distinct(block["textId"]).tolist())
    return found - {NO_ID}


def read_overheads(database: Database, store: Store, processes: Processes) -> None:
    """Put what profiler and driver say of their own work into the store: flushes, module loading, full buffers."""
    for table in _OVERHEADS:
        for block in database.numbers(table, ["start", "end", "globalTid", "nameId"]):
            names = Ids(block["nameId"])
            code_of = codes_of_names(database, [names], store.names)
            columns: dict[str, npt.NDArray[np.generic]] = {
                "start_ns": block["start"],
                "dur_ns": lengths(block["start"], block["end"]),
                "pid": processes.of_pid(block["globalTid"]),
                "tid": processes.of_tid(block["globalTid"]),
                "name": names.coded(code_of),
            }
            store.put(RowKind.OVERHEAD, columns)
