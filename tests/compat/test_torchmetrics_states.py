"""States of TorchMetrics' classes that are read from the metrics in their place."""

import math
import pickle
from copy import deepcopy

import pytest
import torch

from assay.compat.for_torchmetrics.images import OF_IMAGES
from assay.compat.for_torchmetrics.states import STATES
from assay.errors import InvalidValuesError
from assay.pretend import pretend

original = pytest.importorskip("torchmetrics")

from assay.compat import torchmetrics  # noqa: E402

GENERATOR = torch.Generator().manual_seed(0)


def scores(*shape):
    return torch.rand(*shape, generator=GENERATOR)


def labels(classes, *shape):
    return torch.randint(classes, shape, generator=GENERATOR)


def binary():
    return scores(9), labels(2, 9)


def classes():
    return torch.randn(9, 3, generator=GENERATOR).softmax(1), labels(3, 9)


def several():
    return scores(9, 3), labels(2, 9, 3)


def pairs():
    return scores(8), scores(8)


def outputs():
    return scores(8, 2), scores(8, 2)


def distributions():
    return tuple(scores(5, 3).softmax(1) for _ in range(2))


def ranked():
    return scores(9), labels(2, 9), torch.tensor([0, 2, 0, 1, 1, 0, 2, 1, 2])


def texts():
    return ["the cat sat down", "a b c d e f"], ["the cat sat on it", "a b d c e f"]


def references():
    preds, target = texts()
    return preds, [[each] for each in target]


def tokens():
    return torch.randn(2, 5, 4, generator=GENERATOR), labels(4, 2, 5)


def images():
    return scores(2, 1, 16, 16), scores(2, 1, 16, 16)


def large_images():
    return scores(2, 1, 48, 48), scores(2, 1, 48, 48)


OF_CLASSES = {"num_classes": 3}
CASES = [
    *(
        (f"classification.{task}{name}", arguments, draw)
        for name in STATES
        if hasattr(original.classification, f"Binary{name}") and name != "FBetaScore"
        for task, arguments, draw in (
            ("Binary", {}, binary),
            ("Multiclass", OF_CLASSES, classes),
            ("Multilabel", {"num_labels": 3}, several),
        )
        if hasattr(original.classification, task + name) and "At" not in name
    ),
    *(
        (f"classification.Binary{name}", {f"min_{least}": 0.5}, binary)
        for name, least in (
            ("PrecisionAtFixedRecall", "recall"),
            ("RecallAtFixedPrecision", "precision"),
            ("SensitivityAtSpecificity", "specificity"),
            ("SpecificityAtSensitivity", "sensitivity"),
        )
    ),
    ("classification.BinaryFBetaScore", {"beta": 2.0}, binary),
    ("classification.MulticlassExactMatch", OF_CLASSES, lambda: (labels(3, 4, 2), labels(3, 4, 2))),
    ("classification.MulticlassAccuracy", {**OF_CLASSES, "average": "micro"}, classes),
    ("classification.MulticlassAccuracy", {**OF_CLASSES, "average": "micro", "top_k": 2}, classes),
    ("classification.MulticlassRecall", {**OF_CLASSES, "top_k": 2, "ignore_index": 0}, classes),
    ("classification.MultilabelPrecision", {"num_labels": 3, "average": "micro"}, several),
    ("classification.MulticlassHingeLoss", {**OF_CLASSES, "multiclass_mode": "one-vs-all"}, classes),
    ("classification.BinaryROC", {"thresholds": 5}, binary),
    ("classification.BinaryROC", {"ignore_index": 0}, binary),
    ("classification.MulticlassAUROC", {**OF_CLASSES, "thresholds": 5}, classes),
    ("classification.MulticlassAUROC", {**OF_CLASSES, "ignore_index": 1}, classes),
    ("classification.MultilabelAveragePrecision", {"num_labels": 3, "thresholds": 4}, several),
    ("classification.MultilabelAveragePrecision", {"num_labels": 3, "average": "micro"}, several),
    ("classification.MultilabelAveragePrecision", {"num_labels": 3, "ignore_index": 1}, several),
    *((name, {}, lambda: (scores(7),)) for name in ("SumMetric", "MeanMetric", "MaxMetric", "MinMetric")),
    ("MeanMetric", {}, pairs),
    ("MeanMetric", {"nan_strategy": "ignore"}, lambda: (torch.tensor([1.0, math.nan, 3.0]),)),
    *(
        (f"regression.{name}", {}, pairs)
        for name in STATES
        if hasattr(original.regression, name) and "Divergence" not in name and name != "MinkowskiDistance"
    ),
    ("regression.MinkowskiDistance", {"p": 3.0}, pairs),
    *(
        (f"regression.{name}", {"num_outputs": 2}, outputs)
        for name in (
            *("MeanSquaredError", "MeanAbsoluteError", "LogCoshError", "PearsonCorrCoef", "ConcordanceCorrCoef"),
            *("SpearmanCorrCoef", "KendallRankCorrCoef", "RelativeSquaredError"),
        )
    ),
    ("regression.R2Score", {}, outputs),
    ("regression.ExplainedVariance", {}, outputs),
    ("regression.MeanSquaredError", {}, outputs),
    ("regression.KLDivergence", {}, distributions),
    ("regression.JensenShannonDivergence", {}, distributions),
    ("retrieval.RetrievalMAP", {}, ranked),
    ("retrieval.RetrievalNormalizedDCG", {}, lambda: (scores(6), scores(6), labels(2, 6))),
    ("text.WordErrorRate", {}, texts),
    ("text.CharErrorRate", {}, texts),
    ("text.BLEUScore", {"n_gram": 3}, references),
    ("text.SacreBLEUScore", {}, references),
    ("text.Perplexity", {"ignore_index": 1}, tokens),
    ("image.PeakSignalNoiseRatio", {"data_range": 2.0}, images),
    ("image.StructuralSimilarityIndexMeasure", {"data_range": 1.0}, images),
    (
        "image.MultiScaleStructuralSimilarityIndexMeasure",
        {"data_range": 1.0, "kernel_size": 3, "betas": (0.5, 0.5)},
        large_images,
    ),
]

