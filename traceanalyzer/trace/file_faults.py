"""What was wrong with a file as a whole: codes with their numbers; damage_text has the sentences."""

from __future__ import annotations

from typing import NamedTuple

from traceanalyzer.strenum import StrEnum


class FileFault(StrEnum):
    """What was found that is no fault of a single row."""

    HEADER_DAMAGED = "header_damaged"
    FIELDS_DAMAGED = "fields_damaged"
    FOOTER_CUT = "footer_cut"
    TRACE_IN_TRACE = "trace_in_trace"
    LIST_IN_LIST = "list_in_list"
    TRACES_IN_EVENTS = "traces_in_events"
    EVENT_TOO_LARGE = "event_too_large"
    FIELD_TOO_LARGE = "field_too_large"
    BYTES_BEHIND = "bytes_behind_the_end"
    GZIP_DAMAGED = "gzip_damaged"
    GZIP_TRAILER = "gzip_trailer_missing"
    DATABASE_CUT = "database_cut"
    VIEWS = "views_not_read"


class FileNote(NamedTuple):
    """One fault of a file: ``byte`` is where, ``number`` how many or the limit, ``names`` the first of them, cut; 0 and empty where it has none."""

    fault: FileFault
    byte: int = 0
    number: int = 0
    names: tuple[str, ...] = ()
