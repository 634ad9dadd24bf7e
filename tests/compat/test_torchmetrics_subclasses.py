"""Subclasses that users write of TorchMetrics' classes."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torchmetrics as original
from assay.compat.torchmetrics.classification import BinaryAccuracy, BinaryStatScores
from matplotlib import pyplot

from assay.compat import torchmetrics
from assay.compat.drop_ins import FAMILIES
from assay.compat.for_torchmetrics.subclasses import _states
from assay.errors import AssayWarning
from assay.integrations import AssayMetric
from assay.migrate.table import library
from migrate.test_draws import Drawn
from migrate.test_table import theirs

BATCH = torch.tensor([0.9, 0.2, 0.7, 0.6]), torch.tensor([1, 0, 0, 1])

with pytest.warns(AssayWarning, match="BalancedAccuracy.*TorchMetrics itself computes it.*defines `compute`") as WARNED:

    class BalancedAccuracy(BinaryStatScores):
        """Reads the states, as metrics of kaiko-ai/eva do."""

        def compute(self):
            tp, fp, tn, fn = self._final_state()
            return (tp / (tp + fn) + tn / (tn + fp)) / 2


class Named(torchmetrics.MeanSquaredError):
    """Changes the name, an argument and what is no count."""

    higher_is_better = False

    def __init__(self, **options):
        super().__init__(squared=False, **options)

    def forward(self, preds, target):
        return super().forward(preds.flatten(), target.flatten())

    @property
    def rows(self):
        return self.meter.rows


class Renamed(torchmetrics.KendallRankCorrCoef):
    def p_value(self):
        return self.compute()[1]


def of_states(kinds):
    class Confidences(kinds.classification.BinaryCalibrationError):
        def plot(self):
            return torch.cat(self.confidences)

    class Curve(kinds.classification.BinaryPrecisionRecallCurve):
        @property
        def positives(self):
            return self.confmat if self.thresholds is not None else [each.sum() for each in self.target]

    class Labels(kinds.classification.BinaryAccuracy):
        def update(self, preds, target):
            super().update(1 - preds, target)

    class Missed(kinds.classification.BinaryStatScores):
        def missed(self):
            return self.fn

    class Cubed(kinds.retrieval.RetrievalMRR):
        def _metric(self, preds, target):
            return super()._metric(preds, target) ** 3

    return Confidences, Curve, Labels, Missed, Cubed


def test_a_subclass_that_counts_or_reads_states_is_torchmetrics_own():
    assert len(WARNED) == 1
    assert WARNED[0].filename == __file__
    metric = BalancedAccuracy()
    metric.update(*BATCH)
    assert metric.compute() == 0.75
    assert isinstance(metric, BinaryStatScores)
    assert not isinstance(metric, AssayMetric)
    assert issubclass(BalancedAccuracy, original.classification.BinaryStatScores)
    for copied in (pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric), metric.clone()):
        assert type(copied) is BalancedAccuracy
        assert copied.compute() == 0.75
    collection = torchmetrics.MetricCollection([BalancedAccuracy(), BinaryAccuracy()])
    assert collection(*BATCH) == {"BalancedAccuracy": 0.75, "BinaryAccuracy": 0.75}


def test_each_way_to_use_states_is_noticed():
    with pytest.warns(AssayWarning) as warned:
        kinds = of_states(torchmetrics)
    reasons = ("`confidences`", "`confmat`", "defines `update`", "`fn`", "defines `_metric`")
    for each, reason in zip(warned, reasons, strict=True):
        assert reason in str(each.message)
    ours, expected = ([kind() for kind in each] for each in (kinds, of_states(original)))
    for mine, there in zip(ours, expected, strict=True):
        batch = (*BATCH, torch.zeros(4, dtype=torch.long)) if "indexes" in there._defaults else BATCH
        torch.testing.assert_close(mine(*batch), there(*batch))
        for name in {"plot", "missed"} & {name for kind in type(mine).__mro__[:1] for name in vars(kind)}:
            torch.testing.assert_close(getattr(mine, name)(), getattr(there, name)())
    assert ours[1].positives == expected[1].positives
    ours[2].plot()
    pyplot.close("all")


def test_a_subclass_that_changes_names_and_arguments_is_counted():
    metric = Named()
    assert metric(torch.zeros(2, 3), torch.full((2, 3), 2.0)) == 2
    assert metric.rows == 6
    assert "assay.compat" in Named.__mro__[1].__module__
    assert isinstance(pickle.loads(pickle.dumps(metric)), Named)
    assert not isinstance(torchmetrics.MeanSquaredError(), Named)


def test_a_subclass_keeps_its_methods_where_an_argument_has_no_counterpart():
    with pytest.warns(AssayWarning, match="t_test"):
        metric = Renamed(t_test=True)
    metric.update(torch.tensor([1.0, 2.0, 3.0, 5.0]), torch.tensor([1.0, 3.0, 2.0, 6.0]))
    expected = original.KendallRankCorrCoef(t_test=True)
    expected.update(torch.tensor([1.0, 2.0, 3.0, 5.0]), torch.tensor([1.0, 3.0, 2.0, 6.0]))
    for each in (metric, pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert isinstance(each, Renamed)
        assert each.p_value() == expected.compute()[1]


def test_what_torchmetrics_made_is_an_instance_of_its_compatible_class():
    assert isinstance(original.MeanSquaredError(), torchmetrics.MeanSquaredError)
    assert not isinstance(original.MeanSquaredError(), torchmetrics.MeanAbsoluteError)
    classification = torchmetrics.classification
    assert issubclass(classification.MulticlassF1Score, classification.MulticlassFBetaScore)
    assert not issubclass(int, torchmetrics.MeanSquaredError)


def test_a_state_that_counts_do_not_say_is_named():
    with pytest.raises(AttributeError, match=r"CosineSimilarity.preds: got a state .* metric_state"):
        _ = torchmetrics.CosineSimilarity().preds
    assert not hasattr(torchmetrics.MeanSquaredError(), "nothing")


@pytest.mark.filterwarnings("ignore")
def test_the_states_of_each_class_are_known():
    for name, entry in library("torchmetrics").entries.items():
        if entry.function or entry.tasks or name in FAMILIES:
            continue
        kind, given = theirs("torchmetrics", name), Drawn(entry, 0).given
        needed = {each.name for each in entry.takes if each.default is None or each.name == entry.needs}
        metric = kind(**{each: eval(value) for each, value in given.items() if each in needed})
        if name != "CHRFScore":  # which names them in a loop
            assert set(metric._defaults) <= _states(kind), name
