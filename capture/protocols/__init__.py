"""Timing protocols, one class and file each."""

from __future__ import annotations

from difflib import get_close_matches

from traceanalyzer.capture.protocols.backlog import Backlog
from traceanalyzer.capture.protocols.base import Abstain, Protocol
from traceanalyzer.capture.protocols.do_bench import DoBench
from traceanalyzer.capture.protocols.event_loop import EventLoop
from traceanalyzer.capture.protocols.event_pair import EventPair
from traceanalyzer.capture.protocols.event_pair_sync import EventPairSync
from traceanalyzer.capture.protocols.graph_unrolled import GraphUnrolled
from traceanalyzer.capture.protocols.profiler import Profiler
from traceanalyzer.capture.protocols.wall_nosync import WallNoSync
from traceanalyzer.capture.protocols.wall_sync_each import WallSyncEach
from traceanalyzer.capture.protocols.wall_sync_once import WallSyncOnce
from traceanalyzer.errors import OptionError

__all__ = ["PROTOCOLS", "Abstain", "Protocol", "chosen_protocols"]

TIMED: tuple[type[Protocol], ...] = (
    WallNoSync, WallSyncEach, WallSyncOnce, EventPair, EventPairSync, EventLoop, DoBench, Backlog, GraphUnrolled,
)  # fmt: skip
"""Protocols that run interleaved; the profiler runs behind them."""

PROTOCOLS: tuple[str, ...] = (*(p.key for p in TIMED), Profiler.key)
"""Keys of every protocol, in the order of a report."""


def chosen_protocols(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that ``all`` or a list of keys asks for, in report order. Raises OptionError for an unknown one.

    ``profiler`` is short for its key ``profiler_self_time``.
    """
    wanted = [w.strip() for word in words for w in word.split(",") if w.strip()]
    wanted = [Profiler.key if w == "profiler" else w for w in wanted]
    for word in wanted:
        if word not in (*PROTOCOLS, "all"):
            near = get_close_matches(word, PROTOCOLS, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(PROTOCOLS)}, or all"
            raise OptionError("unknown_protocol", f"no protocol is called '{word}'", hint=hint)
    return PROTOCOLS if not wanted or "all" in wanted else tuple(p for p in PROTOCOLS if p in wanted)
