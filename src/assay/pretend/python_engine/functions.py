"""A user's own ``torch.autograd.Function``, where autograd follows the CPU tensors inside wrapped ones.

Torch gets a Function of the CPU tensors, which calls the user's with tensors of the device.
"""

from __future__ import annotations

from typing import Any

import torch

from assay.pretend.python_engine.tensor import PretendTensor

_SETUP = torch.autograd.Function.setup_context


def applied(apply: Any) -> classmethod[Any, Any, Any]:
    """``torch.autograd.Function.apply``, which also takes wrapped tensors that need gradients."""
    original = getattr(apply, "__func__", _compiled_apply)

    def bridging(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled() or not any(isinstance(arg, PretendTensor) and arg.requires_grad for arg in args):
            return original(cls, *args, **kwargs)
        devices: list[torch.device | None] = []
        results = original(_inside(cls, args, devices), *unwrapped(args), **kwargs)
        return _outside(results, devices)

    return classmethod(bridging)


def _compiled_apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """The same of a class; from torch 2.14 on it is no function of Python."""
    return vars(torch._C._FunctionBase)["apply"].__get__(None, cls)(*args, **kwargs)


def unwrapped(value: Any) -> Any:
    """The CPU tensors inside, also in lists and tuples."""
    if isinstance(value, list | tuple):
        return type(value)(unwrapped(item) for item in value)
    return value.unwrap() if isinstance(value, PretendTensor) else value


def _inside(cls: Any, args: tuple[Any, ...], devices: list[torch.device | None]) -> Any:
    """The user's Function on CPU tensors; ``devices`` is filled with where its results are."""
    places = [arg.device if isinstance(arg, PretendTensor) else None for arg in args]

    def forward(ctx: Any, *inner: Any) -> Any:
        outer = tuple(_outside(inner, places))
        if cls.setup_context is _SETUP:
            result = cls.forward(ctx, *outer)
        else:
            result = cls.forward(*outer)
            cls.setup_context(ctx, outer, result)
        for marked in ("non_differentiable", "dirty_tensors"):
            if getattr(ctx, marked, None):
                setattr(ctx, marked, unwrapped(getattr(ctx, marked)))
        results = result if isinstance(result, tuple) else (result,)
        devices[:] = [item.device if isinstance(item, PretendTensor) else None for item in results]
        return unwrapped(result)

    def backward(ctx: Any, *gradients: Any) -> Any:
        return unwrapped(cls.backward(ctx, *_outside(gradients, devices)))

    return type(
        cls.__name__, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def _outside(values: Any, devices: list[torch.device | None]) -> Any:
    """Tensors as they are on the device, each where ``devices`` says."""
    if not isinstance(values, tuple):
        return _outside((values,), devices)[0]
    runner = PretendTensor.runner
    return tuple(
        runner.wrap(value, device, "aten::alias") if runner and device and isinstance(value, torch.Tensor) else value
        for value, device in zip(values, devices, strict=True)
    )
