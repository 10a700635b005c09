"""Our own events in a trace: how an annotated copy tells what was in the original and had to be mended.

``traceanalyze annotate`` closes a trace that breaks off, so that a viewer opens the copy. What was wrong with the
original is then no longer in the bytes; a record among our events has it instead, and reading the copy gives the
report of the original.
"""

from __future__ import annotations

import msgspec
from msgspec import DecodeError, Struct

from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.row_faults import Damage, RowFault
from traceanalyzer.trace.salvage import Salvage

RECORD_NAME = "traceanalyzer_annotations"
"""Name of the first of our events in an annotated trace: its arguments are a :class:`Record`."""

RECORD_VERSION = 1


class Record(Struct, omit_defaults=True):
    """What annotate mended in the copy; the defaults are those of a sound file.

    ``incomplete``: the trace broke off. ``event_cut``: within an event, which is left out of the copy. ``footer_cut``,
    ``fields_damaged``: within the fields behind the events, which are left out where they cannot be read.
    ``stray_comma``: one stood behind the last event. ``gzip_byte``: where the compression broke; ``trailer_missing``: only behind a whole trace. ``damaged_byte``: first
    damage of the original, expanded.
    """

    version: int = RECORD_VERSION
    incomplete: bool = False
    event_cut: bool = False
    footer_cut: bool = False
    fields_damaged: bool = False
    stray_comma: bool = False
    gzip_byte: int | None = None
    trailer_missing: bool = False
    damaged_byte: int | None = None


def restore(text: bytes, salvage: Salvage) -> None:
    """Add what a record says to the salvage; a record that cannot be read says nothing.

    A record can only add damage of these few kinds, never take any away or bring words of its own.
    """
    try:
        record = msgspec.json.decode(text, type=Record) if text else None
    except (DecodeError, RecursionError):
        return
    if record is None or record.version != RECORD_VERSION:
        return
    salvage.incomplete |= record.incomplete
    if record.event_cut:
        salvage.excluded[Damage(RowFault.CUT)] += 1
    if record.stray_comma:
        salvage.repaired[Damage(RowFault.STRAY_COMMA)] += 1
    for recorded, fault in (
        (record.footer_cut, FileFault.FOOTER_CUT),
        (record.fields_damaged, FileFault.FIELDS_DAMAGED),
        (record.trailer_missing, FileFault.GZIP_TRAILER),
    ):
        if recorded:
            salvage.note(fault)
    if record.gzip_byte is not None and 0 <= record.gzip_byte < 1 << 62:
        salvage.note(FileFault.GZIP_DAMAGED, record.gzip_byte)
    if record.damaged_byte is not None and 0 <= record.damaged_byte < 1 << 62:
        salvage.at(record.damaged_byte)
