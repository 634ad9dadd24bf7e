"""The Python engine: a tensor subclass, and kernels that Python registers with torch's dispatcher.

Tensors of the device are a subclass whose operators come to Python (:mod:`.tensor`, :mod:`.operators`).
Tensors come to be there through two factories, ``aten::empty`` and its kin, and through ``aten::to``, for which
:mod:`torch.library` takes kernels from Python; so every route that torch itself reduces to these works, in every
thread, and tensors of the CPU stay as they are. Where torch's C code would need a guard of the device, which only a
build with the device has, Python takes over: indexing (:mod:`.indexing`), autograd, and what :mod:`.patches` lists.

Autograd follows the CPU tensors inside: torch's own kernels for gradients would ask for a guard, so for the device they
are passed by. A gradient is that of the CPU's operators. What runs backward is compared, by name, with the rules of the
device that the loss is on; devices cannot clash there.

What cannot be done so is refused with :class:`~assay.pretend.errors.PretendError`: ``torch.compile``,
``torch.func.grad`` and ``jvp``, lazy modules, layouts other than strided and COO, storages, DLPack. What torch's C code
refuses before Python is asked has torch's own error: ``pin_memory=True`` in a factory, ``torch.Stream`` and a bare
number as the device of a factory. And a tensor of the device is of a subclass: ``type(x) is torch.Tensor`` is false.
"""

from __future__ import annotations

import functools
import threading
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from assay.devices.kinds import KINDS
from assay.pretend.events import Recorder
from assay.pretend.python_engine.operators import CPU, OperatorRunner
from assay.pretend.python_engine.patches import is_marked_pinned, mark_pinned, patched
from assay.pretend.python_engine.tensor import PretendTensor

if TYPE_CHECKING:
    from assay.devices.operators.rules import Rules

_C: Any = torch._C
_COMPOSITE = _C.DispatchKey.CompositeImplicitAutograd
aten = torch.ops.aten


EMPTY = ("empty.memory_format", "empty_strided")
WINDOWS = ("kaiser_window", "kaiser_window.periodic", "kaiser_window.beta")
"""Factories that choose their kernel by a table, in which a CPU build has no row for CUDA and XPU; MPS never has."""
CELLS = ("lstm.input", "lstm.data", "lstm_cell", "gru.input", "gru.data", "gru_cell")
"""Recurrent layers that torch makes of kernels which only the device has: they run as the CPU runs them."""


LACKING = ("repeat_interleave.self_int", "repeat_interleave.self_Tensor")
"""Operators that torch makes of others, of which an adapter has a kernel of its own that lacks dtypes."""


