"""TorchChat's ``--quantize`` JSON: every key that it has is mapped or refused, and so is every argument."""

from __future__ import annotations

import json

import pytest

from assay.errors import ConfigError
from assay.quantize.planning.recipe import Recipe
from assay.quantize.planning.torchchat import steps

# The keys of TorchChat's quantizer_class_dict (torchchat/utils/quantize.py), and those of its older documents.
KEYS = {
    *("embedding", "embedding:wx", "linear:int8", "linear:int4", "linear:a8w4dq", "linear:a8wxdq", "linear:afpwx"),
    *("precision", "executor", "linear:gptq", "linear:hqq"),
}
# The profiles of its torchchat/quant_config, as values.
PROFILES = {
    "cuda": {
        "executor": {"accelerator": "cuda"},
        "precision": {"dtype": "bf16"},
        "linear:int4": {"groupsize": 256},
    },
    "desktop": {"executor": {"accelerator": "fast"}, "precision": {"dtype": "fast16"}},
    "mobile": {"embedding": {"bitwidth": 4, "groupsize": 32}, "linear:a8w4dq": {"groupsize": 256}},
}


def rules(given):
    return {rule.key: ", ".join(map(str, rule.schemes)) or "skip" for rule in Recipe.parse(given).rules}


def scheme(key, arguments):
    (step,) = steps({key: arguments})
    held = step.scheme
    return held.bits, held.group_size, held.symmetric, held.activations, step.kind


@pytest.mark.parametrize(
    ("key", "arguments", "expected"),
    [
        ("linear:int4", {}, (4, 256, False, "", "linear")),
        ("linear:int4", {"groupsize": 32}, (4, 32, False, "", "linear")),
        ("linear:int8", {}, (8, None, True, "", "linear")),
        ("linear:int8", {"bitwidth": 8, "groupsize": 0}, (8, None, True, "", "linear")),
        ("linear:int8", {"bitwidth": 4, "groupsize": 64}, (4, 64, True, "", "linear")),
        ("embedding", {}, (8, None, True, "", "embedding")),
        ("embedding", {"bitwidth": 4, "groupsize": 32}, (4, 32, True, "", "embedding")),
        ("linear:a8w4dq", {}, (4, 256, True, "int8", "linear")),
        ("linear:a8wxdq", {}, (4, 128, True, "int8", "linear")),
        (
            "linear:a8wxdq",
            {"bitwidth": 3, "groupsize": 128, "has_weight_zeros": True},
            (3, 128, False, "int8", "linear"),
        ),
        ("linear:a8wxdq", {"bitwidth": 3, "groupsize": -1}, (3, None, True, "int8", "linear")),
        ("embedding:wx", {"bitwidth": 2, "groupsize": 32}, (2, 32, False, "", "embedding")),
        ("linear:afpwx", {"bitwidth": 4, "groupsize": 256}, (4, 256, False, "", "linear")),
        ("linear:hqq", {"groupsize": 64}, (4, 64, False, "", "linear")),
    ],
)
def test_schemes(key, arguments, expected):
    assert scheme(key, arguments) == expected


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_is_mapped(key):
    arguments = {"precision": {"dtype": "bf16"}, "executor": {"accelerator": "mps"}}.get(key, {})
    assert len(steps({key: arguments})) == 1


@pytest.mark.parametrize("name", PROFILES)
def test_its_profiles_as_text_mapping_and_file(tmp_path, name):
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps(PROFILES[name]), "utf-8")
    recipe = Recipe.parse(PROFILES[name])
    assert Recipe.parse(json.dumps(PROFILES[name])) == Recipe.parse(file) == recipe
    assert recipe.device == {"cuda": "cuda", "desktop": "auto", "mobile": ""}[name]
    assert recipe.dtype == {"cuda": "bfloat16", "desktop": "bfloat16", "mobile": ""}[name]


def test_the_order_of_the_file_counts_and_the_last_layer_can_be_another():
    assert rules({"linear:int8": {"node_type": "output"}, "linear:int4": {"groupsize": 32}}) == {
        "output": "int8",
        "*": str(Recipe.parse("int4:g32:asym").rules[0].schemes[0]),
    }
    last_alone = Recipe.parse({"linear:int8": {"node_type": "!output"}})
    assert last_alone.rule_for("output", "linear").schemes == ()
    assert last_alone.rule_for("layers.0.wq", "linear").schemes[0].bits == 8
    last_int4 = Recipe.parse({"linear:int8": {"node_type": "!output"}, "linear:int4": {}})
    assert last_int4.rule_for("output", "linear").schemes[0].bits == 4
    assert last_int4.rule_for("layers.0.wq", "linear").schemes[0].bits == 8


def test_what_is_done_in_another_way_is_noted():
    given = {
        "linear:int4": {"groupsize": 32, "inner_k_tiles": 8, "padding_allowed": True},
        "precision": {"dtype": "fast"},
    }
    notes = "\n".join(Recipe.parse(given).notes)
    assert "inner_k_tiles: the layout of a kernel is chosen where it runs" in notes
    assert "padding_allowed: nothing is padded here" in notes
    assert "'fast' is bfloat16 here" in notes
    assert Recipe.parse({"linear:hqq": {}}).method == "hqq"
    assert Recipe.parse({"linear:gptq": {}}).method == "gptq"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linear:int3": {}}, "TorchChat's JSON: got the key 'linear:int3', expected one of linear:int4, linear:int8"),
        (
            {"linear:int4": {"group_size": 32}},
            "linear:int4: got the argument 'group_size', expected arguments among groups",
        ),
        ({"linear:int4": {"groupsize": 0}}, "linear:int4: groupsize: got 0, expected one of 32, 64, 128, 256"),
        ({"linear:int8": {"groupsize": "32"}}, "linear:int8: groupsize: got '32', expected a number of weights"),
        ({"linear:int8": {"bitwidth": 5}}, "linear:int8: bitwidth: got 5, expected one of 4, 8"),
        ({"linear:int8": {"node_type": "lm"}}, "linear:int8: node_type: got 'lm'"),
        (
            {"linear:a8wxdq": {"bitwidth": 1}},
            "bitwidth: got 1, expected one of 2, 3, 4, 5, 6, 7; one bit is not held here",
        ),
        ({"precision": {"dtype": "int8"}}, "precision: dtype: got 'int8', expected one of fp32"),
        ({"precision": {}}, "precision: dtype: got None"),
        ({"executor": {"accelerator": "tpu"}}, "got 'tpu', expected one of fast, cpu, cuda, mps, xpu, npu,"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(given, message):
    with pytest.raises(ConfigError) as raised:
        Recipe.parse(given)
    assert message in str(raised.value)
