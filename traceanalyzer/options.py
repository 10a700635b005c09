"""Options of a run as frozen values: limits for reading, the selection, and the thresholds of judgement.

Every threshold has a name, a default, a unit and the reason for the default, so that a report can print
what it was judged by and a user can override it by name. Here are those of the analyses; a rule's own are in
the rule's file.
"""

from __future__ import annotations

from dataclasses import field, fields
from math import isfinite

from traceanalyzer.errors import OptionError
from traceanalyzer.quantities import MOST_NS, QuantityError, duration_ns
from traceanalyzer.record import record

MIB = 1 << 20
GIB = 1 << 30


@record(frozen=True)
class ReadLimits:
    """Bounds on what a file may make us do. Sizes are bytes after decompression."""

    max_bytes: int = 8 * GIB
    """Longest input read. A gzip file that expands beyond it is refused (``--max-bytes``)."""
    max_depth: int = 500
    """Deepest nesting of an event that the decoder alone does not manage; deeper ones are dropped and counted
    (``--max-depth``)."""
    max_event_bytes: int = 64 * MIB
    """Longest single event or field; a longer one is left out and told with its place (``--max-event-bytes``)."""
    max_rows: int = 30_000_000
    """Most rows kept (device, runtime and host rows together), about 100 bytes each (``--max-rows``)."""
    chunk_bytes: int = 4 * MIB
    """How much is decoded at a time; memory grows with it, speed hardly."""
    jobs: int = 0
    """Processes that decode a large trace; 0 is one a core. What is read does not depend on it."""


