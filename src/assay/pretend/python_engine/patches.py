"""The few names of torch that change while the Python engine is open, and are put back afterwards.

Everything else goes through torch's dispatcher. What is here never gets there: counting devices by a bare number,
``tensor.data = ...``, the entry to backward, generators, and files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch._functorch import eager_transforms
from torch.autograd import forward_ad, graph
from torch.nn import parameter
from torch.utils._python_dispatch import TorchDispatchMode

from assay.devices.kinds import ACCELERATORS, KINDS
from assay.pretend.python_engine.functions import applied, unwrapped
from assay.pretend.python_engine.tensor import EngineServices, PretendTensor, _Base, _refused, become
from assay.pretend.torch_patches import Patches, stand_in

UninitializedTensorMixin: Any = vars(parameter)["UninitializedTensorMixin"]
FIRST = -1  # before torch's own packages, which begin at 10: torch/serialization.py


@contextmanager
def patched(engine: EngineServices) -> Iterator[None]:
    """Change what has to be changed, and put it back on leaving."""
    run_backward, apply = _backward(graph._engine_run_backward), applied(torch.autograd.Function.apply)
    move, allowed = _to(engine), UninitializedTensorMixin._allowed_methods
    changes: list[tuple[Any, str, Any]] = [
        (Tensor, "data", property(_Base.data.__get__, _set_data)),
        (Tensor, "to", move),
        (UninitializedTensorMixin, "_allowed_methods", [*allowed, move]),
        (Tensor, engine.kind, _to_kind(engine)),
        (graph, "_engine_run_backward", run_backward),
        (torch.autograd, "_engine_run_backward", run_backward),
        (torch.autograd.Function, "apply", apply),
        (eager_transforms, "_wrap_tensor_for_grad", _wrap_for_grad(eager_transforms._wrap_tensor_for_grad)),
        (forward_ad, "make_dual", _make_dual(forward_ad.make_dual)),
        (torch.optim.Optimizer, "_accelerator_graph_capture_health_check", lambda optimizer: None),
        (torch, "compile", _refuse_to_compile),
        (torch, "nonzero", _nonzero),
        (torch, "Generator", _generators(engine)),
        (torch._utils, "_rebuild_tensor", _rebuild(torch._utils._rebuild_tensor)),
    ]
    if KINDS[engine.kind].adapter:
        changes.append((torch.autocast, "__init__", _refuse_autocast(engine.kind, torch.autocast.__init__)))
    if torch.distributed.is_available():
        distributed: Any = torch.distributed
        changes.append((distributed, "Reducer", _reducers(distributed.Reducer)))
    builtins = torch.jit._builtins._get_builtin_table()  # type: ignore[no-untyped-call]  # TorchScript knows torch's functions by their identity
    builtins[id(_nonzero)] = "aten::nonzero"
    package = (FIRST, _location, _restore(engine))
    torch.serialization._package_registry.insert(0, package)
    with Patches() as patches:
        try:
            for owner, name, new in changes:
                if owner is not Tensor or name not in ACCELERATORS or hasattr(Tensor, name):  # no Tensor.mps
                    patches.put(owner, name, new)
            yield
        finally:
            torch.serialization._package_registry.remove(package)
            builtins.pop(id(_nonzero), None)


# Moving ---------------------------------------------------------------------------------------------------------------


def _set_data(tensor: Tensor, value: Tensor) -> None:
    """``tensor.data = value``, as ``nn.Module.to`` does with parameters."""
    if isinstance(value, PretendTensor):
        if isinstance(tensor, UninitializedTensorMixin):
            raise _refused("a lazy module's parameter", value.device)
        become(tensor, value)
    else:
        _Base.data.__set__(tensor, value)


def _to(engine: EngineServices) -> Callable[..., Tensor]:
    def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Tensor.to; a bare number is a device of the accelerator, of which a build for the CPU knows none."""
        if args and type(args[0]) is int:
            args = (engine.indexed(torch.device(engine.kind, args[0])), *args[1:])
        return _Base.to(self, *args, **kwargs)  # type: ignore[no-any-return]

    return to


