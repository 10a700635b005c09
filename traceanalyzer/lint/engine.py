"""Rules over files: read, check, mend. A file that cannot be read is a result with a fault, never an end of the run."""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traceanalyzer.lint.files import Unreadable, read_source, write_source
from traceanalyzer.lint.fix import applied
from traceanalyzer.lint.model import Edit, FileResult, Level, Problem
from traceanalyzer.lint.rule import LintRule
from traceanalyzer.lint.source import Script, read_script

MOST_TRIED = 200
"""Problems whose edits are tried one by one, where all of them together make no Python."""


@dataclass(frozen=True)
class Mended:
    """What --fix makes of a file. ``result``: the problems that are left; ``used``: how many were taken out; ``diff``: unified."""

    result: FileResult
    used: int = 0
    diff: str = ""


_TIMES = re.compile(
    r"^[^#\n]*\b(?:import|from)\b[^\n]*(?:\btime(?:it)?\b|\\\s*$)|elapsed_time|do_bench|\bEvent\b|__import__|import_module",
    re.M,
)
"""What every script that measures time has in its text: a clock's module, an event or a do_bench; without it no rule has anything to say."""


def lint_text(path: str, text: str, rules: Iterable[LintRule]) -> FileResult:
    """Return the problems of a script's text, in order of place."""
    if _TIMES.search(text) is None:
        return FileResult(path, fault=_parse_fault(text))
    try:
        script = read_script(path, text)
    except RecursionError:
        return FileResult(path, fault="nested too deeply to be read")
    except Exception as error:  # libcst's errors have no common base that is public
        line = getattr(error, "raw_line", None)
        return FileResult(path, fault=f"not Python 3 that can be parsed{f' (line {line})' if line else ''}")
    problems = [p for rule in rules for p in rule.check(script)]
    kept = [p for p in problems if not _ignored(script, p.line, p.rule)]
    kept.sort(key=lambda p: (p.line, p.column, p.rule))
    return FileResult(path, kept, "", len(script.regions), len(problems) - len(kept))


def _parse_fault(text: str) -> str:
    """Return why a text is no Python 3, empty where it is: by the parser of this Python, which takes a twentieth of the time of libcst's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"not Python 3 that can be parsed{f' (line {error.lineno})' if error.lineno else ''}"
    except (RecursionError, MemoryError):
        return "nested too deeply to be read"
    except ValueError:  # a null byte
        return "not Python 3 that can be parsed"
    return ""


def lint_file(path: Path, rules: Sequence[LintRule], fix: bool = False, write: bool = True) -> Mended:
    """Return what is left in a file; with ``fix`` what can be mended is, in the file itself if ``write``."""
    name = str(path)
    try:
        source = read_source(path)
    except Unreadable as error:
        return Mended(FileResult(name, fault=str(error)))
    except OSError as error:
        return Mended(FileResult(name, fault=error.strerror or "cannot be opened"))
    found = lint_text(name, source.text, rules)
    if source.cells:
        problems = [
            replace(p, cell=cell, line=line, edits=()) for p in found.problems for cell, line in (source.place(p.line),)
        ]
        return Mended(replace(found, problems=problems))
    if not fix or not any(p.edits for p in found.problems):
        return Mended(found)
    mended, used = fixed_text(source.text, found)
    left = lint_text(name, mended, rules)
    if not used or _worse(found, left):
        return Mended(found)
    diff = "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(
            source.text.splitlines(keepends=True), mended.splitlines(keepends=True), name, f"{name} (mended)"
        )
    )
    if write:
        try:
            write_source(path, mended, source.encoding)
        except OSError as error:
            return Mended(replace(found, fault=f"cannot be written: {error.strerror}"))
    return Mended(left, used, diff)


def fixed_text(text: str, found: FileResult) -> tuple[str, int]:
    """Return the text with the problems mended that can be, and their number; edits that make no Python are left out."""
    fixable = [p for p in found.problems if p.edits]
    mended = _with(text, fixable, found.path)
    if mended is not None:
        return mended, len(fixable) if mended != text else 0
    kept: list[Problem] = []
    best = text
    for problem in fixable[:MOST_TRIED]:
        mended = _with(text, [*kept, problem], found.path)
        if mended is not None:
            kept.append(problem)
            best = mended
    return best, len(kept) if best != text else 0


def _with(text: str, problems: Sequence[Problem], path: str) -> str | None:
    """Return the text with the edits of these problems; None where the result is no Python."""
    edits: dict[Edit, None] = {}
    for problem in problems:
        edits |= dict.fromkeys(problem.edits)
    mended = applied(text, list(edits))
    try:
        read_script(path, mended)
        compile(mended, path, "exec", dont_inherit=True)
    except Exception:  # libcst's errors have no common base that is public
        return None
    return mended


def _worse(before: FileResult, after: FileResult) -> bool:
    """Whether a rule warns more often about the mended text: then the fix is none. A note may be seen for the first time."""
    first, second = (Counter(p.rule for p in r.problems if p.level is Level.WARNING) for r in (before, after))
    return bool(after.fault) or any(n > first[rule] for rule, n in second.items())


def _ignored(script: Script, line: int, rule: str) -> bool:
    return script.ignores(line, rule)
