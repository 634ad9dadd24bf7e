"""How far values are from exact arithmetic on the same inputs: assay and other libraries, fed the same batches."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.meter import Meter
from assay.metrics.base import Metric
from benchmarks.harness import Table, metric, save

OTHERS = ("torchmetrics", "torcheval", "ignite")
COLUMNS = ("assay", *OTHERS)


@dataclass(frozen=True)
class Case:
    """A metric on given samples, and its exact value."""

    name: str
    data: tuple[Tensor, ...]
    truth: Callable[..., Fraction | float]
    assay: Callable[[], Metric]
    torchmetrics: Callable[[], Any] | None = None
    torcheval: Callable[[], Any] | None = None
    ignite: Callable[[], Any] | None = None
    batch: int = 1_024

    def batches(self) -> list[tuple[Tensor, ...]]:
        return list(zip(*(tensor.split(self.batch) for tensor in self.data), strict=True))

    def value(self, library: str) -> float:
        """What a library reads after all batches."""
        if library == "assay":
            meter = Meter(value=self.assay())
            for batch in self.batches():
                meter.update(*batch)
            return float(meter.compute()["value"])
        other = getattr(self, library)()
        for batch in self.batches():
            if library == "ignite":
                other.update(batch if len(batch) > 1 else batch[0][:, None])  # a row is a sample
            else:
                other.update(*batch)
        return float(other.compute())


# --- exact values --------------------------------------------------------------------------------------------------


def exactly(tensor: Tensor) -> list[Fraction]:
    return [Fraction(*float(x).as_integer_ratio()) for x in tensor.tolist()]


def root(square: Fraction) -> float:
    """The square root, to many more digits than a float has."""
    scaled = square * (1 << 400)
    return float(Fraction(math.isqrt(scaled.numerator // scaled.denominator), 1 << 200))


def spread(x: list[Fraction], y: list[Fraction]) -> Fraction:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))


def true_mse(preds: Tensor, target: Tensor) -> Fraction:
    return sum((a - b) ** 2 for a, b in zip(exactly(preds), exactly(target), strict=True)) / len(preds)


def true_r2(preds: Tensor, target: Tensor) -> Fraction:
    y = exactly(target)
    return 1 - true_mse(preds, target) * len(y) / spread(y, y)


def true_pearson(preds: Tensor, target: Tensor) -> float:
    x, y = exactly(preds), exactly(target)
    joint = spread(x, y)
    return math.copysign(root(joint * joint / (spread(x, x) * spread(y, y))), joint)


def true_concordance(preds: Tensor, target: Tensor) -> Fraction:
    x, y = exactly(preds), exactly(target)
    apart = (sum(x) - sum(y)) / len(x)
    return 2 * spread(x, y) / (spread(x, x) + spread(y, y) + len(x) * apart * apart)


def true_mean(values: Tensor) -> Fraction:
    return sum(exactly(values)) / len(values)


def true_auroc(preds: Tensor, target: Tensor) -> Fraction:
    """Pairs of a positive and a negative sample: how many are in order, ties for a half."""
    scores, positive = preds.double().numpy(), target.numpy().astype(bool)
    ordered = np.sort(scores[~positive])
    below = np.searchsorted(ordered, scores[positive], "left")
    to = np.searchsorted(ordered, scores[positive], "right")
    return Fraction(int(below.sum()) + int(to.sum()), 2 * int(positive.sum()) * len(ordered))


def true_calibration(preds: Tensor, target: Tensor) -> Fraction:
    """15 bins of one width; nothing here falls on an edge."""
    cells = (preds.double() * 15).long()
    scaled = (preds.double() * 2**60).numpy().astype(object)
    scaled = np.array([int(x) for x in scaled], dtype=object)
    total = Fraction(0)
    for cell in cells.unique().tolist():
        chosen = (cells == cell).numpy()
        total += abs(Fraction(int(scaled[chosen].sum()), 2**60) - int(target[torch.from_numpy(chosen)].sum()))
    return total / len(preds)


def true_spearman(preds: Tensor, target: Tensor) -> float:
    from scipy.stats import rankdata

    x, y = (2 * rankdata(values.numpy()).astype(np.float64) for values in (preds, target))
    x, y = ((values - values.mean()).astype(np.int64).astype(object) for values in (x, y))
    return root(Fraction(int((x * y).sum()) ** 2, int((x * x).sum()) * int((y * y).sum())))


def true_perplexity(preds: Tensor, target: Tensor) -> float:
    logits = preds.double()
    losses = logits.logsumexp(-1) - logits.gather(-1, target[..., None]).squeeze(-1)
    return math.exp(math.fsum(losses.view(-1).tolist()) / losses.numel())


def true_mcc(preds: Tensor, target: Tensor) -> float:
    table = torch.bincount(target * 2 + preds, minlength=4).tolist()
    tn, fp, fn, tp = table
    above = tp * tn - fp * fn
    return root(Fraction(above * above, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


# --- samples -------------------------------------------------------------------------------------------------------


def pairs(count: int, offset: float = 0.0, noise: float = 0.5) -> tuple[Tensor, Tensor]:
    target = torch.randn(count) + offset
    return target + torch.randn(count) * noise, target


def cancelling(count: int) -> tuple[Tensor]:
    large = torch.randn(count // 2) * 1e30
    return (torch.cat([large, torch.randn(count % 2 + 1_000), -large])[torch.randperm(2 * (count // 2) + 1_000)],)


def wide(count: int) -> tuple[Tensor]:
    return (torch.exp(torch.randn(count) * 10),)


def logits(count: int, mean: float, deviation: float) -> tuple[Tensor, Tensor]:
    target = torch.randint(0, 2, (count,))
    return torch.randn(count) * deviation + mean + target * 0.5 * deviation, target


def confident(count: int) -> tuple[Tensor, Tensor]:
    scores = torch.rand(count) * 0.0099 + 0.99
    return scores, (torch.rand(count) < scores).long()


def tied(count: int) -> tuple[Tensor, Tensor]:
    half = count // 2
    x = torch.cat([torch.zeros(half), torch.randn(count - half).abs()])
    return x, torch.where(torch.rand(count) < 0.2, torch.randn(count).abs(), x)


def certain_tokens(count: int, gap: float) -> tuple[Tensor, Tensor]:
    scores = torch.zeros(count, 8, 50)
    scores[..., 1] = gap
    return scores, torch.zeros(count, 8, dtype=torch.int64)


def rare(count: int) -> tuple[Tensor, Tensor]:
    target = (torch.rand(count) < 1e-4).long()
    flip = torch.rand(count)
    return torch.where(target.bool(), flip < 0.02, flip < 1e-4).long(), target


def cases() -> list[Case]:
    import ignite.metrics as ig
    import torcheval.metrics as te
    import torchmetrics as tm
    from ignite.metrics import regression as igr
    from torchmetrics import classification as tmc
    from torchmetrics import regression as tmr
    from torchmetrics.text import Perplexity as TmPerplexity

    of = partial
    torch.manual_seed(0)
    mse = (true_mse, of(metric, "MeanSquaredError"), tm.MeanSquaredError, te.MeanSquaredError, ig.MeanSquaredError)
    r2 = (true_r2, of(metric, "R2Score"), tmr.R2Score, te.R2Score, igr.R2Score)
    pearson = (
        true_pearson,
        of(metric, "PearsonCorrCoef"),
        tmr.PearsonCorrCoef,
        None,
        igr.PearsonCorrelation,
    )
    concordance = (true_concordance, of(metric, "ConcordanceCorrCoef"), tmr.ConcordanceCorrCoef)
    mean = (true_mean, of(metric, "Mean"), tm.MeanMetric, te.Mean, ig.Average)
    auroc = (true_auroc, of(metric, "AUROC", logits=True), of(tmc.BinaryAUROC, validate_args=False), te.BinaryAUROC)
    small = 20_000
    return [
        Case("MSE, normal", pairs(small), *mse),
        Case("MSE, offset 1e6", pairs(small, 1e6), *mse),
        Case("R2, offset 1e3", pairs(small, 1e3), *r2),
        Case("R2, offset 1e4, useless model", pairs(small, 1e4, noise=1.0), *r2),
        Case("Pearson, offset 1e3", pairs(small, 1e3), *pearson),
        Case("Pearson, offset 1e6", pairs(small, 1e6), *pearson),
        Case("concordance, offset 1e6", pairs(small, 1e6), *concordance),
        Case("mean, exponents from 1e-17 to 1e17", wide(small), *mean),
        Case("mean, cancellation of 1e30", cancelling(small), *mean),
        Case(
            "sum of 2^24 + 65,536 ones",
            (torch.ones(2**24 + 65_536),),
            lambda values: Fraction(len(values)),
            of(metric, "Sum"),
            tm.SumMetric,
            te.Sum,
            batch=997,
        ),
        Case("AUROC of logits N(0, 1)", logits(100_000, 0, 1), *auroc),
        Case("AUROC of logits N(20, 3)", logits(100_000, 20, 3), *auroc),
        Case("AUROC of logits N(40, 3)", logits(100_000, 40, 3), *auroc),
        Case(
            "calibration error, confident and calibrated",
            confident(1_000_000),
            true_calibration,
            of(metric, "CalibrationError"),
            of(tmc.BinaryCalibrationError, n_bins=15, validate_args=False),
        ),
        Case(
            "MCC of a class of 1 in 10,000",
            rare(2_000_000),
            true_mcc,
            of(metric, "MatthewsCorrCoef"),
            of(tmc.BinaryMatthewsCorrCoef, validate_args=False),
            batch=65_536,
        ),
        Case(
            "Spearman, 200,000 values, half of them tied",
            tied(200_000),
            true_spearman,
            of(metric, "SpearmanCorrCoef"),
            tmr.SpearmanCorrCoef,
        ),
        Case(
            "perplexity, tokens 105 below the top",
            certain_tokens(64, 105.0),
            true_perplexity,
            of(metric, "Perplexity"),
            TmPerplexity,
            te.Perplexity,
            batch=16,
        ),
    ]


def error(value: float, truth: Fraction | float) -> float:
    """Relative, computed exactly."""
    if not math.isfinite(value):
        return math.inf
    exact = Fraction(truth)
    return float(abs(Fraction(value) - exact) / abs(exact))


def shown(value: float, truth: Fraction | float) -> str:
    if not math.isfinite(value):
        return f"reads {value}"
    return f"{error(value, truth):.1e}"


def main() -> None:
    table = Table("Relative error of the value, against exact arithmetic", ["samples", "truth", *COLUMNS])
    raw = {}
    for case in cases():
        truth = case.truth(*case.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = {name: case.value(name) for name in COLUMNS if getattr(case, name) is not None}
        cells = [shown(values[name], truth) if name in values else "-" for name in COLUMNS]
        table.rows.append([case.name, f"{float(truth):.6g}", *cells])
        print(*table.rows[-1], sep=" | ", flush=True)
        raw[case.name] = {"truth": float(truth), **values}
    table.notes.append(
        "1.1e-16 is half a unit in the last place of a float64, the least that rounding once may cost. "
        "Other libraries are used as they come, in float32 where that is what they keep."
    )
    save("accuracy_of_values", [table], raw)


if __name__ == "__main__":
    main()
