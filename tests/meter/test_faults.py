"""What goes wrong: the meter says so, and is either as it was or refuses to be read."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch

from assay.errors import (
    CapacityError,
    ConfigError,
    DtypeError,
    InvalidValuesError,
    NoDataWarning,
    ShapeError,
    StateError,
)
from assay.meter import Meter
from assay.metrics.aggregation.quantile import Quantile
from assay.metrics.aggregation.values import Mean, Sum
from assay.metrics.classification.confusion import ConfusionMatrix
from assay.metrics.classification.ranking import AUROC
from assay.metrics.classification.rates import Accuracy
from assay.metrics.regression.errors import MeanSquaredError
from assay.metrics.regression.rank_correlation import SpearmanCorrCoef
from assay.tally.labels.confusion import Confusion
from assay.tally.stores import sample_store
from assay.tally.stores.samples import SampleTally
from assay.tally.sums.sums import Sums
from laws import bits

STAGES = pytest.mark.parametrize("stage_bytes", [0, 256, 1 << 21])


def pairs(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, generator=generator), torch.randn(count, generator=generator)


@dataclass(frozen=True)
class Moody(MeanSquaredError):  # noqa: N818 - not an exception
    """Reads its value when it is told that it may."""

    def compute(self, counts):
        if not ALLOWED:
            raise RuntimeError("not today")
        return super().compute(counts)


ALLOWED: list[bool] = []


@pytest.fixture
def allowed():
    yield ALLOWED
    ALLOWED.clear()


@STAGES
def test_an_exception_in_compute_leaves_the_meter_as_it_was(stage_bytes, allowed):
    meter = Meter(mse=MeanSquaredError(), moody=Moody(), rho=SpearmanCorrCoef(), stage_bytes=stage_bytes)
    meter.update(*pairs(20))
    with pytest.raises(RuntimeError, match="not today"):
        meter.compute()
    meter.update(*pairs(10, 1))
    allowed.append(True)
    whole = meter.fresh()
    whole.update(*(torch.cat(both) for both in zip(pairs(20), pairs(10, 1), strict=True)))
    assert bits(meter) == bits(whole)


WRONG = [
    (lambda x, y: (x, y[:-1]), ShapeError, "target: got 3 samples, expected as many as preds has, 4"),
    (lambda x, y: (x, y[:, None, None]), ShapeError, r"target: got shape \(N, 1, 1\)"),
    (lambda x, y: (x, None), ShapeError, "target: got nothing"),
    (lambda x, y: (x.to(torch.complex64), y), DtypeError, r"preds: got torch\.complex64"),
    (lambda x, y: (list(x), y), ShapeError, "preds: got list, expected a tensor"),
]


@STAGES
@pytest.mark.parametrize(("spoil", "error", "message"), WRONG)
def test_a_wrong_batch_in_the_middle_of_a_stream_is_not_counted(stage_bytes, spoil, error, message):
    metrics = {"mse": MeanSquaredError(), "rho": SpearmanCorrCoef(), "mean": Mean()}
    meter, whole = Meter(**metrics, stage_bytes=stage_bytes), Meter(**metrics)
    for seed in range(4):
        meter.update(*pairs(4, seed))
        whole.update(*pairs(4, seed))
        with pytest.raises(error, match=message):
            meter.update(*spoil(*pairs(4, 9)))
    assert meter.rows == 16
    assert bits(meter) == bits(whole)


def test_weights_that_were_not_announced_are_not_counted():
    meter = Meter(mse=MeanSquaredError())
    meter.update(*pairs(4))
    with pytest.raises(ConfigError, match="weights: got weights, expected none"):
        meter.update(*pairs(4), weights=torch.ones(4))
    assert meter.rows == 4


@STAGES
def test_labels_out_of_range_are_counted_and_raise_when_read(stage_bytes):
    meter = Meter(acc=Accuracy(num_classes=3), matrix=ConfusionMatrix(num_classes=3), stage_bytes=stage_bytes)
    meter.update(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 3, -7]))
    before = bits(meter)
    for _ in range(2):
        with pytest.raises(
            InvalidValuesError, match=r"acc: got 2 of the targets are outside 0 \.\.\. 2, expected none"
        ):
            meter.compute()
    assert bits(meter) == before
    predicted = Meter(acc=Accuracy(num_classes=3))
    predicted.update(torch.tensor([0, 3, -1]), torch.tensor([0, 1, 2]))
    with pytest.raises(InvalidValuesError, match=r"acc: got 2 of the predictions are NaN or outside 0 \.\.\. 2"):
        predicted.compute()


def test_nan_scores_are_counted_and_raise_when_read():
    scores = torch.tensor([[0.1, 0.9], [float("nan"), 0.2], [0.4, 0.6]])
    meter = Meter(acc=Accuracy(num_classes=2))
    meter.update(scores, torch.tensor([1, 0, 1]))
    with pytest.raises(InvalidValuesError, match="acc: got 1 of the predictions are NaN"):
        meter.compute()
    ranked = Meter(auroc=AUROC())
    ranked.update(scores[:, 0], torch.tensor([1, 0, 1]))
    with pytest.raises(InvalidValuesError, match=r"auroc: got 1 of the .*NaN"):
        ranked.compute()


@pytest.mark.parametrize("count", [2**24, 2**31, 2**40, 2**53])
def test_counters_go_on_beyond_every_round_number(count):
    meter = Meter(acc=Accuracy(num_classes=2), matrix=ConfusionMatrix(num_classes=2))
    meter.update(torch.tensor([1]), torch.tensor([1]))
    state = meter.state_dict()
    state["0.counts"] *= count
    meter.load_state_dict(state)
    for _ in range(3):
        meter.update(torch.tensor([1, 0]), torch.tensor([1, 1]))
    read = meter.compute()
    assert read["matrix"].tolist() == [[0, 0], [3, count + 3]]
    assert read["acc"].item() == float(Fraction(count + 3, count + 6))


@pytest.mark.parametrize("doublings", [24, 31, 40, 55])
def test_sums_go_on_beyond_every_round_number(doublings):
    meter = Meter(sum=Sum(), mean=Mean(), mse=MeanSquaredError())
    meter.update(torch.tensor([1.5, -0.25]), torch.zeros(2))
    for _ in range(doublings):
        meter = meter + meter
    meter.update(torch.tensor([1.0]), torch.tensor([0.0]))
    count = 2 * 2**doublings + 1
    assert meter.rows == count
    read = meter.compute()
    assert read["sum"].item() == float(Fraction(5, 4) * 2**doublings + 1)
    assert read["mean"].item() == float((Fraction(5, 4) * 2**doublings + 1) / count)
    assert read["mse"].item() == float((Fraction(37, 16) * 2**doublings + 1) / count)


@dataclass(frozen=True)
class Frugal(SpearmanCorrCoef):
    """Keeps no more than 4 KiB of samples in host memory."""

    def tally(self, weighted):
        return SampleTally(weighted=weighted, host_budget=4096)


@STAGES
def test_a_full_disk_costs_no_sample(stage_bytes, monkeypatch):
    metrics = {"mse": MeanSquaredError(), "rho": Frugal(), "q": Quantile(0.5)}
    meter, whole = Meter(**metrics, stage_bytes=stage_bytes), Meter(**metrics)

    def full(file, tensor):
        raise OSError(28, "No space left on device")

    refused = 0
    for seed in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(sample_store, "_write", full)
            try:
                meter.update(*pairs(100, seed))
            except CapacityError as error:
                refused += 1
                assert "No space left on device" in str(error)  # noqa: PT017 - not every update needs the disk
                patch.undo()
                meter.update(*pairs(100, seed))
        whole.update(*pairs(100, seed))
    assert refused > 0 or stage_bytes == 1 << 21
    assert meter.rows == 2000
    assert bits(meter) == bits(whole)


def update_and_read(meter, *batch):
    meter.update(*batch)
    return meter.compute()


def broken_meter(monkeypatch, error, stage_bytes=0):
    """A meter whose second tally failed while the first had counted the batch."""
    meter = Meter(mse=MeanSquaredError(), rho=SpearmanCorrCoef(), stage_bytes=stage_bytes)
    meter.update(*pairs(8))
    with monkeypatch.context() as patch:

        def fails(self, state, batch):
            raise error

        patch.setattr(SampleTally, "add", fails)
        with pytest.raises(type(error)):
            update_and_read(meter, *pairs(8))
    return meter


READS = {
    "compute": lambda meter: meter.compute(),
    "update": lambda meter: meter.update(*pairs(8)),
    "another update": lambda meter: meter.update(*pairs(3)),
    "merge": lambda meter: meter.fresh().merge(meter),
    "pickle": pickle.dumps,
    "state_dict": lambda meter: meter.state_dict(),
    "sync": lambda meter: meter.sync(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "error", [MemoryError("no room"), KeyboardInterrupt(), torch.OutOfMemoryError("CUDA")], ids=repr
)
def test_a_meter_that_was_interrupted_in_the_middle_of_a_batch_refuses_to_be_read(monkeypatch, read, error):
    meter = broken_meter(monkeypatch, error)
    message = (
        f"meter: got counts that a {type(error).__name__} interrupted in the middle of a batch, expected whole "
        r"batches\. Call reset\(\) and count again, or load the last state that was saved\."
    )
    with pytest.raises(StateError, match=message):
        READS[read](meter)


def test_an_interrupted_meter_counts_again_after_reset_or_loading(monkeypatch):
    saved = Meter(mse=MeanSquaredError(), rho=SpearmanCorrCoef())
    saved.update(*pairs(8))
    meter = broken_meter(monkeypatch, MemoryError(), stage_bytes=1 << 20)
    meter.load_state_dict(saved.state_dict())
    assert bits(meter) == bits(saved)
    meter = broken_meter(monkeypatch, MemoryError())
    meter.reset()
    with pytest.warns(NoDataWarning):
        assert meter.compute()["mse"].isnan()
    meter.update(*pairs(8))
    assert bits(meter) == bits(saved)


def test_merging_an_interrupted_meter_leaves_the_others_as_they_were(monkeypatch):
    good, other = Meter(mse=MeanSquaredError(), rho=SpearmanCorrCoef()), None
    good.update(*pairs(5))
    other = good.fresh().merge(good)
    before = bits(good)
    with pytest.raises(StateError, match="interrupted"):
        good.merge(other, broken_meter(monkeypatch, MemoryError()))
    assert bits(good) == before


@pytest.mark.parametrize("tally", [Confusion, Sums])
def test_a_failure_of_the_first_tally_is_refused_too(monkeypatch, tally):
    """Whether it had changed something before it failed cannot be known."""
    meter = Meter(mse=MeanSquaredError(), stage_bytes=0) if tally is Sums else Meter(acc=Accuracy(num_classes=2))
    batch = pairs(4) if tally is Sums else (torch.tensor([0, 1]), torch.tensor([0, 1]))
    meter.update(*batch)
    with monkeypatch.context() as patch:
        patch.setattr(tally, "add", lambda self, state, batch: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            update_and_read(meter, *batch)
    with pytest.raises(StateError, match="a ZeroDivisionError interrupted"):
        meter.compute()
