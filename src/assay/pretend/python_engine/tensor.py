"""The tensor of the Python engine: its values are a CPU tensor's, its device is the pretend one.

Two tensors stand one behind the other. The outer one, this class, has the device, and torch asks it where it is, what
it is made of, and what operators it goes to. The inner one, ``host``, has the values, and autograd: the outer one has
none (see :mod:`.engine`), so everything that concerns gradients is asked of the inner one here.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from assay.errors import describe
from assay.pretend.errors import PretendError
from assay.pretend.python_engine import indexing

_C: Any = torch._C
_Base: Any = torch._C.TensorBase
aten = torch.ops.aten
_AUTOCAST_ON_CPU = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU)
_outer_requires_grad = _Base.requires_grad


class EngineServices(Protocol):
    """What the operators and the patches ask of the open engine."""

    kind: str

    def indexed(self, device: torch.device) -> torch.device:
        """A device with its index: by default that of the current one."""

    def on_cpu(self, generator: torch.Generator | None, device: torch.device) -> torch.Generator | None:
        """The generator of the CPU that stands for one of the device."""

    def own(self, generator: torch.Generator) -> None:
        """Let a generator of the CPU stand for one of the device."""

    def pinned(self, tensor: Tensor) -> bool:
        """Whether a tensor in host memory counts as pinned."""


class Runner(Protocol):
    """What runs the operators of an open pretend device."""

    @property
    def kind(self) -> str: ...

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def wrap(self, inner: Tensor, device: torch.device, operator: str) -> PretendTensor: ...

    def judge_backward(
        self, func: Any, device: torch.device, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None: ...


class PretendTensor(Tensor):
    """A tensor on a pretend device; one with dimensions is a :class:`PretendArray`."""

    host: Tensor
    kept_gradient: PretendTensor
    is_plain: ClassVar[bool] = True
    """For `assay.devices.placement`: it stands for an ordinary tensor of its device."""
    runner: ClassVar[Runner | None] = None
    """The open device; without one, a tensor can only be brought back to the CPU."""

    @staticmethod
    def __new__(cls: type[PretendTensor], inner: Tensor, device: torch.device) -> PretendTensor:
        if torch.is_inference_mode_enabled():  # only the inner one is an inference tensor: a view may be of a plain one
            with _C._InferenceMode(False):
                return PretendTensor._around(inner, device)
        return PretendTensor._around(inner, device)

    @staticmethod
    def _around(inner: Tensor, device: torch.device) -> PretendTensor:
        outer: PretendTensor = Tensor._make_wrapper_subclass(
            PretendArray if inner.dim() else PretendTensor,
            inner.size(),
            strides=inner.stride() if inner.layout is torch.strided else None,
            storage_offset=inner.storage_offset() if inner.layout is torch.strided else None,
            dtype=inner.dtype,
            layout=inner.layout,
            device=device,
        )
        outer.host = inner
        return outer

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # As the call came in: views and in-place operators are seen by autograd, which follows the inner tensors.
        with _C._RestorePythonTLSSnapshot():
            if not _C._len_torch_dispatch_stack():  # C++ asserts that a mode is open where this is set
                _C._dispatch_tls_set_dispatch_key_included(_C.DispatchKey.Python, False)
            if cls.runner is None:
                return _left_behind(func, args, kwargs or {})
            if torch.is_autocast_enabled("cpu"):
                with _C._ExcludeDispatchKeyGuard(_AUTOCAST_ON_CPU):
                    return cls.runner.run(func, args, kwargs or {})
            return cls.runner.run(func, args, kwargs or {})

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is Tensor.__getitem__:
            return indexing.get(*args)
        if func is Tensor.__setitem__:
            return indexing.put(*args)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def unwrap(self) -> Tensor:
        """The CPU tensor with the values; what torch's C code asked of the outer one is handed on to it first."""
        if _outer_requires_grad.__get__(self):  # torch.zeros(2, device="cuda", requires_grad=True)
            _outer_requires_grad.__set__(self, False)
            self.host.requires_grad_()
        return self.host

    def follow(self) -> None:
        """Take over the shape of the inner tensor after an operator that changed it in place."""
        if self.size() != self.host.size() or (
            self.host.layout is torch.strided and self.stride() != self.host.stride()
        ):
            self._look_like(self.host, self.device)

    def _look_like(self, host: Tensor, device: torch.device) -> None:
        """Take over shape, dtype and device."""
        other = PretendTensor(host, device)
        _Base.data.__set__(self, other)
        self.__class__ = type(other)

    # Methods for which torch's C code takes a guard of the device, and so do their operators directly ----------------

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.is_floating_point() or self.is_complex() or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __invert__(self) -> Tensor:
        return self.bitwise_not()

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self.host.is_inference()

    def contiguous(self, memory_format: torch.memory_format = torch.contiguous_format) -> Tensor:
        """The same values one after the other in memory."""
        return self if self.is_contiguous(memory_format=memory_format) else self.clone(memory_format=memory_format)

    def copy_(self, src: Tensor, non_blocking: bool = False) -> Tensor:
        """Take over the values of another tensor."""
        return aten.copy_.default(self, src, non_blocking)  # type: ignore[no-any-return]

    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
                   pin_memory: bool = False) -> Tensor:  # fmt: skip
        """A tensor of these values, by default on the same device."""
        return torch.tensor(data, dtype=dtype, device=device or self.device, requires_grad=requires_grad)

    def new(self, *args: Any) -> Tensor:  # type: ignore[override]
        """A tensor of this size or of these values on the same device."""
        tensor = self.unwrap().new(*args)
        of_values = len(args) == 1 and isinstance(args[0], list | tuple) and not isinstance(args[0], torch.Size)
        return tensor.to(self.device) if of_values else self.beside(tensor)

    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """Where values are not zero."""
        places = aten.nonzero.default(self)
        return (places.unbind(1) if self.dim() else (places.new_zeros(len(places)),)) if as_tuple else places

    # Reading on the CPU ----------------------------------------------------------------------------------------------

    def tolist(self) -> Any:
        """The values as Python numbers: a copy to the CPU."""
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """An error, as for every tensor that is not in host memory, unless ``force`` allows a copy."""
        if force:
            return self.detach().cpu().numpy(force=True)
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        values = self.unwrap() if self.runner is None else self.cpu()  # printing synchronizes with the device
        text = repr(values.detach())
        name = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        gradient = _of_gradient(self.unwrap())
        return f"{name}{text[:-1]}, device='{self.device}'{gradient})"

    def __format__(self, spec: str) -> str:
        return self.item().__format__(spec) if self.dim() == 0 else object.__format__(self, spec)

    def data_ptr(self) -> int:
        """Where the values are: an address that tells tensors apart, and is not to be read."""
        return self.host.data_ptr()

    def is_shared(self) -> bool:
        """Memory of a device always counts as shared."""
        return True

    def share_memory_(self) -> PretendTensor:
        """Nothing: see :meth:`is_shared`."""
        return self

    def untyped_storage(self) -> Any:
        """Refused: the storage is one of the CPU."""
        raise _refused("the storage of a tensor", self.device)

    storage = _typed_storage = untyped_storage

    def __dlpack__(self, *_: Any, **__: Any) -> Any:
        raise _refused("DLPack", self.device)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AttributeError("a pretend device has no memory that CUDA could read")

    # Copies -----------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> PretendTensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        copy = self.beside(self.unwrap().__deepcopy__(memo))  # type: ignore[no-untyped-call]
        copy.__dict__.update({name: value for name, value in vars(self).items() if name != "host"})
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        inner = self.unwrap()
        inner.untyped_storage().assay_device = self.device  # type: ignore[attr-defined]  # for files
        if isinstance(self, torch.nn.Parameter):
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, {})
        return inner.__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    # Gradients --------------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are to be computed for it."""
        return self.unwrap().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.unwrap().requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> PretendTensor:
        """Say whether gradients are to be computed for it."""
        self.unwrap().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """Its gradient, on the same device."""
        inner = self.unwrap().grad
        if inner is None:
            return None
        gradient = vars(self).get("kept_gradient")
        if gradient is None or gradient.host is not inner:
            gradient = self.kept_gradient = self.beside(inner)
        return gradient

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and value.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        self.unwrap().grad = value.unwrap() if isinstance(value, PretendTensor) else value

    @grad.deleter
    def grad(self) -> None:
        self.unwrap().grad = None

    grad_fn = property(lambda self: self.unwrap().grad_fn)
    is_leaf = property(lambda self: self.unwrap().is_leaf)
    output_nr = property(lambda self: self.unwrap().output_nr)
    retains_grad = property(lambda self: self.unwrap().retains_grad)
    _version = property(lambda self: self.unwrap()._version)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf."""
        self.unwrap().retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call ``hook`` with each gradient, on the device."""

        def of_inner(gradient: Tensor) -> Tensor | None:
            answer = hook(self.beside(gradient))
            return answer.unwrap() if isinstance(answer, PretendTensor) else answer

        return self.unwrap().register_hook(of_inner)  # type: ignore[no-untyped-call]

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call ``hook`` with this tensor when its gradient is there."""
        return self.unwrap().register_post_accumulate_grad_hook(lambda _: hook(self))  # type: ignore[no-untyped-call]

    def detach(self) -> PretendTensor:
        """The same values without gradients."""
        return self.beside(self.unwrap().detach())

    @property
    def data(self) -> Tensor:
        """The same values without gradients, and without a version in common."""
        return self.beside(self.unwrap().data)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, PretendTensor):
            become(self, value)
            return
        self.unwrap().data = value.unwrap()
        self._look_like(self.host, value.device)

    def beside(self, inner: Tensor) -> PretendTensor:
        """A tensor on the same device."""
        if self.runner is None:
            return PretendTensor(inner, self.device)
        return self.runner.wrap(inner, self.device, "aten::alias")


class PretendArray(PretendTensor):
    """A tensor with dimensions on a pretend device.

    What Python indexes by a method, torch takes for a sequence, but ``torch.tensor([a, b])`` of tensors without
    dimensions reads their values; so these are of the class above.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Tensor:
        return indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.put(self, index, value)


