"""Small fixed tensors on a device: the inputs of questions about what operators do there."""

from __future__ import annotations

import torch
from torch import Tensor


def square(d: str) -> Tensor:
    """Two rows of two, invertible."""
    return torch.tensor([[2.0, 1.0], [1.0, 3.0]], device="cpu").to(d)


def matrix(d: str, *shape: int) -> Tensor:
    """A well-conditioned matrix of float32: three rows of three, or of this shape."""
    rows, columns = shape or (3, 3)
    values = torch.arange(1.0, 1 + rows * columns, device="cpu").reshape(rows, columns).sqrt()
    return (values + torch.eye(rows, columns, device="cpu")).to(d)


def filled(d: str, *shape: int) -> Tensor:
    """Numbers of both signs between -1 and 1, no two of them equal."""
    numbers = torch.arange(torch.Size(shape).numel(), device="cpu", dtype=torch.float32)
    return (numbers * 2.4).sin().reshape(shape).to(d)


def vector(d: str) -> Tensor:
    return torch.tensor([3.0, 1.0, 2.0], device="cpu").to(d)


def scalar(d: str) -> Tensor:
    return torch.tensor(1.0, device="cpu").to(d)


def indices(d: str) -> Tensor:
    return torch.tensor([0, 2, 1], device="cpu").to(d)


def counts(d: str) -> Tensor:
    return torch.tensor([1, 2, 1], device="cpu").to(d)


def zeros(d: str) -> Tensor:
    """Two rows of two indices, all of which are 0."""
    return torch.zeros(2, 2, dtype=torch.int64, device=d)


def mask(d: str) -> Tensor:
    return torch.tensor([True, False, True], device="cpu").to(d)
