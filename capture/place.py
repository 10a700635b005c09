"""Names of the files a capture writes into its folder."""

from __future__ import annotations

TRACE_NAME = "trace.json.gz"
"""The trace; its sidecar lies beside it (:func:`traceanalyzer.trace.sidecar.sidecar_path`)."""
