"""How often tests call equally good models different, and how often gates pass a rule that does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from assay.report import Report, Samples, Section, Value, compare, gate
from assay.stats.intervals import Array
from benchmarks.coverage.rows import Random
from benchmarks.coverage.samples import codes_of, shared
from benchmarks.gate_false_passes import simulated

DRAWS = 600
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


def drops(draw: Callable[[Random], Pair], drop: float, random: Random) -> bool:
    a, b, codes = draw(random)
    return gate(report(b, codes), {"max-drop": {"x": drop}}, report(a, codes)).outcome == "pass"


def bounded(draw: Callable[[Random], Array], rule: str, bound: float, random: Random) -> bool:
    return gate(report(draw(random)), {rule: {"x": bound}}).outcome == "pass"


def levels() -> Iterator[tuple[str, str, Callable[[Random], bool]]]:
    for n in (20, 100, 1000):
        yield "McNemar's mid-p test", f"yes or no, {n} pairs", partial(errs, partial(right, n, 0.0), True)
        yield "score test of two shares", f"yes or no, {n} and {n}", partial(errs, partial(right, n, 0.0), False)
        yield "sign flips", f"skewed losses, {n} pairs", partial(errs, partial(losses, n, 0.0), True)
        yield "Welch's test", f"skewed losses, {n} and {n}", partial(errs, partial(losses, n, 0.0), False)
        if n < 1000:
            draw = partial(in_clusters, n, 0.0)
            yield "sign flips of clusters", f"yes or no, {n} uneven clusters", partial(errs, draw, True)


def rules() -> Iterator[tuple[str, str, Callable[[Random], bool]]]:
    for n in (30, 100, 300, 1000):
        for drop in (0.01, 0.02):
            draw = partial(right, n, -drop)
            yield f"max-drop={drop:g}", f"{n} pairs of yes or no, a drop of {drop:g}", partial(drops, draw, drop)
        for share in (0.5, 0.95):
            of_share = lambda random, n=n, share=share: random.random(n) < share  # noqa: E731
            yield (
                f"min={share + 0.001:g}",
                f"a share of {share:g} of {n}",
                partial(bounded, of_share, "min", share + 0.001),
            )
        of_losses = lambda random, n=n: -(random.exponential(size=n) ** 1.0)  # noqa: E731
        yield "min=-0.999", f"a mean of {n} exponential losses", partial(bounded, of_losses, "min", -0.999)
    for clusters in (10, 30, 100):
        draw = partial(in_clusters, clusters, -0.02)
        yield "max-drop=0.02", f"{clusters} uneven clusters, a drop of 0.02", partial(drops, draw, 0.02)
    yield from simulated()


def table(share: float = 1.0) -> Iterator[str]:
    """Two tables: levels of tests, and false passes of rules."""
    draws = max(20, round(DRAWS * share))
    for head, of, most in (
        ("test, of equally good models | samples | p below 0.05", levels, 0.05),
        ("rule that does not hold | samples | passes", rules, 0.025),
    ):
        yield f"| {head} |\n|---|---|--:|"
        for title, about, trial in of():
            random = np.random.default_rng(0)
            found = sum(trial(random) for _ in range(draws)) / draws
            mark = " †" if found > most + 2 * math.sqrt(most * (1 - most) / draws) else ""
            yield f"| {title} | {about} | {100 * found:.1f}{mark} |"
        yield ""
