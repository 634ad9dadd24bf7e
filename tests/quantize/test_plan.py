from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from rich.cells import cell_len
from torch import nn

import assay.quantize
from assay.errors import ConfigError
from assay.quantize import Scheme, plan
from assay.quantize.kernels import KERNELS
from assay.quantize.planning import plan_builder
from assay.quantize.planning.costs import ROWS, Costs, measured
from assay.quantize.planning.matrix import filled
from quantize.models import language_model


def of(made, name):
    return next(layer for layer in made.layers if layer.name == name)


def test_the_function_is_there_whatever_was_imported():
    import assay.quantize.planning.plan
    import assay.quantize.planning.plan_builder

    assert assay.quantize.plan is plan
    assert callable(assay.quantize.plan)


def test_every_layer_is_told_of():
    made = plan(language_model(dtype=torch.bfloat16), device="mps")
    assert [layer.name for layer in made.layers] == [
        *("embedding", "blocks.0.mix", "blocks.0.up", "blocks.0.down"),
        *("blocks.1.mix", "blocks.1.up", "blocks.1.down", "squeeze", "gate", "head"),
    ]
    mix, gate = of(made, "blocks.0.mix"), of(made, "gate")
    assert (mix.scheme, mix.shape, mix.dtype, mix.kind) == (Scheme.parse("int4"), (256, 256), "bfloat16", "linear")
    assert mix.kernels == ((1, "int4pack"), (32, "dequantize"))
    assert (mix.bytes_before, mix.bytes_after) == (131072, 256 * (128 + 2 * 4))
    assert gate.scheme is None
    assert gate.why == "its rows of 100 weights cannot be cut into groups of 128; int4:channel fits"
    assert of(made, "embedding").why == 'embedding; "embedding:*" in a recipe takes it'
    assert {(each.kind, each.count) for each in made.others} == {("LayerNorm", 2), ("bias", 6)}


def test_a_plan_in_a_list_is_one_line():
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(100, 10))
    made = plan(model, "int4", device="mps")
    after = 256 * 64 // 2 + 2 * 2 * 64 * (256 // 128) + 4 * 100 * 10 + 4 * (64 + 10)
    before = 4 * (256 * 64 + 100 * 10 + 64 + 10)
    assert repr(made) == f"<Plan for mps: 1 of 2 layers quantized; {before:,} to {after:,} bytes>"


def test_sums_count_every_parameter_once():
    for tied in (False, True):
        model = language_model(tied=tied)
        made = plan(model, {"embedding:*": "int8", "*": "int8"}, device="cpu")
        assert made.bytes_before == sum(each.nbytes for each in model.parameters())
        rest = sum(each.nbytes for each in made.others)
        assert made.bytes_after - rest == sum(layer.bytes_after for layer in made.quantized)


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1", "mps", "xpu"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_device_and_dtype_has_a_path(device, dtype):
    made = plan(language_model(), device=device, dtype=dtype)
    assert (made.device, made.dtype) == (device, dtype)
    assert all(layer.kernels[0][0] == 1 for layer in made.quantized)


def test_what_the_device_lacks_and_what_happens_instead_is_said():
    model = language_model(dtype=torch.bfloat16)
    lacking = "\n".join(plan(model, device="mps", release="2.4").notes)
    assert "torch 2.4 has no kernel of _convert_weight_to_int4pack for mps; it is not needed" in lacking
    assert "laid out for mps by assay" in lacking
    assert "_convert_weight_to_int4pack" not in "\n".join(plan(model, device="mps").notes)
    assert "nothing here was run or timed on a real Apple GPU (Metal)" in lacking
    three = "\n".join(plan(model, "int3:g64", device="cuda").notes)
    assert "torch has no kernel for 3-bit weights on cuda: expanding them saves memory and not time" in three


def test_a_dtype_that_the_kernels_are_slow_in_is_said():
    notes = "\n".join(plan(language_model(), device="cpu").notes)
    assert "int4pack-cpu is not used for int4: float16 and float32 go through a loop" in notes
    assert "it takes bfloat16, not float32" in "\n".join(plan(language_model(), device="cuda").notes)


def test_the_cost_is_said_where_it_was_measured(monkeypatch):
    model = language_model(dtype=torch.bfloat16)
    steps = next(layer.kernels for layer in plan(model, device="cpu").quantized)
    times = {("bfloat16", "int4", name): (0.3, 3.1, 1.2) for _, name in steps}
    monkeypatch.setattr(plan_builder, "measured", lambda: Costs("here", times))
    notes = "\n".join(plan(language_model(dtype=torch.bfloat16), device="cpu").notes)
    assert (
        "cost of int4 in bfloat16: 0.3 times the time of the dense layer at 1 row, 3.1 at 32, 1.2 at 512 (here)"
        in notes
    )
    assert "cost of" not in "\n".join(plan(language_model(), device="mps").notes)


