"""What of an operator can be timed here: asked in a process of its own, as importing mmcv or a driver may end one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from traceanalyzer.errors import OptionError
from traceanalyzer.trace.sidecar import DeviceFacts

if TYPE_CHECKING:
    from traceanalyzer.capture.job import Job

SURVEY_NAME = "survey.json"


@dataclass(frozen=True)
class Absence:
    """Why an implementation cannot be timed for a dtype; ``kind`` is a word for programs."""

    implementation: str
    dtype: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Survey:
    """An operator and a device: which names there are, and what is absent. ``preset`` and ``dtype`` are known to it.

    ``axes``: of a function of the user's, as its file declares them; ``functions``: what else that file could be held against.
    """

    operator: str
    summary: str
    device: DeviceFacts
    preset: str
    sizes: dict[str, str]
    dtypes: list[str]
    directions: list[str]
    implementations: list[str]
    absent: list[Absence]
    axes: dict[str, list[int | float | str]] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def absence(self, implementation: str, dtype: str) -> Absence | None:
        """Return why a row is n/a, None where it can be timed."""
        return next((a for a in self.absent if (a.implementation, a.dtype) == (implementation, dtype)), None)


def write_survey(job: Job) -> None:
    """Write the survey of the operator ``job.survey`` into ``job.out``. Raises OptionError for an unknown name."""
    folder = Path(job.out)
    found = function_survey(job.survey, job.device) if ":" in job.survey else survey(job.survey, job.preset, job.device)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SURVEY_NAME).write_bytes(msgspec.json.encode(found))


def read_survey(folder: Path) -> Survey:
    """Return the survey that :func:`write_survey` left in a folder."""
    return msgspec.json.decode((folder / SURVEY_NAME).read_bytes(), type=Survey)


def survey(name: str, preset: str, device: str) -> Survey:
    """Return what can be timed of an operator; the preset is by default the first that is not ``tiny``."""
    from traceanalyzer.capture.frameworks import open_device
    from traceanalyzer.capture.kernel_target import DIRECTIONS, known_operator, place_of
    from traceanalyzer.kernels.operator import Unavailable, check_name

    try:
        operator = known_operator(name)
    except OptionError as error:
        from traceanalyzer.kernels.registry import OPERATORS

        raise OptionError(
            "unknown_operator", f"no kernel is named '{name}'", hint=f"there are: {', '.join(OPERATORS)}"
        ) from error
    chosen = preset or next((p for p in operator.presets if p != "tiny"), next(iter(operator.presets)))
    check_name("preset", chosen, operator.presets, f" of {name}")
    place = place_of(device)
    absent = []
    for implementation in operator.implementations:
        for dtype in operator.dtypes:
            made = operator.implementation(implementation, device=place, dtype=dtype)
            if isinstance(made, Unavailable):
                absent.append(Absence(implementation, dtype, made.kind, made.reason))
    return Survey(
        operator=name,
        summary=operator.summary,
        device=open_device("pytorch", device).facts(),
        preset=chosen,
        sizes={k: str(v) for k, v in operator.presets[chosen].items()},
        dtypes=list(operator.dtypes),
        directions=list(DIRECTIONS if operator.backward else DIRECTIONS[:1]),
        implementations=list(operator.implementations),
        absent=absent,
    )


def function_survey(target: str, device: str) -> Survey:
    """Return what can be timed of ``FILE.py:FUNCTION``: its implementations and axes. Raises OptionError and CaptureUnavailable."""
    from traceanalyzer.capture.frameworks import open_device
    from traceanalyzer.capture.target import axes_of, implementations_of, module_of

    where, _, function = target.rpartition(":")
    module = module_of(where)
    known = implementations_of(module, function)
    functions = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_") and n not in known]
    summary = (known[function].__doc__ or "").strip().splitlines()
    return Survey(
        operator=function, summary=summary[0][:200] if summary else "", device=open_device("pytorch", device).facts(), preset="", sizes={},
        dtypes=[], directions=[], implementations=list(known), absent=[], axes=axes_of(module, function), functions=functions,
    )  # fmt: skip
