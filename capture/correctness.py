"""Results against a reference at higher precision: a wrong kernel cannot win a table."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from traceanalyzer.capture.frameworks import framework_of, leaves
from traceanalyzer.trace.sidecar import Correctness

Tolerance = tuple[float, float]
"""Relative and absolute."""
Tolerances = Tolerance | tuple[Tolerance, ...]
"""One for every output, or one for each in order."""

DEFAULT_SHARE = {
    "float64": 1e-9, "float32": 1e-3, "float16": 1e-2, "bfloat16": 3e-2, "complex64": 1e-3, "complex128": 1e-9,
}  # fmt: skip
"""Without a tolerance: the largest error allowed, as a share of the reference's largest value. Rounding grows with the
length of a sum and with it the values, so that an element's own size says little (an fp32 product over 256 terms misses
torch's elementwise defaults); 0.1 % for float32 leaves room for TF32 and still finds a kernel that is wrong."""


def check(
    output: Any,
    reference: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tolerance: Tolerances | None,
) -> Correctness:
    """Return how far an output lies from the reference of the same inputs.

    A function that returns no array is taken to write into its arguments: ``output`` is then (args, kwargs) after the call,
    and what the reference left in its own copies is compared with them. The reference gets copies of the inputs, floating ones in float64 where it can take them, else as they are. An
    error counts as passed where ``|out - ref| <= atol + rtol |ref|`` for every element. A reference that fails leaves ``passed`` None with its reason; shapes that differ, or a NaN
    that the reference does not have, do not pass. Without a tolerance, ``rtol`` is 0 and ``atol``
    :data:`DEFAULT_SHARE` of the reference's largest value.
    """
    expected, precision, fault = _expected(reference, args, kwargs)
    if fault:
        return Correctness(None, f"the reference failed: {fault}")
    return compare(output, expected, f"{getattr(reference, '__name__', 'reference')} {precision}", tolerance)


def compare(output: Any, expected: Any, name: str, tolerance: Tolerances | None) -> Correctness:
    """Return how far an output lies from an expected value of the same structure.

    ``rtol`` and ``atol`` of the record are the widest that were used.
    """
    found, wanted = _arrays(output), _arrays(expected)
    if not wanted:
        return Correctness(None, "the reference returned no array to compare with", name)
    if len(found) != len(wanted):
        return Correctness(False, f"{len(found)} arrays came out, the reference has {len(wanted)}", name)
    if all(_all_nan(b) for b in wanted):
        return Correctness(None, "the reference is nothing but NaN: there is nothing to compare with", name)
    worst_abs = worst_rel = worst_share = 0.0
    passed, reason = True, ""
    limits = _limits(tolerance, len(wanted))
    if len(limits) != len(wanted):
        return Correctness(None, f"{len(limits)} tolerances were given for {len(wanted)} arrays", name)
    rtol, atol = max(r for r, _ in limits), max(a for _, a in limits)
    for place, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.shape != b.shape:
            return Correctness(
                False,
                f"output {place} has shape {list(a.shape)}, the reference {list(b.shape)}",
                name,
                None,
                None,
                rtol,
                atol,
            )
        if tolerance is None:
            allowed = DEFAULT_SHARE.get(a.dtype, 0.0) * _largest(b)
            atol = max(atol, allowed)
        else:
            allowed = limits[place][1]
        absolute, relative, share, fault = _errors(a, b, limits[place][0], allowed)
        if fault:
            passed, reason = False, reason or f"output {place}: {fault}"
        worst_abs, worst_rel = max(worst_abs, absolute), max(worst_rel, relative)
        worst_share = max(worst_share, share)
    return Correctness(
        passed, reason, name, worst_abs, worst_rel, rtol, atol, worst_share if math.isfinite(worst_share) else None
    )


def has_arrays(value: Any) -> bool:
    """Return whether a result holds anything to compare; one without, such as None, is no result but an effect."""
    return bool(_arrays(value))


def _limits(tolerance: Tolerances | None, outputs: int) -> list[Tolerance]:
    if tolerance is None:
        return [(0.0, 0.0)] * outputs
    each = [t for t in tolerance if isinstance(t, tuple)]
    return each or [(float(tolerance[0]), float(tolerance[1]))] * outputs  # type: ignore[arg-type]


def snapshot(value: Any) -> Any:
    """Return a copy of inputs or outputs that later calls cannot change."""
    try:
        return _mapped(
            value,
            lambda leaf: (
                _cloned(leaf) if framework_of(leaf) == "pytorch" and hasattr(leaf, "detach") else _copied(leaf)
            ),
        )
    except Exception:  # what cannot be copied is used as it is
        return value


