"""Which parts of a run a recording lacks. What was not recorded is not there, and its absence proves nothing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from traceanalyzer.trace.launch_names import SYNCS, ApiClass
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.tables import Calls, HostOps, Overheads

_OF_CALLS = {
    RecordedPart.SYNC_CALLS: tuple(SYNCS), RecordedPart.ALLOCATIONS: (ApiClass.MEMORY,), RecordedPart.MODULE_LOADS: (ApiClass.MODULE_LOAD,),
}  # fmt: skip


def unrecorded(
    doubtful: Iterable[RecordedPart], calls: Calls, operators: HostOps, overheads: Overheads
) -> frozenset[RecordedPart]:
    """Return the parts among the doubtful ones that no row shows to have been recorded.

    Without one host call nothing that calls would show was recorded.
    """
    found = set(doubtful)
    if not len(calls):
        return frozenset(found | {RecordedPart.HOST_CALLS, *_OF_CALLS})
    for part, classes in _OF_CALLS.items():
        if part in found and np.isin(calls.api_class, classes).any():
            found.discard(part)
    if len(operators):
        found.discard(RecordedPart.OPERATORS)
    if len(overheads):
        found.discard(RecordedPart.OVERHEADS)
    return frozenset(found)
