"""How a trace file ends: what somebody who adds events behind the last one has to know."""

from __future__ import annotations

from typing import Literal

from traceanalyzer.record import record


@record()
class Ending:
    """Where the events end, and in what state the file is left behind them.

    ``events_end`` is where the ``]`` behind the events is (expanded bytes), None where the file breaks off before
    it; then ``sound_end`` is where the part that can be read ends. ``stray_comma``: there is one comma too many
    before the ``]``. ``closers`` would close a file that breaks off among its events. ``footer`` says how the fields behind
    the events are: ``whole``, ``open`` (all that is missing are ``closers`` without the lists) or ``damaged``.
    """

    events_end: int | None = None
    sound_end: int = 0
    stray_comma: bool = False
    closers: bytes = b""
    footer: Literal["whole", "open", "damaged"] = "whole"
