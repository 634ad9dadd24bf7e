"""Breast cancer: a test with two outcomes

A logistic regression on 30 measurements of a biopsy, measured on 285 women that it was not trained on.

- ROC and precision-recall curves: put the pointer on a curve to read the threshold.
- The interval of AUROC stays honest near 1, where many formulas end above it.
- `RecallAtFixedPrecision` answers what a clinic asks: how many tumours are found if 95 % of the alarms are to be right.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from assay import evaluate
from assay.metrics import AUROC, AveragePrecision, BrierScore, F1Score, Precision, Recall, RecallAtFixedPrecision

cells = load_breast_cancer()
malignant = (cells.target == 0).astype(int)
classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(cells.data[::2], malignant[::2])

metrics = {
    "precision": Precision(),
    "recall": Recall(),
    "F1": F1Score(),
    "AUROC": AUROC(),
    "average precision": AveragePrecision(),
    "Brier score": BrierScore(),
    "recall at 95 % precision": RecallAtFixedPrecision(min_precision=0.95),
}
held_out = cells.data[1::2], malignant[1::2]
report = evaluate(classifier, held_out, metrics, classes=["benign", "malignant"], progress=False, title="Breast cancer")
