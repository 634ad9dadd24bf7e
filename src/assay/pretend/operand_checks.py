"""What a real device would say of a call: plain decisions over an operator's rule and its arguments.

Nothing here runs an operator or records an event; the engines do, with the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from assay.devices.operators.conditions import applies
from assay.devices.operators.rules import DeviceCheck

if TYPE_CHECKING:
    from assay.devices.operators.rules import OperatorRule

CHECKS: tuple[DeviceCheck, ...] = get_args(DeviceCheck)
SCALAR_TYPES = {
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
"""The names by which torch's errors call dtypes."""


@dataclass(frozen=True)
class Operand:
    """A tensor in a call, as far as its device matters."""

    name: str  # the name of the argument in the operator's schema
    device: str  # the device as torch writes it, such as ``"cuda:1"``
    dim: int  # its number of dimensions
    numel: int  # how many values it has
    written: bool = False  # the operator writes to it

    @property
    def on_cpu(self) -> bool:
        """Whether it is in host memory."""
        return self.device == "cpu"

    @property
    def scalar(self) -> bool:
        """Whether it is a CPU tensor without dimensions that is only read, which may mix with a device's tensors."""
        return self.on_cpu and self.dim == 0 and not self.written


def check_of(rule: OperatorRule, *, composite: bool, placeholder: bool) -> DeviceCheck:
    """Which check the tensors of an operator get.

    A composite operator is made of others there, which have checks of their own; ``placeholder`` says that the device
    looks only inside its kernels, as MPS does.
    """
    if rule.check:
        return rule.check
    if rule.checks_devices:
        return "all"
    if rule.iterates:
        return "iterator"
    return "placeholder" if placeholder and rule.known and rule.available and not composite else "none"


def clash(check: DeviceCheck, operands: Sequence[Operand], *, wrapper: str = "", placeholder: str = "") -> str:
    """The text of torch's error for operands that are on different devices, or empty where torch accepts them.

    Args:
        check: how torch looks at them.
        operands: the tensors of the call, ``out`` arguments first; those left out are left out here.
        wrapper: the name of the wrapper that torchgen writes, such as ``"wrapper_CUDA_mm"``.
        placeholder: what the device's kernels say.

    Example:
        >>> there, here = Operand("self", "cuda:1", 1, 3), Operand("other", "cpu", 1, 3)
        >>> clash("iterator", [there, here])
        'Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cpu!'
        >>> clash("iterator", [there, Operand("other", "cpu", 0, 1)])
        ''

    Source:
        ``c10/core`` and ``aten/src/ATen/core/op_registration/adaption.h`` (all), ``aten/src/ATen/TensorIterator.cpp``
        (iterator), ``aten/src/ATen/native/TensorAdvancedIndexing.cpp`` (index, put) and
        ``aten/src/ATen/native/mps/OperationUtils.mm`` (placeholder), ``aten/src/ATen/native/TensorCompare.cpp`` (where)
        and ``aten/src/ATen/native/cuda/Indexing.cu`` (fill) in pytorch/pytorch.
    """
    if check == "none" or all(operand.on_cpu for operand in operands):
        return ""
    if check == "all":
        return _of_wrapper(operands, wrapper)
    if check in ("iterator", "where"):
        return _of_iterator(operands, most=2 if check == "where" else 1)
    if check == "index":
        return _of_index(operands)
    if check == "put":
        return _of_put(operands)
    if check == "fill":
        return _of_fill(operands)
    elsewhere = any(operand.on_cpu and (operand.written or (operand.dim and operand.numel)) for operand in operands)
    return placeholder if elsewhere else ""


def missing_dtype(rule: OperatorRule, dtypes: Iterable[str]) -> str:
    """The text of torch's error if the device has no kernel of the operator for one of these dtypes, or empty.

    Example:
        >>> from assay.devices.operators.rules import rules
        >>> print(missing_dtype(rules("cuda").operator("aten::mm"), ["float32", "int64"]))
        "addmm_cuda" not implemented for 'Long'
    """
    lacking = next((dtype for dtype in dtypes if dtype in rule.missing_dtypes), None)
    return "" if lacking is None else rule.dtype_error.format(dtype=SCALAR_TYPES[lacking])


def refusal(rule: OperatorRule, arguments: Mapping[str, Any]) -> str:
    """The text of torch's error if the device has no kernel for a call with these arguments, or empty."""
    return rule.refusal if applies(rule.refused_when, arguments) else ""


def _of_wrapper(operands: Sequence[Operand], wrapper: str) -> str:
    common = operands[0].device
    for operand in operands:
        if operand.device != common:
            return (
                f"Expected all tensors to be on the same device, but got {operand.name} is on {operand.device}, "
                f"different from other tensors on {common} (when checking argument in method {wrapper})"
            )
    return ""


