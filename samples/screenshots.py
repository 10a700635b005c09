"""Make the pictures of docs/images: the page of each sample as a browser shows it first. Needs Chromium and playwright.

``make screenshots`` runs it. A picture over the limit is an error: the repository is no place for large files.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import traceanalyzer as ta
from traceanalyzer.options import AnalysisOptions

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "docs" / "images"
WIDTH, HEIGHT = 1200, 760
LIMIT = 150_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    """Write one picture per sample; return the exit status."""
    program = os.environ.get("CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)
    if program is None:
        print("error: no chromium found; install it, or name it in CHROMIUM", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce"
        )
        for trace in sorted(HERE.glob("*.json")):
            html = Path(folder) / f"{trace.stem}.html"
            html.write_text(ta.analyze(trace, options=AnalysisOptions(figures=True)).to_html(), encoding="utf-8")
            page.goto(html.as_uri())
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            picture = TARGET / f"{trace.stem}.png"
            page.screenshot(path=picture)
            size = picture.stat().st_size
            print(f"{picture.relative_to(HERE.parent)}  {size // 1000} kB")
            if size > LIMIT:
                print(f"error: {picture.name} has {size:,} bytes, over {LIMIT:,}", file=sys.stderr)
                return 1
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
