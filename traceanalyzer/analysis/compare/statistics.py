"""The ratio of two medians with its 95 % interval: bootstrap, fit for short, skewed, stepped and dependent series.

*Independent values.* A bootstrap resample's median is an order statistic of the sample, and which one follows a beta
distribution (Maritz and Jarrett 1978): the bootstrap is drawn from that law exactly, over the interpolated quantile
function, in place of resampling the values one by one.

*Dependent values* are worth fewer. How many is the share of values under the median, whose variance is known in closed
form both under the moving-block bootstrap (Kuensch 1989, circular blocks) and for a first-order autoregressive
series, or for levels under noise; the smallest counts, because blocks alone understate long dependence in short
series. The beta law is then that of the effective number, drawn with its own uncertainty; under six the interval is
the range of all values. docs/compare.md has the coverage of all this, by benchmarks/compare_coverage.py.

Times are integer nanoseconds; ratios are head over base, below 1 where the head is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis import stats, steadiness
from traceanalyzer.trace.ordering import distinct

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.int64] | Floats

DRAWS = 4000
SEED = 20261130
"""The same two files give the same interval, always."""
DEPENDENT = 0.3
"""Lag-1 autocorrelation above which blocks are used as well (docs/rules/TA605.md)."""
MOST_LAG = 0.97
NO_SAMPLES_WIDENING = 1.25
"""Where only a median and its interval were kept nothing is known of dependence: the interval is widened by this."""
Z95 = 1.959964


@dataclass(frozen=True)
class Times:
    """The times of one piece of work on one side, in nanoseconds.

    ``values`` in order of start, evenly thinned where ``count`` is larger; empty where a report kept none, and then
    ``interval_ns`` of the median stands in. ``lag_one`` is that of the whole series. ``p50_ns`` is exact. ``step_ns`` is the
    finest step in which the file writes times.
    """

    count: int
    p50_ns: float
    values: Values = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    lag_one: float | None = None
    interval_ns: tuple[float, float] | None = None
    step_ns: int = 1


@dataclass(frozen=True)
class Ratio:
    """Head over base of the medians. ``interval`` is None where there is none and ``reason`` says why.

    ``log_draws`` are bootstrap logarithms of the ratio, empty without interval; ``effective`` the independent values each side is worth;
    ``blocks`` whether dependence was found; ``from_interval`` whether a side had no samples. ``n_needed``: values per
    side, alike in scatter, after which the interval would be expected to decide; None where it decides or nothing helps.
    """

    ratio: float | None
    interval: tuple[float, float] | None
    log_draws: Floats
    effective: tuple[float, float]
    blocks: bool
    from_interval: bool
    n_needed: int | None
    reason: str = ""


def median_draws(times: Times, rng: np.random.Generator, draws: int = DRAWS) -> tuple[Floats | None, float, bool]:
    """Return bootstrap medians (None: too few values), the number of independent values, and whether they depend."""
    n = len(times.values)
    if n == 0 or times.count > 2 * n:
        return _draws_of_interval(times, rng, draws)
    worth, blocks = effective_count(times)
    if times.count < stats.MIN_N_FOR_INTERVAL:
        return None, worth, blocks
    if worth < stats.MIN_N_FOR_INTERVAL - 1e-9:
        return _whole_range(times, rng, draws), worth, blocks
    ordered, shift = spread_steps(times.values, times.step_ns)
    shape = (_uncertain(worth, times, rng, draws) + 2) / 2 if blocks else (worth + 2) / 2
    at = rng.beta(shape, shape, size=draws) * n - 0.5
    found = np.interp(at, np.arange(n), ordered)
    if shift:
        found += rng.uniform(-shift / 2, shift / 2, draws)
    # thinned values have another median than all values
    found += times.p50_ns - float(np.median(times.values))
    return found, worth, blocks


def _whole_range(times: Times, rng: np.random.Generator, draws: int) -> Floats:
    """Return medians drawn from the smallest to the largest value: all that a series worth under six values can say."""
    low, high = float(np.min(times.values)), float(np.max(times.values))
    at = 2 * rng.integers(0, 2, draws) - 1  # either end as often, so that the interval reaches both
    return np.where(at < 0, low, high)


def _draws_of_interval(times: Times, rng: np.random.Generator, draws: int) -> tuple[Floats | None, float, bool]:
    """Return medians drawn around p50 with the two half-widths of its interval."""
    worth, blocks = effective_count(times)
    if times.interval_ns is None or times.p50_ns <= 0 or worth < stats.MIN_N_FOR_INTERVAL - 1e-9:
        return None, worth, blocks
    low, high = times.interval_ns
    widen = math.sqrt(times.count / worth) if len(times.values) else NO_SAMPLES_WIDENING
    z = rng.standard_normal(draws) * widen / Z95
    side = np.where(z < 0, times.p50_ns - low, high - times.p50_ns)
    return times.p50_ns + z * side, worth, blocks


def effective_count(times: Times) -> tuple[float, bool]:
    """Return how many independent values the series is worth, and whether dependence over 0.3 was found."""
    n = len(times.values)
    rho = times.lag_one
    if rho is None and n == times.count:
        rho = steadiness.lag_one(np.asarray(times.values))
    if rho is None or n < 10:
        return float(times.count), False
    rho = _unbiased(rho, times.count)
    if n == times.count:
        rho = max(rho, median_dependence(times.values))
    if rho <= DEPENDENT:
        # half a standard error of rho is taken for chance
        return times.count / median_inflation(rho - 0.5 / math.sqrt(times.count)), False
    worth = times.count / median_inflation(rho)
    if n == times.count:
        return min(worth, n / max(block_inflation(times.values, rho), level_inflation(times.values))), True
    thinned = _unbiased(steadiness.lag_one(np.asarray(times.values)) or 0.0, n)
    if thinned > DEPENDENT:
        # dependence longer than the stride: the values between add nothing
        worth = min(worth, n / block_inflation(times.values, thinned))
    return worth, True


def _uncertain(worth: float, times: Times, rng: np.random.Generator, draws: int) -> Floats:
    """Return the worth drawn anew as rho is: a short series does not know its own dependence well."""
    inflation = times.count / worth
    # for a first-order series the inflation goes as (1 + rho) / (1 - rho), so its logarithm as 2 atanh(rho)
    spread = np.exp(2 / math.sqrt(len(times.values)) * rng.standard_normal(draws))
    return np.maximum(1.0, times.count / np.maximum(1.0, inflation * spread))


def _unbiased(rho: float, n: int) -> float:
    """Return rho without its bias of -(1 + 3 rho) / n in short series (Kendall 1954), at most :data:`MOST_LAG`."""
    return min(MOST_LAG, (n * rho + 1) / (n - 3)) if n > 3 else 0.0


def median_inflation(rho: float) -> float:
    """Return by how much dependence inflates the variance of a median: autoregressive, first order, normal.

    The indicator of a value under the median then has autocorrelation (2 / pi) asin(rho^k) at lag k.
    """
    if rho <= 0:
        return 1.0
    lags = np.arange(1, 400)
    return 1.0 + 2.0 * float(np.sum(2 / math.pi * np.arcsin(rho**lags)))


def level_inflation(values: Values) -> float:
    """Return the same for levels under noise (clock states): correlation decays by phi a lag from where noise leaves it.

    The indicator's autocorrelation is then rho_1 phi^(k - 1), with phi = rho_2 / rho_1 and no less than rho_1.
    """
    n, under = len(values), _under_median(values)
    centred = under - under.mean()
    power = float(centred @ centred)
    if power == 0 or n < 10:
        return 1.0
    first, second = (_unbiased(float(centred[k:] @ centred[:-k]) / power, n) for k in (1, 2))
    if first <= 0:
        return 1.0
    decay = min(max(second / first, first), 1 - 5 / n, 0.95)
    return 1 + 2 * first / (1 - decay)


def median_dependence(values: Values) -> float:
    """Return the lag-1 autocorrelation of the first-order series whose values under the median depend as these do.

    A few long values (every tenth step of a model) hide the dependence of the others in the plain autocorrelation; whether a value lies
    under the median does not feel them. The inverse of :func:`median_inflation`'s law at lag 1.
    """
    n = len(values)
    centred = _under_median(values)
    centred = centred - centred.mean()
    power = float(centred @ centred)
    if n < 10 or power == 0:
        return 0.0
    first = _unbiased(float(centred[1:] @ centred[:-1]) / power, n)
    return min(MOST_LAG, math.sin(math.pi / 2 * max(-1.0, min(1.0, first))))


def _under_median(values: Values) -> Floats:
    middle = np.median(values)
    under: Floats = (np.asarray(values) < middle) + 0.5 * (np.asarray(values) == middle)
    return under


def block_length(n: int, rho: float) -> int:
    """Return the length of blocks that is best for the variance of a mean: (2 rho / (1 - rho^2))^(2/3) n^(1/3)."""
    best = (2 * rho / (1 - rho * rho)) ** (2 / 3) * n ** (1 / 3)
    return int(min(max(math.ceil(best), 1), max(1, n // 3)))


def block_inflation(values: Values, rho: float) -> float:
    """Return the same under the circular block bootstrap, in closed form: the variance of block sums of the indicator."""
    under = _under_median(values)
    centred = under - under.mean()
    power = float(centred @ centred) / len(centred)
    if power == 0:
        return 1.0
    n, b = len(centred), block_length(len(centred), rho)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([centred, centred[: b - 1]]))])
    blocks = sums[b:] - sums[:-b]
    # a block takes part of the scatter of its own mean away: n / (n - b)
    return max(1.0, float(blocks @ blocks) / (n * b * power) * n / max(n - b, 1))


def spread_steps(values: Values, written: int = 1) -> tuple[Floats, float]:
    """Return the sorted values with ties spread over the clock's step, and a shift (ns) that the step leaves open.

    Recorded times are rounded to a step: equal ones lie anywhere within half a step. Spread evenly they give the
    quantiles of grouped data. Where nearly all values fall into one or two steps their place inside is unknown, and
    every median may be off by half a step either way.
    """
    ordered = np.sort(np.asarray(values)).astype(np.float64)
    step = clock_step(values, written)
    if step <= 1:
        return ordered, 0.0
    # conversion leaves a nanosecond or two around each step
    ordered = ordered[0] + step * np.rint((ordered - ordered[0]) / step)
    _, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    within = np.arange(len(ordered)) - np.repeat(first, counts)
    spread = ordered + step * ((within + 0.5) / np.repeat(counts, counts) - 0.5)
    middle = ordered[len(ordered) // 20 : max(len(ordered) - len(ordered) // 20, 1)]
    return spread, float(step) if len(distinct(middle)) < 3 else 0.0


STEPS_NS = (1000, 500, 160, 80, 40, 32, 20, 16, 10)
"""Steps that device clocks have been seen to count in, coarsest first (1 us, 32 ns and 40 ns are the common ones)."""
CHANCE = 1e-3
FINE = 300
"""A step is looked for in times of at most so many: in longer ones the conversion's own error adds up to nanoseconds."""