def _of_iterator(operands: Sequence[Operand], most: int = 1) -> str:
    common = next(operand.device for operand in operands if not operand.on_cpu)
    scalars = 0
    for operand in operands:
        if operand.device == common:
            continue
        if not operand.scalar:
            return _two_devices(common, operand.device)
        scalars += 1
        if scalars > most:
            return "Trying to pass too many CPU scalars to non-CPU kernel!"
    return ""


def _of_fill(operands: Sequence[Operand]) -> str:
    self, mask = (next(each for each in operands if each.name == name) for name in ("self", "mask"))
    if self.device == mask.device:
        return "masked_fill_: Expected inputs to be on same device" if self.on_cpu else ""
    return f"expected self and mask to be on the same device, but got mask on {mask.device} and self on {self.device}"


def _of_index(operands: Sequence[Operand]) -> str:
    indexed = next((operand for operand in operands if operand.name == "self"), None)
    for operand in operands:
        if indexed is None or operand.device == indexed.device:
            continue
        if operand.name != "indices":
            if not operand.scalar:
                return _two_devices(indexed.device, operand.device)
        elif indexed.on_cpu or not operand.on_cpu:
            return f"indices should be either on cpu or on the same device as the indexed tensor ({indexed.device})"
    return ""


def _of_put(operands: Sequence[Operand]) -> str:
    """Indices and numbers are brought to the tensor, wherever they are."""
    for operand in operands:
        if operand.device != operands[0].device and operand.name != "indices" and operand.dim:
            return _two_devices(operands[0].device, operand.device)
    return ""


def clash_of_convolution(name: str, first: str, other: str, key: str, *, backward: bool) -> str:
    """The text of torch's error for a weight or bias on another device of the same kind than the input.

    Example:
        >>> clash_of_convolution("bias", "cuda:0", "cuda:1", "CUDA", backward=False)
        'Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!'

    Source:
        ``aten/src/ATen/native/Convolution.cpp`` in pytorch/pytorch, which compares types without their index, and the
        wrapper that torchgen writes of the kernel: cuDNN's on CUDA, ``convolution_overrideable`` on other devices.
    """
    if name != "weight":  # it is added behind the kernel
        return _two_devices(first, other)
    if key == "CUDA":
        kernel = "convolution_backward" if backward else "cudnn_convolution"
    else:
        kernel = "convolution_backward_overrideable" if backward else "convolution_overrideable"
    operands = [Operand("input", first, 4, 1), Operand(name, other, 4, 1)]
    return _of_wrapper(operands, wrapper_of(kernel, key, structured=False, out=False))


def _two_devices(first: str, second: str) -> str:
    return f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"


def wrapper_of(name: str, key: str, *, structured: bool, out: bool) -> str:
    """The name that torchgen gives to the wrapper of a kernel for a dispatch key; errors name it.

    Example:
        >>> wrapper_of("aten::mm", "CUDA", structured=True, out=False)
        'wrapper_CUDA_mm'

    Source:
        ``torchgen/dest/register_dispatch_key.py`` in pytorch/pytorch.
    """
    short, _, overload = name.removeprefix("aten::").partition(".")
    full = f"{short}_out" if out else short
    if structured:
        return f"wrapper_{key}_{full}" + (f"_{overload}" if overload else "")
    return f"wrapper_{key}_{overload}_{full}"


def waits(rule: OperatorRule, arguments: Mapping[str, Any]) -> str:
    """Why a call with these arguments synchronizes with the device, or empty."""
    return rule.why_waits if applies(rule.waits_when, arguments) else ""


@dataclass(frozen=True)
class NondeterminismAlert:
    """What is to be said of a nondeterministic operator."""

    named: str  # the name by which torch calls it
    noted: bool  # it runs, and its result may differ from run to run
    alerts: bool  # torch's alert is due: an error, or a warning if only that was asked for


def nondeterminism(
    rule: OperatorRule, arguments: Mapping[str, Any], *, deterministic: bool, warn_only: bool
) -> Iterable[NondeterminismAlert]:
    """What is to be said of a call, for each way in which its result may differ from run to run.

    ``asked`` and ``warn_only`` are the two settings of ``torch.use_deterministic_algorithms``.

    Source:
        ``Context::alertNotDeterministic`` in ``aten/src/ATen/Context.cpp``, pytorch/pytorch.
    """
    for way in rule.nondeterminism:
        if applies(way.when, arguments):
            alerts = deterministic and way.deterministic == "raises"
            noted = not deterministic or way.deterministic == "ignores" or (alerts and warn_only)
            yield NondeterminismAlert(way.named, noted, alerts)


def way_of_copy(target: str, *, pinned: bool, non_blocking: bool) -> str:
    """The name that the fact files give to a copy between host and device.

    Example:
        >>> way_of_copy("cuda:1", pinned=True, non_blocking=True)
        'to device, pinned, non_blocking'
    """
    way = "to host" if target == "cpu" else "to device"
    return way + (", pinned" if pinned else "") + (", non_blocking" if non_blocking else "")
