"""The configuration and the quantizer that Transformers calls for models that assay quantized.

Importing this module registers both; `assay.quantize.register_with_transformers` does that.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from assay.quantize.files.huggingface import METHOD, LoadState, add_empty_layers, check_files, dtype_name, weights_of

_Config: Any = QuantizationConfigMixin  # types of Transformers are not always installed
_Quantizer: Any = HfQuantizer


@register_quantization_config(METHOD)
class AssayQuantizationConfig(_Config):  # type: ignore[misc]
    """``quantization_config`` of ``config.json``: the weights that :func:`weights_of` lists, and the model's dtype."""

    def __init__(self, weights: dict[str, Any] | None = None, dtype: str = "", **_: Any) -> None:
        self.quant_method = METHOD
        self.weights = weights or {}
        self.dtype = dtype


@register_quantizer(METHOD)
class AssayQuantizer(_Quantizer):  # type: ignore[misc]
    """Makes room for quantized weights before Transformers loads them, and lists them before it saves them."""

    def __init__(self, quantization_config: AssayQuantizationConfig, **options: Any) -> None:
        super().__init__(quantization_config, **options)
        self._load_state = LoadState()

    def _process_model_before_weight_loading(self, model: Any, checkpoint_files: Any = None, **_: Any) -> None:
        listed = self.quantization_config
        check_files(listed.weights, checkpoint_files or ())
        dtype = getattr(torch, str(listed.dtype), None)
        self._load_state = add_empty_layers(model, listed.weights, {dtype: model.dtype})  # type: ignore[dict-item]

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> None:
        self._load_state.finish(model)
        self._load_state = LoadState(dtypes=self._load_state.dtypes)  # adapters may follow

    def get_new_dtype(self, converter: Any, param: Any, dtype: Any) -> Any:
        """The dtype of a tensor of the model; scales and zeros keep theirs, not the one Transformers asks for."""
        own = self._load_state.dtypes.get(converter.target_patterns[0])
        return own or super().get_new_dtype(converter, param, dtype)

    def get_state_dict_and_metadata(self, model: Any, **_: Any) -> tuple[None, dict[str, str]]:
        """Nothing but the model's own state; what it holds now is listed in its configuration."""
        self.quantization_config.weights = weights_of(model)
        self.quantization_config.dtype = dtype_name(model.dtype)
        model.config.quantization_config = self.quantization_config
        return None, {}

    def is_serializable(self, **_: Any) -> bool:
        """Whether ``save_pretrained`` can write it."""
        return True

    @property
    def is_trainable(self) -> bool:
        """Whether the weights learn."""
        return False
