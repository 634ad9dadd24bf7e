"""Descriptions, metadata and values that metrics of labels refuse."""

from __future__ import annotations

import math
import re

import pytest
import torch

from assay.errors import ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics.classification.agreement import CohenKappa
from assay.metrics.classification.confusion import ConfusionMatrix, ExactMatch, StatScores
from assay.metrics.classification.probabilities import HingeLoss
from assay.metrics.classification.rates import (
    Accuracy,
    F1Score,
    FBetaScore,
    Recall,
)
from assay.metrics.fairness.rates import EqualOpportunityDifference
from assay.metrics.image.similarity import UniversalImageQualityIndex
from assay.metrics.nominal.association import CramersV
from assay.metrics.text.translation import SacreBLEUScore
from metrics.labelled_samples import (
    CLASSES,
    LABELS,
    TASKS,
    every_task,
    sample,
)

WITHOUT_EFFECT = [
    (lambda: Accuracy(num_classes=3, threshold=0.9), "threshold: got 0.9, expected 0.5 for multiclass data"),
    (lambda: Recall(num_classes=3, top_k=2, threshold=0.9), "threshold: got 0.9"),
    (lambda: ConfusionMatrix(num_classes=3, threshold=0.9), "threshold: got 0.9"),
    (lambda: EqualOpportunityDifference(num_groups=2, num_classes=3, threshold=0.9), "threshold: got 0.9"),
    (lambda: F1Score(average="micro"), "average: got 'micro', expected 'macro' for binary data"),
    (lambda: StatScores(average="macro"), "average: got 'macro', expected None for binary data"),
    (lambda: HingeLoss(multiclass_mode="one-vs-all"), "multiclass_mode: got 'one-vs-all'"),
    (lambda: CramersV(nan_replace_value=1.0), "nan_replace_value: got 1.0"),
    (lambda: CramersV(nan_strategy="drop", nan_replace_value=1.0), "nan_replace_value: got 1.0"),
    (lambda: UniversalImageQualityIndex(gaussian_kernel=False, sigma=2.0), "sigma: got 2.0"),
    (lambda: SacreBLEUScore(smooth_value=0.5), "smooth_value: got 0.5"),
]


@pytest.mark.parametrize(("make", "message"), WITHOUT_EFFECT)
def test_an_argument_that_would_have_no_effect_is_refused(make, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}.*no effect"):
        make()


@pytest.mark.parametrize("task", [{}, {"num_labels": 2}])
def test_labels_are_no_logits(task):
    labels = torch.ones(3, 2, dtype=torch.int64)
    with pytest.raises(DtypeError, match=r"preds: got torch\.int64, expected floats, for logits=True"):
        Accuracy(logits=True, **task)(labels, labels)


