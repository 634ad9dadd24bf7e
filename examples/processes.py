"""Any number of processes, with uneven shards or none, give the bits of one process.

torchrun --nproc-per-node 3 examples/processes.py
"""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits

from assay import Accuracy, ConfusionMatrix, Meter

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

data = load_digits()
images, target = torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)
means = torch.stack([images[target == digit].mean(0) for digit in range(10)])
scores = -torch.cdist(images, means)  # the nearest mean image is the prediction

# The first rank has nothing, the others share the samples unevenly; nothing is padded and nothing counted twice.
bounds = torch.linspace(0, len(target) ** 0.5, max(world_size, 2)).square().long()
own = slice(0, 0) if rank == 0 and world_size > 1 else slice(bounds[max(rank, 1) - 1], bounds[max(rank, 1)])

meter = Meter(accuracy=Accuracy(num_classes=10), confusion=ConfusionMatrix(num_classes=10))
meter.update(scores[own], target[own])
total = meter.sync()  # one collective, for any metrics

alone = Accuracy(num_classes=10)(scores, target)
assert total.rows == len(target)
assert total.compute()["accuracy"].item() == alone.item()
if rank == 0:
    print(f"{world_size} processes, {total.rows} samples: accuracy {alone.item():.6f}, as in one process", flush=True)
dist.destroy_process_group()
