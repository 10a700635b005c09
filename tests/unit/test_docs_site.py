"""The documentation builds as a site: every page is in its menu, every link and anchor leads somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="mkdocs-material is not installed (the extra docs)")

ROOT = Path(__file__).resolve().parents[2]


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_site_builds_with_no_dead_link_and_no_page_left_out(tmp_path):
    done = build(ROOT / "docs" / "site" / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "rules" / "TA201" / "index.html").is_file()


def test_a_dead_link_a_dead_anchor_and_a_page_left_out_each_fail(tmp_path):
    """The check can fail: the same settings over pages with one fault each."""
    settings = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
    docs = tmp_path / "docs"
    (docs / "site").mkdir(parents=True)
    (docs / "site" / "mkdocs.yml").write_text(settings + "\nnav:\n  - README.md\n", encoding="utf-8")
    (docs / "README.md").write_text("# A\n\n[x](gone.md) [y](#gone)\n", encoding="utf-8")
    (docs / "other.md").write_text("# B\n", encoding="utf-8")
    done = build(docs / "site" / "mkdocs.yml", tmp_path / "site")
    told = done.stdout + done.stderr
    assert done.returncode == 1
    assert "gone.md" in told and "#gone" in told and "other.md" in told
