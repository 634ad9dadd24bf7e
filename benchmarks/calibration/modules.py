"""Every module of PyTorch's module database on a pretend device: forward and backward with the CPU's bits.

python -m benchmarks.calibration.modules --device cuda:1
"""

from __future__ import annotations

import argparse
import copy
import itertools
from dataclasses import dataclass
from typing import Any

import torch

from assay.devices.pretend import pretend
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:1")
    parser.add_argument("--first", type=int)
    parser.add_argument("--last", type=int, default=1 << 30)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    database = modules()
    names = [info.name for info in database]
    if asked.first is not None:
        with operators.quietly(), pretend(asked.device) as pretended:
            stream.emit(asked.first, asked.last, names, lambda i: check(database[i], pretended))
        return
    results = stream.collect(__spec__.name, ["--device", asked.device], names)
    stream.keep(f"modules_{asked.device.split(':')[0]}", results)
    operators.show(results)


if __name__ == "__main__":
    main()
