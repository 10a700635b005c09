"""Coverage of the interval of ``traceanalyze compare`` over pairs with a known ratio, and its false verdicts.

Usage: python benchmarks/compare_coverage.py [--pairs 400] [--markdown] [--seed 1]

Each kind of series is simulated on both sides; the head's times are the base's law times a known ratio, rounded to
the nanosecond, or to the kind's clock step and then converted, as a profiler does. Truth is the ratio of the laws' medians before
rounding. Coverage is the share of pairs whose 95 % interval holds it; a false verdict is FASTER or SLOWER on a pair
of ratio 1; power is the right one of them at ratio 0.9.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from traceanalyzer.analysis.compare.few import FEW, compare_few
from traceanalyzer.analysis.compare.statistics import Times, compare_medians, device_step, verdict_of

Rng = np.random.Generator
FEW_SIZES = ((1, 1), (2, 2), (3, 3), (5, 5), (2, 20))
"""With under six values on a side there is a range and no interval: false verdicts and power alone are studied."""
SIZES = ((20, 20), (20, 200), (30, 30), (50, 50), (100, 100), (200, 60), (500, 500))


@dataclass(frozen=True)
class Kind:
    """A law of times in microseconds, with its clock step in nanoseconds."""

    title: str
    draw: Callable[[Rng, int], np.ndarray]
    step: int = 1


def autoregressive(rng: Rng, n: int, rho: float, scatter: float = 0.03) -> np.ndarray:
    """Return a stationary first-order series around 10 us."""
    x = np.empty(n)
    x[0] = rng.standard_normal()
    noise = rng.standard_normal(n) * np.sqrt(1 - rho * rho)
    for i in range(1, n):
        x[i] = rho * x[i - 1] + noise[i]
    return 10 * np.exp(scatter * x)


def slow_wave(rng: Rng, n: int) -> np.ndarray:
    """Return noise on a wave of 12 calls with a random phase: a temperature or clock governor."""
    phase = rng.uniform(0, 2 * np.pi)
    return 10 * (1 + 0.02 * np.sin(phase + 2 * np.pi * np.arange(n) / 12) + 0.02 * rng.standard_normal(n))


def levels(rng: Rng, n: int) -> np.ndarray:
    """Return the same work at three clock levels, 15 MHz apart, with little scatter: stays of about three calls."""
    clocks = np.array([1980.0, 1965.0, 1950.0])
    state, series = rng.integers(3), np.empty(n)
    for i in range(n):
        if rng.random() < 1 / 3:
            state = rng.integers(3)
        series[i] = 10 * 1965 / clocks[state]
    return series * (1 + 0.004 * rng.standard_normal(n))


def model_steps(rng: Rng, n: int) -> np.ndarray:
    """Return steps of a model: scatter that lasts for some steps, and every tenth step longer by a third (logging, data)."""
    steps = autoregressive(rng, n, 0.3, 0.02)
    steps[rng.integers(10) :: 10] *= 1.33
    return steps


def two_threads(rng: Rng, n: int) -> np.ndarray:
    """Return steps that end when the slower of two threads has launched: forward and backward of equal mean, each with its own scatter."""
    return np.maximum(autoregressive(rng, n, 0.2, 0.03), autoregressive(rng, n, 0.2, 0.03))


KINDS = (
    Kind("normal, 1 %", lambda r, n: 10 * (1 + 0.01 * r.standard_normal(n))),
    Kind("normal, 5 %", lambda r, n: 10 * (1 + 0.05 * r.standard_normal(n))),
    Kind("log-normal, 20 %", lambda r, n: 10 * np.exp(0.2 * r.standard_normal(n))),
    Kind("heavy tail (Pareto 1.5)", lambda r, n: 10 * (1 + 0.05 * r.pareto(1.5, n))),
    Kind("heavy both ways (t, 2 d.f.)", lambda r, n: 10 * np.exp(0.02 * r.standard_t(2, n))),
    Kind("exponential tail", lambda r, n: 9 + r.exponential(1, n)),
    Kind("5 % outliers of 3x", lambda r, n: 10 * (1 + 0.02 * r.standard_normal(n)) * np.where(r.random(n) < 0.05, 3, 1)),
    Kind("bimodal 70/30, 10 % apart", lambda r, n: np.where(r.random(n) < 0.7, 10, 11) * (1 + 0.01 * r.standard_normal(n))),
    Kind("bimodal 55/45, 5 % apart", lambda r, n: np.where(r.random(n) < 0.55, 10, 10.5) * (1 + 0.01 * r.standard_normal(n))),
    Kind("clock levels, dependent", levels),
    Kind("32 ns clock", lambda r, n: 10 * (1 + 0.02 * r.standard_normal(n)), 32),
    Kind("0.5 us clock", lambda r, n: 10.3 * (1 + 0.05 * r.standard_normal(n)), 500),
    Kind("1 us clock", lambda r, n: 10.3 * (1 + 0.08 * r.standard_normal(n)), 1000),
    Kind("1 us clock, all in one step", lambda r, n: 10.2 * (1 + 0.005 * r.standard_normal(n)), 1000),
    Kind("autocorrelated 0.2", lambda r, n: autoregressive(r, n, 0.2)),
    Kind("autocorrelated 0.35", lambda r, n: autoregressive(r, n, 0.35)),
    Kind("autocorrelated 0.5", lambda r, n: autoregressive(r, n, 0.5)),
    Kind("autocorrelated 0.7", lambda r, n: autoregressive(r, n, 0.7)),
    Kind("slow wave", slow_wave),
    Kind("steps of a model", model_steps),
    Kind("two-thread steps", two_threads),
)  # fmt: skip


@dataclass
class Outcome:
    """Counts over the pairs of one kind; ``none`` are pairs without an interval."""

    pairs: int = 0
    covered: int = 0
    none: int = 0
    false: int = 0
    equal: int = 0
    right: int = 0
    different: int = 0

    @property
    def coverage(self) -> float:
        """Share of the intervals given that hold the truth."""
        return self.covered / max(1, self.pairs - self.none)


def times(series: np.ndarray, step: int, rng: Rng) -> Times:
    """Return the series as a profiler writes it: in steps of the device's clock, converted to within a nanosecond.

    The comparison is not told the step: it has to see it in the times.
    """
    values = (np.round(series * 1000 / step) * step).astype(np.int64)
    if step > 1:
        values += rng.integers(-1, 2, len(values))
    return Times(len(values), float(np.median(values)), values, step_ns=device_step([values]))


def study(kind: Kind, sizes: tuple[int, int], pairs: int, rng: Rng) -> Outcome:
    """Return the outcome of ``pairs`` equal pairs and as many of ratio 0.9."""
    result = Outcome()
    for number in range(2 * pairs):
        truth = 1.0 if number % 2 else 0.9
        base, head = kind.draw(rng, sizes[0]), truth * kind.draw(rng, sizes[1])
        x, y = times(base, kind.step, rng), times(head, kind.step, rng)
        if min(sizes) < FEW:
            found, verdict = compare_few(x, y, 0.01)
        else:
            found = compare_medians(x, y)
            verdict = verdict_of(found)
        result.pairs += 1
        if found.interval is None:
            result.none += 1
        else:
            result.covered += found.interval[0] <= truth <= found.interval[1]
        if truth == 1.0:
            result.equal += 1
            result.false += verdict in ("FASTER", "SLOWER")
        else:
            result.different += 1
            result.right += verdict == "FASTER"
    return result


def main() -> None:
    """Run the study and print it as a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", default="", help="Kinds whose title holds this.")
    parser.add_argument("--few", action="store_true", help="Under six values on a side; coverage is that of the range.")
    args = parser.parse_args()
    sizes = FEW_SIZES if args.few else SIZES
    head = ["kind", *(f"n {a}/{b}" for a, b in sizes), "all", "false", "right at 0.9"]
    rows = []
    for kind in (k for k in KINDS if args.only in k.title):
        rng = np.random.default_rng(args.seed)
        found = [study(kind, size, args.pairs // 2, rng) for size in sizes]
        given = sum(f.pairs - f.none for f in found)
        cells = [f"{100 * f.coverage:.1f}" + (f" ({f.none} n/a)" if f.none else "") for f in found]
        cells.append(f"{100 * sum(f.covered for f in found) / max(1, given):.1f}")
        cells.append(f"{100 * sum(f.false for f in found) / sum(f.equal for f in found):.1f}")
        cells.append(f"{100 * sum(f.right for f in found) / sum(f.different for f in found):.0f}")
        rows.append([kind.title, *cells])
        if not args.markdown:
            print(" | ".join(rows[-1]), flush=True)
    if args.markdown:
        print("| " + " | ".join(head) + " |")
        print("| --- |" + " ---: |" * (len(head) - 1))
        for row in rows:
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
