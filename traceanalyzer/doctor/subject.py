"""What a finding is about, typed: suppression and renderers compare fields, never texts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.tables import NO_ROW

if TYPE_CHECKING:
    from traceanalyzer.analysis.operations import OpFacts
    from traceanalyzer.analysis.pipeline import Analysis


class SubjectKind(StrEnum):
    """What kind of thing a finding is about."""

    TRACE = "trace"
    DEVICE = "device"
    OPERATION = "operation"
    KERNEL = "kernel"
    RANGE = "range"
    API = "api"


@record(frozen=True)
class Subject:
    """The thing a finding is about. An unset field means all of its kind.

    ``device`` is the device's number and ``owner`` its process where merged ranks share numbers; ``name`` is that of the operation, kernel, range or API.
    """

    kind: SubjectKind = SubjectKind.TRACE
    device: int | None = None
    owner: str = ""
    stream: int | None = None
    name: str = ""
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.kind is SubjectKind.DEVICE:
            return f"device {self.device}" + (f" ({self.owner})" if self.owner else "")
        return self.name or str(self.kind)

    @property
    def key(self) -> tuple[str, int | None, str, int | None, str]:
        """What makes it the same subject, whatever it is called in print."""
        return str(self.kind), self.device, self.owner, self.stream, self.name

    def covers(self, other: Subject) -> bool:
        """Return whether everything that ``other`` is about lies within this subject."""
        if self.kind is SubjectKind.TRACE:
            return True
        if self.kind is SubjectKind.DEVICE:
            return (other.device, other.owner) == (self.device, self.owner)
        return self.key == other.key

    def fields(self) -> dict[str, str | int | None]:
        """Return the typed fields for the report."""
        values = asdict(self)
        del values["text"]
        return values | {"kind": str(self.kind)}


WHOLE_TRACE = Subject()


def on_device(analysis: Analysis, device: int) -> Subject:
    """Return a device, by its row number in the trace's devices."""
    found = analysis.trace.devices[device]
    return Subject(SubjectKind.DEVICE, found.number, found.owner)


def on_operation(analysis: Analysis, op: OpFacts) -> Subject:
    """Return an operation on the device that its first row runs on; all of its rows lie on one."""
    rows = analysis.trace.activities
    first = next((int(part[0]) for part in op.iterations.rows if len(part)), NO_ROW)
    if first == NO_ROW:
        return Subject(SubjectKind.OPERATION, name=op.iterations.name)
    device = analysis.trace.devices[analysis.trace.lanes[rows.lane[first]].device]
    return Subject(SubjectKind.OPERATION, device.number, device.owner, name=op.iterations.name)
