"""What an operator is: the interface between the kernels and whoever captures or benchmarks them.

An operator is plain data around plain functions. An implementation that cannot run here (no GPU, a package
that is not installed, a dtype it does not know) is an :class:`Unavailable` with its reason, so that a table
can print ``n/a`` and say why. Nothing in this file imports torch or triton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from traceanalyzer.errors import OptionError

Bounds = tuple[float, float]
"""``(rtol, atol)``: an element passes when ``|got - expected| <= atol + rtol * |expected|``."""


@dataclass(frozen=True)
class Inputs:
    """Arguments of one call, made by :meth:`Operator.inputs`; the same seed gives the same values on every device."""

    args: tuple[Any, ...]
    described: Mapping[str, str]
    """Argument name -> dtype and shape for the sidecar, such as ``{"value": "fp16[4, 22223, 8, 32]"}``."""
    preset: str
    dtype: str
    device: str
    seed: int


@dataclass(frozen=True)
class Unavailable:
    """An implementation that cannot run: ``kind`` is a stable word for programs, ``reason`` a sentence for people."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Implementation:
    """One way to compute an operator.

    ``make()`` returns the callable; it takes :attr:`Inputs.args` and is made once, when first asked for.
    ``why_not(device, dtype, timing)`` returns the reason it cannot run there, or None. With ``timing`` it also
    refuses what runs but would measure something else: Triton's interpreter, or a reference that launches nothing.
    """

    make: Callable[[], Callable[..., Any]]
    why_not: Callable[[str, str, bool], Unavailable | None]


@dataclass(frozen=True)
class Backward:
    """The gradient side of an operator that has one; :mod:`traceanalyzer.kernels.gradients` runs it."""

    arguments: tuple[int, ...]
    """Positions in :attr:`Inputs.args` of the tensors that get a gradient."""
    names: tuple[str, ...]
    """Their names, in the same order."""
    bytes_moved: Callable[[Inputs], int]
    """Bytes of one backward call, each needed byte counted once."""
    flops: Callable[[Inputs], int]
    """Floating-point operations of one backward call."""
    tolerance: Mapping[str, tuple[Bounds, ...]]
    """dtype -> bounds of each gradient, in the order of ``arguments``."""


@dataclass(frozen=True)
class Operator:
    """A named operator: what to feed it, what it should return, how much work it is, and who can do it."""

    name: str
    summary: str
    presets: Mapping[str, Mapping[str, Any]]
    """Preset name -> its sizes. ``tiny`` suits a CPU and the tests."""
    dtypes: tuple[str, ...]
    make_inputs: Callable[[str, str, str, int], Inputs]
    """``(preset, dtype, device, seed)`` -> inputs. Call :meth:`inputs` instead: it checks the names first."""
    implementations: Mapping[str, Implementation]
    """In the order of a table: ``triton`` first, then ``reference``, ``compiled`` and others to compare with."""
    reference: Callable[..., Any]
    """PyTorch; computes in the precision of what it is given, so upcast inputs give the expected result."""
    bytes_moved: Callable[[Inputs], int]
    """Bytes of one forward call, each needed byte counted once (a lower bound of real traffic)."""
    flops: Callable[[Inputs], int]
    """Floating-point operations of one forward call; a fused multiply-add counts as two."""
    tolerance: Mapping[str, Bounds]
    """dtype -> bounds of the result against the reference at higher precision."""
    backward: Backward | None = None

    def inputs(self, preset: str, dtype: str, device: str = "cpu", seed: int = 0) -> Inputs:
        """Return the arguments of one call on ``device`` (``cpu``, ``cuda``, ``cuda:1``, ...).

        Raises :class:`~traceanalyzer.errors.OptionError` for an unknown preset or dtype.
        """
        check_name("preset", preset, self.presets, f" of {self.name}")
        check_name("dtype", dtype, self.dtypes, f" of {self.name}")
        return self.make_inputs(preset, dtype, device, seed)

    def implementation(
        self, name: str, *, device: str, dtype: str, timing: bool = True
    ) -> Callable[..., Any] | Unavailable:
        """Return the callable of implementation ``name``, or why it cannot run (see :class:`Implementation`).

        Raises :class:`~traceanalyzer.errors.OptionError` for an unknown name or dtype.
        """
        check_name("implementation", name, self.implementations, f" of {self.name}")
        check_name("dtype", dtype, self.dtypes, f" of {self.name}")
        found = self.implementations[name]
        return found.why_not(device, dtype, timing) or found.make()


def check_name(what: str, name: str, known: Iterable[str], of: str = "") -> None:
    """Raise an :class:`~traceanalyzer.errors.OptionError` with a suggestion unless ``name`` is among ``known``."""
    names = list(known)
    if name in names:
        return
    near = get_close_matches(name.lower(), names, 1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise OptionError(f"unknown_{what}", f"no {what}{of} is named {name!r}", hint=f"{guess}known: {', '.join(names)}")
