"""Rules about slices, changes, clusters and many looks that do not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

import assay.metrics as m
from assay.report import Report, gate
from assay.stats.intervals import Array
from benchmarks.coverage.gate_reports import mean_report, metric_report, resampled
from benchmarks.coverage.gate_rule import HAIR, SIZES, UNSEEN, Rule, absolute, relative
from benchmarks.coverage.gate_values import NUMBERS
from benchmarks.coverage.rows import Random
from benchmarks.coverage.samples import codes_of, shared
from benchmarks.paired_coverage import auroc, classifiers, macro_f1


def of_slices(random: Random, n: int) -> Report:
    """Four slices of n samples, one of which is worse than the others."""
    parts = np.repeat(np.arange(4), n)
    return mean_report(random.random(4 * n) < np.where(parts == 0, 0.8, 0.95), parts=parts)


def of_loss_slices(random: Random, n: int) -> Report:
    parts = np.repeat(np.arange(4), n)
    losses = random.exponential(size=4 * n) * np.where(parts == 0, 1.0, 0.5)
    return mean_report(losses, parts=parts, higher_is_better=False)


def of_worse_slice(random: Random, n: int) -> tuple[Report, Report]:
    """The same samples, of which a slice lost 2 %."""
    parts = np.repeat(np.arange(4), n)
    before, after = right_pair(4 * n, np.where(parts == 0, 0.02, 0.0), random)
    return mean_report(before, parts=parts), mean_report(after, parts=parts)


def slice_rules() -> Iterator[Rule]:
    sizes = SIZES[1:]
    yield Rule(
        "--worst-slice",
        "accuracy, one of four slices of n is at the bound",
        partial(absolute, "worst-slice", 0.8, of_slices),
        sizes,
        2,
    )
    passes = partial(absolute, "worst-slice-max", 1.0, of_loss_slices)
    yield Rule("--worst-slice-max", "exponential loss, likewise", passes, sizes, 2)
    passes = partial(relative, "max-drop", 0.02, of_worse_slice)
    yield Rule('--max-drop "x[*]"', "accuracy, one of four slices of n lost 0.02", passes, sizes, 4)


def right_pair(n: int, drop: float | Array, random: Random, differing: float = 0.1) -> tuple[Array, Array]:
    """Whether two models are right, of which the second is worse by a drop; some samples differ besides."""
    u, agree = random.random(n), random.random(n) < 0.7
    lost, won = u < differing / 2 + drop, u > 1 - differing / 2
    return np.where(lost, True, np.where(won, False, agree)), np.where(lost, False, np.where(won, True, agree))


def of_drop(drop: float, differing: float, paired: bool, random: Random, n: int) -> tuple[Report, Report]:
    before, after = right_pair(n, drop, random, differing)
    if not paired:
        after = right_pair(n, drop, random, differing)[1]
    return mean_report(before), mean_report(after, first=0 if paired else n)


def of_rise(paired: bool, root: bool, random: Random, n: int) -> tuple[Report, Report]:
    """Losses with a long tail, of which the second model's are 1.1 times as large on average."""
    hard = random.exponential(size=n)
    before, after = hard * random.exponential(size=n), 1.1 * hard * random.exponential(size=n)
    if not paired:
        after = 1.1 * random.exponential(size=n) * random.exponential(size=n)
    first = 0 if paired else n
    return tuple(mean_report(x, root=root, higher_is_better=False, first=k) for x, k in ((before, 0), (after, first)))  # type: ignore[return-value]


def of_rare_rise(random: Random, n: int) -> tuple[Report, Report]:
    """Losses of which one in fifty is larger by 1, and the others hardly change."""
    before = random.random(n)
    after = before + 0.001 * random.normal(size=n) + (random.random(n) < 0.02)
    return mean_report(before, higher_is_better=False), mean_report(after, higher_is_better=False)


def of_f1(random: Random, n: int) -> tuple[Report, Report]:
    """Of two models the second finds fewer of the positives, and both share most of their mistakes."""
    target, u = random.random(n) < 0.3, random.random(n)
    found = [np.where(target, u < recall, u < 0.05).astype(int) for recall in (0.8, 0.75)]
    return tuple(metric_report(m.F1Score(), preds, target.astype(int)) for preds in found)  # type: ignore[return-value]


F1_DROP = 2 * 0.24 / (0.3 + 0.24 + 0.035) - 2 * 0.225 / (0.3 + 0.225 + 0.035)


