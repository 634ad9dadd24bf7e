"""A small network for an operator-by-operator comparison of a device with the CPU.

assay audit --parity examples/audit/parity.py --device mps
"""

import torch
from torch import nn


def main():
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 4)).to(device)
    images = torch.rand(16, 3, 8, 8).to(device)
    print(network(images).softmax(1).argmax(1).tolist())


if __name__ == "__main__":
    main()