def _refuse_to_share(tensor: PretendTensor) -> Any:
    raise _refused("a tensor sent to another process", tensor.device)


for _kind in (PretendTensor, PretendArray):
    ForkingPickler.register(_kind, _refuse_to_share)


def become(tensor: Tensor, value: Tensor) -> None:
    """``tensor.data = value`` across devices: the Python object stays, and is then a tensor of the other device.

    Source:
        ``torch.utils.swap_tensors``, by which ``nn.Module.to`` moves parameters that are tensor subclasses.
    """
    inner = value.unwrap() if isinstance(value, PretendTensor) else value
    leaf = inner.detach()
    gradient = tensor.grad
    leaf.requires_grad_(tensor.requires_grad)
    if gradient is not None:
        leaf.grad = gradient.unwrap() if isinstance(gradient, PretendTensor) else gradient
    if isinstance(value, PretendTensor):
        new: Tensor = PretendTensor(leaf, value.device)
    elif isinstance(tensor, torch.nn.Parameter):
        new = torch.nn.Parameter(leaf, leaf.requires_grad)
        new.grad = leaf.grad
    else:
        new = leaf
    vars(new).update({name: entry for name, entry in vars(tensor).items() if name not in ("host", "kept_gradient")})
    if isinstance(tensor, torch.nn.Parameter):
        new._is_param = True
    torch.utils.swap_tensors(tensor, new)  # type: ignore[no-untyped-call]


def _of_gradient(inner: Tensor) -> str:
    if inner.grad_fn is not None:
        return f", grad_fn=<{type(inner.grad_fn).__name__}>"
    return ", requires_grad=True" if inner.requires_grad else ""


def _left_behind(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What can be done with a tensor whose device is closed: a copy to the CPU."""
    device = kwargs.get("device")
    if func is torch.ops.aten._to_copy.default and device is not None and device.type == "cpu":
        return func(args[0].unwrap(), **kwargs)
    expected = "one whose device is there: it is only inside `with pretend(...)`"
    do = "Call .cpu() on it and go on with that"
    raise PretendError(describe(func.name(), "a tensor of a pretend device that is closed", expected, do))


def _refused(what: str, device: torch.device) -> PretendError:
    do = 'Use pretend(..., engine="native"), which needs a C++ compiler'
    got = f"a tensor on {device}, pretended without a compiler"
    return PretendError(describe(what, got, "something that this engine can do", do))