UNKNOWN = "got 'mean', expected 'micro', 'macro', 'weighted' or None"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F1Score(num_classes=3, average="mean"), f"average: {UNKNOWN}"),
        (lambda: StatScores(average="mean"), f"average: {UNKNOWN}"),
        (
            lambda: Accuracy(num_classes=1),
            "num_classes: got 1, expected 2 or more. For binary data leave num_classes out",
        ),
        (lambda: Accuracy(num_labels=0), "num_labels: got 0, expected 1 or more. Give the number of labels."),
        (
            lambda: Recall(num_classes=3, num_labels=2),
            "Recall: got num_classes=3 and num_labels=2, expected one of them",
        ),
        (
            lambda: Recall(top_k=2),
            "top_k: got 2, expected 1 for data that is not multiclass. Give num_classes, or leave",
        ),
        (lambda: Recall(num_classes=3, top_k=4), "top_k: got 4, expected at most num_classes=3. Give a smaller k."),
        (lambda: Recall(num_classes=3, top_k=0), "top_k: got 0, expected an integer of 1 or more. Give the k of"),
        (lambda: Recall(threshold=1.5), "threshold: got 1.5, expected a probability in [0, 1]. Give a probability;"),
        (lambda: FBetaScore(beta=-1.0), "beta: got -1.0, expected 0 or more. Give how much recall counts against"),
        (lambda: FBetaScore(beta=math.nan), "beta: got nan, expected 0 or more."),
        (lambda: ConfusionMatrix(normalize="rows"), "normalize: got 'rows', expected 'true', 'pred', 'all' or None."),
        (
            lambda: CohenKappa(weights="cubic"),
            "weights: got 'cubic', expected 'linear', 'quadratic' or None",
        ),
        (lambda: CohenKappa(num_labels=3), "num_labels: got 3, expected None: kappa is of two raters of one item."),
        (
            lambda: ConfusionMatrix(num_classes=50_000),
            "num_classes: got 50000, whose Confusion takes 18.6 GiB, expected at most 2 GiB. Use metrics that need no",
        ),
        (
            lambda: Meter(value=ConfusionMatrix(num_classes=3_000), weighted=True),
            "num_classes: got 3000, whose Confusion takes",
        ),
    ],
)
def test_descriptions_that_cannot_be(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("metric", "preds", "target", "kind", "message"),
    [
        (Accuracy(num_classes=3), torch.rand(4), torch.zeros(4).long(), ShapeError, "preds: got shape (N,) and dtype"),
        (Accuracy(num_classes=3), torch.rand(4, 2), torch.zeros(4).long(), ShapeError, "expected shape (N, 3) (scores"),
        (
            Accuracy(),
            torch.rand(4, 2),
            torch.zeros(4).long(),
            ShapeError,
            "expected shape (N,). Pass num_classes=2, as preds has 2 scores for each target.",
        ),
        (
            Accuracy(num_labels=3),
            torch.rand(4, 2),
            torch.zeros(4, 2).long(),
            ShapeError,
            "target: got shape (N, 2), exp",
        ),
        (
            Accuracy(),
            torch.rand(4),
            torch.rand(4),
            DtypeError,
            "target: got torch.float32, expected an integer or bool",
        ),
        (
            Accuracy(num_classes=3),
            torch.zeros(4).long(),
            torch.rand(4, 3),
            DtypeError,
            "Exchange preds and target, where preds are the labels",
        ),
        (
            Accuracy(num_classes=3),
            torch.rand(4),
            torch.zeros(4).long(),
            ShapeError,
            "or pass labels as integers",
        ),
        (
            Accuracy(),
            torch.rand(4),
            None,
            ShapeError,
            "target: got nothing, expected one label per row. Pass preds and",
        ),
        (
            Accuracy(num_classes=3, top_k=2),
            torch.zeros(4).long(),
            torch.zeros(4).long(),
            DtypeError,
            "preds: got torch.int64, expected scores, for top_k=2. Pass one float score per class.",
        ),
    ],
)
def test_metadata_that_cannot_be(metric, preds, target, kind, message):
    with pytest.raises(kind) as error:
        metric(preds, target)
    assert message in str(error.value)


@every_task
@pytest.mark.parametrize("metric", [Accuracy, ExactMatch])
def test_values_that_cannot_be_raise_when_read(task, metric):
    data = sample(task)
    last = CLASSES - 1 if task == "multiclass" else 1
    target = data.target.clone()
    target.view(-1)[:3] = 77
    target.view(-1)[5] = -2
    more = " (more classes need num_classes=)" if task == "binary" else ""
    message = f"4 of the targets are outside 0 ... {last}{more} and are not ignore_index=-1, expected none"
    with pytest.raises(InvalidValuesError, match=re.escape(message)):
        metric(**TASKS[task], ignore_index=-1)(data.scores, target)
    scores = data.scores.clone()
    scores[2:4] = math.nan
    count = 2 * LABELS if task == "multilabel" else 2
    with pytest.raises(InvalidValuesError, match=f"{count} of the predictions are NaN or outside 0"):
        metric(**TASKS[task])(scores, data.target)
    weights = torch.ones(len(scores))
    weights[:2] = torch.tensor([math.inf, math.nan])
    with pytest.raises(InvalidValuesError, match="of the weights are negative, infinite or NaN, expected none"):
        metric(**TASKS[task])(data.scores, data.target, weights=weights)


def test_exact_match_takes_one_weight_per_sample():
    ones = torch.ones(2, 3)
    with pytest.raises(InputError, match=r"weights: got shape \(N, 3\), expected shape \(N,\)\. Give one weight per"):
        ExactMatch()(ones.long(), ones.long(), weights=ones)


@pytest.mark.parametrize("shape", [(2,), (3, 2), (5,)])
def test_scores_that_are_no_probabilities_are_counted_and_not_decided(shape):
    labels = {} if len(shape) == 1 else {"num_labels": shape[1]}
    scores, target = torch.full(shape, 0.75), torch.ones(shape, dtype=torch.int64)
    assert F1Score(**labels)(scores, target) == 1
    scores.view(-1)[0], scores.view(-1)[-1] = -0.25, 1.25
    with pytest.raises(
        InvalidValuesError, match=r"got 2 of the predictions are .* outside \[0, 1\] .*scores of any size are"
    ):
        F1Score(**labels)(scores, target)
    assert F1Score(logits=True, **labels)(scores, target) < 1