class PythonEngine:
    """Runs the operators of a device, by its rules, on the CPU, behind a tensor subclass."""

    def __init__(self, device: str, count: int, rules: Rules, recorder: Recorder) -> None:
        self.kind, self.count = device, count
        self._on_cpu = rules.on_cpu
        kernels = {_overload(name): kernel for name, kernel in self._kernels().items()}
        self.operators = OperatorRunner(rules, recorder, self, kernels)
        self._bad_index = rules.texts.get("index", "The device index is out of range")
        self._current = threading.local()
        self._generators = tuple(torch.Generator() for _ in range(count))
        self._owned = {_identity(generator): generator for generator in self._generators}
        self._open = ExitStack()
        self._made: WeakValueDictionary[int, PretendTensor] = WeakValueDictionary()

    def __enter__(self) -> PythonEngine:
        with ExitStack() as stack:
            library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
            stack.callback(library._destroy)
            every: Any = torch.library.Library("_", "IMPL")  # type: ignore[no-untyped-call]
            stack.callback(every._destroy)
            self._register(library, every)
            stack.enter_context(patched(self))
            PretendTensor.runner = self.operators
            stack.callback(setattr, PretendTensor, "runner", None)
            stack.callback(self._leave_gradients_inside)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _leave_gradients_inside(self) -> None:
        """What outlives the device must not itself require gradients: autograd would ask for the device and abort."""
        for tensor in list(self._made.values()):
            tensor.unwrap()

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
        index: int | None = device.index
        if index is None:
            return torch.device(self.kind, self.current_device())
        if index >= self.count:
            raise RuntimeError(self._bad_index)
        return device

    def own(self, generator: torch.Generator) -> None:
        """Let a generator of the CPU stand for one of the device."""
        self._owned[_identity(generator)] = generator

    def on_cpu(self, generator: torch.Generator | None, device: torch.device) -> torch.Generator | None:
        """The generator of the CPU that stands for one of the device."""
        if device == CPU:
            return generator
        if generator is None:
            return self._generators[device.index]
        if _identity(generator) not in self._owned:
            raise RuntimeError(f"Expected a '{self.kind}' device type for generator but found 'cpu'")
        return generator

    def pinned(self, tensor: Tensor) -> bool:
        """Whether a tensor in host memory counts as pinned."""
        return is_marked_pinned(tensor)

    # Kernels ----------------------------------------------------------------------------------------------------------

    def _register(self, library: Any, every: Any) -> None:
        key = KINDS[self.kind].key
        with warnings.catch_warnings():  # torch says that kernels are replaced: the native engine may have left its own
            warnings.simplefilter("ignore")
            for name in (*EMPTY, "tril_indices", "triu_indices", *(() if self.kind == "mps" else WINDOWS)):
                library.impl(name, self._factory(name), key)
            for other in (kind for kind in KINDS.values() if kind.several and not kind.adapter):
                for name in EMPTY if other.name != self.kind else ():
                    library.impl(name, _absent(other.name), other.key)
            for where in ("CPU", "AutogradCPU"):
                library.impl("to.device", self._to, where)
                library.impl("to.dtype_layout", self._to, where)
            for where in ("CPU", key):
                library.impl("is_pinned", lambda tensor, device=None: self.pinned(tensor), where)
                library.impl("_pin_memory", self._pin_memory, where)
            # torch.tensor([a, b]) of tensors without dimensions reads them past all subclasses
            read = aten._local_scalar_dense.default
            library.impl("_local_scalar_dense", lambda tensor: self.operators.run(read, (tensor,), {}), key)
            for where in (key, f"Autograd{key}"):
                for name, kernel in self._kernels().items():
                    library.impl(name, kernel, where)
            if KINDS[self.kind].adapter:  # torch has nothing there; torch.autocast is refused
                every.fallback(torch.library.fallthrough_kernel, f"Autocast{key}")
                if not _C._dispatch_has_backend_fallback(getattr(_C.DispatchKey, f"Autograd{key}")):  # torch 2.6
                    every.fallback(torch.library.fallthrough_kernel, f"Autograd{key}")
            for name in _with_gradients():
                library.impl(name, torch.library.fallthrough_kernel, f"Autograd{key}")

    def _kernels(self) -> dict[str, Any]:
        """Operators that are taken over before torch makes them of others: in inference mode, too."""
        cells = {name: self._whole(name) for name in CELLS}
        moves = {"to.device": self._to, "to.dtype_layout": self._to, "to.dtype": self._to_dtype}
        on_cpu = {name.removeprefix("aten::"): self._in_one_piece(name) for name in self._on_cpu if _is_implicit(name)}
        bags = {name: _bags(name) for name in ("embedding_bag", "embedding_bag.padding_idx")}
        lacking = {name: self._checked(name) for name in LACKING}
        others = {"scaled_dot_product_attention": _attention, "ctc_loss.Tensor": _ctc_loss, "to.other": self._to_other}
        return on_cpu | cells | moves | bags | lacking | others

    def _factory(self, name: str) -> Any:
        on_cpu = _overload(name)

        def make(*args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
                 **kwargs: Any) -> Tensor:  # fmt: skip
            target = self.indexed(device or torch.device(self.kind))
            if "indices" not in name:
                self.operators.has(dtype, f"aten::{name}", target)
            if layout not in (None, torch.strided):
                raise self.operators.cannot(f"aten::{name}", target, f"a tensor of layout {layout}")
            tensor = self.operators.wrap(on_cpu(*args, dtype=dtype, device=CPU, **kwargs), target, f"aten::{name}")
            self._made[id(tensor)] = tensor
            return tensor

        return make

    def _to_dtype(self, tensor: Tensor, dtype: Any, *rest: Any, **named: Any) -> Tensor:
        return self._to(tensor, None, dtype, *rest, **named)

    def _to_other(self, tensor: Tensor, other: Tensor, *rest: Any, **named: Any) -> Tensor:
        return self._to(tensor, other.device, other.dtype, *rest, **named)

    def _to(self, tensor: Tensor, device: torch.device | None = None, dtype: torch.dtype | None = None,
            non_blocking: bool = False, copy: bool = False, memory_format: torch.memory_format | None = None,
            **_: Any) -> Tensor:  # fmt: skip
        target = tensor.device if device is None else self.indexed(device)
        if device is None and isinstance(tensor, PretendTensor):
            dtype = self.operators.given_for(tensor, dtype)
        dtype = dtype or tensor.dtype
        if target.type != self.kind and not isinstance(tensor, PretendTensor):
            return aten.to.device._op_dk(_COMPOSITE, tensor, target, dtype, non_blocking, copy, memory_format)  # type: ignore[no-any-return]
        if target == tensor.device and dtype == tensor.dtype and not copy and _lies_as(tensor, memory_format):
            return tensor
        return self.operators.copied(tensor, target, dtype, non_blocking=non_blocking, memory_format=memory_format)

    def _in_one_piece(self, name: str) -> Any:
        func = _overload(name.removeprefix("aten::"))
        return lambda *args, **kwargs: self.operators.run_on_cpu(func, args, kwargs)

    def _whole(self, name: str) -> Any:
        func = _overload(name)

        def run(*args: Any) -> Any:
            first = args[0].device
            others = args[2:] if name.endswith(".data") else args[1:]  # the sizes of packed batches are on the CPU
            tensors = [tensor for value in others for tensor in (value if isinstance(value, list) else [value])]
            for tensor in tensors:
                if isinstance(tensor, Tensor) and tensor.device != first:
                    why = f"Input and hidden tensors are not at the same device, found input tensor at {first} " \
                          f"and hidden tensor at {tensor.device}"  # fmt: skip
                    self.operators.refuse("devices", f"aten::{name}", first, why, RuntimeError)
            self.operators.check_refused(func, args)
            return self.operators.run_on_cpu(func, args, {})

        return run

    def _checked(self, name: str) -> Any:
        func = _overload(name)

        def run(*args: Any, **kwargs: Any) -> Any:
            self.operators.check_dtypes(func, args)
            return func._op_dk(_COMPOSITE, *args, **kwargs)

        return run

    def _pin_memory(self, tensor: Tensor, device: Any = None) -> Tensor:
        if isinstance(tensor, PretendTensor):
            raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
        return mark_pinned(tensor.clone())


