from __future__ import annotations

import pytest

from assay.errors import ConfigError
from assay.metrics import (
    AUROC,
    Accuracy,
    BLEUScore,
    F1Score,
    MeanSquaredError,
    Metric,
    RetrievalMAP,
    SacreBLEUScore,
    WordErrorRate,
)
from assay.metrics.parsing import SHORT, as_text, between, open_metrics


def test_metrics_by_name():
    assert open_metrics(
        ["accuracy:num_classes=10,average=macro", "f1:num_classes=3", "m=mean_squared:squared=false"]
    ) == {
        "accuracy": Accuracy(num_classes=10, average="macro"),
        "f1": F1Score(num_classes=3),
        "m": MeanSquaredError(squared=False),
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "metrics: got none, expected one or more"),
        (["accurcy"], "metrics: got 'accurcy', expected Accuracy"),
        (["zzz"], "metrics: got 'zzz', expected the name of a metric"),
        (["accuracy:classes=3"], "accuracy: got the argument 'classes', expected one of num_classes.* Write num_class"),
        (["accuracy:task=multiclass"], "accuracy: got the argument 'task', expected one of .* Leave task out"),
        (["accuracy:3"], "metrics: accuracy: got '3', expected argument=value"),
        (
            ["accuracy:num_classes"],
            "accuracy: got 'num_classes', expected argument=value. Write accuracy:num_classes=10",
        ),
        (["accuracy:num_classes="], "accuracy: got 'num_classes=', .* Write accuracy:num_classes=10"),
        (["accuracy:num_classes:3"], "accuracy: got 'num_classes:3', .* Write accuracy:num_classes=3"),
        (["f1:num_classes=3:average=macro"], "f1: got .* Write f1:num_classes=3,average=macro"),
        (["f1:num_classes=3;mse"], "metrics: f1:num_classes=3;mse: num_classes: got '3;mse', expected an integer"),
        (["f1:num_classes=3;r=mse"], "f1: got 'num_classes=3;r=mse', .* Write f1:num_classes=3,r=mse"),
        (["f1:num_classes=3,num_classes=4"], "f1: got num_classes twice, expected each argument once"),
        (["accuracy(num_classes=3)"], r"got 'accuracy\(num_classes=3\)', .* Write accuracy:num_classes=3"),
        (["accuracy f1"], "got 'accuracy f1', .* Write accuracy,f1"),
        (["acuracy"], "got 'acuracy', expected Accuracy or .* Write accuracy"),
        (["accuracy num_classes=3"], "got 'accuracy num_classes=3', .* Write accuracy:num_classes=3"),
        (["f1_macro"], "got 'f1_macro', .* Write f1:average=macro"),
        (["weighted-recall"], "got 'weighted-recall', .* Write recall:average=weighted"),
        (["f1:average=Macro"], "metrics: f1:average=Macro: average: got 'Macro', expected 'micro'"),
        (["f1:num_classes=three"], "metrics: f1:num_classes=three: num_classes: got 'three', expected an integer"),
        (["f1:num_classes=1"], "metrics: f1:num_classes=1: num_classes: got 1, expected 2 or more"),
        ([""], "metrics: got none, expected one or more"),
        (["per-sample"], "metrics: got .per-sample., expected a metric that holds no function. Call assay.evaluate"),
        (["accuracy", "accuracy:num_classes=3"], "metrics: got accuracy twice, expected names that differ"),
    ],
)
def test_metrics_that_cannot_be(texts, message):
    with pytest.raises(ConfigError, match=message):
        open_metrics(texts)


def test_several_metrics_in_one_text_and_commas_in_brackets():
    assert open_metrics(["wer,bleu:weights=(0.5,0.5),n_gram=2", "s=sacrebleu:tokenize=none,lowercase=true"]) == {
        "wer": WordErrorRate(),
        "bleu": BLEUScore(weights=(0.5, 0.5), n_gram=2),
        "s": SacreBLEUScore(tokenize="none", lowercase=True),
    }
    by_row = open_metrics(["retrieval-map:by_row=true,top_k=3"])["retrieval-map"]
    assert by_row == RetrievalMAP(by_row=True, top_k=3)


def test_a_metric_may_follow_the_arguments_of_another_one():
    assert open_metrics(["acc,r=mse,f1:average=macro,num_classes=3,auroc,m=mse:squared=false"]) == {
        "acc": Accuracy(),
        "f1": F1Score(average="macro", num_classes=3),
        "auroc": AUROC(),
        "m": MeanSquaredError(squared=False),
        "r": MeanSquaredError(),
    }


def test_every_short_name_is_a_metric():
    for name in SHORT:
        assert isinstance(open_metrics([name])[name], Metric)
    assert open_metrics(["rmse", "acc"]) == {"rmse": MeanSquaredError(squared=False), "acc": Accuracy()}


def test_shared_arguments_go_to_the_metrics_that_have_them():
    shared = {"num_classes": 10, "logits": True}
    found = open_metrics(["acc", "auroc", "f1:num_classes=3", "ml=acc:num_labels=4", "mse"], shared)
    assert found == {
        "acc": Accuracy(num_classes=10, logits=True),
        "auroc": AUROC(num_classes=10, logits=True),
        "f1": F1Score(num_classes=3, logits=True),
        "ml": Accuracy(num_labels=4, logits=True),
        "mse": MeanSquaredError(),
    }


def test_a_shared_argument_that_no_metric_has_is_refused():
    with pytest.raises(ConfigError, match="--num-classes: got 10, but only mse"):
        open_metrics(["mse"], {"num_classes": 10})


def test_commas_inside_of_brackets_stay_with_their_argument():
    assert between("a=[(1,2),(3,4)],b=2") == ["a=[(1,2),(3,4)]", "b=2"]


@pytest.mark.parametrize(
    "text",
    ["accuracy", "f1:num_classes=3,average=micro", "rmse", "sacrebleu:tokenize=none,lowercase=true", "best=mse"],
)
def test_the_text_of_a_metric_opens_the_metric(text):
    ((name, metric),) = open_metrics([text]).items()
    assert open_metrics([as_text(name, metric)]) == {name: metric}


def test_the_text_of_a_metric_is_short_where_its_name_is_that_of_the_metric():
    assert as_text("f1", F1Score(num_classes=3, average="micro")) == "f1:num_classes=3,average=micro"
    assert as_text("F1Score", F1Score(num_classes=3)) == "F1Score:num_classes=3"
    assert as_text("m", BLEUScore(weights=(0.5, 0.5), n_gram=2)) == "m=bleuscore:n_gram=2,weights=(0.5,0.5)"
