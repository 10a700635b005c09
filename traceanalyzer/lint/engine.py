"""Rules over files: read, check, mend. A file that cannot be read is a result with a fault, never an end of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from traceanalyzer.errors import OptionError
from traceanalyzer.lint.fix import applied
from traceanalyzer.lint.model import Edit, FileResult
from traceanalyzer.lint.rule import LintRule
from traceanalyzer.lint.source import Script, read_script

MOST_BYTES = 2 << 20
"""A script above this is generated, or no script."""
_SKIPPED = {".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", "site-packages"}


def python_files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files named, and the ``.py`` files below the folders named, by name. Raises OptionError for what is not there."""
    for name in paths:
        path = Path(name)
        if path.is_dir():
            found = [p for p in path.rglob("*.py") if not _SKIPPED & set(p.relative_to(path).parts) and p.is_file()]
            yield from sorted(found)
        elif path.is_file():
            yield path
        else:
            raise OptionError("no_such_file", f"there is no file or folder '{name}'", hint="check the path")


def lint_text(path: str, text: str, rules: Iterable[LintRule]) -> FileResult:
    """Return the problems of a script's text, in order of place."""
    try:
        script = read_script(path, text)
    except RecursionError:
        return FileResult(path, fault="nested too deeply to be read")
    except Exception as error:  # libcst's errors have no common base that is public
        line = getattr(error, "raw_line", None)
        return FileResult(path, fault=f"not Python that can be parsed{f' (line {line})' if line else ''}")
    problems = [p for rule in rules for p in rule.check(script)]
    kept = [p for p in problems if not _ignored(script, p.line, p.rule)]
    kept.sort(key=lambda p: (p.line, p.column, p.rule))
    return FileResult(path, kept, "", len(script.regions), len(problems) - len(kept))


def lint_file(path: Path, rules: Sequence[LintRule], fix: bool = False) -> tuple[FileResult, int]:
    """Return what is left in a file, and how many problems were mended; with ``fix`` the file is written where one was."""
    name = str(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            return FileResult(name, fault=f"longer than {MOST_BYTES} bytes"), 0
        # bytes, so that line ends stay as they are
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return FileResult(name, fault="not UTF-8"), 0
    except OSError as error:
        return FileResult(name, fault=error.strerror or "cannot be opened"), 0
    found = lint_text(name, text, rules)
    if not fix or not any(p.edits for p in found.problems):
        return found, 0
    mended, used = fixed_text(text, found)
    if not used:
        return found, 0
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(mended.encode("utf-8"))
    partial.chmod(path.stat().st_mode & 0o777)
    partial.replace(path)
    return lint_text(name, mended, rules), used


def fixed_text(text: str, found: FileResult) -> tuple[str, int]:
    """Return the text with the problems mended that can be, and their number; unchanged where the result would be no Python."""
    edits: dict[Edit, None] = {}
    used = 0
    for problem in found.problems:
        if problem.edits:
            edits |= dict.fromkeys(problem.edits)
            used += 1
    mended = applied(text, list(edits))
    try:
        read_script(found.path, mended)
    except Exception:  # as above
        return text, 0
    return mended, used


def _ignored(script: Script, line: int, rule: str) -> bool:
    return script.ignores(line, rule)
