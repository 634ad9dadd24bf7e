"""How often tests call equally good models different, and how often gates pass a rule that does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

import numpy as np

from assay.report import Report, Samples, Section, Value, compare, rank
from assay.stats.intervals import Array
from benchmarks.coverage import gates
from benchmarks.coverage.rows import Random
from benchmarks.coverage.samples import codes_of, shared

DRAWS = 600
LEVEL = 0.05
Pair = tuple[Array, Array, "Array | None"]


def report(values: Array, codes: Array | None = None, first: int = 0) -> Report:
    """What ``evaluate`` keeps of a mean of samples."""
    named = {} if codes is None else {"clusters": codes, "cluster": "passage"}
    ids = range(first, first + len(values))
    samples = Samples.pack(ids, {"x": values}, target=np.zeros(len(values)), data="simulated", **named)  # type: ignore
    value = Value("x", float(values.mean()), numerator="x", higher_is_better=True)
    return Report("run", (Section("test", (value,), samples=samples),))


def right(n: int, change: float, random: Random) -> Pair:
    """Whether two models are right, of which the second gains a change; 10 % of the samples differ besides."""
    which = random.choice(3, n, p=[0.05 - min(change, 0), 0.05 + max(change, 0), 0.9 - abs(change)])
    agree = random.random(n) < 0.7
    return np.where(which < 2, which == 0, agree), np.where(which < 2, which == 1, agree), None


def losses(n: int, change: float, random: Random) -> Pair:
    shared = random.exponential(size=n)
    return shared + random.normal(size=n) ** 2, shared + random.normal(size=n) ** 2 + change, None


def in_clusters(clusters: int, change: float, random: Random) -> Pair:
    codes = codes_of(clusters, "uneven", random)
    which = shared(codes, lambda n: random.choice(3, n, p=[0.05 - change, 0.05, 0.9 + change]), random)
    agree = shared(codes, lambda n: random.random(n) < 0.7, random)
    return np.where(which < 2, which == 0, agree), np.where(which < 2, which == 1, agree), codes


def errs(draw: Callable[[Random], Pair], paired: bool, random: Random) -> bool:
    a, b, codes = draw(random)
    if not paired:
        b = draw(random)[1]
    p = compare(report(a, codes), report(b, codes, 0 if paired else len(a))).deltas[0].p
    return p is not None and p < 0.05


MODELS = 6


def tells_apart(n: int, better: float, random: Random) -> bool:
    """Whether a ranking tells any two of six models apart that are equally good; a last one may be better."""
    agree = random.random(n) < 0.7
    shares = [0.7] * (MODELS - 1) + [0.7 + better]
    right = [np.where(random.random(n) < 0.2, random.random(n) < share, agree) for share in shares]
    names = [f"model {k}" for k in range(MODELS)]
    places = rank([report(each) for each in right], names=names).metrics[0].places
    equal = [place for place in places if not better or place.run != names[-1]]
    return any(not set(a.groups) & set(b.groups) for a, b in combinations(equal, 2))


def levels() -> Iterator[tuple[str, str, Callable[[Random], bool]]]:
    for n in (20, 100, 1000):
        yield "McNemar's mid-p test", f"yes or no, {n} pairs", partial(errs, partial(right, n, 0.0), True)
        yield "score test of two shares", f"yes or no, {n} and {n}", partial(errs, partial(right, n, 0.0), False)
        yield "sign flips", f"skewed losses, {n} pairs", partial(errs, partial(losses, n, 0.0), True)
        yield "Welch's test", f"skewed losses, {n} and {n}", partial(errs, partial(losses, n, 0.0), False)
        if n < 1000:
            draw = partial(in_clusters, n, 0.0)
            yield "sign flips of clusters", f"yes or no, {n} uneven clusters", partial(errs, draw, True)
        if n > 20:
            yield "a ranking of six", f"yes or no, {n} samples", partial(tells_apart, n, 0.0)
            yield "a ranking of six", "the same, and one is better by 0.3 on a fifth", partial(tells_apart, n, 0.3)


def table(share: float = 1.0) -> Iterator[str]:
    """Two tables: levels of tests, and false passes of rules."""
    draws = max(20, round(DRAWS * share))
    yield "| test, of equally good models | samples | called different |\n|---|---|--:|"
    for title, about, trial in levels():
        random = np.random.default_rng(0)
        found = sum(trial(random) for _ in range(draws)) / draws
        mark = " †" if found > LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / draws) else ""
        yield f"| {title} | {about} | {100 * found:.1f}{mark} |"
    yield ""
    yield from gates.table(draws)
