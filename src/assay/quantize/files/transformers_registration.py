"""Where Transformers learns of models that assay quantized: its registry of quantizers, and the models themselves."""

from __future__ import annotations

import sys

from torch import nn

from assay.errors import needing
from assay.quantize.layers import QUANTIZED


def register_with_transformers() -> None:
    """Let ``from_pretrained`` and ``save_pretrained`` of Transformers handle models that assay quantized.

    Calling it again changes nothing. :meth:`Plan.apply` and :func:`load` call it for models of Transformers.

    Raises:
        MissingDependencyError: Transformers is not installed.

    Example:
        >>> from assay.quantize.files.huggingface import METHOD
        >>> register_with_transformers()
        >>> from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
        >>> METHOD in AUTO_QUANTIZER_MAPPING
        True
    """
    with needing("transformers", "hf", "quantized models in folders of Transformers"):
        import assay.quantize.files.quantizer  # noqa: F401  registers its classes


def mark(model: nn.Module) -> None:
    """Let ``save_pretrained`` write the quantized layers of every Transformers model in a module; others stay as is."""
    package = sys.modules.get("transformers")
    if package is None:
        return
    for module in reversed([*model.modules()]):  # the configuration that models share is that of the outer one
        has_quantized = any(isinstance(each, QUANTIZED) for each in module.modules())
        if isinstance(module, package.PreTrainedModel) and has_quantized:
            from assay.quantize.files.quantizer import AssayQuantizationConfig, AssayQuantizer

            module.hf_quantizer = AssayQuantizer(AssayQuantizationConfig())
            module.hf_quantizer.get_state_dict_and_metadata(module)