def of_half(paired: bool, random: Random, n: int) -> tuple[Report, Report]:
    """The baseline is right on half; the new model loses 2 % of those and gains none."""
    before = random.random(n) < 0.5
    after = before & (random.random(n) < 0.98)
    if not paired:
        after = random.random(n) < 0.49
    return mean_report(before), mean_report(after, first=0 if paired else n)


SKILLS = (1.4, 1.3)


@cache
def true_drop(measure: Callable[..., Array]) -> float:
    (target, first), (_, second) = classifiers(np.random.default_rng(5), 1_000_000, SKILLS)
    ones = np.ones((1, len(target)))
    return float((measure(ones, target, first) - measure(ones, target, second))[0])


def of_models(measure: Callable[..., Array], random: Random, n: int) -> tuple[Report, Report]:
    (target, first), (_, second) = classifiers(random, n, SKILLS)
    return resampled(measure, target, first), resampled(measure, target, second)


LOST = 0.02


def of_lost_positives(random: Random, n: int) -> tuple[Report, Report]:
    """Half of the samples are positives, all above the negatives, of which the second model loses one in fifty."""
    target = (np.arange(n) % 2).astype(int)  # class 0 is the positive one
    scores = np.where(target == 0, 10.0, 0.0) + random.random(n)
    lost = (target == 0) & (random.random(n) < LOST)
    logits = [np.stack([each, np.zeros(n)], 1) for each in (scores, np.where(lost, scores - 20, scores))]
    return resampled(auroc, target, logits[0]), resampled(auroc, target, logits[1])


def change_rules() -> Iterator[Rule]:
    for drop, differing in ((0.01, 0.0), (0.02, 0.1)):
        draw = partial(of_drop, drop, differing, True)
        about = f"accuracy, a drop of {drop:g}, {100 * differing:g} % flip either way"
        yield Rule("--max-drop", about, partial(relative, "max-drop", drop, draw))
    draw = partial(of_drop, 0.02, 0.1, False)
    yield Rule("--max-drop", "accuracy of other samples", partial(relative, "max-drop", 0.02, draw))
    draw = partial(of_rise, True, False)
    yield Rule("--max-rise", "loss with a long tail", partial(relative, "max-rise", 0.1, draw), cost=2)
    draw = partial(of_rise, False, False)
    yield Rule("--max-rise", "the same, other samples", partial(relative, "max-rise", 0.1, draw), cost=2)
    root = math.sqrt(1.1) - 1
    yield Rule(
        "--max-rise", "root of that loss", partial(relative, "max-rise", root, partial(of_rise, True, True)), cost=2
    )
    passes = partial(relative, "max-rise", 0.02, of_rare_rise)
    yield Rule("--max-rise", "loss, one in fifty larger by 1", passes, reason=UNSEEN)
    yield Rule("--max-drop", "F1", partial(relative, "max-drop", F1_DROP, of_f1), SIZES[1:], 2)
    for paired in (True, False):
        about = f"accuracy of 0.5, 2 % of it lost{'' if paired else ', other samples'}"
        yield Rule("--min-ratio", about, partial(relative, "min-ratio", 0.98, partial(of_half, paired)))
    draw = partial(of_rise, True, False)
    yield Rule("--max-ratio", "loss with a long tail", partial(relative, "max-ratio", 1.1, draw), cost=2)
    for name, measure in (("macro F1", macro_f1), ("AUROC", auroc)):
        passes = partial(relative, "max-drop", true_drop(measure), partial(of_models, measure))
        yield Rule("--max-drop", f"{name}, resampled", passes, (100, 1_000), 4)
    passes = partial(relative, "max-drop", LOST, of_lost_positives)
    yield Rule("--max-drop", "AUROC, resampled, one positive in fifty lost", passes, (100, 1_000), 4)


def clustered(how: str, share: float, random: Random, clusters: int) -> Report:
    codes = codes_of(clusters, how, random)
    if share:
        return mean_report(shared(codes, lambda n: random.random(n) < share, random), codes)
    return mean_report(shared(codes, lambda n: random.exponential(size=n), random), codes, higher_is_better=False)


def clustered_pair(drop: float, random: Random, clusters: int) -> tuple[Report, Report]:
    codes = codes_of(clusters, "uneven", random)
    which = shared(codes, lambda n: random.choice(3, n, p=[0.05 + drop, 0.05, 0.9 - drop]), random)
    agree = shared(codes, lambda n: random.random(n) < 0.7, random)
    return (
        mean_report(np.where(which < 2, which == 0, agree), codes),
        mean_report(np.where(which < 2, which == 1, agree), codes),
    )


