"""Which profiler an SQLite database is of, by its tables."""

from __future__ import annotations

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import Store

_NAMED = 3


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

        for knows, decode in (
            (nsight.is_nsight, nsight.decode),
            (rocpd.is_rocpd, rocpd.decode),
            (rpd.is_rpd, rpd.decode),
        ):
            if knows(database):
                return _with_damage(decode(database, limits), database)
        nvprof = any(t.startswith("CUPTI_ACTIVITY_KIND_") for t in database.tables)
        raise TraceFormatError(
            "unsupported_trace_flavour",
            f"'{source.given}' is an SQLite database of {'nvprof' if nvprof else 'another program'}",
            hint="record it with Nsight Systems and export it: nsys export --type sqlite"
            if nvprof
            else "give the database of 'nsys export --type sqlite', rpd or rocprofv3",
        )


def _with_damage(store: Store, database: Database) -> Store:
    """Return the store, whose salvage says what the file lacks."""
    salvage = store.salvage
    if database.ends_at is not None:
        salvage.incomplete = True
        salvage.at(database.ends_at)
        salvage.note(FileFault.DATABASE_CUT, database.ends_at)
    missing = [name for name in database.not_stored if name.isupper()]
    if missing:
        salvage.note(FileFault.VIEWS, number=len(missing), names=tuple(name[:60] for name in missing[:_NAMED]))
    return store
