"""Scorers of scikit-learn: the values of its own."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import LinearSVC

from assay.errors import ConfigError
from assay.integrations import scorer
from assay.metrics import ConfusionMatrix, MeanSquaredError

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


@pytest.mark.parametrize("y", [Y, NAMES])
def test_scores_of_classifiers_are_those_of_scikit_learn(y):
    model = LogisticRegression(max_iter=300)
    own = cross_validate(model, X[:, :2], y, scoring=scorer("accuracy,f1:average=macro,auroc,nll"), cv=3)
    names = {"accuracy": "accuracy", "f1": "f1_macro", "auroc": "roc_auc_ovr", "neg_nll": "neg_log_loss"}
    theirs = cross_validate(model, X[:, :2], y, scoring=list(names.values()), cv=3)
    for name, other in names.items():
        np.testing.assert_allclose(own[f"test_{name}"], theirs[f"test_{other}"], rtol=1e-6)


def test_binary_classifiers_and_regressors_have_scores():
    two = Y < 2
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, scoring=scorer("auroc"), cv=3).fit(X[two], NAMES[two])
    assert search.best_score_ == 1.0
    x, y = load_diabetes(return_X_y=True)
    for metric in ("mse", MeanSquaredError()):
        own = cross_validate(LinearRegression(), x, y, scoring=scorer(metric), cv=3)["test_score"]
        theirs = cross_validate(LinearRegression(), x, y, scoring="neg_mean_squared_error", cv=3)["test_score"]
        np.testing.assert_allclose(own, theirs, rtol=1e-9)


def test_what_is_no_single_number_is_refused():
    model = LogisticRegression(max_iter=300).fit(X, Y)
    with pytest.raises(ConfigError, match="scorer: ConfusionMatrix"):
        scorer(ConfusionMatrix(num_classes=3))(model, X, Y)