def clustered_losses(random: Random, clusters: int) -> tuple[Report, Report]:
    codes = codes_of(clusters, "uneven", random)
    before = shared(codes, lambda n: random.exponential(size=n), random)
    after = shared(codes, lambda n: 1.1 * random.exponential(size=n), random)
    return mean_report(before, codes, higher_is_better=False), mean_report(after, codes, higher_is_better=False)


def cluster_rules() -> Iterator[Rule]:
    sizes = (10, 30, 100)
    for how in ("equal", "uneven"):
        for share in (0.7, 0.95):
            about = f"accuracy of {share:g}, n {how} clusters"
            draw = partial(clustered, how, share)
            yield Rule("--min, --cluster", about, partial(absolute, "min", share, draw), sizes, 2)
    draw = partial(clustered, "uneven", 0.0)
    about, passes = "exponential loss, n uneven clusters", partial(absolute, "max", 1.0, draw)
    yield Rule("--max, --cluster", about, passes, sizes, 2, "few uneven clusters show too little of a long tail")
    draw = partial(clustered_pair, 0.02)
    yield Rule(
        "--max-drop, --cluster", "accuracy, n uneven clusters", partial(relative, "max-drop", 0.02, draw), sizes, 2
    )
    passes = partial(relative, "min-ratio", 0.68 / 0.7, partial(clustered_pair, 0.02))
    yield Rule("--min-ratio, --cluster", "the same", passes, sizes, 2)
    passes = partial(relative, "max-rise", 0.1, clustered_losses)
    yield Rule("--max-rise, --cluster", "exponential loss, n uneven clusters", passes, sizes, 2)


LOOKS = 20
Arrays = tuple[Array, Array | None]


def looked(kind: str, bound: float, high: float, draw: Callable[[Random, int], Arrays], random: Random, n: int) -> bool:
    """Whether a rule passes at one of 20 looks at up to n samples of numbers from 0 to ``high``, or of yes or no."""
    after, before = draw(random, n)
    ranges = {"x": (0.0, high)} if high else None
    baseline = None if before is None else mean_report(before, higher_is_better=not high)
    for count in range(n // LOOKS, n + 1, n // LOOKS):
        report = mean_report(after[:count], higher_is_better=not high)
        if gate(report, {kind: {"x": bound}}, baseline, sequential=True, ranges=ranges).outcome == "pass":
            return True
    return False


def looked_drop(random: Random, n: int) -> Arrays:
    before, after = right_pair(n, 0.02, random)
    return after, before


def looked_rise(random: Random, n: int) -> Arrays:
    before = random.random(n)
    return np.clip(before + 0.001 * random.normal(size=n), 0, 1) + (random.random(n) < 0.02), before


def looked_clusters(random: Random, clusters: int) -> bool:
    """Whether a true drop passes at one of 20 looks at up to so many clusters, which come one after another."""
    codes = codes_of(clusters, "uneven", random)
    which = shared(codes, lambda n: random.choice(3, n, p=[0.07, 0.05, 0.88]), random)
    before, after = (which == 0) | (which == 2), which > 0
    baseline = mean_report(before, codes)
    for count in range(clusters // LOOKS, clusters + 1, clusters // LOOKS):
        seen = codes < count
        report = mean_report(after[seen], codes[seen])
        if gate(report, {"max-drop": {"x": 0.02 - HAIR}}, baseline, sequential=True).outcome == "pass":
            return True
    return False


def sequential_rules() -> Iterator[Rule]:
    sizes = (100, 1_000)
    for p in (0.5, 0.95):
        passes = partial(looked, "min", p + HAIR, 0.0, lambda random, n, p=p: (random.random(n) < p, None))
        yield Rule("--min, --sequential", f"accuracy of {p:g}, 20 looks", passes, sizes, 8)
    passes = partial(looked, "max-drop", 0.02 - HAIR, 0.0, looked_drop)
    yield Rule("--max-drop, --sequential", "accuracy, a drop of 0.02, 20 looks", passes, sizes, 8)
    about = "accuracy, n uneven clusters, a drop of 0.02, 20 looks"
    yield Rule("--max-drop, --sequential, --cluster", about, looked_clusters, (100,), 8)
    draw, truth = NUMBERS["1 % are 1, others 0.1 at most"]
    passes = partial(looked, "max", truth - HAIR, 1.0, lambda random, n: (draw(random, n), None))
    yield Rule("--max, --sequential, --range", "mean, 1 % are 1, others 0.1 at most, 20 looks", passes, sizes, 8)
    passes = partial(looked, "max-rise", 0.0195, 2.0, looked_rise)
    yield Rule("--max-rise, --sequential, --range", "loss, one in fifty larger by 1, 20 looks", passes, sizes, 8)
