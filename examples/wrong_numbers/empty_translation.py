import sacrebleu
from torchmetrics.text import TranslationEditRate

from assay.metrics import TranslationEditRate as Ours

preds, target = ["", ""], ["the cat", "sat"]
print(f"TorchMetrics {TranslationEditRate()(preds, [[each] for each in target]):.4f}")
print(f"sacrebleu    {sacrebleu.corpus_ter(preds, [target]).score / 100:.4f}")
print(f"assay        {Ours()(preds, [[each] for each in target]):.4f}")