def device_step(times: Sequence[Values]) -> int:
    """Return the step (ns) in which a device counted the times of all its kernels, 1 where they show none.

    Profilers write nanoseconds whatever the device's clock counts in: a time is then a whole number of steps, but for a
    nanosecond or two of conversion. A step is taken where so many different times are hardly its multiples by chance, and
    where there are none but neighbouring ones: two kinds of a call would not lie one step apart.
    """
    found = [np.asarray(v).astype(np.int64) for v in times if len(v)]
    values = distinct(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)
    for step in STEPS_NS:
        short = values[(values > 0) & (values <= FINE * step)]
        counted = np.rint(short / step).astype(np.int64)
        rounded = 2 if step >= 32 else 1
        levels = distinct(counted).size
        if levels < 2 or (np.abs(short - counted * step) > rounded).any():
            continue
        neighbours = len(short) == len(values) and np.ptp(counted) + 1 == levels
        if neighbours or ((2 * rounded + 1) / step) ** levels <= CHANCE:
            return step
    return 1


def clock_step(values: Values, written: int = 1) -> int:
    """Return the step of the times in nanoseconds: their differences' common divisor, no finer than what is ``written``.

    Of fewer than five different times only the latter: a few levels may be modes of the work.
    """
    levels = distinct(np.asarray(values).astype(np.int64))
    return max(written, 1 if len(levels) < 5 else int(np.gcd.reduce(np.diff(levels))))


