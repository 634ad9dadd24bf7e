"""PyTorch's operator database, which its wheel ships: the operators, and their inputs on a device."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

# Arguments that belong on the CPU on every device.
ON_THE_HOST = {"tensor_split": (0,)}  # ATen/native/TensorShape.cpp: tensor_indices_or_sections must be on the CPU
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16)


def operators() -> list[Any]:
    """The entries of the operator database (OpInfo). Needs the package expecttest."""
    try:
        from torch.testing._internal import common_methods_invocations as methods
    except ModuleNotFoundError as missing:
        raise SystemExit(f"PyTorch's operator database needs {missing.name}: pip install expecttest") from None
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    methods.wrapper_set_seed = lambda run, *args, **kwargs: run(*args, **kwargs)  # seeds are set here
    common_utils.set_rng_seed = _seed  # before every input
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None  # which looks for a test through all frames
    return list(methods.op_db)


def _seed(seed: int = 0) -> None:
    """As the database does it, on the CPU alone, where inputs are made.

    ``torch.manual_seed`` keeps a note with the stack for each kind of device that has not begun, which takes longer
    than most operators.
    """
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def name(operator: Any) -> str:
    """The name of an entry, as PyTorch's lists write it: the operator with its variant."""
    return str(operator.name + operator.variant_test_name)


def dtype_of(operator: Any) -> torch.dtype | None:
    """float32, or for an operator that takes none, the first of a few dtypes that it takes on the CPU."""
    return next((dtype for dtype in DTYPES if operator.supports_dtype(dtype, "cpu")), None)


def inputs(operator: Any, dtype: torch.dtype, most: int, requires_grad: bool = False) -> Iterator[Any]:
    """The first inputs of an operator, on the CPU; the same ones each time."""
    torch.default_generator.manual_seed(0)
    samples = operator.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    for sample in itertools.islice(samples, most):
        yield sample.input, sample.args, sample.kwargs


def host_arguments(operator: Any) -> tuple[int, ...]:
    """Which of the arguments behind the first one belong on the CPU."""
    return ON_THE_HOST.get(operator.name, ())


def put(tree: Any, device: torch.device | str, host: tuple[int, ...] = ()) -> Any:
    """Fresh copies of all tensors on a device; where a device is named, that device."""
    target = torch.device(device)
    if host:
        value, args, kwargs = tree
        args = tuple(put(one, "cpu" if i in host else target) for i, one in enumerate(args))
        return put(value, target), args, put(kwargs, target)

    def leaf(value: Any) -> Any:
        if isinstance(value, Tensor):
            return _fresh(value, target)
        return target if isinstance(value, torch.device) else value

    moved = pytree.tree_map(leaf, tree)
    return _named(moved, target)


def _fresh(tensor: Tensor, device: torch.device) -> Tensor:
    plain = tensor.detach()
    moved = plain.clone() if plain.device == device else plain.to(device)
    return moved.requires_grad_(tensor.requires_grad)


def _named(tree: Any, device: torch.device) -> Any:
    """Keyword arguments say the device by name, too."""
    if isinstance(tree, tuple) and len(tree) == 3 and isinstance(tree[2], dict) and "device" in tree[2]:
        value, args, kwargs = tree
        return value, args, kwargs | {"device": device}
    return tree
