import torch
from pytrec_eval import RelevanceEvaluator
from torchmetrics.retrieval import RetrievalMAP

from assay.metrics import RetrievalMAP as Ours

target, preds = torch.tensor([1, 0] + [1] * 9), torch.linspace(0.9, 0.1, 11)
query = torch.zeros(11, dtype=torch.long)
judged = {"query": {f"d{k}": relevance for k, relevance in enumerate(target.tolist())}}
ranked = {"query": {f"d{k}": score for k, score in enumerate(preds.tolist())}}
print(f"TorchMetrics {RetrievalMAP(top_k=1)(preds, target, indexes=query):.4f}")
print(f"trec_eval    {RelevanceEvaluator(judged, {'map_cut.1'}).evaluate(ranked)['query']['map_cut_1']:.4f}")
print(f"assay        {Ours(top_k=1)(preds, target, indexes=query):.4f}")
