"""A real headless Chromium for pages: whatever it complains about fails the test that opened the page."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain
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


class Windows:
    """Windows of the browser that tests have one after the other: a new one costs as much as all that a test does in it.

    ``complaints`` is where the windows of the test that runs now complain.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._kept: dict[tuple[bool, bool], list[Any]] = {}
        self.complaints: list[str] = []

    def take(self, *, scripts: bool, policy: bool, number: int) -> Any:
        """Return the window of this number, 0 being the first of a test; one that was closed is replaced."""
        kept = self._kept.setdefault((scripts, policy), [])
        if len(kept) > number and not kept[number].is_closed():
            return kept[number]
        context = self._browser.new_context(java_script_enabled=scripts, bypass_csp=not policy, reduced_motion="reduce")
        page = context.new_page()
        page.on("console", lambda m: self._complain(f"console {m.type}: {m.text}", m.type in ("error", "warning")))
        page.on("pageerror", lambda e: self._complain(f"exception: {e}"))
        page.on("dialog", lambda d: (self._complain(f"dialog: {d.message}"), d.dismiss()))
        page.on(
            "request",
            lambda r: self._complain(f"fetched {r.url[:100]}", not r.url.startswith(("file:", "data:", "about:"))),
        )
        kept[number:] = [page]
        return page

    def _complain(self, text: str, loud: bool = True) -> None:
        if loud:
            self.complaints.append(text)

    def rest(self) -> None:
        """Leave the pages, and what they kept, behind."""
        for page in chain.from_iterable(self._kept.values()):
            if not page.is_closed():
                page.mouse.move(0, 0)
                page.goto("about:blank")
                page.context.clear_cookies()


@pytest.fixture(scope="session")
def windows(browser: Any) -> Windows:
    """Return the windows that all tests of one process share."""
    return Windows(browser)


@pytest.fixture
def open_page(windows: Windows, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page's text from a file; complaints of any of them fail the test at its end.

    ``policy=False`` lifts the page's own rule on scripts, for a script that looks at it.
    """
    windows.complaints = []
    opened_so_far: Counter[tuple[bool, bool]] = Counter()

    def opened(
        text: str,
        *,
        width: int = 1200,
        height: int = 900,
        scheme: str = "light",
        scripts: bool = True,
        policy: bool = True,
        fragment: str = "",
    ) -> Any:
        path = tmp_path / f"page{opened_so_far.total()}.html"
        path.write_text(text, encoding="utf-8")
        page = windows.take(scripts=scripts, policy=policy, number=opened_so_far[scripts, policy])
        opened_so_far[scripts, policy] += 1
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="screen", color_scheme=scheme, reduced_motion="reduce", forced_colors="none")
        page.goto(path.as_uri() + fragment)
        if scripts:
            assert page.evaluate("document.documentElement.classList.contains('js')"), "the page's script did not run"
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page

    yield opened
    windows.rest()
    assert not windows.complaints, "\n".join(windows.complaints)


@pytest.fixture(scope="session")
def violations() -> Callable[[Any], list[Any]]:
    """Return a function that has axe look at a page opened with ``policy=False``: what it finds, with the first places.

    Without names of rules it looks for everything.
    """
    found = find_spec("axe_playwright_python")
    if found is None or not found.submodule_search_locations:
        pytest.skip("axe-playwright-python is not installed: pip install -e '.[test]'")
    axe = (Path(found.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")

    def look(page: Any, *rules: str) -> list[Any]:
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.add_script_tag(content=axe)
        only = f", runOnly: {list(rules)}" if rules else ""
        told = page.evaluate(f"axe.run(document, {{resultTypes: ['violations']{only}}})")
        return [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in told["violations"]]

    return look
