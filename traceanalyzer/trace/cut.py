"""Where a recording begins and ends within a run: correlation ids that grow with time tell which rows lie outside of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from traceanalyzer.trace.tables import NO_ID, NO_ROW

Columns = Mapping[str, npt.NDArray[np.generic]]


def id_windows(device: Columns, calls: Columns, processes: list[str]) -> dict[str, tuple[int, int]]:
    """Return the correlation id of each process's first call and of its last device row."""
    windows: dict[str, tuple[int, int]] = {}
    for process in np.flatnonzero(np.bincount(device["pid"])).tolist():
        ids = calls["corr"][(calls["pid"] == process) & (calls["corr"] != NO_ID)]
        rows = device["corr"][(device["pid"] == process) & (device["corr"] != NO_ID)]
        if len(ids) and len(rows):
            windows[processes[process]] = int(ids.min()), int(rows.max())
    return windows


def rows_outside(
    device: Columns, linked: npt.NDArray[np.int64], windows: dict[str, tuple[int, int]], processes: list[str]
) -> int:
    """Return how many device rows were launched before the first call of their process that was recorded."""
    unlinked = (linked == NO_ROW) & (device["corr"] != NO_ID)
    if not windows or not unlinked.any():
        return 0
    first = np.array([windows.get(p, (0, 0))[0] for p in processes], dtype=np.int64)
    return int(np.count_nonzero(unlinked & (device["corr"] < first[device["pid"]])))
