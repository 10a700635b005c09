"""The trace files of a folder."""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.errors import TraceFormatError

_ENDINGS = (".json", ".json.gz", ".sqlite", ".rpd", ".xplane.pb", "_results.db")
"""Of files that a decoder reads; a name alone proves nothing, so that a file of another kind is listed as not readable."""


def trace_files(folder: str | Path) -> list[Path]:
    """Return the trace files of a folder by name: Chrome JSON, Nsight Systems, rpd, XPlane and rocprofv3; not its subfolders, hidden files or sidecars.

    Raises TraceFormatError when there is no such folder or no such file in it.
    """
    path = Path(folder)
    try:
        if not path.is_dir():
            raise TraceFormatError(
                "not_a_folder",
                f"'{folder}' is {'a file' if path.exists() else 'not there'}",
                hint="give the folder that holds one trace per rank",
            )
        found = sorted(p for p in path.iterdir() if _is_trace(p))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be opened"
        raise TraceFormatError("cannot_open", f"'{folder}': {reason}", hint="check the path") from None
    if not found:
        raise TraceFormatError(
            "no_traces",
            f"'{folder}' holds no trace (.json, .json.gz, .sqlite, .rpd, .xplane.pb, _results.db)",
            hint="give the folder that holds the traces",
        )
    return found


def is_trace_name(name: str) -> bool:
    """Return whether a file of this name may be a trace: not a hidden file, and no sidecar."""
    name = name.lower()
    return name.endswith(_ENDINGS) and not name.startswith(".") and not name.endswith(".sidecar.json")


def _is_trace(path: Path) -> bool:
    return is_trace_name(path.name) and not path.is_dir()
