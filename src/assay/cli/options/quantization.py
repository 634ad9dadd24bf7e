"""The command that quantizes. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from assay.cli.declaration import MEASURED, argument, flag, option, several, string
from assay.cli.options.base import ModelOptions, OutputOptions, stride_option, window_option


class QuantizeCommand(ModelOptions, OutputOptions):
    """Quantize the weights of a model to integers: print the plan of each layer for a device, then apply it."""

    model: str = argument("The model: package.module:factory, weights with --model-factory, or a Hugging Face folder.")
    device: str = option("Plan for this device, which need not be here: auto, cpu, cuda, mps, xpu.", default="auto")
    scheme: str = string("Quantize by this scheme: int4, int8, int3:g64, ...; of several, the first that fits a layer.")
    dtype: str = string("Compute activations in this dtype; by default in that of the weights.")
    recipe: str = string(
        "Read schemes by layer from this recipe: TOML, JSON, or a TorchChat --quantize JSON.", is_path=True
    )
    include: tuple[str, ...] = several("Quantize these layers only; may be repeated.")
    exclude: tuple[str, ...] = several("Skip these layers; may be repeated.")
    method: str = string("Round weights by this method: nearest, search, hqq, or gptq with --calibration.")
    calibration: str = string("Calibrate GPTQ with this text; use another one for --eval.", is_path=True)
    release: str = string("Plan for an older torch, such as 2.4, without what it is known to lack.")
    plan: bool = flag("Print the plan and do nothing.")
    apply: Path | None = option("Apply the plan in this file, as --plan --json prints it.")
    out: Path | None = option("Write the model into this folder or .safetensors file.")
    format: str = string(
        "Write --out in this format, which others read: transformers (floats), compressed-tensors, torchao or gguf."
    )
    eval: str = string(
        "Measure before and after on this data: a text file, or data as assay evaluate names them.",
        panel=MEASURED,
        is_path=True,
    )
    metrics: tuple[str, ...] = several(
        "With --eval, measure a further metric; may be repeated.", "--metrics", "-m", panel=MEASURED
    )
    sweep: tuple[str, ...] = several(
        "With --eval, compare these schemes, as in int8,int4,int3; no model is written.", panel=MEASURED, separator=","
    )
    budget: str = string(
        "With --eval, find a recipe of --sweep schemes for a size: 4.5bits a weight, or 300MB.", panel=MEASURED
    )
    layers: bool = flag("With --eval, measure each layer alone in --scheme, most important first.", panel=MEASURED)
    window: int | None = window_option()
    stride: int | None = stride_option()
    matrix: bool = flag("Print what works on which device, and exit.")
    tune: bool = flag("Measure which kernel is the fastest on this machine, store that, and exit.")
