"""Classification metrics against TorchMetrics, where the definitions agree, and where they differ on purpose.

The deliberate differences are listed in `docs/differences.md`.
"""

from __future__ import annotations

import math

import pytest
import sklearn.metrics
import torch
from torch import Tensor

from assay.errors import InvalidValuesError
from assay.metrics.classification.agreement import CohenKappa, MatthewsCorrCoef
from assay.metrics.classification.confusion import ClassReport, ConfusionMatrix, ExactMatch, StatScores
from assay.metrics.classification.rates import (
    Accuracy,
    F1Score,
    FBetaScore,
    HammingDistance,
    JaccardIndex,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
)
from thinning import draws

peers = pytest.importorskip("torchmetrics.functional.classification")

CLASSES, LABELS, ROWS = 4, 3, 50
KINDS = {
    Accuracy: "accuracy",
    Precision: "precision",
    Recall: "recall",
    Specificity: "specificity",
    NegativePredictiveValue: "negative_predictive_value",
    F1Score: "f1_score",
    JaccardIndex: "jaccard_index",
    HammingDistance: "hamming_distance",
}
AVERAGES = ["micro", "macro", "weighted", None]


def scores_and_target(task: str, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    if task == "multiclass":
        scores = torch.rand(ROWS, CLASSES, generator=generator)
        return scores, torch.randint(0, CLASSES, (ROWS,), generator=generator)
    shape = (ROWS, LABELS) if task == "multilabel" else (ROWS,)
    return torch.rand(shape, generator=generator), torch.randint(0, 2, shape, generator=generator)


def size_of(task: str) -> dict[str, int]:
    return {"multiclass": {"num_classes": CLASSES}, "multilabel": {"num_labels": LABELS}, "binary": {}}[task]


def close(value: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(value.double(), expected.double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
@pytest.mark.parametrize("average", AVERAGES)
def test_averages_agree(kind, task, average):
    preds, target = scores_and_target(task)
    options = {} if task == "binary" else {"average": average}
    expected = getattr(peers, f"{task}_{KINDS[kind]}")(preds, target, **size_of(task), **options)
    close(kind(**size_of(task), **options)(preds, target), expected)


@pytest.mark.parametrize("average", AVERAGES)
def test_ignored_targets_agree(average):
    preds, target = scores_and_target("multiclass")
    target[::5] = -1
    options = {"num_classes": CLASSES, "average": average, "ignore_index": -1}
    close(FBetaScore(beta=2, **options)(preds, target), peers.multiclass_fbeta_score(preds, target, 2.0, **options))
    labels = {"num_labels": LABELS, "average": average, "ignore_index": -1}
    preds, target = scores_and_target("multilabel")
    target[::4, 1] = -1
    close(Precision(**labels)(preds, target), peers.multilabel_precision(preds, target, **labels))


def drawn(seed: int) -> tuple[int, int, Tensor, Tensor]:
    """How many classes, one of them to be ignored, and labels; some classes need not occur."""
    g = torch.Generator().manual_seed(seed)
    classes, rows = (int(torch.randint(low, high, (), generator=g)) for low, high in ((3, 7), (4, 40)))
    preds, target = (torch.randint(classes, (rows,), generator=g) for _ in range(2))
    return classes, int(torch.randint(classes, (), generator=g)), preds, target


BY_SKLEARN = {
    Precision: sklearn.metrics.precision_score,
    Recall: sklearn.metrics.recall_score,
    F1Score: sklearn.metrics.f1_score,
    JaccardIndex: sklearn.metrics.jaccard_score,
}


@pytest.mark.parametrize("kind", BY_SKLEARN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("average", ["macro", "weighted", None])
def test_a_class_that_is_ignored_takes_no_part_as_in_scikit_learn(kind, average):
    for seed in draws(60):
        classes, ignored, preds, target = drawn(seed)
        kept = target != ignored
        true, predicted = target[kept].numpy(), preds[kept].numpy()
        names = [each for each in range(classes) if each != ignored and (each in true or each in predicted)]
        if not names:
            continue
        theirs = BY_SKLEARN[kind](true, predicted, labels=names, average=average, zero_division=0)
        value = kind(num_classes=classes, average=average, ignore_index=ignored)(preds, target)
        if average is None:
            assert value[ignored].isnan()
            value = value[names]
        close(value, torch.as_tensor(theirs))


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_the_jaccard_index_without_a_class_is_that_of_torchmetrics(average):
    for seed in draws(60):
        classes, ignored, preds, target = drawn(seed)
        options = {"num_classes": classes, "average": average, "ignore_index": ignored}
        expected = peers.multiclass_jaccard_index(preds, target, **options)
        if not (target == ignored).all():
            close(JaccardIndex(**options)(preds, target), expected)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("average", ["micro", "weighted"])
def test_without_a_class_the_other_averages_agree(kind, average):
    for seed in draws(60):
        classes, ignored, preds, target = drawn(seed)
        if (target == ignored).all():
            continue
        options = {"num_classes": classes, "average": average, "ignore_index": ignored}
        expected = getattr(peers, f"multiclass_{KINDS[kind]}")(preds, target, **options)
        close(kind(**options)(preds, target), expected)


def test_the_macro_average_without_a_class_is_that_of_the_others():
    preds, target = torch.tensor([0, 0, 1, 2, 0]), torch.tensor([0, 1, 1, 2, 2])
    for kind in KINDS:
        each = kind(num_classes=3, average=None, ignore_index=0)(preds, target)
        assert each[0].isnan()
        macro = kind(num_classes=3, average="macro", ignore_index=0)(preds, target)
        assert macro == each[1:].mean()
        table = ClassReport(num_classes=3, ignore_index=0)(preds, target)
    assert table.precision[0].isnan()
    assert table.macro[0] == Precision(num_classes=3, ignore_index=0)(preds, target) == 1
    assert peers.multiclass_precision(preds, target, 3, ignore_index=0) == pytest.approx(2 / 3)


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_top_k_accuracy_agrees(top_k):
    preds, target = scores_and_target("multiclass")
    expected = peers.multiclass_accuracy(preds, target, CLASSES, average="micro", top_k=top_k)
    close(Accuracy(num_classes=CLASSES, top_k=top_k)(preds, target), expected)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_agreement_agrees(task):
    preds, target = scores_and_target(task)
    size = size_of(task)
    close(MatthewsCorrCoef(**size)(preds, target), getattr(peers, f"{task}_matthews_corrcoef")(preds, target, **size))
    for weights in (None, "linear", "quadratic"):
        expected = getattr(peers, f"{task}_cohen_kappa")(preds, target, **size, weights=weights)
        close(CohenKappa(**size, weights=weights)(preds, target), expected)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_confusion_matrices_agree(task, normalize):
    preds, target = scores_and_target(task)
    expected = getattr(peers, f"{task}_confusion_matrix")(preds, target, **size_of(task), normalize=normalize)
    close(ConfusionMatrix(**size_of(task), normalize=normalize)(preds, target), expected)


@pytest.mark.parametrize("average", AVERAGES)
def test_stat_scores_agree(average):
    preds, target = scores_and_target("multiclass")
    expected = peers.multiclass_stat_scores(preds, target, CLASSES, average=average)
    close(torch.stack(StatScores(num_classes=CLASSES, average=average)(preds, target), -1), expected)


def test_exact_match_agrees():
    preds, target = scores_and_target("multilabel")
    close(ExactMatch(num_labels=LABELS)(preds, target), peers.multilabel_exact_match(preds, target, LABELS))
    labels, target = torch.randint(0, 2, (2, 30, 3), generator=torch.Generator().manual_seed(1))
    close(ExactMatch(num_classes=2)(labels, target), peers.multiclass_exact_match(labels, target, 2))


# --- differences that are meant ------------------------------------------------------------------------------------


def test_a_class_that_does_not_occur_reads_nan_and_not_0():
    preds, target = torch.tensor([0, 1]), torch.tensor([0, 1])
    assert peers.multiclass_recall(preds, target, 3, average=None)[2] == 0
    assert math.isnan(Recall(num_classes=3, average=None)(preds, target)[2])


def test_logits_are_said_and_not_guessed():
    scores, target = torch.tensor([0.4, 0.6, -2.0]), torch.tensor([0, 1, 0])
    assert peers.binary_accuracy(scores[:2], target[:2]) == 1
    assert peers.binary_accuracy(scores, target) == pytest.approx(2 / 3)  # one score outside [0, 1]: all are logits
    assert Accuracy()(scores[:2], target[:2]) == 1
    message = r"Accuracy: got 1 of the predictions are .* or scores outside \[0, 1\] .*any size are for logits=True"
    with pytest.raises(InvalidValuesError, match=message):
        Accuracy()(scores, target)
    assert Accuracy(logits=True)(scores, target) == pytest.approx(2 / 3)


def test_a_perfect_constant_has_no_correlation():
    constant = torch.zeros(4, dtype=torch.long)
    assert peers.binary_matthews_corrcoef(constant, constant) == 1
    assert MatthewsCorrCoef()(constant, constant) == 0


def test_correlation_of_billions_of_samples_does_not_overflow():
    """Here it is 1/2; `test_classification.py` asserts what assay reads."""
    from torchmetrics.functional.classification.matthews_corrcoef import _matthews_corrcoef_reduce

    matrix = torch.tensor([[3, 1], [1, 3]]) * 10**9
    assert _matthews_corrcoef_reduce(matrix // 10**6) == 0.5
    assert _matthews_corrcoef_reduce(matrix) != 0.5


def test_an_ignored_sample_is_left_out_of_exact_match():
    preds, target = torch.tensor([[1, 0], [1, 1]]), torch.tensor([[1, 1], [-1, -1]])
    assert peers.multilabel_exact_match(preds, target, 2, ignore_index=-1) == 0.5
    assert ExactMatch(num_labels=2, ignore_index=-1)(preds, target) == 0
