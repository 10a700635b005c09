"""Settings from the project's own files: ``[tool.traceanalyzer]`` of pyproject.toml or ``[tool:traceanalyzer]`` of setup.cfg."""

from __future__ import annotations

import configparser
import sys
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from traceanalyzer.commands.numbers import parse_threshold
from traceanalyzer.errors import OptionError

_MAX_BYTES = 1 << 20
_KNOWN = ("select", "ignore", "fail-on", "thresholds")


@dataclass(frozen=True)
class ProjectConfig:
    """Settings found; empty where the files say nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Files that could not be used, one line each."""


def load_config(folder: Path | None = None) -> ProjectConfig:
    """Return the settings of a folder; pyproject.toml wins over setup.cfg.

    In setup.cfg thresholds are written ``threshold.NAME = NUMBER``, lists with commas. Raises OptionError for an
    unknown setting, with a suggestion, and for a value of the wrong kind.
    """
    folder = folder or Path.cwd()
    notes: list[str] = []
    for name, read in (("pyproject.toml", _pyproject), ("setup.cfg", _setup)):
        path = folder / name
        if not path.is_file():
            continue
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise ValueError(f"is longer than {_MAX_BYTES:,} bytes")
            table = read(path.read_text(encoding="utf-8"))
        except OSError as error:
            notes.append(f"{name}: {error.strerror}; no settings are taken from it")
        except UnicodeDecodeError:
            notes.append(f"{name} is no UTF-8; no settings are taken from it")
        except ValueError as error:
            notes.append(f"{name} {error}; no settings are taken from it")
        else:
            if table is not None:
                return replace(_config(table, name), notes=tuple(notes))
    return ProjectConfig(notes=tuple(notes))


def _pyproject(text: str) -> dict[str, Any] | None:
    """Return our table, None where there is none. Raises ValueError with what is wrong with the file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise ValueError("is no valid TOML") from None
    tool = found.get("tool", {})
    table = tool.get("traceanalyzer") if isinstance(tool, dict) else tool
    if table is None or isinstance(table, dict):
        return table
    raise ValueError(f"has no table at {'tool.traceanalyzer' if isinstance(tool, dict) else 'tool'}")


def _setup(text: str) -> dict[str, Any] | None:
    """Return our section in the form of :func:`_pyproject`."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        raise ValueError("is no valid configuration file") from None
    if not parser.has_section("tool:traceanalyzer"):
        return None
    table: dict[str, Any] = {}
    for key, value in parser.items("tool:traceanalyzer"):
        if key.startswith("threshold."):
            table.setdefault("thresholds", {})[key.removeprefix("threshold.")] = value
        else:
            table[key] = [v.strip() for v in value.split(",") if v.strip()] if key in ("select", "ignore") else value
    return table


def _config(table: dict[str, Any], where: str) -> ProjectConfig:
    for key in table:
        if key not in _KNOWN:
            near = get_close_matches(key, _KNOWN, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(_KNOWN)}"
            raise OptionError("bad_config", f"{where}: unknown setting '{key}'", hint=hint)
    given = table.get("thresholds", {})
    if not isinstance(given, dict):
        raise OptionError("bad_config", f"{where}: thresholds is no table", hint="write NAME = NUMBER")
    thresholds = {str(name): parse_threshold(str(name), value, f"{where}: threshold") for name, value in given.items()}
    lists = {}
    for key in ("select", "ignore"):
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise OptionError(
                "bad_config", f"{where}: {key} is no list of rule codes", hint='write select = ["TA2", "TA301"]'
            )
        lists[key] = tuple(value)
    level = table.get("fail-on")
    if level is not None and level not in ("note", "warning", "error"):
        raise OptionError("bad_config", f"{where}: fail-on is {level!r}", hint="it is note, warning or error")
    return ProjectConfig(lists["select"], lists["ignore"], level, thresholds)
