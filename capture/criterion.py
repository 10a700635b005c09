"""When two times of one capture agree: one criterion, for the cross-check, the predictions and the GPU check."""

from __future__ import annotations

from traceanalyzer.trace.sidecar import Calibration

DEVICE_SHARE = 0.03
"""Profiler self-time and unrolled graph were seen to agree to this share where both are sound."""
PREDICTION_SHARE = 0.10
"""Target for a prediction of the timing model, as a share of the reading."""
DEFAULT_STEP_US = 0.5
"""Device stamps resolve about half a microsecond where the calibration shows no finer step."""
MOST_FLOOR_US = 5.0
"""An event pair around nothing that reads more than this was disturbed; a floor is no licence."""


def floor_us(calibration: Calibration) -> float:
    """Return the difference below which two times of this machine cannot be told apart, in microseconds.

    What an event pair reads around nothing, and a step of the clock, both as calibrated on the machine itself.
    """
    step = calibration.event_step_us
    floor = max(0.0, calibration.event_floor_us or 0.0) + (DEFAULT_STEP_US if step is None else max(0.0, step))
    return min(MOST_FLOOR_US, floor)


def agree(found_us: float, wanted_us: float, share: float, calibration: Calibration) -> bool:
    """Return whether a time lies within a share of another one, or within the floor of the machine."""
    return abs(found_us - wanted_us) <= max(share * wanted_us, floor_us(calibration))


def graph_expected_us(self_time_us: float, kernels: float, calls: int, calibration: Calibration) -> float:
    """Return what the unrolled graph should read per call: self-time, a calibrated gap behind each kernel, the launch shared out.

    The closed form of ``graph_unrolled`` (docs/methodology.md). Without a calibration the gap and the launch are 0.
    """
    gap, launch = max(0.0, calibration.node_gap_us or 0.0), max(0.0, calibration.graph_launch_us or 0.0)
    return self_time_us + kernels * gap + (launch - gap if launch else 0.0) / max(1, calls)