def test_what_was_measured_names_paths_that_there_are():
    assert {kernel for _, _, kernel in measured().times} <= set(KERNELS)
    assert {len(times) for times in measured().times.values()} == {len(ROWS)}


def test_a_dtype_that_the_model_does_not_have_yet_is_said():
    notes = plan(language_model(), device="mps", dtype=torch.bfloat16).notes
    assert "the model is float32: call model.to(torch.bfloat16) before it runs" in notes


def test_the_second_choice_and_why():
    made = plan(language_model(), "int4, int8", device="cpu")
    assert str(of(made, "gate").scheme) == "int8"
    assert of(made, "gate").why == "not int4: its rows of 100 weights cannot be cut into groups of 128"


def test_include_and_exclude():
    made = plan(language_model(), "int8", device="cpu", include="blocks", exclude=["blocks.*.down", "blocks.0.mix"])
    assert [layer.name for layer in made.quantized] == ["blocks.0.up", "blocks.1.mix", "blocks.1.up"]
    assert of(made, "head").why == "not included"
    assert of(made, "blocks.1.down").why == "excluded by 'blocks.*.down'"
    assert of(plan(language_model(), {"head": "skip", "*": "int8"}, device="cpu"), "head").why == "skipped by 'head'"


def test_what_is_empty_is_not_called_shared():
    empty = nn.Linear(64, 4)
    empty.weight = nn.Parameter(torch.empty(0, 64))
    row = next(
        line for line in str(plan(nn.Sequential(empty, nn.Linear(64, 8)), "int8")).splitlines() if "empty" in line
    )
    assert row.endswith("0 B")


def test_shared_weights_stay_shared_or_alone():
    model = language_model(tied=True)
    assert of(plan(model, device="cpu"), "head").why == "shares its weight with embedding, which is skipped"
    other = plan(model, {"embedding:*": "int8", "*": "int4"}, device="cpu")
    assert of(other, "head").why == "shares its weight with embedding, which gets int8"
    assert of(other, "embedding").why == "shares its weight with head, which gets int4"
    same = plan(model, {"embedding:*": "int8", "head": "int8", "*": "int4"}, device="cpu")
    assert [of(same, name).tied for name in ("embedding", "head")] == [("head",), ("embedding",)]
    assert (of(same, "embedding").bytes_after > 0, of(same, "head").bytes_after) == (True, 0)
    assert "layers that share a weight share its integers, and are counted once" in same.notes


def test_a_weight_that_something_else_holds_is_left_alone():
    model = language_model()
    model.table = model.head.weight
    why = of(plan(model, device="cpu"), "head").why
    assert why == "shares its weight with table, which is no layer"


def test_a_model_without_values_can_be_planned():
    with torch.device("meta"):
        model = language_model()
    assert plan(model, device="mps").quantized == plan(language_model(), device="mps").quantized


TORCHCHAT = {
    "executor": {"accelerator": "mps"},
    "precision": {"dtype": "bf16"},
    "embedding": {"bitwidth": 8, "groupsize": 0},
    "linear:int4": {"groupsize": 32, "inner_k_tiles": 8},
}


def test_a_torchchat_json_as_it_is(tmp_path: Path):
    file = tmp_path / "mobile.json"
    file.write_text(json.dumps(TORCHCHAT), "utf-8")
    made = plan(language_model(), recipe=file)
    assert (made.device, made.dtype) == ("mps", "bfloat16")
    assert str(of(made, "blocks.0.up").scheme) == "int4:g32"
    assert str(of(made, "embedding").scheme) == "int8"
    assert any("inner_k_tiles" in note for note in made.notes)
    assert plan(language_model(), recipe=file, device="cpu", dtype="float32").device == "cpu"


def test_auto_is_the_first_accelerator_or_the_cpu():
    assert plan(language_model()).device == str(assay.devices.default_device())


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal(width):
    made = plan(language_model(blocks=12, dtype=torch.bfloat16), "int4", device="mps", release="2.4")
    lines = made.to_text(width).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert any(line.startswith("  blocks.0-11.down") for line in lines)
    assert "int4:g128" in "\n".join(lines)


def test_the_text_has_every_part():
    text = str(plan(language_model(tied=True), {"embedding:*": "int8", "head": "int8", "*": "int4"}, device="mps"))
    for part in ("blocks.0-1.mix (2)", "256 × 256", "int4:g128", "int4pack; dequantize from 32", "512 → 68 KiB"):
        assert part in text
    assert "shared" in text
    assert "9 of 10 layers are quantized: 2" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_markdown_and_json():
    made = plan(language_model(), device="mps")
    assert "| blocks.0-1.mix (2) | 256 × 256 | int4:g128 | int4pack; dequantize from 32 | 512 → 68 KiB |" in (
        made.to_markdown()
    )
    read = json.loads(made.to_json())
    assert read["schema"] == "assay.plan/1"
    assert [layer["scheme"] for layer in read["layers"]][:2] == [None, "int4"]
    assert read["layers"][1]["kernels"] == [[1, "int4pack"], [32, "dequantize"]]
    assert read["notes"] == list(made.notes)