def compare_medians(base: Times, head: Times, same_within: float = 0.01, stream: int = 0) -> Ratio:
    """Return the ratio of medians with its interval; see :class:`Ratio`. ``stream`` keeps the draws of several ratios apart."""
    nothing = np.empty(0)
    if base.p50_ns <= 0 or head.p50_ns <= 0:
        which = "base" if base.p50_ns <= 0 else "head"
        why = f"the median of the {which} is 0: shorter than its clock's step"
        return Ratio(None, None, nothing, (base.count, head.count), False, False, None, why)
    ratio = head.p50_ns / base.p50_ns
    rng = np.random.default_rng([SEED, stream])
    below, base_worth, base_blocks = median_draws(base, rng)
    above, head_worth, head_blocks = median_draws(head, rng)
    worth, blocks = (base_worth, head_worth), base_blocks or head_blocks
    thin = any(not len(t.values) for t in (base, head))
    if below is None or above is None:
        why = _too_few(base, head, worth)
        # how far the values scatter, and so how many would decide, is not known either
        return Ratio(ratio, None, nothing, worth, blocks, thin, None, why)
    logs: Floats = np.log(np.maximum(above, 0.5)) - np.log(np.maximum(below, 0.5))
    low, high = _bounds(logs, ratio)
    # what the clock's step leaves open stays open whatever the number of values
    open_step = any(len(t.values) and spread_steps(t.values, t.step_ns)[1] for t in (base, head))
    needed = None if open_step else _needed(ratio, (low, high), (base.count, head.count), same_within)
    return Ratio(ratio, (low, high), logs, worth, blocks, thin, needed)


