"""The inputs of action.yml, as its report step passes them on in the environment."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

from traceanalyzer.doctor.gate import LEVELS
from traceanalyzer.errors import OptionError
from traceanalyzer.options import Claim, parse_claim
from traceanalyzer.render.shell import shell_word


@dataclass(frozen=True)
class ActionInputs:
    """What the workflow asks for; an empty text or None is an input that was left empty.

    ``fail_on_regression`` is in percent. ``traces`` are lines: paths or patterns.
    """

    traces: tuple[str, ...] = ()
    base: str = ""
    fail_on: str = ""
    fail_on_regression: float | None = None
    claims: tuple[Claim, ...] = ()
    pages: bool = False
    comment: str = ""

    @property
    def gated(self) -> bool:
        """True where the workflow asks for a gate."""
        return bool(self.fail_on) or self.fail_on_regression is not None


@dataclass(frozen=True)
class Fault:
    """An input, a trace or a pattern that is wrong: its name, and what was found and expected."""

    what: str
    message: str


def read_inputs(environ: Mapping[str, str]) -> tuple[ActionInputs, list[Fault]]:
    """Return the inputs of ``INPUT_*`` and what is wrong with them; a wrong one is left empty."""
    faults: list[Fault] = []
    base = environ.get("INPUT_BASE", "")
    fail_on = environ.get("INPUT_FAIL_ON", "")
    if fail_on and fail_on not in LEVELS:
        faults.append(
            Fault("fail-on", f"{shell_word(fail_on)} is no level; give {', '.join(LEVELS[:-1])} or {LEVELS[-1]}")
        )
        fail_on = ""
    percent = environ.get("INPUT_FAIL_ON_REGRESSION", "")
    limit = None
    if percent and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", percent):
        faults.append(Fault("fail-on-regression", f"{shell_word(percent)} is no percentage; give e.g. 5"))
    elif percent and not base:
        message = "there is nothing to compare with; give base, or leave fail-on-regression empty"
        faults.append(Fault("fail-on-regression", message))
    elif percent:
        limit = float(percent)
    if base and not os.path.exists(base):
        faults.append(Fault("base", f"{shell_word(base)} does not exist; leave base empty where there is none yet"))
    claims = []
    for line in lines(environ.get("INPUT_CLAIM", "")):
        try:
            claims.append(parse_claim(line))
        except OptionError as error:
            faults.append(Fault("claim", error.one_line()))
    inputs = ActionInputs(
        lines(environ.get("INPUT_TRACES", "")), base, fail_on, limit, tuple(claims), bool(environ.get("INPUT_HTML")),
        environ.get("INPUT_COMMENT", ""),
    )  # fmt: skip
    return inputs, faults


def lines(text: str) -> tuple[str, ...]:
    """Return the lines of an input without blanks around them; empty lines are left out."""
    # not splitlines(): a file name may hold any other separator
    return tuple(found for line in text.split("\n") if (found := line.strip(string.whitespace)))
