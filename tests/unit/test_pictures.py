"""The pictures of the pages: one per sample, small enough for a repository, and the README shows one on its first screen."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"


def test_every_sample_has_a_picture_and_none_is_large():
    pictures = {p.stem: p.stat().st_size for p in IMAGES.glob("*.png")}
    assert pictures.keys() == {p.stem for p in (ROOT / "samples").glob("*.json")}
    assert max(pictures.values()) < 150_000


def test_the_readme_shows_one_before_its_first_section():
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert first.count("](docs/images/") >= 1
