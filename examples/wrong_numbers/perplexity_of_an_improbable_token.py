import torch
from torcheval.metrics import Perplexity as TorchEvalPerplexity
from torchmetrics.text import Perplexity

from assay import Perplexity as Ours

logits, target = torch.zeros(1, 2, 3), torch.tensor([[1, 0]])
logits[0, 0, 0] = 120
print(f"TorchMetrics {Perplexity()(logits, target):.3e}")
print(f"TorchEval    {TorchEvalPerplexity().update(logits, target).compute():.3e}")
print(f"float64      {torch.nn.functional.cross_entropy(logits[0].double(), target[0]).exp():.3e}")
print(f"assay        {Ours()(logits, target):.3e}")
