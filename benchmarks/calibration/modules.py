"""Every module of PyTorch's module database on a pretend device: forward and backward with the CPU's bits.

python -m benchmarks.calibration.modules --device cuda:1
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.calibration import operators, samples, stream


def modules() -> list[Any]:
    """The entries of the module database (ModuleInfo). Needs the package expecttest."""
    samples.operators()  # says which package is missing
    from torch.testing._internal.common_modules import module_db

    return list(module_db)


@dataclass(frozen=True)
class _AsOperator:
    """A module with its arguments, in the shape of an entry of the operator database."""

    name: str
    module: Any
    variant_test_name: str = ""

    def op(self, _: Any, *args: Any, **kwargs: Any) -> Any:
        device = next(
            leaf.device for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if hasattr(leaf, "device")
        )
        return copy.deepcopy(self.module).to(device)(*args, **kwargs)


def check(info: Any, pretended: Any) -> stream.Result:
    """What became of the first inputs of a module, in training mode."""
    found: list[tuple[str, str]] = []
    try:
        for module, tree in _cases(info):
            entry = _AsOperator(info.name, module)
            found.append(operators.sample(entry, tree, pretended.device, pretended))
    except Exception as error:  # the input function itself
        found.append(("no reference", operators.words(error)))
    outcome, why = operators.worst(found)
    return {"outcome": outcome, "why": why, "dtype": "torch.float32", "samples": [kind for kind, _ in found]}


def _cases(info: Any) -> Any:
    torch.manual_seed(0)
    inputs = info.module_inputs_func(info, "cpu", torch.float32, requires_grad=True, training=True)
    for one in itertools.islice(inputs, operators.MOST):
        module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs)
        if one.forward_input is not None:
            yield module.train(), (0.0, one.forward_input.args, one.forward_input.kwargs)


def main() -> None:
    database = modules()
    names = [info.name for info in database]
    results = stream.check_all(__spec__.name, __doc__, names, lambda i, place: check(database[i], place))
    operators.show(results)


if __name__ == "__main__":
    main()
