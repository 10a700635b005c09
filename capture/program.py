"""The words behind ``capture --``: a script, ``-m module``, ``python ...`` or ``torchrun ...``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traceanalyzer.errors import OptionError

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?(\.exe)?")
_LAUNCHERS = {"torchrun", "torchrun.exe"}
_LAUNCHER_MODULES = {"torch.distributed.run", "torch.distributed.launch"}


@dataclass(frozen=True)
class Program:
    """What runs under the profiler.

    ``script``: a path, or the name of a module where ``module`` is True. ``launcher``: the options of torchrun, which starts
    one process a rank; None where the program runs as one process.
    """

    script: str
    module: bool = False
    arguments: list[str] = field(default_factory=list)
    launcher: list[str] | None = None

    @property
    def name(self) -> str:
        """The name that folders and messages use."""
        return self.script.rpartition(".")[2] if self.module else Path(self.script).stem


def program_of(words: Sequence[str]) -> Program | None:
    """Return the program that a command line names, None where it names no program (a FILE.py:FUNCTION, a kernel).

    Raises OptionError for a command line that only a shell could run.
    """
    first, rest = words[0], list(words[1:])
    if _PYTHON.fullmatch(Path(first).name):
        if not rest or (rest[0].startswith("-") and rest[0] != "-m"):
            raise OptionError(
                "bad_target",
                f"'{first}' is followed by {rest[0] if rest else 'nothing'!r}, expected a script or -m MODULE",
                hint="set options of the interpreter in the environment (PYTHONUNBUFFERED=1 for -u), and leave 'python' out",
            )
        return program_of(rest)
    if Path(first).name in _LAUNCHERS:
        return _launched(rest)
    if first == "-m":
        if not rest:
            raise OptionError("bad_target", "-m names no module", hint="write: capture -- -m pkg.train ARGS")
        if rest[0] in _LAUNCHER_MODULES:
            return _launched(rest[1:])
        return Program(rest[0], True, rest[1:])
    if first.endswith(".py"):
        return Program(first, False, rest)
    if rest:
        raise OptionError(
            "bad_target",
            f"'{first}' takes no arguments here",
            hint="a program goes after --: capture -- SCRIPT.py ARGS, or -m MODULE, or torchrun ...",
        )
    return None


def _launched(words: Sequence[str]) -> Program:
    """Return the program that torchrun's words start: its own options end at the script or at ``-m``."""
    for at, word in enumerate(words):
        if word in ("-m", "--module") or (word.endswith(".py") and not word.startswith("-")):
            inner = program_of(["-m", *words[at + 1 :]] if word.startswith("-") else list(words[at:]))
            assert inner is not None
            return Program(inner.script, inner.module, inner.arguments, list(words[:at]))
    raise OptionError(
        "bad_target", "torchrun is followed by no script", hint="write: capture -- torchrun ... SCRIPT.py"
    )
