"""A TorchChat ``--quantize`` JSON as steps of a recipe: every key has its place here, or is refused with the reason.

Facts from pytorch/torchchat: ``docs/quantization.md``, ``torchchat/utils/quantize.py`` (the keys, their arguments and
defaults; keys are applied in the order of the file, and a later one does not see the layers that an earlier one took),
``torchchat/utils/build_utils.py`` (names of dtypes), and from pytorch/ao ``torchao/quantization/GPTQ.py`` and
``torchao/experimental/quant_api.py`` (the arguments of the quantizers that are not TorchChat's own).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from assay.devices.kinds import DEVICES
from assay.errors import ConfigError, describe
from assay.quantize.scheme import Activations, Kind, Scheme

CHANNEL = (0, -1, None)  # TorchChat: 0 or absent for its own quantizers; torchao's experimental ones: -1
OUTPUT = "output"  # the last layer of TorchChat's transformers
DTYPES = {
    "fp32": "float32",
    "float": "float32",
    "float32": "float32",
    "fp16": "float16",
    "half": "float16",
    "float16": "float16",
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fast": "bfloat16",
    "fast16": "bfloat16",
}
ON = {"fast": "auto", **{name: name for name in DEVICES}}
IGNORED = {
    "padding_allowed": "nothing is padded here; a layer that groups do not divide is skipped, and the plan says so",
    "inner_k_tiles": "the layout of a kernel is chosen where it runs",
    "packed": "integers are always packed densely here",
    "scales_precision": "scales have the canonical dtype",
}


@dataclass(frozen=True)
class _Quantizer:
    """What a key of TorchChat does, and which arguments it takes.

    Attributes:
        arguments: their names.
        bits: those that it takes, the default first.
        group: the default size; 0 for whole channels.
        groups: the sizes that it takes; any where there are none.
        symmetric: groups have no offset.
        activations: as in a scheme.
        method: how weights are rounded.
        kind: of the layers.
        note: what is done in another way here.
    """

    arguments: tuple[str, ...]
    bits: tuple[int, ...]
    group: int
    groups: tuple[int, ...] = ()
    symmetric: bool = False
    activations: Activations = ""
    method: str = ""
    kind: Kind = "linear"
    note: str = ""


_INT4 = _Quantizer(("groupsize", "padding_allowed", "inner_k_tiles"), (4,), 256, (32, 64, 128, 256))
_INT8 = _Quantizer(("bitwidth", "groupsize", "node_type"), (8, 4), 0, symmetric=True)
_ANY_BITS = _Quantizer(("bitwidth", "groupsize"), (4, 2, 3, 5, 6, 7), 128)
QUANTIZERS = {
    "linear:int4": _INT4,
    "linear:int8": _INT8,
    "linear:a8w4dq": _Quantizer(
        ("groupsize", "padding_allowed", "scales_precision"), (4,), 256, symmetric=True, activations="int8"
    ),
    "linear:a8wxdq": replace(
        _ANY_BITS, arguments=(*_ANY_BITS.arguments, "has_weight_zeros"), symmetric=True, activations="int8"
    ),
    "linear:afpwx": replace(_ANY_BITS, note="TorchChat has it on mps only; here it runs on every device"),
    "linear:gptq": replace(_INT4, method="gptq"),
    "linear:hqq": replace(_INT4, method="hqq"),
    "embedding": replace(_INT8, arguments=("bitwidth", "groupsize", "packed"), kind="embedding"),
    "embedding:wx": replace(_ANY_BITS, kind="embedding"),
}
KEYS = {key: each.arguments for key, each in QUANTIZERS.items()} | {
    "precision": ("dtype",),
    "executor": ("accelerator",),
}


@dataclass(frozen=True)
class TorchChatStep:
    """What one key asks for: a scheme for some layers, a device, a dtype, or a way to round.

    Attributes:
        pattern: of layers; empty for a key that speaks of none.
        kind: ``"linear"`` or ``"embedding"``.
        scheme: for these layers; ``None`` skips them.
        notes: what the key asked for and is done in another way here.
    """

    pattern: str = ""
    kind: Kind = "linear"
    scheme: Scheme | None = None
    device: str = ""
    dtype: str = ""
    method: str = ""
    notes: tuple[str, ...] = ()


def is_torchchat(spec: Mapping[str, Any]) -> bool:
    """Whether a mapping is of TorchChat's form: each value is a mapping of arguments.

    Example:
        >>> is_torchchat({"linear:int4": {"groupsize": 256}}), is_torchchat({"*": "int4"})
        (True, False)
    """
    return set(spec) != {"layers"} and all(isinstance(value, Mapping) for value in spec.values())


def steps(spec: Mapping[str, Mapping[str, Any]]) -> list[TorchChatStep]:
    """Read the keys in their order.

    Args:
        spec: the JSON, as a mapping.

    Returns:
        One step for each key; two where a key speaks of all layers but the last.

    Raises:
        ConfigError: an unknown key or argument, or one that cannot be done here, with the reason.

    Example:
        >>> step = steps({"embedding": {"bitwidth": 4, "groupsize": 32}})[0]
        >>> step.pattern, step.kind, str(step.scheme)
        ('*', 'embedding', 'int4:g32:sym')
    """
    read = [(_step(key, dict(value)), value.get("node_type")) for key, value in spec.items()]
    result: list[TorchChatStep] = []
    for place, (step, node_type) in enumerate(read):
        if node_type == f"!{OUTPUT}":
            later = (other for other, _ in read[place + 1 :] if other.pattern and other.kind == "linear")
            last = next(later, TorchChatStep())
            result.append(replace(step, pattern=OUTPUT, scheme=last.scheme))
        result.append(step)
    return result


def _step(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    if key not in KEYS:
        do = "Remove the key or rename it"
        raise ConfigError(describe("TorchChat's JSON", f"the key {key!r}", f"one of {', '.join(KEYS)}", do))
    if unknown := sorted(set(arguments) - set(KEYS[key])):
        expected = f"arguments among {', '.join(KEYS[key])}"
        raise ConfigError(describe(key, f"the argument {unknown[0]!r}", expected, "TorchChat ignores it; take it out"))
    if key == "precision":
        name = _one_of(key, "dtype", arguments.get("dtype"), tuple(DTYPES), "Write bfloat16")
        fast = f"{key}: {name!r} is bfloat16 here; TorchChat takes float16 on CPUs of Apple"
        return TorchChatStep(dtype=DTYPES[name], notes=(fast,) if name.startswith("fast") else ())
    if key == "executor":
        device = _one_of(key, "accelerator", arguments.get("accelerator"), tuple(ON), "Name one of these")
        return TorchChatStep(device=ON[device])
    quantizer = QUANTIZERS[key]
    pattern = "*"
    if "node_type" in arguments:
        every = ("*", OUTPUT, f"!{OUTPUT}")
        node_type = _one_of(key, "node_type", arguments["node_type"], every, "Leave node_type out for all layers")
        pattern = OUTPUT if node_type == OUTPUT else "*"
    notes = [f"{key}: {name}: {reason}" for name, reason in IGNORED.items() if name in arguments]
    notes += [f"{key}: {quantizer.note}"] if quantizer.note else []
    scheme = _scheme(key, arguments, quantizer)
    return TorchChatStep(pattern, quantizer.kind, scheme, method=quantizer.method, notes=tuple(notes))


def _scheme(key: str, arguments: dict[str, Any], quantizer: _Quantizer) -> Scheme:
    bits, size = arguments.get("bitwidth", quantizer.bits[0]), arguments.get("groupsize", quantizer.group)
    if type(bits) is not int or bits not in quantizer.bits:
        why = "; one bit is not held here" if bits == 1 else ""
        expected = f"one of {', '.join(map(str, sorted(quantizer.bits)))}{why}"
        do = "Write a recipe of assay for other widths"
        raise ConfigError(describe(f"{key}: bitwidth", repr(bits), expected, do))
    is_channel = not quantizer.groups and size in CHANNEL
    if not is_channel and (type(size) is not int or size < 1 or (quantizer.groups and size not in quantizer.groups)):
        sizes = f"one of {', '.join(map(str, quantizer.groups))}"
        expected = sizes if quantizer.groups else "a number of weights, or 0 for whole channels"
        raise ConfigError(describe(f"{key}: groupsize", repr(size), expected, "Leave groupsize out for the usual one"))
    symmetric = not arguments.get("has_weight_zeros", not quantizer.symmetric)
    return Scheme(bits, None if is_channel else size, bool(symmetric), quantizer.activations)


def _one_of(key: str, argument: str, value: object, known: tuple[str, ...], do: str) -> str:
    if value not in known:
        expected = f"one of {', '.join(known)}"
        raise ConfigError(describe(f"{key}: {argument}", repr(value), expected, do))
    return str(value)
