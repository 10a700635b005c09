"""What to capture, from the words of a command line: MODULE:FUNCTION, FILE.py:FUNCTION, or a kernel of this project.

A function that takes arguments gets them from an input maker next to it: ``FUNCTION_inputs`` or ``make_inputs`` in its
module, called with those of ``device``, ``dtype``, ``preset`` and ``seed`` that it takes. ``FUNCTION_reference`` or
``reference`` is compared with its result; ``FUNCTION_tolerance`` or ``TOLERANCE`` is (rtol, atol); ``bytes_moved`` and
``flops`` take the arguments and return numbers.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from traceanalyzer.capture.asked import Asked, Target
from traceanalyzer.capture.kernel_target import kernel_target
from traceanalyzer.capture.said import said
from traceanalyzer.errors import CaptureUnavailable, OptionError, TraceAnalyzerError
from traceanalyzer.trace.sidecar import LARGEST


def load(asked: Asked, device: str) -> Target:
    """Return the target with its inputs on ``device`` (auto, cuda, cpu, ...).

    Raises OptionError where a file, module or name is not there, and CaptureUnavailable where the module or its input
    maker fails.
    """
    where, colon, function = asked.target.rpartition(":")
    if not colon:
        return kernel_target(asked, device)
    if asked.direction != "forward":
        raise OptionError(
            "no_backward",
            "only a kernel of this project has a direction",
            hint="name a function that runs the backward",
        )
    module = module_of(where)
    fn = _named(module, function, where)
    chosen = implementation_of(module, function, asked.implementation, where) if asked.implementation else fn
    for option, name in (("--preset", asked.preset), ("--dtype", asked.dtype)):
        if name and not _maker(module, function, asked.inputs):
            raise OptionError(
                "no_inputs",
                f"{option} needs an input maker, and '{where}' has none",
                hint=f"define {function}_inputs(preset=..., dtype=...)",
            )
    args, kwargs = _arguments(module, chosen, function, asked, device)
    reference = (
        _named(module, asked.reference, where)
        if asked.reference
        else _beside(module, function, "reference", "reference")
    )
    tolerance = asked.tolerance or _beside(module, function, "tolerance", "TOLERANCE")
    if tolerance is not None and not _is_tolerance(tolerance):
        raise OptionError(
            "bad_tolerance",
            f"the tolerance of {function} is {tolerance!r}"[:200],
            hint="write TOLERANCE = (rtol, atol)",
        )
    if reference is None and chosen is not fn:
        reference = fn  # implementations are held to each other where nothing else is given
    return Target(
        asked.implementation or function, chosen, args, kwargs, reference if callable(reference) and reference is not chosen else None,
        (float(tolerance[0]), float(tolerance[1])) if tolerance else None,
        _number(module, function, "bytes_moved", args, kwargs), _number(module, function, "flops", args, kwargs),
    )  # fmt: skip


def implementations_of(module: ModuleType, function: str) -> dict[str, Callable[..., Any]]:
    """Return the implementations of a function by name: itself, then those of ``FUNCTION_implementations`` or ``IMPLEMENTATIONS``.

    Raises OptionError where that is no dict of functions.
    """
    declared = _beside(module, function, "implementations", "IMPLEMENTATIONS") or {}
    if not isinstance(declared, dict) or not all(isinstance(k, str) and callable(v) for k, v in declared.items()):
        raise OptionError(
            "bad_implementations", f"the implementations of {function} are no dict of functions",
            hint="write IMPLEMENTATIONS = {'eager': eager_softmax}",
        )  # fmt: skip
    return {function: _named(module, function, module.__name__), **declared}


def implementation_of(module: ModuleType, function: str, name: str, where: str) -> Callable[..., Any]:
    """Return an implementation by name: a declared one, else another function of the module. Raises OptionError."""
    found = implementations_of(module, function)
    return found[name] if name in found else _named(module, name, where)


def axes_of(module: ModuleType, function: str) -> dict[str, list[int | float | str]]:
    """Return the axes that ``FUNCTION_axes`` or ``AXES`` names, each a list of values. Raises OptionError for what is none."""
    declared = _beside(module, function, "axes", "AXES") or {}
    try:
        found = {str(k): list(v) for k, v in declared.items() if not isinstance(v, str)}
        sound = len(found) == len(declared) and all(isinstance(x, (int, float, str)) for v in found.values() for x in v)
    except (AttributeError, TypeError):
        sound = False
    if not sound:
        raise OptionError(
            "bad_axes",
            f"the axes of {function} are no dict of lists",
            hint="write AXES = {'n': [1024, 4096], 'dtype': ['fp16']}",
        )
    return found


def _is_tolerance(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list)) and len(value) == 2
        and all(isinstance(v, (int, float)) and 0 <= v < math.inf for v in value)
    )  # fmt: skip


def module_of(where: str) -> ModuleType:
    """Return the module of ``MODULE`` or ``FILE.py``. Raises OptionError where it is not there, CaptureUnavailable where it fails."""
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise OptionError("no_such_file", f"there is no file '{path.name}'", hint="check the path before the colon")
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        return _imported(where, lambda: _executed(spec, module))
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(where) if where else None
    except (ImportError, ValueError, AttributeError):
        found = None
    if found is None:
        raise OptionError(
            "no_such_module", f"there is no module '{where}'", hint="give MODULE:FUNCTION or FILE.py:FUNCTION"
        )
    return _imported(where, lambda: importlib.import_module(where))


def _executed(spec: Any, module: ModuleType) -> ModuleType:
    spec.loader.exec_module(module)
    return module


def _imported(where: str, act: Callable[[], ModuleType]) -> ModuleType:
    try:
        return act()
    except TraceAnalyzerError:
        raise
    except BaseException as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        text = said(error, 200)
        raise CaptureUnavailable(
            "import_failed",
            f"'{Path(where).name}' cannot be imported: {type(error).__name__}{line}: {text}",
            hint="make it import alone first",
        ) from error


def _named(module: ModuleType, name: str, where: str) -> Callable[..., Any]:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        functions = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        near = get_close_matches(name, functions, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"it has: {', '.join(functions[:8]) or 'no functions'}"
        raise OptionError("no_such_function", f"'{Path(where).name}' has no function '{name}'", hint=hint)
    if not callable(found):
        raise OptionError(
            "not_a_function", f"'{name}' is a {type(found).__name__}, not a function", hint="name a function"
        )
    if inspect.isclass(found):
        raise OptionError(
            "not_a_function", f"'{name}' is a class, not a function", hint="name a function that makes and calls it"
        )
    return found  # type: ignore[no-any-return]


def _beside(module: ModuleType, function: str, ending: str, general: str) -> Any:
    name = function.rpartition(".")[2]
    return getattr(module, f"{name}_{ending}", None) or getattr(module, general, None)


def _maker(module: ModuleType, function: str, named: str) -> Callable[..., Any] | None:
    if named:
        return _named(module, named, module.__name__)
    found = _beside(module, function, "inputs", "make_inputs")
    return found if callable(found) else None


def _required(fn: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # builtins may hide their signature
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _arguments(
    module: ModuleType, fn: Callable[..., Any], function: str, asked: Asked, device: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    needed = _required(fn)
    maker = _maker(module, function, asked.inputs)
    if maker is None or (not needed and not asked.inputs and not asked.preset and maker.__name__ == "make_inputs"):
        if needed:
            raise OptionError(
                "no_inputs", f"{function} takes {', '.join(needed)}, and nothing makes them",
                hint=f"define {function}_inputs() or make_inputs() in its file, or name one with --inputs",
            )  # fmt: skip
        return (), {}
    offered = {
        "device": _device_word(device),
        "dtype": asked.dtype,
        "preset": asked.preset,
        "seed": asked.seed,
        **asked.axes,
    }
    try:
        takes = inspect.signature(maker).parameters
        every = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        given = {k: v for k, v in offered.items() if (k in takes or (every and k in asked.axes)) and v != ""}
        if unknown := [k for k in asked.axes if k not in given]:
            raise OptionError(
                "unknown_axis",
                f"{maker.__name__} takes no '{unknown[0]}'",
                hint=f"it takes: {', '.join(takes) or 'nothing'}",
            )
        if lacking := [
            k
            for k, p in takes.items()
            if k not in given and p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]:
            raise OptionError(
                "inputs_not_given",
                f"{maker.__name__} needs a value for {', '.join(lacking)}",
                hint="give its parameters defaults; or, where AXES has their values, run traceanalyze bench",
            )
        made = maker(**given)
    except TraceAnalyzerError:
        raise
    except BaseException as error:
        raise CaptureUnavailable(
            "inputs_failed", f"{getattr(maker, '__name__', 'the input maker')} failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}",
            hint="make it run alone first",
        ) from error  # fmt: skip
    if isinstance(made, dict):
        return (), {str(k): v for k, v in made.items()}
    if isinstance(made, (tuple, list)):
        return tuple(made), {}
    return (made,), {}


def _device_word(device: str) -> str:
    """Return the word torch knows a device by, for a maker that asks."""
    if device != "auto":
        return device
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return "cpu"
    from traceanalyzer.capture.frameworks import open_device

    kind = open_device("pytorch", "auto").facts().kind
    return "cuda" if kind == "rocm" else kind


def _number(module: ModuleType, function: str, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    found = _beside(module, function, what, what)
    if found is None:
        return None
    try:
        value = found(*args, **kwargs) if callable(found) else found
        return int(value) if -LARGEST <= value <= LARGEST else None
    except Exception:  # a side number; the capture does not hang on it
        return None


def _realistic(presets: list[str]) -> str:
    """Return the first preset that is no toy size."""
    return next((p for p in presets if p != "tiny"), presets[0])
