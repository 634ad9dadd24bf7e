"""The tensor of the engine without a compiler: its values are a CPU tensor's, its device is the pretend one.

Two tensors stand one behind the other. The outer one, this class, has the device, and torch asks it where it is, what
it is made of, and what operators it goes to. The inner one, ``host``, has the values, and autograd: the outer one has
none (see :mod:`.wrapper`), so everything that concerns gradients is asked of the inner one here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from assay.devices.pretend import wrapper_indexing
from assay.devices.pretend.errors import PretendError
from assay.errors import describe

_Base = torch._C.TensorBase  # type: ignore[attr-defined]
_outer_requires_grad = _Base.requires_grad


class Runner(Protocol):
    """What runs the operators of an open pretend device."""

    @property
    def kind(self) -> str: ...

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def wrap(self, inner: Tensor, device: torch.device, operator: str) -> PretendTensor: ...


class PretendTensor(Tensor):
    """A tensor on a pretend device."""

    host: Tensor
    runner: ClassVar[Runner | None] = None
    """The open device; without one, a tensor can only be brought back to the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor, device: torch.device) -> PretendTensor:
        made: PretendTensor = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=device,
        )
        made.host = inner
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # As the call came in: views and in-place operators are seen by autograd, which follows the inner tensors.
        with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]
            if cls.runner is None:
                return _left_behind(func, args, kwargs or {})
            return cls.runner.run(func, args, kwargs or {})

    def inner(self) -> Tensor:
        """The CPU tensor with the values; what torch's C code asked of the outer one is handed on to it first."""
        if _outer_requires_grad.__get__(self):  # torch.zeros(2, device="cuda", requires_grad=True)
            _outer_requires_grad.__set__(self, False)
            self.host.requires_grad_()
        return self.host

    def follow(self) -> None:
        """Take over the shape of the inner tensor after an operator that changed it in place."""
        if self.size() != self.host.size() or self.stride() != self.host.stride():
            _Base.data.__set__(self, PretendTensor(self.host, self.device))

    # Indexing ---------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        return wrapper_indexing.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        wrapper_indexing.put(self, index, value)

    # Reading on the host ----------------------------------------------------------------------------------------------

    def tolist(self) -> Any:
        """The values as Python numbers: a copy to the host."""
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
        text = repr(self.inner().detach())
        name = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        gradient = _of_gradient(self.inner())
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
        copy = self._beside(self.inner().__deepcopy__(memo))  # type: ignore[no-untyped-call]
        copy.__dict__.update({name: value for name, value in vars(self).items() if name != "host"})
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        from assay.devices.pretend.wrapper_patches import mark

        inner = self.inner()
        mark(inner, self.device)
        if isinstance(self, torch.nn.Parameter):
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, {})
        return inner.__reduce_ex__(protocol)

    # Gradients --------------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Whether gradients are to be computed for it."""
        return self.inner().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.inner().requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> PretendTensor:  # type: ignore[override]
        """Say whether gradients are to be computed for it."""
        self.inner().requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:  # type: ignore[override]
        """Its gradient, on the same device."""
        inner = self.inner().grad
        if inner is None:
            return None
        kept = vars(self).get("_grad")
        if kept is None or kept.host is not inner:
            kept = self._grad = self._beside(inner)
        return kept  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and value.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
            )
        self.inner().grad = value.inner() if isinstance(value, PretendTensor) else value

    @grad.deleter
    def grad(self) -> None:
        self.inner().grad = None

    grad_fn = property(lambda self: self.inner().grad_fn)
    is_leaf = property(lambda self: self.inner().is_leaf)
    output_nr = property(lambda self: self.inner().output_nr)
    retains_grad = property(lambda self: self.inner().retains_grad)
    _version = property(lambda self: self.inner()._version)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf."""
        self.inner().retain_grad()

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call ``hook`` with each gradient, on the device."""

        def of_inner(gradient: Tensor) -> Tensor | None:
            answer = hook(self._beside(gradient))
            return answer.inner() if isinstance(answer, PretendTensor) else answer

        return self.inner().register_hook(of_inner)  # type: ignore[no-untyped-call]

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call ``hook`` with this tensor when its gradient is there."""
        return self.inner().register_post_accumulate_grad_hook(lambda _: hook(self))  # type: ignore[no-untyped-call]

    def detach(self) -> PretendTensor:
        """The same values without gradients."""
        return self._beside(self.inner().detach())

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        """The same values without gradients, and without a version in common."""
        return self._beside(self.inner().data)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, PretendTensor):
            become(self, value)
            return
        self.inner().data = value.inner()
        _Base.data.__set__(self, PretendTensor(self.host, value.device))

    def _beside(self, inner: Tensor) -> PretendTensor:
        """A tensor on the same device."""
        if self.runner is None:
            return PretendTensor(inner, self.device)
        return self.runner.wrap(inner, self.device, "aten::alias")


def become(tensor: Tensor, value: Tensor) -> None:
    """``tensor.data = value`` across devices: the Python object stays, and is then a tensor of the other device.

    Source:
        ``torch.utils.swap_tensors``, by which ``nn.Module.to`` moves parameters that are tensor subclasses.
    """
    inner = value.inner() if isinstance(value, PretendTensor) else value
    leaf = inner.detach()
    gradient = tensor.grad
    leaf.requires_grad_(tensor.requires_grad)
    if gradient is not None:
        leaf.grad = gradient.inner() if isinstance(gradient, PretendTensor) else gradient
    if isinstance(value, PretendTensor):
        new: Tensor = PretendTensor(leaf, value.device)
    elif isinstance(tensor, torch.nn.Parameter):
        new = torch.nn.Parameter(leaf, leaf.requires_grad)
        new.grad = leaf.grad
    else:
        new = leaf
    vars(new).update({name: kept for name, kept in vars(tensor).items() if name not in ("host", "_grad")})
    if isinstance(tensor, torch.nn.Parameter):
        new._is_param = True  # type: ignore[attr-defined]
    torch.utils.swap_tensors(tensor, new)


def _of_gradient(inner: Tensor) -> str:
    if inner.grad_fn is not None:
        return f", grad_fn=<{type(inner.grad_fn).__name__}>"
    return ", requires_grad=True" if inner.requires_grad else ""


def _left_behind(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What can be done with a tensor whose device is closed: a copy to the CPU."""
    device = kwargs.get("device")
    if func is torch.ops.aten._to_copy.default and device is not None and device.type == "cpu":
        return func(args[0].inner(), **kwargs)
    raise PretendError(
        describe(
            what=func.name(),
            got="a tensor of a pretend device that is closed",
            expected="one whose device is there: it is only inside `with pretend(...)`",
            do="Call .cpu() on it and go on with that",
        )
    )


def _refused(what: str, device: torch.device) -> PretendError:
    return PretendError(
        describe(
            what=what,
            got=f"a tensor on {device}, pretended without a compiler",
            expected="something that this engine can do",
            do='Use pretend(..., engine="native"), which needs a C++ compiler',
        )
    )
