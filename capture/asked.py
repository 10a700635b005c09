"""What a command line asks to capture, and the function with its arguments that it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traceanalyzer.capture.correctness import Tolerances


@dataclass(frozen=True)
class Asked:
    """What the command line said of the target; empty texts were not given."""

    target: str
    inputs: str = ""
    reference: str = ""
    preset: str = ""
    dtype: str = ""
    implementation: str = ""
    seed: int = 0
    tolerance: tuple[float, float] | None = None
    direction: str = "forward"
    axes: Mapping[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A function with its arguments and what to hold its result to."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reference: Callable[..., Any] | None
    tolerance: Tolerances | None
    bytes_moved: int | None
    flops: int | None
    inputs: dict[str, str] | None = None
