"""The one-way flow, the packages and the pages made from code."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from collections import Counter
from collections.abc import Container
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "traceanalyzer"
MODULES = sorted(PACKAGE.rglob("*.py"))

# What each part may import of the others; trace knows nobody, renderers know only the finished report.
ALLOWED = {
    "trace": {"trace"},
    "analysis": {"trace", "analysis"},
    "doctor": {"trace", "analysis", "doctor"},
    "report": {"trace", "analysis", "doctor", "report", "render", "peers"},
    "render": {"report", "render", "lint"},
    "lint": {"lint"},
    "fleet": {"trace", "analysis", "doctor", "report", "peers", "fleet"},
    "schemas": set(),
    "peers": {"peers"},
    "action": {"doctor", "report", "render", "action"},
    "commands": {"action", "trace", "analysis", "doctor", "render", "lint", "fleet", "commands", "capture", "kernels"},
}
EVERYONE = {"damage_text", "errors", "options", "interrupts", "quantities", "record", "strenum", "_version"}


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(PACKAGE)) for p in MODULES])
def test_imports_point_one_way(path):
    part = path.relative_to(PACKAGE).parts[0]
    if part not in ALLOWED:
        return
    for name in imports_of(path):
        if name.startswith("traceanalyzer."):
            other = name.split(".")[1]
            allowed = ALLOWED[part] | EVERYONE | ({"api"} if part in ("action", "commands") else set())
            assert other in allowed, f"{part} imports {name}"


def test_no_modules_import_one_another_in_a_circle():
    """Imports inside of functions and for types alone count too: a reader follows those as well."""
    names = {_module(PACKAGE.parent, p): p for p in MODULES}
    for top in ("capture", "kernels"):
        names |= {f"traceanalyzer.{_module(ROOT, p)}": p for p in (ROOT / top).rglob("*.py")}
    graph = {name: _modules_named(path, names) - {name} for name, path in names.items()}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def _module(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _modules_named(path: Path, modules: Container[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # a name is a module of the package, or something in it
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in modules else node.module for name in names}
    return {name for name in found if name in modules}


def test_no_class_has_the_name_of_another():
    files = [*MODULES, *(p for top in ("capture", "kernels") for p in (ROOT / top).rglob("*.py"))]
    names = Counter(
        node.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_renderers_are_used_by_the_public_report_only():
    for path in (PACKAGE / "report").glob("*.py"):
        if not path.name.startswith("public"):
            assert not [n for n in imports_of(path) if n.startswith("traceanalyzer.render")], path.name


@pytest.mark.parametrize("path", MODULES, ids=[str(p.relative_to(PACKAGE)) for p in MODULES])
def test_files_stay_short_and_are_no_grab_bags(path):
    assert path.stem not in ("utils", "helpers", "common", "misc")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 460


def test_analyses_neither_print_nor_read_files():
    for part in ("analysis", "doctor/rules"):
        for path in (PACKAGE / part).glob("*.py"):
            calls = {
                n.func.id
                for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
            }
            assert not calls & {"print", "open", "input"}, path.name


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_report_path_imports_neither_pandas_nor_scipy_nor_torch():
    never = {"pandas", "scipy", "torch", "triton", "matplotlib", "hta", "pyarrow", "duckdb", "dask", "distributed"}
    code = (
        "import sys, traceanalyzer as ta; from traceanalyzer.render.console import render_console\n"
        "r = ta.analyze('samples/cpu_bound_loop.json'); render_console(r.data); r.to_markdown(); r.to_json()\n"
        f"print(sorted({{m.split('.')[0] for m in sys.modules}} & {never}), 'numpy.ma' in sys.modules)"
    )
    # numpy.ma is a tenth of the start, and np.unique, np.median and np.quantile load it
    assert run(code).strip() == "[] False"


def test_help_imports_no_numpy():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom traceanalyzer.cli import cli\n"
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0\nprint('numpy' in sys.modules, 'rich' in sys.modules)"
    )
    assert run(code).strip() == "False False"


def test_the_package_list_is_the_folders_on_disk():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = set(config["options"]["packages"].split())
    found = {
        "traceanalyzer." + p.parent.relative_to(PACKAGE).as_posix().replace("/", ".")
        for p in PACKAGE.rglob("__init__.py")
    }
    found = {f.removesuffix("..").removesuffix(".") for f in found}
    for top in ("capture", "kernels"):
        found |= {
            "traceanalyzer." + p.parent.relative_to(ROOT).as_posix().replace("/", ".")
            for p in (ROOT / top).rglob("__init__.py")
        }
    assert listed == found
    assert {"capture", "hta", "test", "all"} <= set(config["options.extras_require"])


def test_capture_and_kernels_install_below_the_package_only():
    code = "import traceanalyzer.capture, traceanalyzer.kernels; print(traceanalyzer.capture.__name__, next(iter(traceanalyzer.kernels.OPERATORS)))"
    assert run(code).split() == ["traceanalyzer.capture", "empty"]


@pytest.mark.parametrize("module", ["traceanalyzer.report.schema_page", "traceanalyzer.doctor.pages"])
def test_generated_pages_are_up_to_date(module):
    done = subprocess.run([sys.executable, "-m", module, "--check"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_samples_and_golden_reports_are_what_the_code_makes():
    done = subprocess.run([sys.executable, "samples/generate.py", "--check"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nobody_is_told_to_install_the_other_package_of_our_name():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *MODULES]:
        assert "pip install traceanalyzer" not in path.read_text(encoding="utf-8"), path.name


def test_a_plain_report_loads_no_comparison_and_no_sidecar_types():
    code = (
        "import sys, traceanalyzer as ta; from traceanalyzer.render.console import render_console\n"
        "render_console(ta.analyze('samples/cpu_bound_loop.json').data)\n"
        "late = ('analysis.compare', 'trace.sidecar', 'report.charts.model', 'report.opinion')\n"
        "print([m for m in late if f'traceanalyzer.{m}' in sys.modules])"
    )
    assert run(code).strip() == "[]"
