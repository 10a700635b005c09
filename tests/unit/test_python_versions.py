"""Python 3.10 is supported: what came later is imported in one place each."""

from __future__ import annotations

import ast
import configparser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [p for top in ("traceanalyzer", "capture", "kernels") for p in sorted((ROOT / top).rglob("*.py"))]
LATER = {
    ("enum", "StrEnum"): "traceanalyzer/strenum.py",
    ("datetime", "UTC"): "",
    ("typing", "Self"): "",
    ("typing", "assert_never"): "",
    ("typing", "override"): "",
}


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(ROOT)) for p in MODULES])
def test_nothing_that_came_after_3_10_is_used(path):
    place = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert LATER.get((node.module or "", alias.name), place) == place, f"{place}: {alias.name}"
        if isinstance(node, ast.Import) and place != "traceanalyzer/commands/config.py":
            assert "tomllib" not in {a.name for a in node.names}


def test_the_package_says_so():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    assert config["options"]["python_requires"] == ">=3.10" and "Python :: 3.10" in config["metadata"]["classifiers"]
