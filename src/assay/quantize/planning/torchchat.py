"""A TorchChat ``--quantize`` JSON as steps of a recipe: every key has its place here, or is refused with the reason.

Facts from pytorch/torchchat: ``docs/quantization.md``, ``torchchat/utils/quantize.py`` (the keys, their arguments and
defaults; keys are applied in the order of the file, and a later one does not see the layers that an earlier one took),
``torchchat/utils/build_utils.py`` (names of dtypes), and from pytorch/ao ``torchao/quantization/GPTQ.py`` and
``torchao/experimental/quant_api.py`` (the arguments of the quantizers that are not TorchChat's own).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from assay.errors import ConfigError, describe
from assay.quantize.scheme import Scheme

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
DEVICES = {"fast": "auto", "cpu": "cpu", "cuda": "cuda", "mps": "mps", "xpu": "xpu"}


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
    kind: Literal["linear", "embedding"] = "linear"
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
    if key not in _READERS:
        raise ConfigError(
            describe(
                "TorchChat's JSON", f"the key {key!r}", f"one of {', '.join(_READERS)}", "Remove the key or rename it"
            )
        )
    known, reader = _READERS[key]
    if unknown := sorted(set(arguments) - set(known)):
        expected = f"arguments among {', '.join(known)}"
        raise ConfigError(describe(key, f"the argument {unknown[0]!r}", expected, "TorchChat ignores it; take it out"))
    return reader(key, arguments)


def _int4(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    notes = _ignored(key, arguments, padding_allowed=_NO_PADDING, inner_k_tiles=_NO_TILES)
    return TorchChatStep(
        "*", scheme=Scheme(4, _group(key, arguments, 256, of=(32, 64, 128, 256)), symmetric=False), notes=notes
    )


def _hqq(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    return replace(_int4(key, arguments), method="hqq")


def _gptq(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    return replace(_int4(key, arguments), method="gptq")


def _int8(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    node_type = arguments.get("node_type", "*")
    if node_type not in ("*", OUTPUT, f"!{OUTPUT}"):
        raise ConfigError(
            describe(
                f"{key}: node_type", repr(node_type), "'*', 'output' or '!output'", "Leave node_type out for all layers"
            )
        )
    return TorchChatStep(OUTPUT if node_type == OUTPUT else "*", scheme=_own(key, arguments))


def _embedding(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    notes = _ignored(key, arguments, packed="integers are always packed densely here")
    return TorchChatStep("*", "embedding", _own(key, arguments), notes=notes)


def _own(key: str, arguments: dict[str, Any]) -> Scheme:
    """TorchChat's own quantizers: 4 or 8 bits, symmetric."""
    bits = arguments.get("bitwidth", 8)
    if bits not in (4, 8):
        raise ConfigError(
            describe(f"{key}: bitwidth", repr(bits), "4 or 8", "Write 8, or a recipe of assay for other widths")
        )
    return Scheme(bits, _group(key, arguments, 0), symmetric=True)


def _a8w4dq(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    notes = _ignored(key, arguments, padding_allowed=_NO_PADDING, scales_precision="scales have the canonical dtype")
    group = _group(key, arguments, 256)
    return TorchChatStep("*", scheme=Scheme(4, group, symmetric=True, activations="int8"), notes=notes)


def _a8wxdq(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    symmetric = not arguments.get("has_weight_zeros", False)
    group = _group(key, arguments, 128)
    return TorchChatStep("*", scheme=Scheme(_few_bits(key, arguments), group, symmetric=symmetric, activations="int8"))


def _embedding_wx(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    return TorchChatStep(
        "*", "embedding", Scheme(_few_bits(key, arguments), _group(key, arguments, 128), symmetric=False)
    )


def _afpwx(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    scheme = Scheme(_few_bits(key, arguments), _group(key, arguments, 128), symmetric=False)
    return TorchChatStep(
        "*", scheme=scheme, notes=(f"{key}: TorchChat has it on mps only; here it runs on every device",)
    )


def _few_bits(key: str, arguments: dict[str, Any]) -> int:
    bits = arguments.get("bitwidth", 4)
    if isinstance(bits, bool) or not isinstance(bits, int) or not 2 <= bits <= 7:
        why = " (one bit is not held here)" if bits == 1 else ""
        raise ConfigError(describe(f"{key}: bitwidth", repr(bits), f"2 to 7{why}", "Take another one"))
    return bits


def _group(key: str, arguments: dict[str, Any], default: int, of: tuple[int, ...] = ()) -> int | None:
    size = arguments.get("groupsize", default)
    if not of and size in CHANNEL:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or size < 1 or (of and size not in of):
        expected = f"one of {', '.join(map(str, of))}" if of else "a number of weights, or 0 for whole channels"
        raise ConfigError(describe(f"{key}: groupsize", repr(size), expected, "Leave groupsize out for the usual one"))
    return size


_NO_PADDING = "nothing is padded here; a layer that groups do not divide is skipped, and the plan says so"
_NO_TILES = "the layout of a kernel is chosen where it runs"


def _ignored(key: str, arguments: dict[str, Any], **reasons: str) -> tuple[str, ...]:
    return tuple(f"{key}: {name}: {reason}" for name, reason in reasons.items() if name in arguments)


def _precision(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    name = arguments.get("dtype")
    if name not in DTYPES:
        raise ConfigError(describe(f"{key}: dtype", repr(name), f"one of {', '.join(DTYPES)}", "Write bfloat16"))
    fast = f"{key}: {name!r} is bfloat16 here; TorchChat takes float16 on CPUs of Apple"
    return TorchChatStep(dtype=DTYPES[name], notes=(fast,) if name.startswith("fast") else ())


def _executor(key: str, arguments: dict[str, Any]) -> TorchChatStep:
    name = arguments.get("accelerator")
    if name not in DEVICES:
        why = "; nothing is known of npu" if name == "npu" else ""
        raise ConfigError(
            describe(f"{key}: accelerator", repr(name), f"one of {', '.join(DEVICES)}{why}", "Name one of these")
        )
    return TorchChatStep(device=DEVICES[name])


_READERS: dict[str, tuple[tuple[str, ...], Callable[[str, dict[str, Any]], TorchChatStep]]] = {
    "linear:int4": (("groupsize", "padding_allowed", "inner_k_tiles"), _int4),
    "linear:int8": (("bitwidth", "groupsize", "node_type"), _int8),
    "linear:a8w4dq": (("groupsize", "padding_allowed", "scales_precision"), _a8w4dq),
    "linear:a8wxdq": (("bitwidth", "groupsize", "has_weight_zeros"), _a8wxdq),
    "linear:afpwx": (("bitwidth", "groupsize"), _afpwx),
    "linear:gptq": (("groupsize", "padding_allowed", "inner_k_tiles"), _gptq),
    "linear:hqq": (("groupsize", "padding_allowed", "inner_k_tiles"), _hqq),
    "embedding": (("bitwidth", "groupsize", "packed"), _embedding),
    "embedding:wx": (("bitwidth", "groupsize"), _embedding_wx),
    "precision": (("dtype",), _precision),
    "executor": (("accelerator",), _executor),
}
