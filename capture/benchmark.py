"""``@benchmark(axes=..., reference=...)``: a function's axes, inputs and alternatives written where the function is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from traceanalyzer.errors import OptionError

if TYPE_CHECKING:
    from traceanalyzer.capture.bench import BenchTable

F = TypeVar("F", bound=Callable[..., Any])


def benchmark(
    *, axes: Mapping[str, Sequence[int | float | str]] | None = None, inputs: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None, implementations: Mapping[str, Callable[..., Any]] | None = None,
    tolerance: tuple[float, float] | None = None, bytes_moved: Callable[..., int] | None = None, flops: Callable[..., int] | None = None,
) -> Callable[[F], F]:  # fmt: skip
    """Return a decorator that says how a module's function is to be benchmarked; the function itself is not changed.

    What is given takes the names that ``traceanalyze bench FILE.py:FUNCTION`` looks for next to the function (docs/bench.md), so
    that the command and ``FUNCTION.bench()`` do the same. Raises OptionError for a function that is not a module's own.
    """

    def decorate(fn: F) -> F:
        if "<locals>" in fn.__qualname__ or "." in fn.__qualname__:
            raise OptionError(
                "not_a_function",
                f"'{fn.__qualname__}' is not a function of a module",
                hint="define it at the module's level",
            )
        given = {
            "axes": dict(axes) if axes is not None else None, "inputs": inputs, "reference": reference,
            "implementations": dict(implementations) if implementations is not None else None, "tolerance": tolerance,
            "bytes_moved": bytes_moved, "flops": flops,
        }  # fmt: skip
        fn.__globals__.update({f"{fn.__name__}_{k}": v for k, v in given.items() if v is not None})
        fn.bench = lambda **options: _run(fn, options)  # type: ignore[attr-defined]
        return fn

    return decorate


def _run(fn: Callable[..., Any], options: dict[str, Any]) -> BenchTable:
    from traceanalyzer.capture.bench import BenchAsked, bench

    file = inspect.getsourcefile(fn)
    if file is None:
        raise OptionError("no_such_file", f"'{fn.__name__}' has no source file", hint="write it into a file")
    return bench(BenchAsked(f"{file}:{fn.__name__}", **options))