def _cloned(leaf: Any) -> Any:
    """Return a copy that is a leaf of its own and can be differentiated where the original can."""
    copied = leaf.detach().clone()
    return copied.requires_grad_() if getattr(leaf, "requires_grad", False) else copied


def _copied(leaf: Any) -> Any:
    return leaf.copy() if type(leaf).__module__ == "numpy" and hasattr(leaf, "copy") else leaf


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_mapped(v, change) for v in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*parts)
        return type(value)(parts)
    if hasattr(value, "__dataclass_fields__"):
        return copy.copy(value)
    return change(value)


def _expected(reference: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str, str]:
    fault = ""
    for change, precision in ((_doubled, "in float64"), (lambda leaf: leaf, "in the inputs' own precision")):
        try:
            a, k = _mapped(snapshot(args), change), _mapped(snapshot(kwargs), change)
            found = reference(*a, **k)
            return (found if has_arrays(found) else (a, k)), precision, ""
        except Exception as error:  # a reference may well lack float64 kernels
            fault = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return None, "", fault


def _doubled(leaf: Any) -> Any:
    if framework_of(leaf) == "pytorch" and hasattr(leaf, "is_floating_point") and leaf.is_floating_point():
        doubled = leaf.detach().double()
        return doubled.requires_grad_() if leaf.requires_grad else doubled
    return leaf


def _arrays(value: Any) -> list[Any]:
    """Return the arrays of a value as numpy, numbers included: float64 or complex128, or the integers as they are."""
    import numpy as np

    result = []
    for leaf in leaves(value):
        if framework_of(leaf) == "pytorch" and hasattr(leaf, "detach"):
            tensor = leaf.detach().cpu()
            if tensor.is_floating_point():
                result.append(_Named(tensor.double().numpy(), str(tensor.dtype).removeprefix("torch.")))
            else:
                result.append(_Named(tensor.resolve_conj().numpy(), str(tensor.dtype).removeprefix("torch.")))
        elif isinstance(leaf, (bool, int, float, complex)) or hasattr(leaf, "__array__"):
            array = np.asarray(leaf)
            kind = str(array.dtype)
            if kind == "bfloat16" or array.dtype.kind == "f":
                array = array.astype(np.float64)
            if array.dtype.kind in "fciub":
                result.append(_Named(array, kind))
    return result


class _Named:
    """An array in wide precision with the name of the type it had."""

    def __init__(self, values: Any, dtype: str) -> None:
        self.values, self.dtype, self.shape = values, dtype, values.shape


def _all_nan(array: _Named) -> bool:
    import numpy as np

    return bool(array.values.size and array.values.dtype.kind in "fc" and np.isnan(array.values).all())


def _largest(array: _Named) -> float:
    import numpy as np

    size = np.abs(array.values[np.isfinite(array.values)]) if array.values.dtype.kind in "fc" else np.empty(0)
    return float(size.max()) if size.size else 0.0


def _errors(a: _Named, b: _Named, rtol: float, atol: float) -> tuple[float, float, float, str]:
    """Return the greatest absolute and relative error and share of what is allowed, and what is wrong (empty if nothing is).

    The share is infinite where an error has no number, or where none is allowed.
    """
    import numpy as np

    x, y = a.values, b.values
    if not x.size:
        return 0.0, 0.0, 0.0, ""
    if x.dtype.kind == "b" or y.dtype.kind == "b":
        x, y = x.astype(np.int8), y.astype(np.int8)
    with np.errstate(all="ignore"):
        same = (x == y) | ((x != x) & (y != y))  # noqa: PLR0124 - a NaN differs from itself
        difference = np.where(same, 0, np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) - y))
        size = np.abs(y)
        bad = ~same & ~(difference <= atol + rtol * size)
        finite = difference[np.isfinite(difference)]
        shares = np.where(difference == 0, 0, difference / (atol + rtol * size))
        relative = difference / np.where(size > 0, size, 1)
        relative = relative[np.isfinite(relative) & (size > 0)]
    absolute = float(finite.max()) if finite.size else 0.0
    worst = float(relative.max()) if relative.size else 0.0
    share = float(np.where(np.isnan(shares), np.inf, shares).max())
    fault = ""
    if bad.any():
        wrong = int(np.count_nonzero(bad))
        nans = int(np.count_nonzero(np.isnan(x) & ~np.isnan(y))) if x.dtype.kind in "fc" else 0
        fault = f"{wrong} of {x.size} elements are outside rtol {rtol:.3g}, atol {atol:.3g}"
        fault += f", {nans} of them NaN" if nans else ""
    return (absolute if math.isfinite(absolute) else 0.0), worst, share, fault