def _to_kind(engine: EngineServices) -> Callable[..., Tensor]:
    def to_kind(
        self: Tensor,
        device: torch.device | int | str | None = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> Tensor:
        """Tensor.cuda, Tensor.xpu."""
        target = torch.device(engine.kind, device) if isinstance(device, int) else torch.device(device or engine.kind)
        if target.type != engine.kind:
            raise RuntimeError(f"Invalid device, must be {engine.kind} device")
        return _Base.to(self, target, non_blocking=non_blocking, memory_format=memory_format)  # type: ignore[no-any-return]

    return to_kind


def _nonzero(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """torch.nonzero, whose C code takes a guard of the device."""
    if isinstance(input, PretendTensor):
        return input.nonzero(*args, **kwargs)
    return _C_NONZERO(input, *args, **kwargs)


_C_NONZERO: Any = torch._C._VariableFunctions.nonzero


# Gradients ------------------------------------------------------------------------------------------------------------


def _backward(run: Callable[..., Any]) -> Callable[..., Any]:
    """torch's entry to backward: on the CPU tensors inside, with gradients that are where their inputs are."""

    def run_backward(
        outputs: Any, gradients: Any, keep: bool, create: bool, inputs: Any = (), *args: Any, **kwargs: Any
    ) -> Any:
        there = next((output.device for output in outputs if isinstance(output, PretendTensor)), None)
        _same_devices(outputs, gradients)
        with nullcontext() if there is None else _Watch(there):
            results = run(unwrapped(outputs), unwrapped(gradients), keep, create, unwrapped(inputs), *args, **kwargs)
        if not isinstance(results, tuple):
            return results
        return tuple(
            source.beside(result) if isinstance(source, PretendTensor) and result is not None else result
            for source, result in zip(inputs, results, strict=True)
        )

    return run_backward


def _same_devices(outputs: Any, gradients: Any) -> None:
    for place, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if isinstance(gradient, Tensor) and isinstance(output, Tensor) and gradient.device != output.device:
            raise RuntimeError(
                f"invalid gradient at index {place} - expected device {output.device} but got {gradient.device}"
            )


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Compares what autograd runs on the CPU tensors inside with the rules of the device that the loss is on."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        runner = PretendTensor.runner
        if runner is not None and not any(issubclass(kind, PretendTensor) for kind in types):
            runner.judge_backward(func, self.device, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _refuse_to_compile(*_: Any, **__: Any) -> Any:
    runner = PretendTensor.runner
    raise _refused("torch.compile", torch.device(runner.kind if runner else "cuda"))


def _refuse_autocast(kind: str, init: Callable[..., None]) -> Callable[..., None]:
    """What runs in which precision is C++ of the adapter; the native engine has it from torch's lists."""

    def refusing(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == kind and kwargs.get("enabled", True):
            raise _refused("torch.autocast", torch.device(kind))
        init(self, device_type, *args, **kwargs)

    return refusing


def _reducers(make: Callable[..., Any]) -> Callable[..., Any]:
    """What DistributedDataParallel makes of its parameters: C code, which would read their memory."""

    def refusing(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        places = [each.device for each in parameters if isinstance(each, PretendTensor)]
        if places:
            raise _refused("DistributedDataParallel", places[0])
        return make(parameters, *args, **kwargs)

    return refusing


def _make_dual(make: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
        if isinstance(tensor, PretendTensor):
            raise _refused("forward-mode differentiation (torch.func.jvp)", tensor.device)
        return make(tensor, tangent, level=level)

    return refusing


def _wrap_for_grad(wrap: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(value: Any, level: int) -> Any:
        if isinstance(value, PretendTensor):
            raise _refused("torch.func.grad and its kin", value.device)
        return wrap(value, level)

    return refusing


# Generators -----------------------------------------------------------------------------------------------------------


def _generators(engine: EngineServices) -> type[torch.Generator]:
    """torch.Generator, which also makes generators of the device."""
    plain = torch.Generator

    class PretendGenerator(plain):  # type: ignore[misc, valid-type]
        """A generator of the CPU that stands for one of the device: its numbers are not those of a real one."""

        device: torch.device = property(lambda self: self.__dict__["at"])  # type: ignore[assignment]

    def make(device: Any = "cpu") -> torch.Generator:
        place = torch.device(device)
        if place.type != engine.kind:
            return plain(place)
        generator = PretendGenerator()
        generator.__dict__["at"] = engine.indexed(place)
        engine.own(generator)
        return generator

    return stand_in(plain, make)


# Files and pinned memory: notes on storages, which stay with them as long as they live --------------------------------


def mark_pinned(tensor: Tensor) -> Tensor:
    """Note that a CPU tensor's storage counts as pinned."""
    tensor.untyped_storage()._assay_pinned = True  # type: ignore[attr-defined]
    return tensor


def is_marked_pinned(tensor: Tensor) -> bool:
    """Whether a CPU tensor's storage counts as pinned."""
    if isinstance(tensor, PretendTensor) or tensor.layout is not torch.strided:
        return False
    return getattr(tensor.untyped_storage(), "_assay_pinned", False)


def _location(storage: Any) -> str | None:
    """Where a storage is, for files; torch writes no index for MPS."""
    device = getattr(storage, "assay_device", None)
    return None if device is None else "mps" if device.type == "mps" else str(device)


def _restore(engine: EngineServices) -> Callable[[Any, str], Any]:
    def restore(storage: Any, location: str) -> Any:
        if not location.startswith(engine.kind):
            return None
        device = torch.device(location)
        if engine.kind != "mps":
            device = torch.serialization._validate_device(location, engine.kind)  # type: ignore[no-untyped-call]
        storage.assay_device = engine.indexed(device)
        return storage

    return restore


def _rebuild(rebuild: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """torch._utils._rebuild_tensor: a tensor over a storage that was read from a file."""

    def rebuilt(storage: Any, *args: Any, **kwargs: Any) -> Tensor:
        tensor = rebuild(storage, *args, **kwargs)
        device = getattr(storage._untyped_storage, "assay_device", None)
        if device is None or PretendTensor.runner is None:
            return tensor
        return PretendTensor.runner.wrap(tensor, device, "aten::set_")

    return rebuilt
