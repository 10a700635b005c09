"""Which process and which rank each device and thread of a file belongs to; several ranks in one file are never pooled.

Merged files tell ranks apart by their process ids: a text before the id (``[TP01] 1000``), or an offset added to every
id of a rank (100005002 and 100000003 for rank 1). A file of one rank says its number in ``distributedInfo``.
"""

from __future__ import annotations

import re

import numpy as np

from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import NO_ROW, Int64, Trace

_LABEL = re.compile(r"(?:rank|tp|dp|pp|ep|worker|node|r)[\s_:#-]*0*(\d{1,6})(?!\d)", re.I)
_OFFSETS = (10**9, 10**8, 10**7, 10**6)
_MOST_DEVICES = 1024


@record(frozen=True)
class Origin:
    """Ranks of a file, ``None`` where it does not say.

    ``device_rank`` and ``thread_rank`` hold one value for each row of ``trace.devices`` and ``trace.threads``;
    ``thread_process`` numbers processes, ``device_process`` is the process that launched a device's rows (NO_ROW
    where none or several did).
    """

    device_rank: list[int | None]
    thread_rank: list[int | None]
    thread_process: Int64
    device_process: Int64

    @property
    def ranks(self) -> list[int]:
        """The ranks of the devices, sorted."""
        return sorted({r for r in self.device_rank if r is not None})

    def rank_of_process(self, process: int) -> int | None:
        """Return the rank of the threads of a process."""
        found = {r for r, p in zip(self.thread_rank, self.thread_process.tolist(), strict=True) if p == process}
        return found.pop() if len(found) == 1 else None

    def mark(self, trace: Trace, process: int) -> str:
        """Return what tells a process from the others in names: its rank, else its id."""
        rank = self.rank_of_process(process)
        if rank is not None:
            return f"rank {rank}"
        threads = zip(trace.threads, self.thread_process.tolist(), strict=True)
        return "process " + next(t.process for t, p in threads if p == process)


def origin(trace: Trace) -> Origin:
    """Return where the rows of a trace come from."""
    pids = [d.pid for d in trace.devices]
    hosts = [t.process for t in trace.threads]
    seen: dict[str, int] = {}
    process = np.array([seen.setdefault(p, len(seen)) for p in hosts], dtype=np.int64)
    device_process = _launched_by(trace, process)
    of_device, of_thread = _from_ids(pids, hosts)
    if (
        of_device is None
        and trace.meta.rank is not None
        and len(set(device_process[device_process >= 0].tolist())) <= 1
    ):
        of_device, of_thread = [trace.meta.rank] * len(pids), [trace.meta.rank] * len(hosts)
    return Origin(of_device or [None] * len(pids), of_thread or [None] * len(hosts), process, device_process)


def _launched_by(trace: Trace, process: Int64) -> Int64:
    rows = trace.activities
    result = np.full(len(trace.devices), NO_ROW, dtype=np.int64)
    linked = np.flatnonzero(rows.call != NO_ROW)
    if not len(linked):
        return result
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    pairs = device_of_lane[rows.lane[linked]] * (len(process) + 1) + process[trace.calls.thread[rows.call[linked]]]
    owners: dict[int, list[int]] = {}
    for pair in distinct(pairs).tolist():
        owners.setdefault(pair // (len(process) + 1), []).append(pair % (len(process) + 1))
    for device, found in owners.items():
        result[device] = found[0] if len(found) == 1 else NO_ROW
    return result


def _from_ids(pids: list[str], hosts: list[str]) -> tuple[list[int | None] | None, list[int | None] | None]:
    labelled = [_label(p) for p in pids]
    if any(r is not None for r in labelled):
        return labelled, [_label(p) for p in hosts]
    numbers = [_number(p) for p in pids]
    known = [n for n in numbers if n is not None]
    for offset in _OFFSETS:
        ranks = {n // offset for n in known}
        if len(ranks) > 1 and all(n % offset < _MOST_DEVICES for n in known):
            return (
                [None if n is None else n // offset for n in numbers],
                [None if (n := _number(p)) is None else n // offset for p in hosts],
            )
    return None, None


def _label(pid: str) -> int | None:
    """Return the rank a process id is marked with; None where it has no mark or several."""
    if pid.strip().isdecimal():
        return None
    found = {int(x) for x in _LABEL.findall(pid[:200])}
    return found.pop() if len(found) == 1 else None


def _number(pid: str) -> int | None:
    text = pid.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