def _absent(kind: str) -> Any:
    """A factory for a kind of device that is not there: torch's own error, which its C code asks for only once."""

    def refuse(*_: Any, **__: Any) -> Tensor:
        torch.get_device_module(kind)._lazy_init()
        raise RuntimeError(f"Torch not compiled with {kind.upper()} enabled")

    return refuse


def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
               is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """Attention by plain matrix products: torch chooses a fused kernel by tables that have no row for the device."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:  # torch makes numbers of it before it chooses a kernel
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
    plain = aten._scaled_dot_product_attention_math.default
    result = plain._op_dk(
        _COMPOSITE, query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )
    return result[0]  # type: ignore[no-any-return]


def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
              reduction: int = 1, zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """As torch does it for all tensors but subclasses: the lengths are copied to the CPU."""
    lengths = [tensor.to("cpu", torch.int64).tolist() for tensor in (input_lengths, target_lengths)]
    return aten.ctc_loss.IntList(log_probs, targets, *lengths, blank, reduction, zero_infinity)  # type: ignore[no-any-return]


def _bags(name: str) -> Any:
    """torch asks in C code whether the weights need gradients, and only the tensors inside know."""
    composite = _overload(name)

    def bags(weight: Tensor, indices: Tensor, offsets: Tensor, scale: bool = False, mode: int = 0, sparse: bool = False,
             weights: Tensor | None = None, last: bool = False, padding_idx: int | None = None) -> Any:  # fmt: skip
        arguments = (weight, indices, offsets, scale, mode, sparse, weights, last)
        if weight.requires_grad and torch.is_grad_enabled():
            padding = -1 if padding_idx is None else padding_idx % len(weight)
            return aten._embedding_bag.default(*arguments, padding)
        padded = () if name == "embedding_bag" else (padding_idx,)
        return composite._op_dk(_COMPOSITE, *arguments, *padded)

    return bags


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def _is_implicit(name: str) -> bool:
    return bool(_C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"))


def _identity(generator: Any) -> int:
    """Which generator it is: torch makes a new Python object each time it hands one out."""
    return int(generator._cdata)


def _lies_as(tensor: Tensor, memory_format: torch.memory_format | None) -> bool:
    return memory_format in (None, torch.preserve_format) or tensor.is_contiguous(memory_format=memory_format)


@functools.cache  # there are thousands, of which torch asks one by one
def _with_gradients() -> list[str]:
    """The operators for which torch has a kernel that follows gradients."""
    has = _C._dispatch_has_kernel_for_dispatch_key
    names = _C._dispatch_get_all_op_names()
    return [
        name.removeprefix("aten::")
        for name in names
        if name.startswith("aten::") and has(name, "Autograd") and not has(name, "CompositeImplicitAutograd")
    ]
