"""A training script that works on a laptop's CPU: its positions are made on the CPU, and its loss is read every step.

assay audit examples/audit/train.py --device mps
"""

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1]) / ids.shape[1]  # the bug: no device=ids.device
        return self.head(self.embed(ids) + positions[:, None])


def main():
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    torch.manual_seed(0)
    network = Network().to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        ids = torch.randint(50, (8, 12), device=device)
        loss = nn.functional.cross_entropy(network(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
