"""The files a capture writes into its folder, and how to tell them from those of an earlier one."""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.trace.sidecar import sidecar_path

TRACE_NAME = "trace.json.gz"
"""The trace; its sidecar lies beside it (:func:`traceanalyzer.trace.sidecar.sidecar_path`)."""

Stamp = tuple[int, int, int]


def stamps(folder: Path) -> dict[Path, Stamp]:
    """Return identity, size and time of trace and sidecar, of those that are there."""
    found = {}
    for path in (folder / TRACE_NAME, sidecar_path(folder / TRACE_NAME)):
        try:
            state = path.stat()
        except OSError:
            continue
        found[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def made_since(before: dict[Path, Stamp], folder: Path) -> set[Path]:
    """Return the files that are new since ``before``: what an earlier capture left says nothing of this one."""
    return {path for path, stamp in stamps(folder).items() if before.get(path) != stamp}
