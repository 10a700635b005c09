"""The fixture ``ta_benchmark``: a test measures a function, and fails where the result is wrong, the number cannot be trusted,
or it became slower.

``--ta-save FILE`` keeps the results, ``--ta-compare FILE`` holds them to earlier ones. Nothing is imported until a test asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from traceanalyzer.capture.measure import Measured

SCHEMA = "traceanalyzer.pytest/1"
_RESULTS = pytest.StashKey[dict[str, "Measured"]]()
_EARLIER = pytest.StashKey[dict[str, Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("traceanalyzer")
    group.addoption("--ta-save", metavar="FILE", help="write the times of ta_benchmark to FILE")
    group.addoption("--ta-compare", metavar="FILE", help="fail a test that became slower than in FILE")
    group.addoption(
        "--ta-regression",
        metavar="PERCENT",
        type=float,
        default=5.0,
        help="slower by more than this is a regression [5]",
    )
    group.addoption(
        "--ta-allow-suspect", action="store_true", help="do not fail where the trace says that the number is suspect"
    )
    group.addoption("--ta-budget", metavar="S", type=float, default=5.0, help="seconds for each measurement [5]")


def pytest_configure(config: pytest.Config) -> None:
    """Read the earlier results. Raises UsageError for a file that holds none."""
    config.stash[_RESULTS] = {}
    config.stash[_EARLIER] = {}
    if name := config.getoption("--ta-compare"):
        try:
            found = json.loads(Path(name).read_text(encoding="utf-8"))
            assert found["schema"] == SCHEMA
            config.stash[_EARLIER] = dict(found["tests"])
        except (OSError, ValueError, KeyError, TypeError, AssertionError):
            raise pytest.UsageError(f"--ta-compare {name}: no results that --ta-save wrote") from None


@pytest.fixture
def ta_benchmark(request: pytest.FixtureRequest) -> Iterator[Callable[..., Measured]]:
    """Measure a function: ``ta_benchmark(fn, *args, reference=..., **kwargs)`` returns a :class:`~traceanalyzer.capture.measure.Measured`."""
    config = request.config
    made: list[Measured] = []

    def run(fn: Callable[..., Any], *args: Any, **options: Any) -> Measured:
        from traceanalyzer.capture.measure import measure

        options.setdefault("budget_s", config.getoption("--ta-budget"))
        found = measure(fn, *args, **options)
        made.append(found)
        key = request.node.nodeid if len(made) == 1 else f"{request.node.nodeid}#{len(made)}"
        config.stash[_RESULTS][key] = found
        _judge(found, config, key)
        return found

    yield run
    assert made, "ta_benchmark was asked for, and measured nothing: call ta_benchmark(fn, *args)"


def _judge(found: Measured, config: pytest.Config, key: str) -> None:
    __tracebackhide__ = True
    if found.correct is False:
        pytest.fail(f"wrong result: {found.reason}", pytrace=False)
    if found.verdict == "suspect" and not config.getoption("--ta-allow-suspect"):
        pytest.fail(f"suspect: {found.headline}", pytrace=False)
    earlier = config.stash[_EARLIER].get(key)
    if earlier is None or found.time_us is None:
        return
    limit = 1 + config.getoption("--ta-regression") / 100
    then, interval = earlier.get("time_us"), found.ci95_us
    # the whole interval beyond the limit: one that reaches back below it has shown no regression
    slower = interval[0] if interval is not None else found.time_us
    upper = (earlier.get("ci95_us") or [then, then])[1]
    if isinstance(then, (int, float)) and then > 0 and slower > limit * then and slower > upper:
        from traceanalyzer import number_text

        pytest.fail(
            f"slower: {number_text.duration(1000 * found.time_us)}, was {number_text.duration(1000 * then)} ({number_text.change(found.time_us / then - 1)}; "
            f"the limit is {number_text.percent(limit - 1)})",
            pytrace=False,
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results where they were asked for."""
    name = session.config.getoption("--ta-save")
    results = session.config.stash.get(_RESULTS, {})
    if not name or hasattr(session.config, "workerinput"):
        return
    tests = {
        key: {
            "name": m.name,
            "time_us": m.time_us,
            "ci95_us": m.ci95_us,
            "device": m.sidecar.device.name,
            "verdict": m.verdict,
        }
        for key, m in results.items()
    }
    partial = Path(f"{name}.part")
    partial.write_text(json.dumps({"schema": SCHEMA, "tests": tests}, indent=1), encoding="utf-8")
    partial.replace(name)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print a line a measurement."""
    results = config.stash.get(_RESULTS, {})
    if results:
        terminalreporter.section("traceanalyzer")
        for found in results.values():
            terminalreporter.write_line(str(found))
