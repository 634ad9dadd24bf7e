"""Named columns and raw samples in updates of a meter, with metrics made for the purpose."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from assay import Accuracy, Mean, Meter
from assay.encode.base import Encoder
from assay.errors import ConfigError, DtypeError, ShapeError
from assay.metrics.base import Metric, number
from assay.metrics.per_sample import SampleTerms, per_sample_values, predictions
from assay.tally.base import Batch, BatchLayout, Rule, State, Tally
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS
from assay.wrappers import Bootstrap, Multitask, Running


@dataclass(frozen=True)
class CountsByGroup(Tally):
    """How many of the samples of each group are above 0."""

    groups: int = 3

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({"groups"})

    @property
    def uses_target(self) -> bool:
        return False

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {"counts": "sum"}

    def check(self, layout: BatchLayout) -> None:
        if layout.columns["groups"].dtype.is_floating_point:
            raise DtypeError("groups: got floats")

    def zero(self, device: torch.device) -> State:
        return {"counts": torch.zeros(self.groups, dtype=torch.int64, device=device)}

    def add(self, state: State, batch: Batch) -> None:
        state["counts"].scatter_add_(0, batch.columns["groups"].long(), (batch.preds > 0).long())

    def compute(self, state: State) -> Tensor:
        return state["counts"]


@dataclass(frozen=True)
class Positives(Metric):
    """Positive predictions of each group."""

    def tally(self, weighted: bool) -> Tally:
        return CountsByGroup()

    def compute(self, counts: Tensor) -> Tensor:
        return counts


@dataclass(frozen=True)
class Lengths(Encoder):
    """The length of the prediction, and that of the target."""

    unit: str = "characters"
    takes = "strings"
    runs = 0

    def check(self, preds: Sequence[str], target: Sequence[str] | None) -> None:
        if any(not isinstance(each, str) for each in [*preds, *(target or ())]):
            raise ShapeError("preds: got something else, expected strings")

    def rows(self, preds: Sequence[str], target: Sequence[str] | None) -> Tensor:
        type(self).runs += 1
        size = len if self.unit == "characters" else lambda text: len(text.split())
        return torch.tensor([[size(p), size(t)] for p, t in zip(preds, target or preds, strict=True)]).reshape(-1, 2)


@dataclass(frozen=True)
class LengthRatio(Metric):
    """Length of predictions by that of targets."""

    unit: str = "characters"

    @property
    def encoder(self) -> Encoder:
        return Lengths(self.unit)

    def tally(self, weighted: bool) -> Tally:
        return Sums(frozenset({PREDS}), 2, weighted, ("preds",))

    def compute(self, counts: object) -> Tensor:
        above, below = counts[PREDS]
        return number(above / below if below else float("nan"))

    def per_sample(self, batch: Batch) -> SampleTerms:
        return SampleTerms.of("length", batch.preds[:, 0], "target length", batch.preds[:, 1])


PREDICTED = ["a b", "", "some words", "x", "yes"]
TARGETS = ["a b c", "d", "some word", "xyz", "yes"]
VALUE = float(Fraction(sum(map(len, PREDICTED)), sum(map(len, TARGETS))))


def test_a_column_is_counted_in_any_split():
    preds, groups = torch.tensor([1.0, -1, 2, 3, 4]), torch.tensor([0, 0, 2, 2, 1])
    for size in (1, 2, 5):
        for stage_bytes in (0, 64, 1 << 20):
            meter = Meter(n=Positives(), stage_bytes=stage_bytes)
            for k in range(0, 5, size):
                meter.update(preds[k : k + size], groups=groups[k : k + size])
            assert meter.compute()["n"].tolist() == [1, 1, 2]
    assert Positives()(preds, groups=groups).tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "Pass groups=... to update, for n"),
        ({"groups": None}, "got no column, expected groups"),
        ({"groups": torch.zeros(2), "indexes": torch.zeros(2)}, "Leave out indexes"),
        ({"index": torch.zeros(2, dtype=torch.int64)}, "Pass groups=..."),
    ],
)
def test_columns_that_are_missing_or_unknown_raise_and_count_nothing(columns, words):
    meter = Meter(n=Positives())
    for _ in range(2):  # the second time after a batch of that layout
        with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
            meter.update(torch.ones(2), **columns)
        rows = meter.rows
        meter.update(torch.ones(2), groups=torch.tensor([0, 1]))
        assert meter.rows == rows + 2


def test_no_metric_takes_a_column_that_it_does_not_count():
    with pytest.raises(ConfigError, match="got groups, expected none"):
        Mean()(torch.ones(2), groups=torch.zeros(2))


def test_columns_are_checked_as_the_other_arguments_are():
    meter = Meter(n=Positives())
    with pytest.raises(ShapeError, match="groups: got 3 samples"):
        meter.update(torch.ones(2), groups=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(DtypeError, match="groups"):
        meter.update(torch.ones(2), groups=torch.zeros(2))
    assert meter.rows == 0


def test_equal_layouts_with_other_columns_are_told_apart():
    meter = Meter(n=Positives(), mean=Mean())
    meter.update(torch.ones(2), groups=torch.tensor([0, 1]))
    meter.update(torch.ones(2), groups=torch.tensor([2, 2], dtype=torch.int32))
    assert meter.compute()["n"].tolist() == [1, 1, 2]


def meter_of(parts: Sequence[slice]) -> Meter:
    meter = Meter(ratio=LengthRatio())
    for part in parts:
        meter.update(PREDICTED[part], TARGETS[part])
    return meter


def test_raw_samples_are_counted_in_any_split_and_order(tmp_path):
    whole = meter_of([slice(None)])
    apart = meter_of([slice(3, 5), slice(0, 0), slice(0, 3)])
    merged = meter_of([slice(0, 2)]) + meter_of([slice(2, 5)])
    assert whole.rows == apart.rows == merged.rows == 5
    for meter in (whole, apart, merged, copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        assert meter.compute()["ratio"].item() == VALUE
        assert all(torch.equal(meter.states()[0][name], field) for name, field in whole.states()[0].items())
    assert LengthRatio()(PREDICTED, TARGETS).item() == VALUE
    assert LengthRatio()(tuple(PREDICTED), TARGETS).item() == VALUE
    assert LengthRatio()("ab", "abcd").item() == 0.5  # a string is one sample
    meter = Meter(ratio=LengthRatio())
    meter.load_state_dict(whole.state_dict())
    assert meter.compute()["ratio"].item() == VALUE


def test_raw_samples_with_weights():
    value = LengthRatio()(["a", "bcd"], ["ab", "ef"], weights=torch.tensor([2.0, 0.5]))
    assert value.item() == (2 * 1 + 0.5 * 3) / (2 * 2 + 0.5 * 2)


def test_equal_encoders_run_once_and_arithmetic_shares_them():
    meter = Meter(ratio=LengthRatio(), double=LengthRatio() * 2, words=LengthRatio("words"))
    Lengths.runs = 0
    meter.update(PREDICTED, TARGETS)
    assert Lengths.runs == 2
    values = meter.compute()
    assert values["double"].item() == 2 * values["ratio"].item()
    assert values["words"].item() == 6 / 8
    assert len(meter.tallies) == 2


def test_metrics_of_strings_and_of_tensors_are_not_one_meter():
    with pytest.raises(ConfigError, match=r"strings for ratio.*Multitask"):
        Meter(ratio=LengthRatio(), acc=Accuracy())


@pytest.mark.parametrize(
    ("preds", "target", "words"),
    [
        (torch.zeros(2), ["a", "b"], "preds: got a tensor of shape"),
        (["a", "b"], ["a"], "target: got 1 sample, expected as many as preds has, 2"),
        (b"ab", ["a"], "preds: got bytes"),
        ({"a": "b"}, ["a"], "preds: got dict"),
        (["a", None], ["a", "b"], "expected strings"),
        (None, ["a"], "preds: got nothing"),
    ],
)
def test_raw_samples_that_cannot_be_encoded_raise_and_count_nothing(preds, target, words):
    meter = meter_of([slice(None)])
    with pytest.raises(ShapeError, match=words):
        meter.update(preds, target)
    assert meter.rows == 5
    assert meter.compute()["ratio"].item() == VALUE


def test_per_sample_values_of_raw_samples():
    values = per_sample_values(LengthRatio(), PREDICTED, TARGETS)
    assert values.terms[values.numerator].tolist() == [len(text) for text in PREDICTED]
    assert values.terms[values.denominator].tolist() == [len(text) for text in TARGETS]


def test_wrappers_take_raw_samples_and_columns():
    running = Running(Meter(ratio=LengthRatio()), 2)
    for k in range(5):
        running.update(PREDICTED[k : k + 1], TARGETS[k : k + 1])
    assert running.total().compute()["ratio"].item() == (1 + 3) / (3 + 3)
    bootstrap = Bootstrap(Meter(ratio=LengthRatio()))
    bootstrap.update(PREDICTED[:2], TARGETS[:2])
    bootstrap.update(PREDICTED[2:], TARGETS[2:], ids=["c", "d", "e"])
    assert bootstrap.total().compute()["ratio"].item() == VALUE
    tasks = Multitask(text=Meter(ratio=LengthRatio()), seg=Meter(n=Positives()))
    tasks.update({"text": ["a"], "seg": torch.ones(2)}, {"text": ["bc"]}, groups={"seg": torch.tensor([0, 2])})
    values = tasks.compute()
    assert values["text"]["ratio"].item() == 0.5
    assert values["seg"]["n"].tolist() == [1, 0, 1]


def test_per_sample_values_take_raw_samples_as_an_update_does():
    assert per_sample_values(LengthRatio(), "ab", "abcd").terms["length"].tolist() == [2]
    with pytest.raises(ShapeError, match="target: got 1 sample"):
        per_sample_values(LengthRatio(), ["a", "b"], ["a"])
    assert per_sample_values(LengthRatio() * 2, ["a"], ["b"]) is None
    assert predictions(LengthRatio() * 2, ["a"], ["b"]) is None
