"""What the process of a capture is asked to do, and how far it came: the two files between it and its command."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.capture.place import TRACE_NAME


@dataclass(frozen=True)
class Job:
    """What to do. ``axes`` are values for the input maker; ``others`` are functions that are
    measured in turns with this one, so that drift falls on all alike. ``script`` with ``arguments`` runs a program (the name of a module where ``module``, under torchrun
    with the options ``launcher`` where those are given), ``survey`` asks what can run of a kernel; else ``target`` names a function."""

    out: str
    status: str
    target: str = ""
    script: str = ""
    module: bool = False
    launcher: list[str] | None = None
    trace_name: str = TRACE_NAME
    survey: str = ""
    arguments: list[str] = field(default_factory=list)
    inputs: str = ""
    reference: str = ""
    preset: str = ""
    dtype: str = ""
    implementation: str = ""
    direction: str = "forward"
    axes: dict[str, int | float | str] = field(default_factory=dict)
    others: list[Job] = field(default_factory=list)
    seed: int = 0
    tolerance: tuple[float, float] | None = None
    protocols: list[str] = field(default_factory=list)
    warm_up: int = 10
    iterations: int = 100
    budget_s: float = 30.0
    device: str = "auto"
    framework: str = "auto"
    with_host: bool = False
    after_s: float = 0.0
    most_s: float = 30.0
    most_steps: int = 0
    progress: bool = False


@dataclass(frozen=True)
class Status:
    """How far the process came: ``stage`` in words; ``done`` when it came to its end; else the error, once there is one."""

    stage: str
    done: bool = False
    kind: str = ""
    message: str = ""
    hint: str = ""
    exit_code: int = 0