def _bounds(logs: Floats, ratio: float) -> tuple[float, float]:
    low, high = np.exp(np.quantile(logs, [0.025, 0.975])).tolist()
    return min(low, ratio), max(high, ratio)


def _too_few(base: Times, head: Times, worth: tuple[float, float]) -> str:
    parts = []
    for side, times, effective in (("base", base, worth[0]), ("head", head, worth[1])):
        if times.count < stats.MIN_N_FOR_INTERVAL:
            parts.append(f"{side} n {times.count}")
        elif effective < stats.MIN_N_FOR_INTERVAL:
            parts.append(f"{side} n {times.count}, worth {effective:.0f} independent ones")
        elif not len(times.values) and times.interval_ns is None:
            parts.append(f"{side} without interval or samples")
    return f"no interval under {stats.MIN_N_FOR_INTERVAL} independent times: {', '.join(parts)}"


def _needed(ratio: float, interval: tuple[float, float], counts: tuple[int, int], same_within: float) -> int | None:
    """Return n per side after which the interval, shrinking as 1 / sqrt(n), would clear the nearest border."""
    low, high = 1 - same_within, 1 + same_within
    if interval[1] < low or interval[0] > high or (interval[0] >= low and interval[1] <= high):
        return None
    if ratio < low:
        room, half = math.log(low / ratio), math.log(interval[1] / ratio)
    elif ratio > high:
        room, half = math.log(ratio / high), math.log(ratio / interval[0])
    else:
        room, half = (
            min(math.log(high / ratio), math.log(ratio / low) if low > 0 else math.inf),
            math.log(interval[1] / interval[0]) / 2,
        )
    if room <= 0:
        return None
    # the smaller side holds most of the uncertainty; n per side as if both had 2 / (1 / n + 1 / m)
    both = 2 / (1 / counts[0] + 1 / counts[1])
    needed = max(both * (half / room) ** 2, max(counts) * 1.0 if half <= room else 0.0)
    return math.ceil(needed) if needed < 1e7 else None


def verdict_of(found: Ratio, same_within: float = 0.01) -> str:
    """Return FASTER, SLOWER, SAME or UNDECIDED: the whole interval must lie beyond, or inside, 1 +- ``same_within``."""
    if found.interval is None:
        return "UNDECIDED"
    low, high = found.interval
    if high < 1 - same_within:
        return "FASTER"
    if low > 1 + same_within:
        return "SLOWER"
    return "SAME" if low >= 1 - same_within and high <= 1 + same_within else "UNDECIDED"


def differs_p(found: Ratio, same_within: float = 0.01) -> float | None:
    """Return the two-sided p-value of "the ratio lies within 1 +- ``same_within``" (normal, on the logarithm)."""
    if found.ratio is None or found.interval is None:
        return None
    # nothing is so fast that it lies beyond 1 - 1 or less
    faster = math.log((1 - same_within) / found.ratio) if same_within < 1 else -math.inf
    beyond = max(faster, math.log(found.ratio / (1 + same_within)))
    if beyond <= 0:
        return 1.0
    # the half of the interval that faces the border
    facing = found.interval[1] / found.ratio if found.ratio < 1 else found.ratio / found.interval[0]
    se = math.log(facing) / Z95
    return math.erfc(beyond / se / math.sqrt(2)) if se > 0 else 0.0


def withdrawn(p_values: list[float | None], level: float = 0.05) -> list[bool]:
    """Return which of many differences do not survive Benjamini-Hochberg at ``level`` (false discovery rate)."""
    known = [p for p in p_values if p is not None]
    if len(known) < 2:
        return [False] * len(p_values)
    from scipy.stats import false_discovery_control  # a second to import, on this path only

    adjusted = iter(false_discovery_control(known).tolist())
    return [False if p is None else next(adjusted) > level for p in p_values]


def pooled(found: list[Ratio], weights: list[float]) -> tuple[float, tuple[float, float] | None] | None:
    """Return the weighted geometric mean of ratios and its bootstrap interval; None of nothing.

    The interval is None where a ratio has none.
    """
    known = [(r, w) for r, w in zip(found, weights, strict=True) if r.ratio is not None and w > 0]
    total = sum(w for _, w in known)
    if not known or total <= 0:
        return None
    mean = math.exp(sum(w * math.log(r.ratio) for r, w in known if r.ratio is not None) / total)
    if any(r.interval is None for r, _ in known):
        return mean, None
    logs: Floats = sum((w / total * r.log_draws for r, w in known), np.zeros(DRAWS))
    return mean, _bounds(logs, mean)
