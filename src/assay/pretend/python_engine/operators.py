"""How the Python engine runs an operator: the device's rules first, then the CPU's kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from assay.devices.kinds import KINDS
from assay.devices.operators.conditions import OF_DTYPES, is_filled
from assay.devices.operators.overloads import overloads
from assay.errors import describe
from assay.pretend import operand_checks
from assay.pretend.errors import PretendError
from assay.pretend.events import Recorder
from assay.pretend.python_engine.tensor import EngineServices, PretendTensor

if TYPE_CHECKING:
    from assay.devices.operators.rules import DeviceCheck, OperatorRule, Rules

CPU = torch.device("cpu")
aten = torch.ops.aten
_C: Any = torch._C
_EXPLICIT = _C.DispatchKey.CompositeExplicitAutograd
_IMPLICIT = _C.DispatchKey.CompositeImplicitAutograd
WHOLE = ("aten::convolution", "aten::convolution_backward", "aten::_unsafe_view", "aten::_reshape_alias")
"""Operators that run as the CPU runs them, though torch makes them of others: which it chooses by the device, or in C
code that looks at memory.
"""
LAYOUTS = (None, torch.strided, torch.sparse_coo)
HALF_TO_FLOAT = ("aten::_softmax", "aten::_log_softmax")


@dataclass(frozen=True)
class OperatorPlan:
    """What is known of one overload before it is called."""

    name: str  # torch's name, such as ``"aten::mm"``
    rule: OperatorRule  # what the device does with it
    check: DeviceCheck  # how torch looks at the devices of its tensors
    wrapper: str  # the name of torchgen's wrapper, for errors
    arguments: tuple[str, ...]  # the names of its arguments, in order
    outs: frozenset[str]  # those of them that are ``out`` arguments
    written: frozenset[str]  # those of them that it writes to
    draws: bool  # it takes a generator of random numbers
    judged: bool  # its arguments decide whether it synchronizes with the device or the result may differ
    borrowed: bool  # the CPU has a kernel for it
    made: Any  # the kernel by which torch makes it of other operators, which have the rules; or ``None``
    tensors: tuple[int, ...]  # those of its arguments that are tensors, if torch takes no number in their place


class OperatorRunner:
    """Runs operators by the rules of one kind of device."""

    def __init__(
        self, rules: Rules, recorder: Recorder, engine: EngineServices, special: dict[Any, Callable[..., Any]]
    ) -> None:
        self.kind = rules.device
        self._rules, self._recorder, self._engine = rules, recorder, engine
        self._plans: dict[Any, OperatorPlan] = {}
        self._lacks = {getattr(torch, name): text for name, text in rules.missing_dtypes.items()}
        self._placeholder = "" if "{" in rules.texts["mixed"] else rules.texts["mixed"]
        self._key = KINDS[self.kind].key
        self._kernels = rules.kernels
        self._workers = {overload.delegate for overload in overloads().values()}
        self._warned: set[str] = set()
        self._special: dict[Any, Callable[..., Any]] = special | {
            aten._to_copy.default: self._to_copy,
            aten.copy_.default: self._copy_,
            aten.is_pinned.default: lambda tensor, device=None: False,
            aten.record_stream.default: lambda tensor, stream: None,
            aten._pack_padded_sequence.default: self._pack,
            **dict.fromkeys(_of_libraries(), lambda *args: False),
        }

    # Running ----------------------------------------------------------------------------------------------------------

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator of which at least one tensor is on the device."""
        special = self._special.get(func)
        if special is not None:
            return special(*args, **kwargs)
        plan = self._plans.get(func) or self._plan(func)
        if kwargs.get("layout") not in LAYOUTS:
            raise self.cannot(plan.name, self._result_device(kwargs, []), f"a tensor of layout {kwargs['layout']}")
        if plan.made is not None and (plan.made == _IMPLICIT or not _in_one_piece(args)):
            return self._whole(func._op_dk(plan.made, *args, **kwargs), plan)
        return self.run_on_cpu(func, args, kwargs)

    def run_on_cpu(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator in one piece."""
        plan = self._plans.get(func) or self._plan(func)
        tensors: list[Tensor] = []
        host_args = [_host(value, tensors) for value in args]
        host_kwargs = {name: _host(value, tensors) for name, value in kwargs.items()}
        device = self._result_device(kwargs, tensors)
        self._judge(plan, device, tensors, args, kwargs)
        if plan.draws:
            host_kwargs["generator"] = self._engine.on_cpu(kwargs.get("generator"), device)
        for place in plan.tensors:  # a number that torch made a tensor of has come here as a number again
            if place < len(host_args) and isinstance(host_args[place], int | float | complex):
                host_args[place] = torch.tensor(host_args[place])
        if plan.name in HALF_TO_FLOAT and args[2]:  # the CPU has this step apart
            host_args = [host_args[0].float(), host_args[1], False]
        narrow = self._widen(plan, host_args)
        result = func(*host_args, **host_kwargs)
        if narrow is not None:
            result = tree_map_only(Tensor, lambda x: x.to(narrow) if x.dtype == torch.float64 else x, result)
        if plan.written:
            for tensor in tensors:
                if isinstance(tensor, PretendTensor):
                    tensor.follow()
        return self._outer(result, tensors, device, plan.name)

    def _widen(self, plan: OperatorPlan, host_args: list[Any]) -> torch.dtype | None:
        """Bring arguments of dtypes that the CPU's kernel lacks to float64; the dtype that they had, if any."""
        narrow = None
        for place, value in enumerate(host_args if plan.rule.wider and not plan.written else ()):
            if isinstance(value, Tensor) and str(value.dtype).removeprefix("torch.") in plan.rule.wider:
                narrow = value.dtype
                host_args[place] = value.double()
        return narrow

    def _whole(self, result: Any, plan: OperatorPlan) -> Any:
        """What torch made of other operators; refused if its C code made a tensor of the device past Python."""
        for tensor in result if isinstance(result, list | tuple) else [result]:
            if isinstance(tensor, Tensor) and not isinstance(tensor, PretendTensor) and tensor.device.type == self.kind:
                raise self.cannot(plan.name, tensor.device, "an operator that makes tensors in C code")
        return result

    def wrap(self, inner: Tensor, device: torch.device, operator: str) -> PretendTensor:
        """A CPU tensor as one of the device, if the device has its dtype."""
        if inner.dtype in self._lacks:
            self.refuse("dtype", operator, device, self._lacks[inner.dtype], TypeError)
        if inner.layout not in LAYOUTS:
            raise self.cannot(operator, device, f"a tensor of layout {inner.layout}")
        return PretendTensor(inner, device)

    def has(self, dtype: torch.dtype | None, operator: str, device: torch.device) -> None:
        """Refuse a dtype that the device lacks."""
        text = self._lacks.get(dtype or torch.get_default_dtype())
        if text:
            self.refuse("dtype", operator, device, text, TypeError)

    def refuse(self, kind: str, operator: str, device: torch.device, why: str, error: type[Exception]) -> NoReturn:
        """Note what torch refuses there, then raise torch's error."""
        self._recorder.record(kind, operator, str(device), why)
        raise error(why)

    def cannot(self, operator: str, device: torch.device, got: str) -> PretendError:
        """The error for what this engine cannot do, noted."""
        do = 'Use pretend(..., engine="native"), which needs a C++ compiler'
        text = describe(f"{operator} on {device}, pretended without a compiler", got, "what this engine can do", do)
        self._recorder.record("unsupported", operator, str(device), text)
        return PretendError(text)

    def _plan(self, func: Any) -> OperatorPlan:
        self._recorder.used = True
        name = func.name()
        rule, schema, overload = self._rules.operator(name), func._schema, overloads().get(name)
        outs = frozenset(argument.name for argument in schema.arguments if argument.is_out)
        structured = name in self._workers or (overload is not None and bool(overload.delegate))
        composite = overload is None or (overload.composite and not self._rules.has_kernel(overload))
        plan = self._plans[func] = OperatorPlan(
            name=name,
            rule=rule,
            check=operand_checks.check_of(rule, composite=composite, placeholder=bool(self._placeholder)),
            wrapper=operand_checks.wrapper_of(name, self._key, structured=structured, out=bool(outs)),
            arguments=tuple(argument.name for argument in schema.arguments),
            outs=outs,
            written=frozenset(argument.name for argument in schema.arguments if argument.is_write),
            draws=any(argument.name == "generator" for argument in schema.arguments),
            judged=bool(rule.waits or rule.nondeterminism or rule.refused_when or rule.check == "put"),
            borrowed=any(_C._dispatch_has_computed_kernel_for_dispatch_key(name, key) for key in ("CPU", "SparseCPU")),
            tensors=_only_tensors(func),
            made=None if name in self._kernels or name.partition(".")[0] in WHOLE else _made_by(func),
        )
        return plan

    def _result_device(self, kwargs: dict[str, Any], tensors: list[Tensor]) -> torch.device:
        device = kwargs.get("device")
        if device is not None:
            return CPU if device.type == "cpu" else self._engine.indexed(device)
        return next(tensor.device for tensor in tensors if isinstance(tensor, PretendTensor))

    def _outer(self, result: Any, tensors: list[Tensor], device: torch.device, operator: str) -> Any:
        """Results as tensors of the device; what was written to in place stays the object it was."""
        if isinstance(result, Tensor):
            for tensor in tensors:
                if result is tensor or (isinstance(tensor, PretendTensor) and result is tensor.host):
                    return tensor
            return result if device is CPU else self.wrap(result, device, operator)
        if isinstance(result, list | tuple):
            return type(result)(self._outer(item, tensors, device, operator) for item in result)
        return result

    # Rules ------------------------------------------------------------------------------------------------------------

    def _judge(
        self,
        plan: OperatorPlan,
        device: torch.device,
        tensors: list[Tensor],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        there = device if device is not CPU else self._result_device({}, tensors)
        sparse = kwargs.get("layout") is torch.sparse_coo or any(tensor.is_sparse for tensor in tensors)
        if plan.rule.on_cpu or not (plan.rule.available_sparse if sparse else plan.rule.available):
            self._available(plan, there)
        first = tensors[0].device
        if any(tensor.device != first for tensor in tensors):
            self._same_device(plan, there, args, kwargs)
            if plan.check in ("index", "put"):
                self._indices_to(tensors[0].device if plan.check == "put" else there, args[1])
        self._has_dtypes(plan, there, tensors)
        if plan.name.startswith("aten::convolution"):
            self._same_type(plan, there, args)
        arguments = dict(zip(plan.arguments, args, strict=False)) | kwargs if plan.judged else {}
        self._has_a_kernel(plan, there, arguments)
        if plan.rule.nondeterminism:
            self._deterministic(plan, there, arguments)
        if not plan.borrowed:
            raise self.cannot(plan.name, there, "an operator of which torch has no CPU kernel to borrow")
        if plan.rule.waits and (why := operand_checks.waits(plan.rule, arguments)):
            self._recorder.record("sync", plan.name, str(there), why)

    def check_dtypes(self, func: Any, args: tuple[Any, ...]) -> None:
        """Refuse tensors of a dtype of which the device has no kernel of an operator."""
        tensors = [each for each in args if isinstance(each, PretendTensor)]
        self._has_dtypes(self._plans.get(func) or self._plan(func), tensors[0].device, tensors)

    def check_refused(self, func: Any, args: tuple[Any, ...]) -> None:
        """Refuse arguments for which the device has no kernel of an operator."""
        plan = self._plans.get(func) or self._plan(func)
        self._has_a_kernel(plan, args[0].device, dict(zip(plan.arguments, args, strict=False)))

    def _has_a_kernel(self, plan: OperatorPlan, there: torch.device, arguments: dict[str, Any]) -> None:
        if plan.rule.refused_when and (why := operand_checks.refusal(plan.rule, arguments)):
            kind = "dtype" if plan.rule.refused_when in OF_DTYPES else "operator"
            self.refuse(kind, plan.name, there, why, RuntimeError)

    def _has_dtypes(self, plan: OperatorPlan, there: torch.device, tensors: Sequence[Tensor]) -> None:
        if plan.rule.missing_dtypes:
            dtypes = (str(tensor.dtype).removeprefix("torch.") for tensor in tensors)
            if why := operand_checks.missing_dtype(plan.rule, dtypes):
                self.refuse("dtype", plan.name, there, why, NotImplementedError)

    def _available(self, plan: OperatorPlan, device: torch.device) -> None:
        if plan.rule.on_cpu:
            why = f"torch runs this operator on the CPU: {plan.name}"
            self._recorder.record("fallback", plan.rule.named, str(device), why)
        elif self._rules.falls_back:
            why = self._rules.texts["fallback"].format(operator=plan.rule.named)
            self._recorder.record("fallback", plan.rule.named, str(device), why)
            if plan.name not in self._warned:
                self._warned.add(plan.name)
                warnings.warn(why, UserWarning, stacklevel=5)
        else:
            self.refuse("operator", plan.rule.named, device, self._rules.missing(plan.name), NotImplementedError)

    def _same_device(
        self, plan: OperatorPlan, device: torch.device, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        operands = _operands(plan, args, kwargs)
        if plan.check == "put" and is_filled(dict(zip(plan.arguments, args, strict=False)) | kwargs):
            return
        why = operand_checks.clash(plan.check, operands, wrapper=plan.wrapper, placeholder=self._placeholder)
        if why:
            self.refuse("devices", plan.name, device, why, RuntimeError)

    def _same_type(self, plan: OperatorPlan, device: torch.device, args: tuple[Any, ...]) -> None:
        """What torch asks of a convolution, ``aten/src/ATen/native/Convolution.cpp``."""
        backward = plan.name.startswith("aten::convolution_backward")
        tensor, weight = args[1:3] if backward else args[:2]
        bias = None if backward else args[2]
        for name, other in (("weight", weight), ("bias", bias)):
            if other is None or (other.type() == tensor.type() and other.device == tensor.device):
                continue
            why = f"Input type ({_type(tensor)}) and {name} type ({_type(other)}) should be the same"
            if other.type() == tensor.type():
                why = operand_checks.clash_of_convolution(
                    name, str(tensor.device), str(other.device), self._key, backward=backward
                )
            self.refuse("devices", plan.name, device, why, RuntimeError)

    def _deterministic(self, plan: OperatorPlan, device: torch.device, arguments: dict[str, Any]) -> None:
        deterministic = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        for verdict in operand_checks.nondeterminism(
            plan.rule, arguments, deterministic=deterministic, warn_only=warn_only
        ):
            if verdict.noted:
                why = f"{verdict.named} may differ from run to run"
                self._recorder.record("nondeterministic", plan.name, str(device), why)
            if not verdict.alerts:
                continue
            text = self._rules.texts["deterministic"].format(operator=verdict.named)
            if not warn_only:
                self.refuse("deterministic", plan.name, device, text, RuntimeError)
            warnings.warn(text, UserWarning, stacklevel=5)

    def _pack(self, tensor: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
        """The sizes of the batches stay on the CPU, where the lengths must be."""
        if lengths.device != CPU:
            got = f"{lengths.dim()}D {lengths.device} {lengths.type().rpartition('.')[2].removesuffix('Tensor')}"
            raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {got} tensor")
        inner = tensor.unwrap() if isinstance(tensor, PretendTensor) else tensor
        data, sizes = aten._pack_padded_sequence.default(inner, lengths, batch_first)
        return self.wrap(data, tensor.device, "aten::_pack_padded_sequence"), sizes

    def _indices_to(self, device: torch.device, indices: Any) -> None:
        """Indices elsewhere are copied: ``make_info`` in ``ATen/native/TensorAdvancedIndexingUtils.h``."""
        for index in indices:
            if index is not None and index.device != device:
                self._note_copy(index, device, non_blocking=False)

    def judge_backward(self, func: Any, device: torch.device, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What the device would say of an operator that autograd runs on the CPU tensors inside."""
        plan = self._plans.get(func) or self._plan(func)
        arguments = dict(zip(plan.arguments, args, strict=False)) | kwargs if plan.judged else {}
        overload = overloads().get(plan.name)
        if not plan.rule.available and overload is not None and "CUDA" in overload.kernels:  # not one of the CPU alone
            self._available(plan, device)
        if plan.rule.nondeterminism:
            self._deterministic(plan, device, arguments)
        if plan.rule.waits and (why := operand_checks.waits(plan.rule, arguments)):
            self._recorder.record("sync", plan.name, str(device), why)

    # Copies -----------------------------------------------------------------------------------------------------------

    def copied(
        self,
        tensor: Tensor,
        device: torch.device,
        dtype: torch.dtype | None = None,
        *,
        non_blocking: bool = False,
        memory_format: torch.memory_format | None = None,
    ) -> Tensor:
        """A copy on another device, or of another dtype."""
        operator = "aten::_to_copy"
        if device != CPU:
            self.has(dtype or tensor.dtype, "aten::empty_strided", device)  # with which torch's copy begins
        inner = tensor.unwrap() if isinstance(tensor, PretendTensor) else tensor
        self._note_copy(tensor, device, non_blocking)
        copy: Tensor = aten._to_copy.default(inner, dtype=dtype, memory_format=memory_format)
        return copy if device == CPU else self.wrap(copy, device, operator)

    def _to_copy(self, tensor: Tensor, **kwargs: Any) -> Tensor:
        device = kwargs.get("device")
        target = tensor.device if device is None else self._engine.indexed(device)
        return self.copied(
            tensor,
            target,
            self.given_for(tensor, kwargs.get("dtype")) if device is None else kwargs.get("dtype"),
            non_blocking=bool(kwargs.get("non_blocking")),
            memory_format=kwargs.get("memory_format"),
        )

    def given_for(self, tensor: Tensor, dtype: torch.dtype | None) -> torch.dtype | None:
        """The dtype that comes of a conversion on the device: for some another one, with a warning."""
        rule = self._rules.operator("aten::_to_copy")
        if dtype in (None, tensor.dtype) or str(dtype).removeprefix("torch.") not in rule.missing_dtypes:
            return dtype
        self._recorder.record("dtype", "aten::_to_copy", str(tensor.device), rule.dtype_error)
        warnings.warn(rule.dtype_error, UserWarning, stacklevel=4)
        return torch.float32

    def _copy_(self, target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        self._note_copy(source, target.device, non_blocking)
        tensors: list[Tensor] = []
        _host(target, tensors).copy_(_host(source, tensors))
        return target

    def _note_copy(self, source: Tensor, target: torch.device, non_blocking: bool) -> None:
        if source.device == target:
            return
        there = str(source.device if target == CPU else target)
        way = f"{source.device} to {target}"
        pinned = source.device == CPU and self._engine.pinned(source)
        details = {
            "source": str(source.device),
            "target": str(target),
            "non_blocking": non_blocking,
            "pinned": pinned,
            "elements": source.numel(),
        }
        self._recorder.record("copy", "aten::copy_", there, way, **details)
        if CPU not in (source.device, target):
            return
        name = operand_checks.way_of_copy(str(target), pinned=pinned, non_blocking=non_blocking)
        fact = self._rules.copies.get(name)
        if fact is not None and fact.waits:
            self._recorder.record("sync", "aten::copy_", there, fact.why or f"copy {name}", **details)


def _of_libraries() -> list[Any]:
    """What asks whether a library of another maker takes a loss; older releases of torch have fewer of them."""
    packets = [getattr(aten, name, None) for name in ("_use_cudnn_ctc_loss", "_use_miopen_ctc_loss")]
    return [getattr(packet, name) for packet in packets if packet is not None for name in packet.overloads()]


def _host(value: Any, tensors: list[Tensor]) -> Any:
    """An argument as the CPU's kernels take it; the tensors in it are added to ``found``."""
    if isinstance(value, PretendTensor):
        tensors.append(value)
        return value.unwrap()
    if isinstance(value, Tensor):
        tensors.append(value)
        return value
    if isinstance(value, list | tuple):
        return [_host(item, tensors) for item in value]
    return CPU if isinstance(value, torch.device) else value


def _made_by(func: Any) -> Any:
    """The kernel by which torch makes the operator of others on every device; views are made by the CPU at once."""
    has = _C._dispatch_has_kernel_for_dispatch_key
    if any(value.alias_info is not None and not value.alias_info.is_write for value in func._schema.returns):
        return None
    if has(func.name(), "CompositeImplicitAutograd"):  # seen here only in inference mode
        return _IMPLICIT
    explicit = has(func.name(), "CompositeExplicitAutograd") and torch.Tag.inplace_view not in func.tags
    return _EXPLICIT if explicit else None


def _only_tensors(func: Any) -> tuple[int, ...]:
    if _C._should_allow_numbers_as_tensors(func._schema.name.removeprefix("aten::")):
        return ()
    types = (str(argument.type) for argument in func._schema.arguments)
    return tuple(place for place, kind in enumerate(types) if kind == "Tensor")


def _in_one_piece(values: Any) -> bool:
    """Whether an operator is not decomposed: for gradients, whose formula is that of the whole, and sparse tensors."""
    for value in values:
        if isinstance(value, Tensor):
            if value.layout is not torch.strided or (value.requires_grad and torch.is_grad_enabled()):
                return True
        elif isinstance(value, list | tuple) and _in_one_piece(value):
            return True
    return False


def _type(tensor: Tensor) -> str:
    """A tensor's type as torch's C code writes it: ``torch.cuda.FloatTensor``, but ``MPSFloatType``."""
    parts = tensor.type().split(".")
    if len(parts) < 3 or parts[1] == "cuda":
        return ".".join(parts)
    return f"{parts[1].upper()}{parts[2].removesuffix('Tensor')}Type"


def _operands(plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[operand_checks.Operand]:
    """The tensors of a call with the names of their arguments, ``out`` arguments first as in torch's wrappers."""
    named = [*zip(plan.arguments, args, strict=False), *kwargs.items()]
    named.sort(key=lambda item: item[0] not in plan.outs)
    return [
        operand_checks.Operand(name, str(tensor.device), tensor.dim(), tensor.numel(), name in plan.written)
        for name, value in named
        for tensor in (value if isinstance(value, list | tuple) else [value])
        if isinstance(tensor, Tensor)
    ]
