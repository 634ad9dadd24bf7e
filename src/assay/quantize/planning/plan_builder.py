"""How a plan is made: device, dtype and schemes are settled, then each layer is looked up in what the device has."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from assay.devices import default_device
from assay.devices.capabilities import device_type, kind
from assay.devices.kinds import DEVICES
from assay.devices.operators import support
from assay.devices.operators.support import lacks
from assay.devices.policies import can_hold
from assay.errors import ConfigError, describe
from assay.quantize.candidates import candidates
from assay.quantize.dispatch import FALLBACK, DispatchTable, default_table, regimes
from assay.quantize.kernels import KERNELS
from assay.quantize.kernels.base import TorchKernel
from assay.quantize.kernels.int4 import LAYOUTS
from assay.quantize.planning.apply import GPTQ, WITHOUT_INPUTS
from assay.quantize.planning.costs import measured
from assay.quantize.planning.layers import Choice, choose
from assay.quantize.planning.plan import LayerPlan, Plan
from assay.quantize.planning.recipe import Recipe, RecipeLike
from assay.quantize.rounding import METHODS
from assay.quantize.tuning_records import Steps

DTYPES = ("float32", "bfloat16", "float16", "float64")
PACKING = {"_weight_int4pack_mm": "_convert_weight_to_int4pack"}  # what torch wants before the kernel on its devices


def plan(
    model: nn.Module,
    scheme: RecipeLike | None = None,
    device: str | torch.device = "auto",
    *,
    recipe: RecipeLike | None = None,
    dtype: str | torch.dtype | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    method: str | None = None,
    release: str | None = None,
) -> Plan:
    """Say what quantization does to each layer of a model on a device, before anything is done.

    Args:
        model: any module; its weights may be on the meta device.
        scheme: ``"int4"`` (the default), ``"int8"``, ``"int3:g64"``, several in order of preference
            (``"int4, int8"``), or anything that is a recipe.
        device: where the model shall run; it need not be here. ``"auto"``: the first accelerator of this machine.
        recipe: schemes by the names of layers, instead of ``scheme``; see :meth:`Recipe.parse`.
        dtype: of the activations; that of the weights by default.
        include: names, or parts of them between dots; where given, other layers are skipped.
        exclude: names, or parts of them between dots, of layers that are skipped.
        method: how weights are rounded: ``"nearest"`` (unless the recipe says otherwise), ``"search"``, ``"hqq"``, or
            ``"gptq"``, which needs calibration data when the plan is applied.
        release: an older release of torch, such as ``"2.4"``: what the device is known to have lacked then.

    Returns:
        The plan. ``print`` shows it, :meth:`Plan.apply` does it.

    Raises:
        ConfigError: no such scheme, device, dtype, method or release; a pattern that no layer matches; or nothing that
            can be quantized.

    Example:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)).bfloat16()
        >>> made = plan(model, "int4", device="mps")
        >>> made.layers[0].kernels[0], made.skipped[0].why
        ((1, 'int4pack'), 'its rows of 64 weights cannot be cut into groups of 128; int4:g64 fits')
        >>> type(made.apply(model)[0]).__name__
        'QuantizedLinear'

    Source:
        Which operator a device has: ``native_functions.yaml`` of the installed torch; what its kernels take:
        ``devices/known/quantization.toml``; what older releases lacked: ``devices/known/history.toml``.
    """
    rules = _recipe(scheme, recipe)
    device = _device(device, rules.device)
    dtype = _one_of("dtype", str(dtype or rules.dtype).removeprefix("torch."), ("", *DTYPES))
    method = _one_of("method", method or rules.method or "nearest", (*METHODS, GPTQ))
    holders, rest = candidates(model)
    include, exclude = ((each,) if isinstance(each, str) else each for each in (include, exclude))
    choices = choose(holders, rules, include, exclude)
    dtype = dtype or _usual_dtype(choices)
    if not can_hold(device, getattr(torch, dtype)):
        do = "Pass dtype=torch.float32 or torch.bfloat16, and convert the model before it runs"
        raise ConfigError(describe("dtype", f"{dtype}, which {device} does not have", "one that it has", do))
    layers = tuple(_layers(choices, device, dtype, release))
    notes = [*rules.notes]
    if method == GPTQ:
        what = f"takes what went into linear layers; the rest is {WITHOUT_INPUTS}"
        notes.append(f"{GPTQ}: apply(model, calibration=...) {what}")
    notes += _notes(layers, device, dtype, release)
    return Plan(layers, tuple(rest), device, dtype, method, release or torch.__version__, tuple(notes))


def _recipe(scheme: RecipeLike | None, recipe: RecipeLike | None) -> Recipe:
    if recipe is not None and scheme is not None:
        raise ConfigError(describe("plan", "a scheme and a recipe", "one of them", "Write the scheme into the recipe"))
    spec = recipe if recipe is not None else scheme
    parsed = Recipe.parse("int4" if spec is None else spec)
    if not parsed.rules:
        do = "Add a rule such as linear:int4"
        raise ConfigError(describe("recipe", "no rule for any layer", "at least one", do))
    return parsed


def _device(request: str | torch.device, of_recipe: str) -> str:
    """The device that was asked for, else the recipe's, else the first accelerator of this machine."""
    name = str(request)
    if name == "auto":
        name = of_recipe or name
    if name == "auto":
        return str(default_device())
    if re.fullmatch(rf"({'|'.join(DEVICES)})(:\d+)?", name) is None:
        expected = f"auto or one of {', '.join(DEVICES)}, with or without an index"
        raise ConfigError(describe("device", repr(name), expected, "Name one whose kernels are known"))
    return name


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ConfigError(describe(name, repr(value), f"one of {', '.join(filter(None, known))}", "Check the spelling"))
    return value


