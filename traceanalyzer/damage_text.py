"""What was repaired, left out or noticed in a file, in words: the one place where codes of damage become text."""

from __future__ import annotations

from traceanalyzer.trace.file_faults import FileFault, FileNote
from traceanalyzer.trace.row_faults import Damage, FaultyRow, RowFault, damage_of

_FAULTS = {
    RowFault.NO_TIME: "no usable time",
    RowFault.UNSET: "time and duration never set (both 0)",
    RowFault.FAR: "time more than a day from all others",
    RowFault.NEGATIVE_TIME: "negative time",
    RowFault.NO_DURATION: "no usable duration",
    RowFault.NEGATIVE_DURATION: "negative duration (never finished)",
    RowFault.LONG: "duration over a day",
    RowFault.PLACE: "a device or stream number that cannot be one",
    RowFault.MANY_DEVICES: "on one of more devices than are told apart",
    RowFault.OUTLASTS: "outlasts its successors on an in-order stream",
    RowFault.TWICE: "in the file twice",
    RowFault.CUT: "event cut off at the end of the file",
    RowFault.TOO_LARGE: "event_too_large: an event longer than --max-event-bytes",
    RowFault.MALFORMED: "event with malformed text",
    RowFault.NO_EVENT: "not an event (no JSON object)",
    RowFault.NO_EVENT_TEXT: "text between events that is no event",
    RowFault.STRAY_COMMA: "stray comma between events",
    RowFault.NAME_BYTES: "name with bytes that are not UTF-8",
    RowFault.INNER_TRACE: "trace inside the events that cannot be read",
    RowFault.LONELY: "begin or end event without its other half",
    RowFault.TOO_DEEP: "event nested deeper than",
}
_ROWS = {
    FaultyRow.GRAPH: "graph launch",
    FaultyRow.DEVICE: "device row",
    FaultyRow.CALL: "host call",
    FaultyRow.DEVICE_ANNOTATION: "device annotation",
    FaultyRow.FRAME: "Python frame",
    FaultyRow.OVERHEAD: "profiler overhead",
    FaultyRow.DEVICE_SYNC: "device sync record",
}
_NOTES = {
    FileFault.HEADER_DAMAGED: "the part of the file before the events is damaged; the device names may be missing",
    FileFault.FIELDS_DAMAGED: "the fields outside of the events are damaged and were not read",
    FileFault.FOOTER_CUT: "the file ends inside the fields behind the events",
    FileFault.TRACE_IN_TRACE: "traceEvents held another whole trace; it was unwrapped",
    FileFault.LIST_IN_LIST: "the events were in a list inside a list; the inner list was taken",
    FileFault.TRACES_IN_EVENTS: "events held whole traces; their events were taken",
    FileFault.EVENT_TOO_LARGE: "event_too_large: an event at byte {byte} is longer than {number} bytes and was not read (--max-event-bytes)",
    FileFault.FIELD_TOO_LARGE: "event_too_large: a field outside of the events at byte {byte} is longer than {number} bytes and was not read (--max-event-bytes)",
    FileFault.BYTES_BEHIND: "{number} bytes behind the end of the trace were not read",
    FileFault.GZIP_DAMAGED: "the gzip data is damaged or cut off at compressed byte {byte}",
    FileFault.GZIP_TRAILER: "the gzip trailer is missing; the trace in it is whole, nothing of it was lost",
    FileFault.DATABASE_CUT: "the database ends at byte {byte}, before the last of its pages",
    FileFault.VIEWS: "views and virtual tables are not read: {names}",
}


def damage_words(damage: Damage) -> str:
    """Return why rows were repaired or left out."""
    fault = _FAULTS[damage.fault]
    if damage.fault is RowFault.TOO_DEEP:
        return f"{fault} {damage.limit} (--max-depth)"
    if damage.row is None:
        return fault
    row = _ROWS.get(damage.row, str(damage.row))
    if damage.fault is RowFault.TWICE:
        return f"{row} that is in the file twice, counted once"
    limit = f" ({damage.limit})" if damage.limit else ""
    return f"{row}: {fault}{limit}" + (", its start is used" if damage.start_used else "")


def words_of_key(key: str) -> str:
    """Return the words of a damage's key; the key itself where this version does not know it."""
    damage = damage_of(key)
    return key if damage is None else damage_words(damage)


def note_sentence(note: FileNote) -> str:
    """Return the sentence for a fault of a file as a whole."""
    names = ", ".join(note.names)
    more = note.number - len(note.names)
    return _NOTES[note.fault].format(
        byte=note.byte, number=note.number, names=f"{names} and {more} more" if more > 0 else names
    )
