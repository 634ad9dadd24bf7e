"""Logits that are stored once and compared with those of other models."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError, StateError
from assay.quantize import plan
from assay.quantize.analysis import DataSpec, compare_with_stored, measure, store_outputs
from language.models import TEXT, Recurrent, llama
from language.models import folder as folder_with_tokenizer

HOW = {"device": "cpu", "progress": False}


def pair():
    before, after = Recurrent(0), Recurrent(0)
    plan(after, "int4:g32", device="cpu").apply(after)
    return before.eval(), after.eval()


def stored(tmp_path, model, **options):
    return store_outputs(model, TEXT, tmp_path / "base.safetensors", device="cpu", title="the original", **options)


def table(section, begins):
    return next({row[0]: row[1] for row in each.rows} for each in section.tables if each.name.startswith(begins))


@pytest.mark.parametrize("sizes", [{}, {"window": 64, "stride": 16}, {"window": 50, "stride": 50}], ids=str)
def test_the_numbers_are_those_of_both_models_together(tmp_path, sizes):
    before, after = pair()
    path = stored(tmp_path, before, **sizes)
    found = compare_with_stored(path, after, TEXT, **HOW).sections[0]
    spec = DataSpec(device="cpu", progress=False, **sizes)
    expected = measure(before, after, TEXT, data_spec=spec, speed=()).sections[0]
    numbers = [[(each.name, each.value, each.lower, each.upper) for each in of.values] for of in (found, expected)]
    assert numbers[0] == numbers[1]
    assert [each.rows for each in found.tables] == [each.rows for each in expected.tables]
    assert found.values[0].value > 1e-5
    assert "the original" in found.note


def test_every_token_is_stored_once_in_its_dtype(tmp_path):
    model = Recurrent(0).bfloat16().eval()
    path = stored(tmp_path, model, window=64, stride=16)
    with safe_open(path, "pt") as file:
        parts = [file.get_tensor(name) for name in sorted(file.keys(), key=int)]
    assert {part.dtype for part in parts} == {torch.bfloat16}
    assert sum(map(len, parts)) == len(TEXT.encode()) - 1
    ids = torch.tensor(list(TEXT.encode()))
    with torch.no_grad():
        expected = model(ids[None, :64])[0]
    assert torch.allclose(parts[0].float(), expected.float(), atol=0.02)  # of a batch of another size


def test_quantiles_and_changes_of_probability_by_hand(tmp_path):
    before, after = pair()
    ids = torch.tensor(list(TEXT.encode()[:200]))
    path = store_outputs(before, ids, tmp_path / "base.safetensors", device="cpu", window=300)
    section = compare_with_stored(path, after, ids, **HOW).sections[0]
    with torch.no_grad():
        p, q = (model(ids[None, :-1])[0].double().softmax(1) for model in (before, after))
    right = ids[1:, None]
    divergences = (p * (p / q).log()).sum(1).numpy()
    changes = (q.gather(1, right) - p.gather(1, right))[:, 0].numpy()
    spread, moved = table(section, "KL divergence"), table(section, "probability change")
    for level in (1, 5, 10, 25, 50, 75, 90, 95, 99):
        assert spread[f"{level} % are below"] == pytest.approx(
            np.quantile(divergences, level / 100), rel=1e-3, abs=1e-7
        )
        assert moved[f"{level} % are below"] == pytest.approx(np.quantile(changes, level / 100), rel=1e-3, abs=1e-6)
    assert "99.9 % are below" not in spread  # of 199 predictions none would be above
    assert (moved["smallest"], moved["largest"]) == pytest.approx((changes.min(), changes.max()), rel=1e-4)
    assert moved["root mean square"] == pytest.approx(math.sqrt((changes**2).mean()), rel=1e-4)
    agreement = next(value for value in section.values if value.name == "top-1 agreement")
    assert agreement.value == pytest.approx(float((p.argmax(1) == q.argmax(1)).double().mean()))


def test_another_text_or_vocabulary_is_refused(tmp_path):
    before, after = pair()
    path = stored(tmp_path, before)
    with pytest.raises(ConfigError, match="the text that the logits were stored for"):
        compare_with_stored(path, after, TEXT[:-1] + "?", **HOW)
    other = nn.Embedding(300, 300)
    with pytest.raises(Exception, match="300"):
        compare_with_stored(path, other, TEXT, **HOW)


def test_files_that_are_something_else(tmp_path):
    path = stored(tmp_path, Recurrent(0))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(StateError, match="Store them again"):
        compare_with_stored(path, Recurrent(0), TEXT, **HOW)
    with pytest.raises(StateError, match="Store them again"):
        compare_with_stored(tmp_path / "none.safetensors", Recurrent(0), TEXT, **HOW)
    assert [each.name for each in tmp_path.iterdir()] == ["base.safetensors"]


def invoke(*arguments):
    done = CliRunner().invoke(app, ["perplexity", *map(str, arguments)], catch_exceptions=True)
    return done.exit_code, f"{done.output}{done.exception or ''}"


def test_the_command_stores_once_and_compares_a_folder_that_others_quantized(tmp_path):
    pytest.importorskip("transformers")
    from assay.quantize import export, quantize_shards

    folder_with_tokenizer(tmp_path / "floats", model=llama(vocab=300))
    quantize_shards(tmp_path / "floats", tmp_path / "small", {"lm_head": "skip", "*": "int4:g32:sym"})
    export(tmp_path / "small", tmp_path / "other", "compressed-tensors")
    (tmp_path / "text.txt").write_text(TEXT)
    data = ("--data", tmp_path / "text.txt", "--device", "cpu")
    base = tmp_path / "base.safetensors"
    code, output = invoke(tmp_path / "floats", *data, "--window", "64", "--save-base", base)
    assert code == 0, output
    assert "perplexity" in output
    found = {}
    for name in ("other", "small", "floats"):
        code, output = invoke(tmp_path / name, *data, "--base", base)
        assert code == 0, output
        assert "top-1 agreement" in output
        found[name] = output.split("KL divergence")[1].split()[0]
    assert found["other"] == found["small"] != found["floats"]
    code, output = invoke(tmp_path / "other", *data, "--base", base, "--window", "32")
    assert code != 0
    assert "windows are those of the file" in output
