"""Options of a run as frozen values: limits for reading, the selection, and the thresholds of judgement.

Every threshold has a name, a default, a unit and the reason for the default, so that a report can print
what it was judged by and a user can override it by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields

from traceanalyzer.errors import OptionError

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on what a file may make us do. Sizes are bytes after decompression."""

    max_bytes: int = 8 * GIB
    """Longest input read. A gzip file that expands beyond it is refused (``--max-bytes``)."""
    max_depth: int = 500
    """Deepest nesting of an event that the decoder alone does not manage; deeper ones are dropped and counted
    (``--max-depth``)."""
    max_event_bytes: int = 64 * MIB
    """Longest single event; also the longest stretch without an event boundary (``--max-event-bytes``)."""
    max_rows: int = 30_000_000
    """Most rows kept (device, runtime and host rows together), about 100 bytes each (``--max-rows``)."""
    chunk_bytes: int = 4 * MIB
    """How much is decoded at a time; memory grows with it, speed hardly."""


@dataclass(frozen=True)
class Selection:
    """What part of the trace to report: each field narrows it, ``None`` means everything."""

    range_name: str | None = None
    device: int | None = None
    stream: int | None = None
    kernel: str | None = None

    @property
    def is_everything(self) -> bool:
        """True when nothing is narrowed."""
        return self == Selection()

    def describe(self) -> dict[str, str | int]:
        """Return the narrowed fields only, for the report."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}


@dataclass(frozen=True)
class Threshold:
    """A number a judgement hangs on."""

    name: str
    default: float
    unit: str
    reason: str


THRESHOLDS: dict[str, Threshold] = {
    t.name: t
    for t in (
        Threshold(
            "starved_fraction",
            0.5,
            "share of launches",
            "half of all launches met an empty stream: the typical launch waits for the host (TA201)",
        ),
        Threshold(
            "full_fraction",
            0.1,
            "share of launches",
            "below this share of starved launches the queue is fed ahead of the device (TA201)",
        ),
        Threshold(
            "idle_share",
            0.1,
            "share of the device's span",
            "starved launches with less idle than this cost nothing worth a finding (TA201)",
        ),
        Threshold(
            "copy_share",
            0.5,
            "share of busy time",
            "a device mostly busy with copies is bound by them, whatever the launches do (TA201)",
        ),
        Threshold(
            "derived_ratio",
            0.7,
            "kernel / dispatch",
            "the profiler inflates dispatch; below this ratio the unprofiled run is CPU-bound too (TA201)",
        ),
        Threshold("reading_ratio", 1.10, "event reading / self-time", "10 % is beyond timer noise (TA202)"),
        Threshold("reading_excess_us", 1.0, "us", "event stamps resolve about 0.5 us (TA202)"),
        Threshold("lost_share", 0.01, "share of launches or device rows", "one in a hundred (TA103)"),
        Threshold("early_us", 1.0, "us", "host and device clocks agree to about 1 us (TA104)"),
        Threshold(
            "skew_dispatch_share",
            0.5,
            "share of the dispatch interval",
            "a clock offset under half a dispatch interval cannot turn a fed queue into a starved one (TA104)",
        ),
        Threshold(
            "long_pause_us",
            100.0,
            "us",
            "a pause this long and ten times the median gap is an event of its own, not a late launch",
        ),
        Threshold(
            "overhead_share",
            0.01,
            "share of the launches window",
            "1 % of profiler work moves a mean by as much (TA106)",
        ),
        Threshold("overhead_us", 1000.0, "us", "one millisecond in one piece is an event of its own (TA106)"),
        Threshold(
            "borderline_low",
            0.7,
            "kernel / dispatch",
            "below, the queue is CPU-bound with or without the profiler (TA203)",
        ),
        Threshold(
            "borderline_high", 1.3, "kernel / dispatch", "above, the device leads with or without the profiler (TA203)"
        ),
        Threshold("low_duty_busy", 0.5, "share of the span", "half idle is enough for clocks to fall (TA501)"),
        Threshold("low_duty_gap_us", 20.0, "us", "pauses of tens of microseconds were seen to cost 5-15 % (TA501)"),
        Threshold("mean_median", 0.05, "relative difference", "5 % decides most comparisons (TA602)"),
        Threshold("quantum_share", 0.02, "step / median", "2 % is a difference people report (TA603)"),
        Threshold("lag_one", 0.3, "lag-1 correlation", "0.3 halves the effective number of calls (TA605)"),
        Threshold("gap_share", 0.1, "idle share of the span", "a tenth of the span is more than noise (TA205)"),
        Threshold(
            "syncs_per_iteration",
            0.8,
            "synchronises per iteration",
            "four of five iterations: it belongs to the loop (TA301)",
        ),
        Threshold(
            "copy_iterations", 0.8, "share of iterations", "four of five iterations: it belongs to the loop (TA302)"
        ),
        Threshold("load_share", 0.1, "share of the window", "a tenth of the window moves a mean by as much (TA402)"),
        Threshold("head_share", 0.15, "share of calls", "a head this long pulls on the median too (TA403)"),
        Threshold(
            "drift_change",
            0.03,
            "relative change",
            "3 % over the run is more than the interval of most medians (TA405)",
        ),
        Threshold("enough_calls", 30.0, "calls", "thirty calls give a narrow interval for usual scatter (TA406)"),
        Threshold("clear_share", 0.05, "share of self-time", "5 % of foreign time misleads (TA505)"),
        Threshold("robust_cv", 0.1, "1.4826 MAD / median", "10 % scatter takes hundreds of calls for 1 % (TA601)"),
        Threshold("overlap_share", 0.02, "excess of the sum", "2 % is where the two numbers part in print (TA604)"),
        Threshold("different_iterations", 0.1, "share of iterations", "one in ten is no exception any more (TA702)"),
        Threshold("gap_tau", 0.3, "Kendall tau", "a rank correlation that one in three pairs carries (TA502)"),
        Threshold("gap_effect", 0.03, "relative change", "3 % is more than the interval of most medians (TA502)"),
        Threshold("harness_share", 0.02, "share of self-time", "2 % of foreign work decides close comparisons (TA506)"),
        Threshold("compile_share", 0.01, "share of the window", "1 % of compilation moves a mean by as much (TA401)"),
    )
}


@dataclass(frozen=True)
class Claim:
    """A time per call that somebody states; ``operation`` narrows it to operations whose name contains it."""

    ns: float
    operation: str = ""
    text: str = ""


_CLAIM = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?\d+)?)\s*(ns|us|\u00b5s|\u03bcs|ms|s)\s*(?::(.*))?\Z", re.S)
_UNIT_NS = {"ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}


def parse_claim(text: str) -> Claim:
    """Return the claim of ``9.8us`` or ``9.8us:OP``. Raises OptionError for anything else."""
    match = _CLAIM.match(text)
    if match is None or float(match[1]) <= 0:
        raise OptionError(
            "bad_claim",
            f"--claim {text!r} is no time per call",
            hint="give e.g. --claim 9.8us or --claim 9.8us:my_kernel",
        )
    return Claim(float(match[1]) * _UNIT_NS[match[2]], (match[3] or "").strip(), text.strip())


@dataclass(frozen=True)
class AnalysisOptions:
    """Everything :func:`traceanalyzer.analyze` can be told beside the file."""

    selection: Selection = field(default_factory=Selection)
    limits: ReadLimits = field(default_factory=ReadLimits)
    thresholds: dict[str, float] = field(default_factory=dict)
    show_paths: bool = False
    claims: tuple[Claim, ...] = ()
    select: tuple[str, ...] = ()
    """Rules to run, by code, code prefix or name; empty means all."""
    ignore: tuple[str, ...] = ()
    """Rules not to run."""
    clear_us: float | None = None
    """Device time of a cache clear for the do_bench reading; None takes it from the device's name."""

    def __post_init__(self) -> None:
        for name in self.thresholds:
            if name not in THRESHOLDS:
                from difflib import get_close_matches

                near = get_close_matches(name, THRESHOLDS, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(THRESHOLDS))}"
                raise OptionError("unknown_threshold", f"no threshold is called '{name}'", hint=hint)

    def threshold(self, name: str) -> float:
        """Return the value in force for a threshold of :data:`THRESHOLDS`, in its own unit."""
        return self.thresholds.get(name, THRESHOLDS[name].default)