@record(frozen=True)
class Selection:
    """What part of the trace to report: each field narrows it, ``None`` means everything."""

    range_name: str | None = None
    device: int | None = None
    stream: int | None = None
    kernel: str | None = None
    rank: int | None = None

    @property
    def is_everything(self) -> bool:
        """True when nothing is narrowed."""
        return self == Selection()

    def describe(self) -> dict[str, str | int]:
        """Return the narrowed fields only, for the report."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}


@record(frozen=True)
class Threshold:
    """A number a judgement hangs on: its name on the command line, its default, its unit and why it is that."""

    name: str
    default: float
    unit: str
    reason: str


STARVED_FRACTION = Threshold(
    "starved_fraction",
    0.5,
    "share of launches",
    "half of all launches met an empty stream: the typical launch waits for the host (TA201)",
)
FULL_FRACTION = Threshold(
    "full_fraction",
    0.1,
    "share of launches",
    "below this share of starved launches the queue is fed ahead of the device (TA201)",
)
IDLE_SHARE = Threshold(
    "idle_share",
    0.1,
    "share of the device's span",
    "starved launches with less idle than this cost nothing worth a finding (TA201)",
)
COPY_SHARE = Threshold(
    "copy_share",
    0.5,
    "share of busy time",
    "a device mostly busy with copies is bound by them, whatever the launches do (TA201)",
)
LOST_SHARE = Threshold("lost_share", 0.01, "share of launches or device rows", "one in a hundred (TA103)")
EARLY_US = Threshold("early_us", 1.0, "us", "host and device clocks agree to about 1 us (TA104)")
SKEW_DISPATCH_SHARE = Threshold(
    "skew_dispatch_share",
    0.5,
    "share of the dispatch interval",
    "a clock offset under half a dispatch interval cannot turn a fed queue into a starved one (TA104)",
)
LONG_PAUSE_US = Threshold(
    "long_pause_us",
    100.0,
    "us",
    "a pause this long and ten times the median gap is an event of its own, not a late launch",
)
HEAD_RATIO = Threshold(
    "head_ratio", 1.2, "first / steady", "a fifth above the later median, beyond three MAD, is no scatter (TA403)"
)
LEVEL_SHIFT = Threshold(
    "level_shift", 0.05, "relative change", "5 % between two levels decides most comparisons (TA404)"
)
MODE_GAP = Threshold("mode_gap", 0.05, "relative difference", "modes 5 % apart are two answers, not one (TA507)")
CLAIM_TOLERANCE = Threshold(
    "claim_tolerance",
    0.05,
    "relative difference",
    "stated times are rounded and runs differ: within 5 % it is the same number (TA706, TA709)",
)
COST_SHARE = Threshold(
    "cost_share",
    0.02,
    "share of the window",
    "what costs less than a fiftieth, and is worth less, is a note: it decides nothing",
)
MENTION_SHARE = Threshold(
    "mention_share", 0.01, "share of the span", "what costs less than a hundredth of the span is not spoken of"
)
MEASURED_LAUNCHES = Threshold(
    "measured_launches",
    8,
    "launches or kernels per call",
    "a call of more is a step of a program, not a kernel under test",
)
MEASURED_SHARE = Threshold(
    "measured_share",
    0.8,
    "share of launches",
    "four fifths of what the host launches: the trace is there for these calls",
)
SAME_WITHIN = Threshold("same_within", 0.01, "relative change", "under 1 % two builds of the same code differ")
FALSE_DISCOVERY = Threshold(
    "false_discovery", 0.05, "share of differences", "one false difference in twenty (Benjamini-Hochberg, TA705)"
)
CLOCK_CHANGE = Threshold("clock_change", 0.05, "relative change", "5 % of clock is up to 5 % of time (TA704)")

ANALYSIS_THRESHOLDS: dict[str, Threshold] = {
    t.name: t
    for t in (
        STARVED_FRACTION, FULL_FRACTION, IDLE_SHARE, COPY_SHARE, LOST_SHARE, EARLY_US, SKEW_DISPATCH_SHARE, LONG_PAUSE_US,
        HEAD_RATIO, LEVEL_SHIFT, MODE_GAP, CLAIM_TOLERANCE, COST_SHARE, MENTION_SHARE, MEASURED_LAUNCHES, MEASURED_SHARE, SAME_WITHIN, FALSE_DISCOVERY, CLOCK_CHANGE,
    )
}  # fmt: skip
"""Thresholds of the analyses, by name. Those of a rule are in the rule's file; all of them:
:func:`~traceanalyzer.doctor.thresholds.all_thresholds`."""


@record(frozen=True)
class Claim:
    """A time per call that somebody states; ``operation`` narrows it to operations whose name contains it."""

    ns: float
    operation: str = ""
    text: str = ""


def parse_claim(text: str) -> Claim:
    """Return the claim of ``9.8us`` or ``9.8us:OP``. Raises OptionError for anything else."""
    time, _, operation = text.partition(":")
    try:
        found = duration_ns(time)
        if not found:
            raise QuantityError("is no time per call")
    except QuantityError as error:
        raise OptionError(
            "bad_claim",
            f"--claim {text[:80]!r} {error}",
            hint="give e.g. --claim 9.8us or --claim 9.8us:my_kernel",
        ) from None
    return Claim(found, operation.strip(), text.strip())


@record(frozen=True)
class AnalysisOptions:
    """Everything :func:`traceanalyzer.analyze` can be told besides the file."""

    selection: Selection = field(default_factory=Selection)
    limits: ReadLimits = field(default_factory=ReadLimits)
    thresholds: dict[str, float] = field(default_factory=dict)
    show_paths: bool = False
    claims: tuple[Claim, ...] = ()
    select: tuple[str, ...] = ()
    """Rules to run, by code, code prefix or name; empty means all."""
    ignore: tuple[str, ...] = ()
    """Rules not to run."""
    figures: bool = False
    """Make the data of the charts too (``--format html``)."""
    clear_us: float | None = None
    """Device time of a cache clear for the do_bench reading; None takes it from the device's name."""
    samples: bool = False
    """Keep samples of self-times in the report, as a comparison needs them (``report --format json`` does)."""

    def __post_init__(self) -> None:
        if self.clear_us is not None and not 0 <= self.clear_us * 1000 <= MOST_NS:  # NaN compares false
            raise OptionError("bad_option", f"clear_us is {self.clear_us}", hint="give microseconds from 0 up")
        if any(not 0 < c.ns <= MOST_NS for c in self.claims):
            raise OptionError("bad_claim", "a claim is no time that a call can take", hint="give nanoseconds above 0")
        for name, value in self.thresholds.items():
            if not isfinite(value):
                raise OptionError(
                    "bad_threshold", f"threshold '{name}' is {value}", hint="give a finite number, e.g. 1e9 for never"
                )

    def threshold(self, which: Threshold | str) -> float:
        """Return the value in force for a threshold, or for the name of one of the analyses, in its own unit."""
        found = ANALYSIS_THRESHOLDS[which] if isinstance(which, str) else which
        return self.thresholds.get(found.name, found.default)
