"""One call of a function or a module of a package as a case of the audit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from assay.audit import Case
from assay.audit.tensor_trees import tensors_of
from benchmarks.packages_audited import torchvision_operators

torchvision_operators.define()


class Called:
    """What is called with each batch, and what it returned last."""

    def __init__(self, thing: Any) -> None:
        self.thing, self.value = thing, None

    def to(self, device: Any) -> Called:
        """Move what is called, where it can be moved."""
        if hasattr(self.thing, "to"):
            moved = self.thing.to(device)
            self.thing = self.thing if moved is None else moved
        return self

    def update(self, *batch: Any) -> None:
        """Call it, and go backward from the sum of what it returns."""
        self.value = self.thing(*batch)
        outputs = tensors_of(self.value).values()
        losses = [each.sum() for each in outputs if each.requires_grad and each.is_floating_point()]
        if losses:
            torch.autograd.backward(losses)

    def compute(self) -> Any:
        """What it returned, for the comparison with the CPU."""
        return {path: tensor.detach() for path, tensor in tensors_of(self.value).items()}

    def states(self) -> dict[str, Tensor]:
        """The tensors that it keeps."""
        return {f"thing.{path}": tensor for path, tensor in tensors_of(self.thing).items()}


def named(path: str) -> Any:
    """What a dotted path names, such as ``"monai.losses.DiceLoss"``; its module is imported."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def case(path: str, thing: Callable[[], Any], inputs: tuple[Any, ...]) -> Case:
    """A case that makes ``thing()`` on the CPU, moves it, if it can be moved, and calls it with the inputs.

    Tensors among the inputs are on the device under test, as a user of the package would have them. ``path`` begins
    with the name of the package.
    """

    def build() -> Called:
        return Called(thing())

    return Case(path, build, (inputs,), states=Called.states, usages=("moved first",))


def instance(path: str, *inputs: Any, **arguments: Any) -> Case:
    """A case that calls an object of a class, such as a loss, which is made with the arguments."""
    return case(path, lambda: named(path)(**arguments), inputs)


def function(path: str, *inputs: Any, **arguments: Any) -> Case:
    """A case that calls a function with the inputs, and with the arguments by keyword."""
    return case(path, lambda: partial(named(path), **arguments), inputs)


def method(path: str, name: str, *inputs: Any, **arguments: Any) -> Case:
    """A case that calls a method of an object, which is made with the arguments and moved."""

    class Method(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.owner = named(path)(**arguments)

        def forward(self, *inputs: Any) -> Any:
            return getattr(self.owner, name)(*inputs)

    return case(f"{path}.{name}", Method, inputs)


def noise(*shape: int) -> Tensor:
    """Normal numbers, the same in every process."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def uniform(*shape: int) -> Tensor:
    """Numbers from 0 to 1, the same in every process."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def labels(below: int, *shape: int) -> Tensor:
    """Integers from 0, the same in every process."""
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(0))


class Net(torch.nn.Module):
    """An object that a call is about, moved to the device if it is a module, and how it is called."""

    def __init__(self, make: Callable[[], Any], call: Callable[..., Any]) -> None:
        super().__init__()
        self.inner, self.call = make(), call

    def forward(self, *inputs: Any) -> Any:
        """Call it."""
        return self.call(self.inner, *inputs)


class Step(torch.nn.Module):
    """Three steps of an optimizer with a linear layer."""

    def __init__(self, kind: Callable[..., Any], arguments: dict[str, Any]) -> None:
        super().__init__()
        self.net = torch.nn.Linear(4, 4)
        self.kind, self.arguments = kind, arguments

    def forward(self, x: Tensor) -> Tensor:
        """The weights after the steps."""
        optimizer = self.kind(self.net.parameters(), **self.arguments)
        for _ in range(3):
            optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            optimizer.step()
        return self.net.weight.detach().clone()
