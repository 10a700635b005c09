"""The types of a capture as renderers know them; loaded where one is shown."""

from __future__ import annotations

from traceanalyzer.trace.sidecar import OperationRecord, Sidecar

__all__ = ["OperationRecord", "Sidecar"]
