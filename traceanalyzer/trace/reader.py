"""From a path to a :class:`~traceanalyzer.trace.tables.Trace`."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.assemble import assemble
from traceanalyzer.trace.kineto.decode import decode
from traceanalyzer.trace.sidecar_place import may_have_sidecar
from traceanalyzer.trace.source import SQLITE_MAGIC, XSPACE_BYTE, Progress, Source
from traceanalyzer.trace.store import Store
from traceanalyzer.trace.tables import Trace

_HEAD_BYTES = 4096


def read(
    path: str | Path, limits: ReadLimits | None = None, progress: Progress | None = None, file: IO[bytes] | None = None
) -> Trace:
    """Return the tables of a trace: ``.json``, ``.json.gz`` or ``-`` for standard input.

    ``progress`` is called with the bytes read so far and the file's size. Raises
    :class:`~traceanalyzer.errors.TraceFormatError` when nothing can be made of the input; smaller damage is
    repaired or left out and counted in ``trace.meta.salvage``. A sidecar that lies beside the trace comes with it. ``file``:
    the path, opened before by somebody who looked at its beginning; a pipe cannot be opened twice.
    """
    limits = limits or ReadLimits()
    trace = assemble(_decoded(path, limits, progress, file))
    if not may_have_sidecar(path):
        return trace
    from traceanalyzer.trace.sidecar import of_another_trace, read_sidecar

    sidecar, fault = read_sidecar(path)
    if sidecar is not None and (
        why := of_another_trace(sidecar, trace.names, [d.name for d in trace.devices], bool(len(trace.activities)))
    ):
        sidecar, fault = None, why
    return replace(trace, meta=replace(trace.meta, sidecar=sidecar, sidecar_fault=fault))


def _decoded(path: str | Path, limits: ReadLimits, progress: Progress | None, file: IO[bytes] | None) -> Store:
    """Return the rows of a file, by the decoder that its first bytes ask for."""
    source = Source(path, limits, progress, file)
    if source.head().startswith(SQLITE_MAGIC):
        from traceanalyzer.trace.databases import decode_database

        return decode_database(source, limits)
    pieces = source.pieces()
    first = next(pieces, b"")
    pieces = chain((first,), pieces)
    if first[:1] == XSPACE_BYTE:
        from traceanalyzer.trace.jax import xplane

        if xplane.is_xplane(first[:_HEAD_BYTES]):
            return xplane.decode(source, pieces, limits)
    elif b"rocprofiler-sdk-tool" in first[:_HEAD_BYTES]:
        from traceanalyzer.trace.rocm import rocprofv3

        if rocprofv3.is_rocprofv3(first[:_HEAD_BYTES]):
            return rocprofv3.decode(source, pieces, limits)
    return decode(source, pieces, limits)
