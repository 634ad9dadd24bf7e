"""Modules with and without device bugs; a line that ends with ``# BUG rule`` is where the finding must point."""

from __future__ import annotations

import torch
from torch import nn


class Clean(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 2)
        self.drop = nn.Dropout()

    def forward(self, images):
        return self.head(self.drop(self.norm(self.conv(images)).mean((2, 3)).relu()))


class Sampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.encoder, self.decoder = nn.Dropout(), nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, values):
        mean, spread = self.drop(self.encoder(values)).chunk(2, -1)
        return self.decoder(mean + torch.randn_like(mean) * spread.exp()), mean


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 8)
        self.table = torch.arange(16.0)[:, None].expand(16, 8) / 16

    def forward(self, tokens):
        return self.embedding(tokens) + self.table[: tokens.shape[1]]  # BUG mixed-devices


class Masked(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, values):
        mask = torch.ones(values.shape[-1], values.shape[-1]).tril()
        return self.linear(values) @ mask  # BUG mixed-devices


class Waiting(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, batch_first=True)

    def forward(self, values):
        states, _ = self.lstm(values)
        if states.abs().max() > 10:  # BUG device-sync
            states = states / 2
        return {"states": states}


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.full(gradient.shape, 2.0)  # BUG mixed-devices


class Doubled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, values):
        return Backward.apply(self.linear(values))


class Shifted(nn.Module):
    def forward(self, values, offsets):
        return values + offsets + torch.ones(values.shape[-1])  # BUG mixed-devices


class NeedsArguments(nn.Module):
    def __init__(self, width):
        super().__init__()


net = nn.Sequential(nn.Linear(784, 10), nn.Softmax(-1))
