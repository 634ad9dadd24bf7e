"""A model, and the folder that Hugging Face would write of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from quantize.streaming.models import Model


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model().eval()


@pytest.fixture
def source(tmp_path, model) -> Path:
    """A folder as Hugging Face writes it: two shards and an index, a configuration, a tokenizer."""
    folder = tmp_path / "source"
    folder.mkdir()
    names = sorted(model.state_dict())
    files = {name: f"model-0000{1 + k % 2}-of-00002.safetensors" for k, name in enumerate(names)}
    for file in set(files.values()):
        save_file({name: model.state_dict()[name] for name in names if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "hidden_size": 64}))
    (folder / "tokenizer.json").write_text("{}")
    return folder
