"""Which profiler an SQLite database is of, by its tables."""

from __future__ import annotations

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import Store


def decode_database(source: Source, limits: ReadLimits) -> Store:
    """Return the rows of a database of Nsight Systems, rpd or rocprofv3.

    Raises :class:`~traceanalyzer.errors.TraceFormatError` for other databases, damaged ones, and where the input is no file.
    """
    path = source.path
    source.close()
    if path is None or not path.is_file():
        raise TraceFormatError(
            "needs_a_file", "an SQLite database comes through a pipe", hint="save it to a file first"
        )
    if source.size is not None and source.size > limits.max_bytes:
        raise TraceFormatError(
            "too_large",
            f"'{source.given}' holds more than {limits.max_bytes} bytes",
            hint="raise the limit with --max-bytes",
        )
    with Database(path) as database:
        from traceanalyzer.trace.nsight import decode as nsight
        from traceanalyzer.trace.rocm import rocpd, rpd

        if nsight.is_nsight(database):
            return nsight.decode(database, limits)
        if rocpd.is_rocpd(database):
            return rocpd.decode(database, limits)
        if rpd.is_rpd(database):
            return rpd.decode(database, limits)
        nvprof = any(t.startswith("CUPTI_ACTIVITY_KIND_") for t in database.tables)
        raise TraceFormatError(
            "unsupported_trace_flavour",
            f"'{source.given}' is an SQLite database of {'nvprof' if nvprof else 'another program'}",
            hint="record it with Nsight Systems and export it: nsys export --type sqlite"
            if nvprof
            else "give the database of 'nsys export --type sqlite', rpd or rocprofv3",
        )
