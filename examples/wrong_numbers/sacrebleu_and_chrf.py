import sacrebleu
from torchmetrics.text import CHRFScore, SacreBLEUScore

from assay.metrics import CHRFScore as OurCHRF
from assay.metrics import SacreBLEUScore as Ours

preds, target = ["the cat is here"], [["there is a cat here"]]
print(f"TorchMetrics, BLEU {SacreBLEUScore()(preds, target):.4f}")
print(f"sacrebleu, BLEU    {sacrebleu.corpus_bleu(preds, [['there is a cat here']]).score / 100:.4f}")
print(f"assay, BLEU        {Ours()(preds, target):.4f}")

preds, target = ["yes", "it is cold"], [["no, it was not at all"], ["it is cold"]]
columns = [[each[0] for each in target]]
print(f"TorchMetrics, chrF {CHRFScore()(preds, target):.4f}")
print(f"sacrebleu, chrF    {sacrebleu.corpus_chrf(preds, columns, word_order=2).score / 100:.4f}")
print(f"assay, chrF        {OurCHRF()(preds, target):.4f}")
