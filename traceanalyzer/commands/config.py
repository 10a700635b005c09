"""Settings from the project's own files: ``[tool.traceanalyzer]`` of pyproject.toml or ``[tool:traceanalyzer]`` of setup.cfg."""

from __future__ import annotations

import configparser
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from traceanalyzer.errors import OptionError

_KNOWN = ("select", "ignore", "fail-on", "thresholds")


@dataclass(frozen=True)
class Config:
    """Settings found; empty where the files say nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    thresholds: dict[str, float] = field(default_factory=dict)


def load_config(folder: Path | None = None) -> Config:
    """Return the settings of a folder; pyproject.toml wins over setup.cfg.

    In setup.cfg thresholds are written ``threshold.NAME = NUMBER``, lists with commas. Raises OptionError for an
    unknown setting, with a suggestion, and for a value of the wrong kind.
    """
    folder = folder or Path.cwd()
    pyproject, setup = folder / "pyproject.toml", folder / "setup.cfg"
    if pyproject.is_file():
        try:
            table = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("tool", {}).get("traceanalyzer")
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
            table = None  # not our file to complain about
        if isinstance(table, dict):
            return _config(table, "pyproject.toml")
    if setup.is_file():
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(setup, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            return Config()
        if parser.has_section("tool:traceanalyzer"):
            table = {}
            for key, value in parser.items("tool:traceanalyzer"):
                if key.startswith("threshold."):
                    table.setdefault("thresholds", {})[key.removeprefix("threshold.")] = value
                else:
                    table[key] = (
                        [v.strip() for v in value.split(",") if v.strip()] if key in ("select", "ignore") else value
                    )
            return _config(table, "setup.cfg")
    return Config()


def _config(table: dict[str, Any], where: str) -> Config:
    for key in table:
        if key not in _KNOWN:
            near = get_close_matches(key, _KNOWN, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(_KNOWN)}"
            raise OptionError("bad_config", f"{where}: unknown setting '{key}'", hint=hint)
    try:
        thresholds = {str(k): float(v) for k, v in dict(table.get("thresholds", {})).items()}
    except (TypeError, ValueError):
        raise OptionError("bad_config", f"{where}: a threshold is no number", hint="write NAME = NUMBER") from None
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
    return Config(lists["select"], lists["ignore"], level, thresholds)
