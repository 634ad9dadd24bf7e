"""The logits of a language model on a text, stored once and compared with those of any number of other models.

What is stored is exact: the logits in their own dtype. A comparison has the same numbers as if both models ran. A file
takes ``tokens · vocabulary · bytes of a number``: 2.6 GB for 10,000 tokens of 128,000 words in bfloat16.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.utils.data import DataLoader

from assay._atomic import local_path
from assay.devices.assign import assign
from assay.devices.modules import locations
from assay.devices.placement import move, to_host
from assay.errors import ConfigError, StateError, describe
from assay.evaluation.model.forward import ready
from assay.evaluation.resume.stable_digest import stable_digest
from assay.language import CausalModel, Tokenizer, Windows, tokens_of
from assay.language.scoring import BATCH_SIZE
from assay.language.windows import IGNORED, sizes
from assay.quantize.files.container import Container, TensorEntry

KEY, VERSION = "assay.outputs", 1


@dataclass(frozen=True)
class Described:
    """What a file says of itself.

    Attributes:
        text: the digest of the tokens, the window and the stride.
        window: how many tokens the model was given at once.
        stride: how far apart windows began.
        vocabulary: how many logits a prediction has.
        model: its name.
    """

    text: str
    window: int
    stride: int
    vocabulary: int
    model: str


class StoredOutputs(nn.Module):
    """The logits in a file that :func:`store_outputs` wrote, in the place of the model that gave them.

    Args:
        path: the file.

    Raises:
        StateError: it is no such file, or cut short.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = Path(path)
        try:
            with safe_open(self.path, framework="pt") as file:
                written = json.loads((file.metadata() or {})[KEY])
            version = written.pop("version")
            self.described = Described(**written)
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            got = f"{type(error).__name__}: {error}"
            raise StateError(describe(str(path), got, "logits that assay stored", "Store them again")) from error
        if version != VERSION:
            do = "Store them again with this version of assay"
            raise StateError(describe(str(path), f"version {version}", f"version {VERSION}", do))

    def windows(self, data: Any, tokenizer: Tokenizer | None = None) -> Windows:
        """A text in the windows that were stored.

        Raises:
            ConfigError: it is another text, or its tokens are others.
        """
        windows = Windows(tokens_of(data, tokenizer), self.described.window, self.described.stride)
        if _digest(windows) != self.described.text:
            do = "Name the text that the logits were stored for, with a tokenizer that gives the same tokens"
            raise ConfigError(describe("data", "other tokens", f"those of {self.path}", do))
        return windows

    def of(self, number: Tensor, target: Tensor) -> Tensor:
        """The logits of windows, `(B, T, V)`; zeros for tokens that an earlier window predicts."""
        result: list[Tensor] = []
        with safe_open(self.path, framework="pt") as file:
            for name, row in zip(to_host(number).tolist(), to_host(target), strict=True):
                part = file.get_tensor(str(name))
                whole = part.new_zeros(len(row), part.shape[1])
                whole[row != IGNORED] = part
                result.append(whole)
        return torch.stack(result).to(target.device)

    def forward(self, input_ids: Tensor) -> Tensor:
        raise NotImplementedError("logits are stored by windows")


def store_outputs(
    model: Callable[..., Any],
    data: Any,
    path: str | os.PathLike[str],
    *,
    tokenizer: Tokenizer | None = None,
    window: int | None = None,
    stride: int | None = None,
    device: str | torch.device = "auto",
    batch_size: int = BATCH_SIZE,
    title: str = "",
) -> Path:
    """Store the logits of a language model on a text, one row for each token that is predicted.

    Args:
        model: a module or a function that gives logits for token ids.
        data: a text, or its token ids.
        path: the file to write.
        tokenizer: makes tokens of a text; bytes by default.
        window: how many tokens the model is given at once; as in `assay.language.perplexity`, and so is the next one.
        stride: how far apart windows begin.
        device: where to run.
        batch_size: windows at once.
        title: the name of the model.

    Returns:
        The path.

    Raises:
        ConfigError: too short a text, or a path that cannot be written.
        StateError: the disk is full.

    Example:
        >>> import tempfile
        >>> model = nn.Embedding(256, 256).requires_grad_(False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = store_outputs(model, "abracadabra", f"{folder}/base.safetensors", device="cpu")
        ...     from assay.quantize.analysis import compare_with_stored
        ...     report = compare_with_stored(path, model, "abracadabra", device="cpu")
        >>> report.sections[0].values[0].name, report.sections[0].values[0].value
        ('KL divergence', 0.0)
    """
    path = local_path("path", path)
    causal = CausalModel(model)
    windows = Windows(tokens_of(data, tokenizer), *sizes(window, stride, causal.positions))
    where = assign(device, locations(causal)).device.value
    with ready(causal, where), torch.no_grad():
        rows = _rows(causal, windows, where, batch_size)
        first = next(rows)
        counts = [int((windows[k]["labels"] != IGNORED).sum()) for k in range(len(windows))]
        entries = [TensorEntry(str(k), first.dtype, (count, first.shape[1])) for k, count in enumerate(counts)]
        about = Described(_digest(windows), windows.window, _stride(windows), first.shape[1], title).__dict__
        text = {KEY: json.dumps(about | {"version": VERSION})}
        file = Container(path, entries, lambda sums: text, path.with_name(f".{path.name}.{secrets.token_hex(4)}.part"))
        try:
            file.reserve()
            file.put("0", first)
            for k, each in enumerate(rows, 1):
                file.put(str(k), each)
            file.seal({})
            file.publish()
        finally:
            file.part.unlink(missing_ok=True)
    return path


def _rows(causal: CausalModel, windows: Windows, device: torch.device, batch_size: int) -> Iterator[Tensor]:
    """The logits of the tokens that each window predicts."""
    for batch in DataLoader(windows, batch_size=batch_size):
        logits = causal(move(batch["input_ids"], device))
        assert logits is not None
        for row, labels in zip(to_host(logits), batch["labels"], strict=True):
            yield row[labels != IGNORED]


def _stride(windows: Windows) -> int:
    """How far apart windows begin; of a text that is one window, its length."""
    return min(windows.stride, windows.window)


def _digest(windows: Windows) -> str:
    return stable_digest([windows.tokens.ids, windows.window, _stride(windows)], "data")
