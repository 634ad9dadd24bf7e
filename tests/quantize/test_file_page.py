"""docs/quantized_files.md is enough to read a file: its own reader, which knows no assay, reads every scheme."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.quantize import Scheme, load, quantize_weight, save
from assay.quantize.files.file import describe_file
from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear, QuantizedWeight

PAGE = (Path(__file__).parents[2] / "docs" / "quantized_files.md").read_text("utf-8")


@pytest.fixture(scope="module")
def reader() -> Any:
    """The page's function, made of the page's text alone."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    code = next(block for block in blocks if "def read_weight" in block)
    assert "torch" not in code.partition("found = ")[0]
    names: dict[str, Any] = {"Path": Path}
    exec(code.partition("\nfound = ")[0], names)
    return names["read_weight"]


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("group", [None, 12])
@pytest.mark.parametrize("scales", [torch.bfloat16, torch.float16, torch.float32])
def test_every_scheme_is_read(tmp_path, reader, bits, symmetric, group, scales):
    torch.manual_seed(bits)
    integers = quantize_weight(torch.randn(5, 36) * 3, Scheme(bits, group, symmetric), scales=scales)
    path = save({"a.weight": integers}, tmp_path / "a.safetensors")
    assert np.array_equal(reader(path, "a.weight"), integers.dequantize(torch.float32).numpy())


def test_ties_are_read(tmp_path, reader):
    weight = QuantizedWeight(quantize_weight(torch.eye(6, 32), "int4:g32"), torch.float32)
    model = torch.nn.ModuleDict({"embed": QuantizedEmbedding(weight), "head": QuantizedLinear(weight)})
    path = save(model, tmp_path / "a.safetensors")
    assert np.array_equal(reader(path, "head.weight"), reader(path, "embed.weight"))


def test_damage_is_seen_by_the_page_too(tmp_path, reader):
    path = save({"w": quantize_weight(torch.eye(6, 32), "int8")}, tmp_path / "a.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(AssertionError):
        reader(path, "w")


def test_the_page_says_how_the_files_are_tied_together(tmp_path):
    """``whole`` by the page's words."""
    import hashlib
    import json

    from safetensors import safe_open

    torch.manual_seed(0)
    weights = {f"ä{k}": quantize_weight(torch.randn(8, 64), "int4:g32") for k in range(4)}
    folder = save(weights, tmp_path / "model", shard_bytes=700)
    parts = []
    for file in sorted(folder.glob("quantized-*.safetensors")):
        with safe_open(file, framework="np") as handle:
            parts.append(json.loads(handle.metadata()["assay.quantized"]))
    assert len(parts) == 2
    said = {"version": 1, "whole": hashlib.sha256(b"").hexdigest()}
    for key in ("weights", "tensors", "tied"):
        said[key] = {name: value for part in parts for name, value in part[key].items()}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    assert {part["whole"] for part in parts} == {digest} == {describe_file(folder).whole}
    with pytest.raises(Exception, match="tensors that the model has not"):
        load(torch.nn.Linear(2, 2), folder)
