"""A model of bytes: perplexity

How often each byte follows each other one in Python's documentation is a language model, a very small one. It predicts
two topics that it has not seen.

- Bits per byte compare models with different tokens.
- The worst three windows are shown as text, each token shaded by its loss: tables and code cost the most.
"""

from pydoc_data.topics import topics

import torch

from assay.language import perplexity

held_out = "import", "numeric-types"
known = "\n\n".join(text for topic, text in topics.items() if topic not in held_out).encode()
counts = torch.full((256, 256), 0.01)
pairs = torch.tensor(list(known[:-1])), torch.tensor(list(known[1:]))
counts.index_put_(pairs, torch.ones(len(known) - 1), accumulate=True)
model = torch.nn.Embedding.from_pretrained((counts / counts.sum(1, keepdim=True)).log())

text = "\n\n".join(topics[each] for each in held_out)
report = perplexity(model, text, window=256, stride=128, device="cpu", progress=False, title="A model of bytes")
