"""Count sound updates of a pretended device that rounds otherwise than the CPU: no check may accuse it.

`python -m benchmarks.proof.soak --updates 1000000` takes some minutes; the page docs/proof.md says how many were made.
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch

from assay.errors import AssayWarning
from assay.meter import Meter
from assay.metrics import (
    AUROC,
    Accuracy,
    CalibrationError,
    CosineSimilarity,
    F1Score,
    LogLoss,
    Max,
    MeanSquaredError,
    MeanSquaredLogError,
    SpearmanCorrCoef,
    TweedieDevianceScore,
)
from assay.pretend import pretend
from benchmarks.proof.rounding import OtherRounding

CLASSES = 5
STAGE_BYTES = 1 << 16
"""Small, so that there are many flushes, of which some are drawn."""


def meters() -> dict[str, Meter]:
    """What is counted, by which of the samples below it takes."""
    of_classes = {"num_classes": CLASSES, "logits": True}
    return {
        "classes": Meter(
            stage_bytes=STAGE_BYTES,
            accuracy=Accuracy(num_classes=CLASSES),
            f1=F1Score(num_classes=CLASSES),
            loss=LogLoss(**of_classes),
            auroc=AUROC(**of_classes, exact_up_to=1000),
            calibration=CalibrationError(**of_classes),
        ),
        "numbers": Meter(
            stage_bytes=STAGE_BYTES,
            mse=MeanSquaredError(),
            msle=MeanSquaredLogError(),
            deviance=TweedieDevianceScore(power=1.5),
        ),
        "rows": Meter(stage_bytes=STAGE_BYTES, cosine=CosineSimilarity()),
        "kept": Meter(stage_bytes=STAGE_BYTES, rank=SpearmanCorrCoef()),
        "values": Meter(stage_bytes=STAGE_BYTES, largest=Max()),
    }


def batch(kind: str, rows: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Samples on the CPU."""
    if kind == "classes":
        scores = torch.randn(rows, CLASSES, generator=generator) * 3
        return scores, torch.randint(0, CLASSES, (rows,), generator=generator)
    shape = (rows, 3) if kind == "rows" else (rows,)
    numbers = torch.rand(shape, generator=generator), torch.rand(shape, generator=generator)
    return numbers[:1] if kind == "values" else numbers


def soak(updates: int, device: str = "mps", seed: int = 0, read_every: int = 20_000) -> tuple[int, int, int]:
    """How many updates were sound, how many of their batches were counted once more, and how many floats were moved.

    Raises:
        DeviceFaultError: a check accused the device, which is a false alarm.
    """
    generator = torch.Generator().manual_seed(seed)
    done, recounted, kinds = 0, 0, meters()
    with pretend(device), warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        sizes = [16] * 63 + [5]
        pools = {
            kind: [tuple(each.to(device) for each in batch(kind, rows, generator)) for rows in sizes] for kind in kinds
        }
        with OtherRounding(device, seed) as rounding:
            while done < updates:
                for kind, meter in kinds.items():
                    pool = pools[kind]
                    for k in range(min(read_every, -(-(updates - done) // len(kinds)))):
                        meter.update(*pool[k % len(pool)])
                    meter.compute()
                    summary = meter.counts.recounted()
                    done, recounted = done + summary.batches, recounted + summary.recounted
                    meter.reset()
    return done, recounted, rounding.changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    done, recounted, changed = soak(options.updates, seed=options.seed)
    took = time.perf_counter() - start
    print(f"{done:,} sound updates, {recounted:,} recounted, {changed:,} floats one ulp off, no alarm; {took:.0f} s")


if __name__ == "__main__":
    main()