def _usual_dtype(choices: Sequence[Choice]) -> str:
    """The dtype of the most of the weights that are quantized."""
    sizes: Counter[str] = Counter()
    for choice in choices:
        if choice.scheme is not None:
            sizes[choice.candidate.dtype] += math.prod(choice.candidate.shape)
    return sizes.most_common(1)[0][0]


def _layers(choices: Sequence[Choice], device: str, dtype: str, release: str | None) -> Iterator[LayerPlan]:
    counted: set[str] = set()
    for choice in choices:
        each, scheme = choice.candidate, choice.scheme
        first = counted.isdisjoint(each.tied)  # of those that share a weight, one counts its bytes
        counted.add(each.name)
        steps: Steps = ()
        packed = 0
        if scheme is not None:
            is_linear = each.kind == "linear"
            steps = regimes(dtype, device, scheme, each.shape, release=release) if is_linear else ((1, FALLBACK),)
            packed = sum(KERNELS[name].extra_bytes(device, scheme, each.shape) for _, name in steps)
        what = each.name, each.kind, each.shape, each.dtype, scheme, steps
        yield LayerPlan(*what, each.nbytes * first, choice.nbytes * first, packed, choice.why, each.tied)


def _notes(layers: Sequence[LayerPlan], device: str, dtype: str, release: str | None) -> Iterator[str]:
    """What the device lacks for these layers, and what happens instead; what the model must be for the plan to hold."""
    linear = [layer for layer in layers if layer.scheme and layer.kind == "linear"]
    known = kind(device)
    if known is not None and not known.tested:
        yield f"nothing here was run or timed on a real {known.name} by this project: it rests on torch's sources"
    yield from dict.fromkeys(note for layer in linear for note in _of_kernels(layer, device, release))
    yield from dict.fromkeys(note for layer in linear for note in _not_taken(layer, device, dtype, release))
    if any(len(layer.kernels) > 1 for layer in linear):
        yield from _of_table(device)
    if device_type(device) == "cpu":
        costs = ((layer.scheme, measured().of(dtype, layer.scheme, layer.kernels)) for layer in linear if layer.scheme)
        yield from dict.fromkeys(f"cost of {scheme.family} in {dtype}: {cost}" for scheme, cost in costs if cost)
    if any(layer.kind == "embedding" and layer.scheme for layer in layers):
        yield "embeddings: only the rows that are looked up are expanded"
    other = sorted({layer.dtype for layer in layers if layer.scheme} - {dtype})
    if other:
        yield f"the model is {' and '.join(other)}: call model.to(torch.{dtype}) before it runs"
    if any(layer.tied and layer.scheme for layer in layers):
        yield "layers that share a weight share its integers, and are counted once"


def _of_kernels(layer: LayerPlan, device: str, release: str | None) -> Iterator[str]:
    """What the kernels of a layer are, and how its weight gets into their layout."""
    for _, name in layer.kernels:
        kernel = KERNELS[name]
        yield f"{name}: {kernel.summary}"
        packing = PACKING.get(kernel.operator) if isinstance(kernel, TorchKernel) else None
        if packing and device_type(device) in LAYOUTS:
            missing = lacks(device, packing, release)
            why = f"{missing}; it is not needed: " if missing else ""
            yield (
                f"{name}: {why}weights are rounded where they are, moved as bytes that every device reads, "
                f"and laid out for {device} by assay"
            )


def _not_taken(layer: LayerPlan, device: str, dtype: str, release: str | None) -> Iterator[str]:
    """Why a kernel of the device for weights of so many bits is not used, and what that means."""
    assert layer.scheme is not None
    kernels = {name for _, name in layer.kernels}
    wanted = layer.scheme.bits, layer.scheme.activations
    torchs = [
        each for each in KERNELS.values() if isinstance(each, TorchKernel) and support.kernel(device, each.operator)
    ]
    there = [each for each in torchs if (each.bits, each.activations) == wanted]
    for kernel in there:
        if kernel.name not in kernels:
            why = kernel.why_not(device, dtype, layer.scheme, layer.shape, release) or _slow(kernel, device, dtype)
            yield f"{kernel.name} is not used for {layer.scheme}: {why}"
    if not there:
        what = f"{layer.scheme.bits}-bit weights" + (" with 8-bit activations" if layer.scheme.activations else "")
        yield f"torch has no kernel for {what} on {device_type(device)}: expanding them saves memory and not time"


def _of_table(device: str) -> Iterator[str]:
    """Where it was measured from how many rows on another kernel is taken."""
    table = default_table(device_type(device))
    untried = table.source == DispatchTable().source and device_type(device) != "cpu"
    yield "from how many rows on: " + (f"assumed, not measured on {device_type(device)}" if untried else table.source)
    if table.note:
        yield table.note


def _slow(kernel: TorchKernel, device: str, dtype: str) -> str:
    takes = support.kernel(device, kernel.operator)
    note = takes.note if takes else ""
    return note if dtype in note else f"for {dtype} it was measured to be slower than expanding the weight"
