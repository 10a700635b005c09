"""Where the sidecar of a trace lies and what ties the two; apart from its schema, which most reports need not load."""

from __future__ import annotations

from pathlib import Path

CAPTURE_PREFIX = "traceanalyzer.call:"
"""Ranges that capture writes around each call, followed by the operation's name."""


def sidecar_path(trace: Path) -> Path:
    """Return where the sidecar of a trace lies."""
    name = trace.name
    for ending in (".gz", ".json"):
        name = name.removesuffix(ending)
    return trace.with_name(f"{name}.sidecar.json")


def may_have_sidecar(trace: str | Path) -> bool:
    """Return whether something lies where the sidecar of a trace would."""
    try:
        return str(trace) != "-" and sidecar_path(Path(trace)).exists()
    except ValueError:
        return False
    except OSError:
        return True  # whoever reads it says what is wrong
