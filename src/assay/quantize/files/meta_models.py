"""Models without their weights: the modules are there, and their parameters are on the meta device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from assay.errors import ConfigError, describe
from assay.quantize.files.source import Stored

EMBEDDINGS = re.compile(r"embed|(^|[._])(emb|wte|wpe|tok|pos)([._]|$)|position", re.IGNORECASE)


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


def from_names(tensors: Iterable[Stored]) -> nn.Module:
    """Modules that have tensors of these names: what is 2-D and named ``weight`` is linear or an embedding, by name."""
    root = nn.Module()
    by_name = {stored.name: stored for stored in tensors}
    for stored in by_name.values():
        *path, last = stored.name.split(".")
        if last == "weight" and len(stored.shape) == 2 and stored.dtype.is_floating_point and path:
            _reach(root, path[:-1])._modules[path[-1]] = _layer(".".join(path), stored)
    for stored in by_name.values():
        *path, last = stored.name.split(".")
        parent = _reach(root, path)
        if parent._parameters.get(last) is None:
            held = nn.Parameter(torch.empty(stored.shape, dtype=stored.dtype, device="meta"), requires_grad=False)
            parent._parameters[last] = held
    return root


def _layer(name: str, stored: Stored) -> nn.Module:
    rows, width = stored.shape
    if EMBEDDINGS.search(name):
        return nn.Embedding(rows, width, dtype=stored.dtype, device="meta")
    return nn.Linear(width, rows, bias=False, dtype=stored.dtype, device="meta")


def _reach(root: nn.Module, path: Iterable[str]) -> nn.Module:
    """The module at a path; those on the way are made. Past ``add_module``, which refuses names such as ``type``."""
    for name in path:
        if name not in root._modules:
            root._modules[name] = nn.Module()
        root = root._modules[name]  # type: ignore[assignment]
    return root


def _to_meta(module: nn.Module, name: str, held: Tensor | None) -> Tensor | None:
    if held is None or held.is_meta:
        return None  # as it is
    return nn.Parameter(torch.empty_like(held, device="meta"), requires_grad=held.requires_grad)