def test_a_plan_is_a_page(tmp_path):
    page = plan(language_model(), device="mps").to_html(tmp_path / "plan.html").read_text("utf-8")
    for part in ("blocks.0-1.mix", "int4pack; dequantize from 32", "neither a linear layer nor an embedding"):
        assert part in page


class Convolution(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv1d(4, 4, 3))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (language_model(), {"scheme": "int9"}, "scheme: got 'int9', expected int2 to int8"),
        (language_model(), {"scheme": "nf4"}, "scheme: got 'nf4'"),
        (language_model(), {"device": "tpu"}, "device: got 'tpu', expected auto or one of cpu, cuda, mps, xpu"),
        (language_model(), {"device": "cuda:x"}, "device: got 'cuda:x'"),
        (language_model(), {"device": "meta"}, "device: got 'meta'"),
        (language_model(), {"dtype": "int8"}, "dtype: got 'int8', expected one of float32, bfloat16"),
        (language_model().double(), {"device": "mps"}, "dtype: got float64, which mps does not have"),
        (language_model(), {"method": "best"}, "method: got 'best', expected one of nearest"),
        (language_model(), {"device": "mps", "release": 2.1}, "release: got 2.1, expected a release of torch"),
        (language_model(), {"device": "mps", "release": "old"}, "release: got 'old', expected a release of torch"),
        (language_model(), {"scheme": "int4", "recipe": "int8"}, "plan: got a scheme and a recipe, expected one of"),
        (language_model(), {"recipe": {"precision": {"dtype": "bf16"}}}, "recipe: got no rule for any layer"),
        (language_model(), {"exclude": "haed"}, "exclude: got 'haed', which no layer matches, expected the name of a"),
        (language_model(), {"include": ["x"]}, "include: got 'x', which no layer matches"),
        (language_model(), {"recipe": {"haed": "skip", "*": "int4"}}, "'haed', which no layer matches, expected"),
        (language_model(), {"recipe": {"*": "int4", "*.up": "int8"}}, "'*.up' behind '*', which takes all of its"),
        (language_model(), {"exclude": "*"}, "plan: got nothing to quantize (10 layers: excluded by '*')"),
        (language_model(), {"scheme": "int4:g1024"}, "plan: got nothing to quantize (6 layers: its rows of 256"),
        (Convolution(), {}, "model: got no linear layer and no embedding, expected at least one"),
        (nn.Sequential(nn.Embedding(4, 4)), {}, 'plan: got nothing to quantize (1 layer: embedding; "embedding:*"'),
        (nn.Linear(4, 4), {}, "model: got one layer, Linear, expected a model that holds layers"),
        ("a model", {}, "model: got str, expected a torch.nn.Module"),
    ],
)
def test_bad_input_is_told(model, options, message):
    with pytest.raises(ConfigError) as raised:
        plan(model, **{"device": "cpu"} | options)
    assert message in str(raised.value)


def test_a_plan_for_a_device_whose_adapter_is_not_here_says_that_nothing_was_measured():
    first, *_ = plan(language_model(), device="npu").notes
    assert first.startswith("nothing here was run or timed on a real Ascend NPU (torch_npu)")


def test_the_table_of_the_page_is_the_one_that_is_looked_up():
    native = KERNELS.get("native")
    if native and native.why_not("cpu", "bfloat16", Scheme.parse("int4"), (4096, 4096)):
        pytest.skip("assay was installed without a C compiler, so kernels of the CPU are others")
    page = (Path(__file__).parents[2] / "docs" / "quantize.md").read_text("utf-8")
    assert filled(page) == page, "run: python -m assay.quantize.planning.matrix docs/quantize.md"


def test_where_the_crossings_come_from_is_said():
    model = language_model(dtype=torch.bfloat16)
    assert "from how many rows on: assay's own measurements" in plan(model, device="cpu").notes
    assert "from how many rows on: assumed, not measured on mps" in plan(model, device="mps").notes


def test_the_page_shows_what_is_printed():
    page = (Path(__file__).parents[2] / "docs" / "quantize.md").read_text("utf-8")
    layers = [nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 100), nn.GELU(), nn.Linear(100, 10)]
    shown = str(plan(nn.Sequential(*layers).bfloat16(), "int4", device="mps"))
    assert shown.partition("\n\nHow")[0].strip().replace(torch.__version__, "2.13.0+cpu") in page
