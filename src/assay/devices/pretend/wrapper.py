"""The engine without a compiler: a tensor subclass, and kernels that Python registers with torch's dispatcher.

Tensors of the device are a subclass whose operators come to Python (:mod:`.wrapper_tensor`, :mod:`.wrapper_operators`).
Tensors come to be there through two factories, ``aten::empty`` and its kin, and through ``aten::to``, for which
:mod:`torch.library` takes kernels from Python; so every route that torch itself reduces to these works, in every
thread, and tensors of the CPU are left alone. Where torch's C code would need a guard of the device, which only a build
with the device has, Python takes over: indexing (:mod:`.wrapper_indexing`), autograd, and what :mod:`.wrapper_patches`
lists.

Autograd follows the CPU tensors inside. Torch's own kernels for gradients are passed by for the device (they would ask
for its guard), so a gradient is that of the CPU's operators. Operators that run backward are therefore not seen, and
their rules not checked.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.devices.pretend.errors import PretendError
from assay.devices.pretend.events import Recorder
from assay.devices.pretend.wrapper_operators import CPU, Operators
from assay.devices.pretend.wrapper_patches import is_marked_pinned, mark_pinned, patched
from assay.devices.pretend.wrapper_tensor import PretendTensor
from assay.errors import describe

if TYPE_CHECKING:
    from assay.devices.pretend.rules import Rules

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd  # type: ignore[attr-defined]
aten = torch.ops.aten


class WrapperEngine:
    """Runs a device's operators on the CPU, behind a tensor subclass.

    Args:
        device: ``"cuda"``, ``"mps"`` or ``"xpu"``.
        count: how many of them there are.
        rules: what the device lacks and does.
        recorder: where events go.
    """

    def __init__(self, device: str, count: int, rules: Rules, recorder: Recorder) -> None:
        self.kind, self.count = device, count
        self.operators = Operators(rules, recorder, self)
        self._bad_index = rules.texts.get("index", "The device index is out of range")
        self._current = threading.local()
        self._generators = tuple(torch.Generator() for _ in range(count))
        self._owners = {generator._cdata: index for index, generator in enumerate(self._generators)}  # type: ignore[attr-defined]
        self._open = ExitStack()

    def __enter__(self) -> WrapperEngine:
        if PretendTensor.runner is not None:
            todo = "Leave it first: there is one kind of pretend device at a time"
            raise PretendError(describe("pretend", self.kind, "no other pretend device that is open", todo))
        with ExitStack() as stack:
            library = torch.library.Library("aten", "IMPL")
            stack.callback(library._destroy)
            self._register(library)
            stack.enter_context(patched(self))
            PretendTensor.runner = self.operators
            stack.callback(setattr, PretendTensor, "runner", None)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    # The machine ------------------------------------------------------------------------------------------------------

    def current_device(self) -> int:
        """The index of this thread's current device."""
        return getattr(self._current, "index", 0)

    def set_device(self, index: int) -> None:
        """Make another device this thread's current one."""
        self._current.index = self.indexed(torch.device(self.kind, index)).index

    def generator(self, index: int) -> torch.Generator:
        """The default generator of a device: one of the CPU that stands for it."""
        return self._generators[index]

    def indexed(self, device: torch.device) -> torch.device:
        """A device with its index: by default that of the current one."""
        if device.type != self.kind:
            return device
        if device.index is None:
            return torch.device(self.kind, self.current_device())
        if device.index >= self.count:
            raise RuntimeError(self._bad_index)
        return device

    def own(self, generator: torch.Generator, index: int) -> None:
        """Let a generator of the CPU stand for one of a device."""
        self._owners[generator._cdata] = index  # type: ignore[attr-defined]

    def on_cpu(self, generator: torch.Generator | None, device: torch.device) -> torch.Generator | None:
        """The generator of the CPU that stands for one of the device."""
        if device == CPU:
            return generator
        if generator is None:
            return self._generators[device.index]
        if generator._cdata not in self._owners:  # type: ignore[attr-defined]
            raise RuntimeError(f"Expected a '{self.kind}' device type for generator but found 'cpu'")
        return generator

    def pinned(self, tensor: Tensor) -> bool:
        """Whether a tensor in host memory counts as pinned."""
        return is_marked_pinned(tensor)

    # Kernels ----------------------------------------------------------------------------------------------------------

    def _register(self, library: torch.library.Library) -> None:
        key = self.kind.upper()
        with warnings.catch_warnings():  # torch says that kernels are replaced: the native engine may have left its own
            warnings.simplefilter("ignore")
            for name in ("empty.memory_format", "empty_strided", "tril_indices", "triu_indices"):
                library.impl(name, self._factory(name), key)
            for where in ("CPU", "AutogradCPU", key, f"Autograd{key}"):
                library.impl("to.device", self._to_device, where)
                library.impl("to.dtype_layout", self._to_layout, where)
            for where in ("CPU", key):
                library.impl("is_pinned", lambda tensor, device=None: self.pinned(tensor), where)
                library.impl("_pin_memory", self._pin_memory, where)
            for name in _with_gradients():
                library.impl(name, torch.library.fallthrough_kernel, f"Autograd{key}")

    def _factory(self, name: str) -> Any:
        packet, _, overload = name.partition(".")
        on_cpu = getattr(getattr(aten, packet), overload or "default")

        def make(*args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
                 **kwargs: Any) -> Tensor:  # fmt: skip
            target = self.indexed(device or torch.device(self.kind))
            if "indices" not in packet:
                self.operators.has(dtype, f"aten::{name}", target)
            if layout not in (None, torch.strided):
                raise self.operators.cannot(f"aten::{name}", target, f"a tensor of layout {layout}")
            return self.operators.wrap(on_cpu(*args, dtype=dtype, device=CPU, **kwargs), target, f"aten::{name}")

        return make

    def _to_device(self, tensor: Tensor, device: Any, dtype: Any, non_blocking: bool = False, copy: bool = False,
                   memory_format: Any = None) -> Tensor:  # fmt: skip
        return self._to(tensor, device, dtype, non_blocking, copy, memory_format)

    def _to_layout(self, tensor: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   pin_memory: Any = None, non_blocking: bool = False, copy: bool = False,
                   memory_format: Any = None) -> Tensor:  # fmt: skip
        return self._to(tensor, device, dtype, non_blocking, copy, memory_format)

    def _to(self, tensor: Tensor, device: torch.device | None, dtype: torch.dtype | None, non_blocking: bool,
            copy: bool, memory_format: torch.memory_format | None) -> Tensor:  # fmt: skip
        target = tensor.device if device is None else self.indexed(device)
        dtype = dtype or tensor.dtype
        if target.type != self.kind and not isinstance(tensor, PretendTensor):
            return aten.to.device._op_dk(_COMPOSITE, tensor, target, dtype, non_blocking, copy, memory_format)  # type: ignore[no-any-return]
        if target == tensor.device and dtype == tensor.dtype and not copy and _lies_as(tensor, memory_format):
            return tensor
        return self.operators.copied(tensor, target, dtype, non_blocking=non_blocking, memory_format=memory_format)

    def _pin_memory(self, tensor: Tensor, device: Any = None) -> Tensor:
        if isinstance(tensor, PretendTensor):
            raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
        return mark_pinned(tensor.clone())


def _lies_as(tensor: Tensor, memory_format: torch.memory_format | None) -> bool:
    return memory_format in (None, torch.preserve_format) or tensor.is_contiguous(memory_format=memory_format)


def _with_gradients() -> list[str]:
    """The operators for which torch has a kernel that follows gradients."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key  # type: ignore[attr-defined]
    names = torch._C._dispatch_get_all_op_names()  # type: ignore[attr-defined]
    return [name.removeprefix("aten::") for name in names if name.startswith("aten::") and has(name, "Autograd")]
