import torch
from sklearn.metrics import average_precision_score, precision_recall_curve
from torchmetrics.classification import MulticlassAveragePrecision, MulticlassPrecisionRecallCurve

from assay.metrics import AveragePrecision
from assay.metrics import PrecisionRecallCurve as Ours

scores = torch.tensor([[0.9, 0.1, 0.0], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
target = torch.zeros(3, dtype=torch.long)
print("TorchMetrics", MulticlassPrecisionRecallCurve(num_classes=3)(scores, target)[1][0].numpy().round(4))
print("scikit-learn", precision_recall_curve(target == 0, scores[:, 0])[1].round(4))
print("assay       ", Ours(num_classes=3)(scores, target).recall[0].numpy().round(4))

renamed = scores.roll(1, 1), target + 1
theirs, ours = MulticlassAveragePrecision(num_classes=3), AveragePrecision(num_classes=3)
print(f"TorchMetrics, class 0 {theirs(scores, target):.4f}, renamed 1 {theirs(*renamed):.4f}")
print(f"scikit-learn, class 0 {average_precision_score(target == 0, scores[:, 0]):.4f}")
print(f"assay, class 0        {ours(scores, target):.4f}, renamed 1 {ours(*renamed):.4f}")