NOT_COUNTED = {"max_abs_dev_x", "max_abs_dev_y"}
"""States that depend on how samples came in batches."""


def both(path, arguments):
    made = []
    for library in (original, torchmetrics):
        *home, name = path.split(".")
        for each in home:
            library = getattr(library, each)
        made.append(getattr(library, name)(**arguments))
    return made


def sorted_together(states):
    """Columns of samples in the order of their values, as the order of samples that are kept is not that of batches."""
    columns = [torch.cat(each).double() for each in states]
    rows = torch.cat([each.view(len(each), -1) for each in columns], 1)
    return torch.tensor(sorted(rows.tolist())), [(each.shape, states[k][0].dtype) for k, each in enumerate(columns)]


@pytest.mark.filterwarnings("ignore:Metric `Spearman:UserWarning")
@pytest.mark.parametrize(("path", "arguments", "draw"), CASES, ids=[f"{path}-{given}" for path, given, _ in CASES])
def test_states_are_those_of_torchmetrics(path, arguments, draw):
    there, here = both(path, arguments)
    names = there._defaults.keys() - NOT_COUNTED
    for name in names:
        default = getattr(there, name)
        torch.testing.assert_close(getattr(here, name), default)
    for _ in range(2):
        batch = draw()
        for metric in (there, here):
            metric.update(*batch)
    lists = [name for name in sorted(names) if isinstance(getattr(there, name), list)]
    for name in names - set(lists):
        torch.testing.assert_close(getattr(here, name), getattr(there, name))
    if lists:
        (rows, made), (expected, made_there) = (
            sorted_together([getattr(metric, name) for name in lists]) for metric in (here, there)
        )
        torch.testing.assert_close(rows, expected)
        assert made == made_there
    for name in NOT_COUNTED & there._defaults.keys():
        assert not hasattr(here, name)


def test_every_table_of_states_has_a_case():
    tested = {path.split(".")[-1] for path, _, _ in CASES}
    tasks = ("", "Binary", "Multiclass", "Multilabel")
    assert not [name for name in STATES if tested.isdisjoint(task + name for task in tasks)]
    images_with = {name for name, family in OF_IMAGES.items() if family.states}
    assert images_with <= tested


def test_states_follow_what_is_counted():
    metric = torchmetrics.classification.BinaryRecall()
    metric.update(torch.tensor([1, 1, 0]), torch.tensor([1, 0, 1]))
    assert metric.tp + metric.fn == 2
    metric.tp += 5  # as TorchMetrics' own `update` does with a state
    del metric.tp
    assert metric.tp == 1
    assert metric.compute() == 0.5
    for copied in (deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert copied.fp == 1
    metric.merge_state(copied)
    assert metric.fp == 2
    metric.reset()
    assert metric.fp == 0


def test_states_have_the_dtype_and_the_device_of_values():
    metric = torchmetrics.MeanSquaredError()
    with pretend("mps"):
        metric.update(torch.tensor([1.0, 2.0]).to("mps"), torch.tensor([1.0, 4.0]).to("mps"))
        assert metric.total.device.type == "mps"
        assert metric.total == 2
        assert torch.equal(metric.sum_squared_error.cpu(), torch.tensor([4.0]))
    metric = torchmetrics.MeanSquaredError().set_dtype(torch.float64)
    metric.update(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.5]))
    assert torch.equal(metric.sum_squared_error, torch.tensor([6.25], dtype=torch.float64))


def test_states_of_a_collection_are_those_of_its_members():
    members = {"f1": torchmetrics.F1Score, "area": torchmetrics.AUROC, "kappa": torchmetrics.JaccardIndex}
    collection = torchmetrics.MetricCollection(
        {name: kind(task="multiclass", num_classes=3, average=None) for name, kind in members.items()}
    )
    preds, target = classes()
    collection.update(preds, target)
    matrix = original.ConfusionMatrix(task="multiclass", num_classes=3)
    matrix.update(preds, target)
    assert torch.equal(collection["kappa"].confmat, matrix.confmat)
    assert torch.equal(collection["f1"].tp, matrix.confmat.diagonal())
    assert len(collection["area"].preds[0]) == len(preds)


def test_states_of_labels_of_no_class_have_no_value():
    kinds = torchmetrics.classification.MulticlassConfusionMatrix, torchmetrics.classification.MulticlassCohenKappa
    collection = torchmetrics.MetricCollection([each(num_classes=3, validate_args=False) for each in kinds])
    collection.update(torch.tensor([0, 1]), torch.tensor([0, 7]))
    for metric in collection.values():
        with pytest.raises(InvalidValuesError, match=r"confmat: got 1 of the targets"):
            _ = metric.confmat


def test_states_of_images_by_themselves_are_not_kept():
    metric = torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0, dim=(1, 2, 3))
    metric.update(*images())
    assert not hasattr(metric, "total")
