"""Models without their weights: the modules are there, and their parameters are on the meta device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from assay.errors import ConfigError, describe


def meta_model(factory: Callable[[], nn.Module]) -> nn.Module:
    """Make a model whose parameters take no memory. Buffers are real, as few files hold all of them.

    ``torch.device("meta")`` would leave buffers without values that no file brings, such as the frequencies of rotary
    embeddings.

    Args:
        factory: makes the model, as it would be made with random weights.

    Returns:
        The model; shared parameters are shared.

    Raises:
        ConfigError: it makes no module.

    Example:
        >>> meta_model(lambda: nn.Linear(10**4, 10**4)).weight.is_meta
        True
    """
    hook = register_module_parameter_registration_hook(_to_meta)  # type: ignore[arg-type]
    try:
        model = factory()
    finally:
        hook.remove()
    if not isinstance(model, nn.Module):
        raise ConfigError(describe("model", type(model).__name__, "a factory that makes a module", "Return the model"))
    return model


def from_config(folder: Path) -> nn.Module | None:
    """The modules of the model that ``config.json`` describes; None without Transformers, or for one that it lacks."""
    try:
        import transformers
    except ImportError:
        return None
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        named = [getattr(transformers, name, None) for name in config.architectures or ()]
    except (OSError, ValueError, KeyError):
        return None
    cls: Any = next((each for each in named if each is not None), None)
    return None if cls is None else meta_model(lambda: cls(config))


def _to_meta(module: nn.Module, name: str, tensor: Tensor | None) -> Tensor | None:
    if tensor is None or tensor.is_meta:
        return None  # unchanged
    return nn.Parameter(torch.empty_like(tensor, device="meta"), requires_grad=tensor.requires_grad)
