"""What had to be repaired, left out or skipped while reading: counts by reason, with the first position."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from traceanalyzer.record import record
from traceanalyzer.trace.file_faults import FileFault, FileNote
from traceanalyzer.trace.row_faults import Damage


@record()
class Salvage:
    """The damage report of one file.

    Attributes:
        repaired: events kept after repair, by what was wrong.
        excluded: rows left out of every number, by reason. Counts of rows, not of bytes.
        notes: faults of the file as a whole, in order of discovery.
        incomplete: the file ends before its trace does; numbers cover the part that is there.
        device_rows_left_out: kernels, copies and fills that are in the file and in no number; they are in ``excluded`` too.
        first_offset: byte offset (after decompression) of the first damage, or None.
    """

    repaired: Counter[Damage] = field(default_factory=Counter)
    excluded: Counter[Damage] = field(default_factory=Counter)
    notes: list[FileNote] = field(default_factory=list)
    incomplete: bool = False
    device_rows_left_out: int = 0
    first_offset: int | None = None

    def at(self, offset: int) -> None:
        """Remember the earliest damaged byte."""
        if self.first_offset is None or offset < self.first_offset:
            self.first_offset = offset

    def note(self, fault: FileFault, byte: int = 0, number: int = 0, names: tuple[str, ...] = ()) -> None:
        """Add a fault of the file once."""
        found = FileNote(fault, byte, number, names)
        if found not in self.notes:
            self.notes.append(found)

    @property
    def touched(self) -> bool:
        """True when anything was repaired, dropped or missing."""
        return bool(self.repaired or self.excluded or self.notes or self.incomplete)
