"""A function of a drop-in name keeps its metric for the next call; no call may notice another one."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from importlib import import_module

import assay.compat.torchmetrics.functional
import pytest
import torch
import torchmetrics.functional
from assay.compat.torchmetrics.classification import BinaryCalibrationError
from assay.compat.torchmetrics.functional import (
    accuracy,
    auroc,
    classification,
    confusion_matrix,
    mean_absolute_error,
    mean_squared_error,
    relative_squared_error,
    retrieval_hit_rate,
    spearman_corrcoef,
)

from assay.compat.for_torchmetrics import calls
from assay.compat.for_torchmetrics.values import number_in
from assay.errors import InputError, InvalidValuesWarning
from assay.metrics import MeanSquaredError, SpearmanCorrCoef

PREDS, TARGET = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 1.0, 1.0])


def reused() -> dict:
    return calls.REUSED.by_key


@pytest.fixture(autouse=True)
def no_metrics():
    reused().clear()
    calls._PREPARED.by_key.clear()


def test_a_metric_is_made_once_for_equal_arguments():
    values = [mean_squared_error(PREDS, TARGET) for _ in range(2)]
    (kept,) = reused().values()
    values.append(mean_squared_error(PREDS, TARGET, squared=True))
    assert list(reused().values()) == [kept]
    assert [value.item() for value in values] == [pytest.approx(10 / 3)] * 3
    assert mean_squared_error(PREDS, TARGET, squared=False).item() == pytest.approx((10 / 3) ** 0.5)
    assert len(reused()) == 2
    assert kept.meter.rows == 0


def test_each_thread_has_its_own():
    mean_squared_error(PREDS, TARGET)
    of_thread = []
    thread = threading.Thread(target=lambda: of_thread.extend([mean_squared_error(PREDS, TARGET), dict(reused())]))
    thread.start()
    thread.join()
    assert of_thread[0].item() == pytest.approx(10 / 3)
    assert set(map(id, of_thread[1].values())).isdisjoint(map(id, reused().values()))


def test_a_call_inside_of_a_call_gets_another_one(monkeypatch):
    inner, compute = [], SpearmanCorrCoef.compute

    def calls_again(self, counts):
        if len(inner) % 2 == 0:
            inner.append(None)
            inner[-1:] = [spearman_corrcoef(PREDS, -PREDS).item(), -1.0]
        return compute(self, counts)

    monkeypatch.setattr(SpearmanCorrCoef, "compute", calls_again)
    assert spearman_corrcoef(PREDS, PREDS**2).item() == 1
    assert spearman_corrcoef(PREDS, PREDS**2).item() == 1
    assert set(inner) == {-1.0}


def test_a_call_that_raises_leaves_none():
    labels = torch.tensor([0, 1])
    assert accuracy(labels, labels, "multiclass", num_classes=2).item() == 1
    assert len(reused()) == 1
    with pytest.raises(InputError):
        accuracy(torch.tensor([0, 7]), labels, "multiclass", num_classes=2)
    assert not reused()


def test_only_plain_arguments_name_a_metric():
    scores, labels = torch.tensor([0.2, 0.7, 0.4]), torch.tensor([0, 1, 1])
    auroc(scores, labels, "binary", thresholds=torch.tensor([0.1, 0.5]))
    assert not reused()
    auroc(scores, labels, "binary", thresholds=[0.1, 0.5])
    auroc(scores, labels, "binary", thresholds=2)
    assert len(reused()) == 2


def test_dtypes_devices_and_shapes_may_change_from_call_to_call():
    half = torch.tensor([1.0, 2.0], dtype=torch.float16)
    assert mean_squared_error(PREDS, TARGET).dtype == torch.float32
    assert mean_squared_error(half, half).item() == 0
    assert mean_squared_error(PREDS[:, None].expand(3, 2), TARGET[:, None].expand(3, 2), num_outputs=2).shape == (2,)
    torch.set_default_dtype(torch.float64)
    try:
        assert mean_squared_error(PREDS.double(), TARGET.double()).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert mean_squared_error(PREDS, TARGET).dtype == torch.float32
    with torch.device("meta"):
        kept = list(reused())
        assert mean_squared_error(PREDS, TARGET).item() == pytest.approx(10 / 3)
    assert list(reused()) == kept


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_function_has_all_digits_of_the_dtype_of_its_data(dtype):
    preds, target = (torch.tensor(each, dtype=dtype) for each in ([0.1, 0.7, 2.3], [0.3, 0.9, 1.1]))
    pairs = zip(preds.tolist(), target.tolist(), strict=True)
    exact = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction()) / 3
    expected = torch.tensor(float(exact), dtype=torch.float64).to(dtype)
    for _ in range(3):  # a metric, a metric that is used again, a prepared call
        assert mean_squared_error(preds, target).dtype == dtype
        assert torch.equal(mean_squared_error(preds, target), expected)
        assert mean_squared_error(PREDS, TARGET).dtype == torch.float32  # between them another dtype
        assert mean_squared_error(preds, PREDS).dtype == torch.promote_types(dtype, torch.float32)


def test_much_memory_is_not_kept():
    labels = torch.tensor([3])
    assert confusion_matrix(labels, labels, "multiclass", num_classes=1000).sum() == 1
    assert not reused()


def test_a_function_has_no_buffer_to_warn_of(recwarn):
    for _ in range(2):
        assert spearman_corrcoef(PREDS, PREDS).item() == 1
    assert not recwarn.list


def test_a_query_function_keeps_its_metric_too():
    scores, relevant = torch.tensor([0.5, 0.2, 0.9, 0.2]), torch.tensor([1, 0, 0, 0])  # two are equal
    assert [retrieval_hit_rate(scores, relevant, top_k=k).item() for k in (1, 2, 1)] == [0, 1, 0]
    assert len(reused()) == 2


@pytest.mark.parametrize("case", ["values", "layouts"])
def test_a_prepared_call_gives_what_the_first_one_does(case):
    """The third call of a layout counts into states that the calls before it have used."""
    numbers = torch.rand(4, 6, generator=torch.Generator().manual_seed(0))
    calls_made = [(numbers[k], numbers[(k + 1) % 4]) for k in (0, 1, 2, 3, 0)]
    if case == "layouts":
        calls_made = [
            (a[:n].to(dtype), b[:n]) for a, b in calls_made for n in (6, 4) for dtype in (None, torch.float64)
        ]
    for preds, target in calls_made:
        prepared = mean_squared_error(preds, target), spearman_corrcoef(preds, target)
        expected = torchmetrics.functional.mean_squared_error(preds, target)
        assert torch.equal(prepared[0], MeanSquaredError()(preds, target).to(expected.dtype))
        assert prepared[0].item() == pytest.approx(expected.item())
        assert prepared[1].item() == pytest.approx(torchmetrics.functional.spearman_corrcoef(preds, target).item())


def test_what_a_prepared_call_cannot_count_is_measured_as_before():
    fine = torch.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        assert mean_squared_error(fine, fine).item() == 0
    strided = torch.stack([fine, -fine], 1)[:, 0]
    assert mean_squared_error(strided, fine).item() == 0
    with pytest.warns(InvalidValuesWarning):
        assert mean_squared_error(torch.tensor([1.0, torch.nan, 3.0]), fine).isnan()
    assert mean_squared_error(fine, 2 * fine).item() == pytest.approx(14 / 3)


IGNORED = {
    "binary": "average_precision calibration_error confusion_matrix accuracy hinge_loss precision_recall_curve roc",
    "multiclass": "auroc average_precision calibration_error hinge_loss precision_recall_curve roc",
    "multilabel": "accuracy auroc precision_recall_curve roc",
}


@pytest.mark.parametrize("name", [f"{task}_{each}" for task, names in IGNORED.items() for each in names.split()])
def test_scores_of_rows_that_are_left_out_say_as_much_of_logits_as_in_torchmetrics(name):
    generator, task = torch.Generator().manual_seed(5), name.split("_")[0]
    shape = {"binary": (40,), "multiclass": (40, 3), "multilabel": (40, 3)}[task]
    settings = {"ignore_index": -1, **{"multiclass": {"num_classes": 3}, "multilabel": {"num_labels": 3}}.get(task, {})}
    scores = torch.rand(*shape, generator=generator)
    scores = scores.softmax(1) if task == "multiclass" else scores
    labels = (3, shape[:1]) if task == "multiclass" else (2, shape)
    target = torch.randint(*labels, generator=generator)
    target[3] = -1
    outside = scores.clone()
    outside[3] = 5.0
    here, there = (getattr(module, name) for module in (classification, torchmetrics.functional.classification))
    for batch in (outside, scores, scores, scores, outside):  # also in a repeated call
        for found, expected in zip(
            *map(flat, (here(batch, target, **settings), there(batch, target, **settings))), strict=True
        ):
            torch.testing.assert_close(found, expected)


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [each for part in value for each in flat(part)]


def test_a_class_leaves_ignored_rows_out_before_it_looks_for_logits():
    scores, target = torch.tensor([0.2, 0.9, 5.0, 0.6]), torch.tensor([0, 1, -1, 0])
    metric = BinaryCalibrationError(ignore_index=-1, n_bins=4)
    metric.update(scores, target)
    assert metric.compute() == classification.binary_calibration_error(scores[[0, 1, 3]], target[[0, 1, 3]], n_bins=4)


def score_batches(columns):
    """Batches of one layout: probabilities, logits, scores that are no numbers, and labels of no class."""
    generator = torch.Generator().manual_seed(5)
    for k in range(12):
        scores = torch.randint(9, (24, columns) if columns else (24,), generator=generator) / 8
        target = torch.randint(columns or 2, (24,), generator=generator)
        scores = {1: scores * 6 - 3, 4: scores + 0.5, 7: scores.masked_fill(scores == 0.5, torch.nan)}.get(k, scores)
        yield scores, target + 9 * (k == 9)


@pytest.mark.parametrize("name", ["auroc", "average_precision", "calibration_error", "precision_recall_curve", "roc"])
@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("ignored", [None, 1])
def test_scores_and_logits_of_one_layout_give_what_a_first_call_does(name, columns, ignored):
    kind = "multiclass" if columns else "binary"
    function = getattr(assay.compat.torchmetrics.functional, name)
    given = {"task": kind, "ignore_index": ignored} | ({"num_classes": columns} if columns else {})

    def called(scores, target):
        try:
            return function(scores, target, **given)
        except InputError as error:
            return f"{type(error)} {error}"

    for scores, target in score_batches(columns):
        later = called(scores, target)
        kept = dict(reused()), dict(calls._PREPARED.by_key)
        reused().clear()
        calls._PREPARED.by_key.clear()
        first = called(scores, target)
        if isinstance(first, str):
            assert later == first
        else:
            torch.testing.assert_close(later, first, rtol=0, atol=0, equal_nan=True)
        reused().update(kept[0])
        calls._PREPARED.by_key.update(kept[1])


@pytest.mark.parametrize("layout", ["strides", "negated", "columns"])
def test_a_call_prepared_after_a_view_reads_other_batches_where_they_lie(layout):
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        preds, target = torch.rand(2, 16, generator=generator)
        views = {"strides": torch.stack([preds, -preds], 1)[:, 0], "negated": torch._neg_view(-preds)}
        view = views.get(layout, torch.rand(16, 5, generator=generator)[:, 3])
        for one, other in ((preds, target), (view, target), (target, view), (preds, target)):
            for function in (mean_absolute_error, mean_squared_error, relative_squared_error):
                expected = getattr(torchmetrics.functional, function.__name__)(one, other)
                torch.testing.assert_close(function(one, other), expected)


@pytest.mark.parametrize(
    "path",
    [
        "audio.signal_distortion_ratio",
        "audio.signal_noise_ratio",
        "image.total_variation",
        "segmentation.dice_score",
        "shape.procrustes_disparity",
    ],
)
def test_a_function_that_measures_each_sample_can_be_called_again_and_again(path):
    generator = torch.Generator().manual_seed(0)
    family, name = path.split(".")
    there, here = (
        getattr(import_module(f"{home}torchmetrics.functional.{family}"), name) for home in ("", "assay.compat.")
    )
    for _ in range(4):
        if family == "segmentation":
            batch, options = torch.randint(2, (2, 3, 2, 8, 8), generator=generator), {"num_classes": 2}
        elif family == "image":
            batch, options = torch.rand(1, 3, 2, 8, 8, generator=generator), {}
        else:
            batch, options = torch.rand(2, 3, 40, *(2,) * (family == "shape"), generator=generator), {}
        if name == "signal_distortion_ratio":
            options["filter_length"] = 8
        torch.testing.assert_close(here(*batch, **options), there(*batch, **options), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("value", [0.1, -7.0, 59999.9, 1e5, 3.5e38, 1e300, math.inf, math.nan])
def test_a_number_is_rounded_to_a_dtype_as_a_tensor_is(value, dtype):
    expected = torch.tensor(value, dtype=torch.float64).to(dtype)
    torch.testing.assert_close(number_in(value, dtype), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "none"])
def test_prepared_rates_are_those_of_new_batches(average):
    generator = torch.Generator().manual_seed(3)
    for k in range(5):
        preds, target = (torch.randint(4, (9,), generator=generator) for _ in range(2))
        given = {"task": "multiclass", "num_classes": 4, "average": average}
        found = torchmetrics.functional.accuracy(preds, target, **given)
        torch.testing.assert_close(accuracy(preds, target, **given), found)
        matrix = torchmetrics.functional.confusion_matrix(preds, target, task="multiclass", num_classes=4)
        assert torch.equal(confusion_matrix(preds, target, task="multiclass", num_classes=4), matrix)
        if k == 3:
            with pytest.raises(ValueError, match="target"):
                confusion_matrix(preds, target + 2, task="multiclass", num_classes=4)
