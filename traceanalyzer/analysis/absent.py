"""Why a reading is not there: codes, for rows of kernels and for protocols of an operation."""

from __future__ import annotations

from traceanalyzer.strenum import StrEnum


class Absent(StrEnum):
    """The reason for a reading that is null."""

    SEVERAL_CONFIGURATIONS = "several-configurations"
    """The name was launched in several configurations; each has a reading of its own."""
    IN_GRAPH = "in-graph"
    """Nodes of a graph launch: an event pair is around the launch, not around a node."""
    NO_LAUNCH = "no-launch"
    """No row has a launch with a launch of its thread and a row of its stream before it."""
    OVERLAPS = "overlaps-predecessor"
    """Most rows overlap the row before them on their stream (dependent launch): a pair around one reads neither."""
    BEFORE_LAUNCH = "starts-before-launch"
    """Most rows start before their launch call by the file's clocks."""
    CLOCKS = "clocks-disagree"
    """Host and device clocks disagree."""
    NO_SYMBOLS = "no-symbols"
    """The model has no inputs: too few calls, or calls that differ (``no_ladder`` says which)."""
    ABOVE_PERIOD = "above-the-runs-period"
    """The closed form exceeds what the run itself shows: its inputs are not those of this run."""
    BELOW_EXCLUSIVE = "below-exclusive-time"
    """The closed form is below what the kernels add to the device's busy time."""
