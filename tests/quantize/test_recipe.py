from __future__ import annotations

import json

import pytest

from assay.errors import ConfigError
from assay.quantize.planning.recipe import Recipe, RecipeRule, matches
from assay.quantize.scheme import Scheme


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "a.b", True),
        ("lm_head", "lm_head", True),
        ("lm_head", "model.lm_head", True),
        ("layers.1", "model.layers.1.fc", True),
        ("layers.1", "model.layers.10.fc", False),
        ("layers.*.fc", "layers.3.fc", True),
        ("head", "lm_head", False),
        ("*head", "lm_head", True),
        ("LM_HEAD", "lm_head", False),
        ("w?", "ffn.w2", True),
    ],
)
def test_a_pattern_is_a_part_of_a_name_between_dots(pattern, name, expected):
    assert matches(pattern, name) is expected


def test_a_scheme_is_for_all_linear_layers():
    recipe = Recipe.parse("int8")
    assert recipe.rules == (RecipeRule("*", (Scheme.parse("int8"),)),)
    assert recipe.rule_for("a.b", "linear") is recipe.rules[0]
    assert recipe.rule_for("a.b", "embedding") is None
    assert Recipe.parse(Scheme.parse("int8")) == recipe
    assert Recipe.parse(recipe) is recipe


def test_schemes_in_order_of_preference():
    assert [str(each) for each in Recipe.parse("int4:g64, int8").rules[0].schemes] == ["int4:g64", "int8"]
    assert Recipe.parse({"*": ["int4:g64", "int8"]}) == Recipe.parse("int4:g64,int8")


def test_the_exact_name_goes_before_patterns_and_else_the_first_match_counts():
    recipe = Recipe.parse({"0": "int8", "1.0": "skip", "*": "int4"})
    assert recipe.rule_for("1.0", "linear").pattern == "1.0"  # "0" is a part of this name
    assert recipe.rule_for("2.0", "linear").pattern == "0"
    assert recipe.rule_for("2.1", "linear").pattern == "*"


def test_embeddings_are_named_as_such():
    recipe = Recipe.parse({"embedding:wte": "int8:g32", "*": "int4"})
    assert str(recipe.rule_for("model.wte", "embedding")) == "embedding:wte = int8:g32"
    assert recipe.rule_for("model.wpe", "embedding") is None


FULL = {
    "device": "mps",
    "dtype": "bfloat16",
    "layers": {"lm_head": "skip", "embedding:*": "int8", "*": ["int4", "int8"]},
}


@pytest.mark.parametrize("ending", [".json", ".toml"])
def test_files(tmp_path, ending):
    file = tmp_path / f"recipe{ending}"
    expected = Recipe.parse(FULL)
    file.write_text(json.dumps(FULL) if ending == ".json" else expected.to_toml(), "utf-8")
    assert Recipe.parse(file) == Recipe.parse(str(file)) == expected
    assert (expected.device, expected.dtype, expected.method) == ("mps", "bfloat16", "")


def test_odd_names_survive_toml(tmp_path):
    file = tmp_path / "odd.toml"
    recipe = Recipe.parse({'a"b\\c': "int8", "ä.[0]": "skip"})
    file.write_text(recipe.to_toml(), "utf-8")
    assert Recipe.parse(file) == recipe


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "recipe: got int, expected a scheme, a mapping, a file or JSON"),
        ({}, "recipe: got no rule, expected at least one pattern"),
        ({"*": 4}, "recipe: *: got 4, expected a scheme"),
        ({"*": []}, "recipe: *: got [], expected a scheme"),
        ({"": "int4"}, "recipe: got the pattern '', expected the name of a layer"),
        ({"embedding:": "int4"}, "got the pattern 'embedding:'"),
        ({"layers": {}, "device": "mps"}, "recipe: layers: got {}"),
        ({"layers": {"*": "int4"}, "divice": "mps"}, "got the key 'divice', expected keys among layers, device"),
        ({"layers": {"*": "int4"}, "device": 3}, "recipe: device: got 3, expected a string"),
        ('{"*": ', "recipe: got no JSON"),
        ("none.toml", "recipe: got none.toml ("),
    ],
)
def test_what_is_no_recipe_is_told(given, message):
    with pytest.raises(ConfigError) as raised:
        Recipe.parse(given)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "[1]", "got list, expected an object"),
        ("a.toml", "layers = ", "got no TOML"),
        ("a.toml", "\x00", "got no TOML"),
        ("a.json", "{", "got no JSON"),
    ],
)
def test_broken_files_are_told(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"a\.(json|toml)") as raised:
        Recipe.parse(tmp_path / name)
    assert message in str(raised.value)


def test_an_unknown_scheme_is_told():
    with pytest.raises(ConfigError, match="int44"):
        Recipe.parse({"*": "int44"})
