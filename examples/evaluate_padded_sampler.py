"""Five samples on three processes, with the sampler that pads: four of five are right, and that is what comes out.

`DistributedSampler` gives the first sample to two of the three processes, so that all have equally many. Counted as
they come, five of six would be right: 0.8333. `evaluate` asks all samplers beforehand and counts every sample once.

    torchrun --nproc-per-node 3 examples/evaluate_padded_sampler.py
"""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from assay import Accuracy, evaluate

dist.init_process_group("gloo")

scores = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.9, 0.1]])
data = TensorDataset(scores, torch.ones(5, dtype=torch.int64))
loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, shuffle=False))

report = evaluate(torch.nn.Identity(), loader, Accuracy(num_classes=2), title="Five samples")
accuracy = report.sections[0].values[0].value
assert accuracy == 0.8
if dist.get_rank() == 0:
    print(f"accuracy of five samples on {dist.get_world_size()} processes: {accuracy}")
    print(*report.notes, sep="\n", flush=True)
dist.destroy_process_group()
