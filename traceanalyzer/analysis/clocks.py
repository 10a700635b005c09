"""Whether host and device clocks of a trace can be subtracted from one another."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.streams import Waits
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.tables import Trace


class ClockState(StrEnum):
    """How the two clocks relate."""

    AGREE = "agree"
    OFFSET = "offset"
    DISAGREE = "disagree"
    UNKNOWN = "unknown"


@record(frozen=True)
class Clocks:
    """Rows that start before their launch call: how many, by how much at most (ns), and what follows.

    AGREE: none by more than ``early_us``. OFFSET: the most is under half a dispatch interval; queue states
    are judged with the device clock moved by it. DISAGREE: more; nothing that subtracts one clock from the
    other is stated as a judgement. UNKNOWN: no linked rows to tell by.
    """

    state: ClockState
    early: int
    launches: int
    skew_ns: int


def clocks(trace: Trace, found: Waits, dispatch_p50_ns: float | None, options: AnalysisOptions) -> Clocks:
    """Return the state of the clocks from rows that open a launch call."""
    opens = found.opens_call
    launches = int(np.count_nonzero(opens))
    if not launches:
        return Clocks(ClockState.UNKNOWN, 0, 0, 0)
    early_by = found.launch_start_ns[opens] - trace.activities.start_ns[opens]
    # whole-microsecond stamps are off by up to a step at either end
    tolerance = options.threshold("early_us") * 1000 + (trace.meta.step_ns if trace.meta.step_ns >= 1000 else 0)
    early = early_by > tolerance
    skew = int(early_by.max(initial=0))
    if not early.any():
        return Clocks(ClockState.AGREE, 0, launches, max(0, skew))
    limit = options.threshold("skew_dispatch_share") * (dispatch_p50_ns or 0)
    state = ClockState.OFFSET if skew <= limit else ClockState.DISAGREE
    return Clocks(state, int(np.count_nonzero(early)), launches, skew)
