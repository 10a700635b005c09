"""A real headless Chromium for pages: whatever it complains about fails the test that opened the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


def chromium() -> str | None:
    """Return the browser's program, None where there is none."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a running browser, or skip with the reason."""
    program = chromium()
    if program is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[test]'"
    )
    with sync_api.sync_playwright() as playwright:
        try:
            running = playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
        except sync_api.Error as error:
            pytest.skip(f"chromium does not start here: {str(error).splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page's text from a file; complaints of any of them fail the test at its end."""
    complaints: list[str] = []
    contexts = []

    def opened(
        text: str,
        *,
        width: int = 1200,
        height: int = 900,
        scheme: str = "light",
        scripts: bool = True,
        fragment: str = "",
    ) -> Any:
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda m: complaints.append(f"console {m.type}: {m.text}") if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda e: complaints.append(f"exception: {e}"))
        page.on("dialog", lambda d: (complaints.append(f"dialog: {d.message}"), d.dismiss()))
        page.on(
            "request",
            lambda r: complaints.append(f"fetched {r.url[:100]}") if not r.url.startswith(("file:", "data:")) else None,
        )
        page.goto(path.as_uri() + fragment)
        if scripts:
            assert page.evaluate("document.documentElement.classList.contains('js')"), "the page's script did not run"
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)
