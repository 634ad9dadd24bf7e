import jiwer
from torcheval.metrics import WordInformationLost
from torchmetrics.text import MatchErrorRate, WordInfoLost

from assay.metrics import MatchErrorRate as OurRate
from assay.metrics import WordInfoLost as Ours

preds, target = ["a b x c"], ["a b c d"]
print(f"TorchMetrics {WordInfoLost()(preds, target):.4f} {MatchErrorRate()(preds, target):.4f}")
print(f"TorchEval    {WordInformationLost().update(preds, target).compute():.4f}")
print(f"jiwer        {jiwer.wil(target, preds):.4f} {jiwer.mer(target, preds):.4f}")
print(f"assay        {Ours()(preds, target):.4f} {OurRate()(preds, target):.4f}")
