"""Answers on a fleet as one HTML page, with the style of the other pages and without charts."""

from __future__ import annotations

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.fleet import blocks as cells
from traceanalyzer.render.page.assets import page_assets
from traceanalyzer.render.page.content import clean_block
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.report.fleet import FleetAnswers, QueryResult

_ROWS = 500


def page_fleet(found: FleetAnswers, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the answers as a page."""
    return _page("Fleet", cells.headline(found), cells.blocks(found), cells.cost(found))


def page_query(found: QueryResult, settings: RenderSettings) -> str:
    """Return the rows of a query as a page."""
    return _page("Query", "", [cells.query_block(found, settings.top or _ROWS)], "")


def _page(title: str, headline: str, blocks: list[Block], foot: str) -> str:
    context = {
        "assets": page_assets(), "title": title, "headline": terminal(headline, 600), "blocks": [clean_block(b) for b in blocks], "foot": terminal(foot, 600),
    }  # fmt: skip
    return render_template("fleet.html.j2", context)
