"""Which layers get which scheme: rules by name, from a scheme, a mapping, TOML or a TorchChat ``--quantize`` JSON."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from assay.errors import ConfigError, describe
from assay.quantize.planning.torchchat import TorchChatStep, is_torchchat, steps
from assay.quantize.scheme import Kind, Scheme

EMBEDDING = "embedding:"
SKIP = "skip"
FILES = (".toml", ".json")
KEYS = ("layers", "device", "dtype", "method")
_CHECK, _WRITE = "Check the line and column named", 'Write {"*": "int4"}'


@dataclass(frozen=True)
class RecipeRule:
    """What happens to the layers of one kind whose names match a pattern.

    Attributes:
        pattern: a name, or a part of one between dots; ``*`` and ``?`` as in the names of files.
        schemes: the first that a layer's shape allows is taken; none skips the layers.
        kind: ``"linear"`` or ``"embedding"``.
    """

    pattern: str
    schemes: tuple[Scheme, ...]
    kind: Kind = "linear"

    def matches(self, name: str, kind: Kind) -> bool:
        """Whether the rule speaks of this layer.

        Example:
            >>> rule = RecipeRule("layers.1", ())
            >>> [rule.matches(name, "linear") for name in ("model.layers.1.fc", "layers.10.fc")]
            [True, False]
        """
        return kind == self.kind and matches(self.pattern, name)

    @property
    def key(self) -> str:
        """The pattern as a recipe writes it."""
        return (EMBEDDING if self.kind == "embedding" else "") + self.pattern

    def __str__(self) -> str:
        return f"{self.key} = {', '.join(map(str, self.schemes)) or SKIP}"


@dataclass(frozen=True)
class Recipe:
    """Rules for the layers of a model, and where it shall run.

    Attributes:
        rules: a rule that is exactly the name of a layer goes first, else the first one that matches.
        device: where the model shall run, or empty.
        dtype: of its activations, or empty.
        method: how weights are rounded, or empty.
        notes: what the source of the recipe asked for and is done in another way here.
    """

    rules: tuple[RecipeRule, ...]
    device: str = ""
    dtype: str = ""
    method: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, spec: RecipeLike | object) -> Recipe:
        """Read a recipe.

        Args:
            spec: a scheme (``"int4"``; ``"int4:g128, int8"`` takes the second where the first does not fit), a
                mapping of patterns to schemes or ``"skip"``, a file of TOML or JSON, or a TorchChat ``--quantize``
                JSON as a text, a mapping or a file. ``"embedding:*"`` is a pattern for embeddings.

        Returns:
            The recipe.

        Raises:
            ConfigError: a file that is not there or cannot be read, an unknown scheme or key.

        Example:
            >>> recipe = Recipe.parse({"lm_head": "skip", "embedding:*": "int8", "*": "int4"})
            >>> str(recipe.rule_for("model.lm_head", "linear"))
            'lm_head = skip'
            >>> recipe.rule_for("model.wte", "embedding").schemes[0].bits
            8
        """
        if isinstance(spec, Recipe):
            return spec
        if isinstance(spec, Scheme):
            return cls((RecipeRule("*", (spec,)),))
        if isinstance(spec, Mapping):
            return _of_mapping(spec, "recipe")
        if isinstance(spec, os.PathLike) or (isinstance(spec, str) and spec.strip().endswith(FILES)):
            return _of_file(Path(spec))
        if isinstance(spec, str) and spec.lstrip().startswith("{"):
            return _of_mapping(_json(spec, "recipe"), "recipe")
        if isinstance(spec, str):
            return cls((RecipeRule("*", _schemes(spec, "scheme")),))
        expected = "a scheme, a mapping, a file or JSON"
        raise ConfigError(describe("recipe", type(spec).__name__, expected, 'Write "int4" or {"*": "int4"}'))

    def rule_for(self, name: str, kind: Kind) -> RecipeRule | None:
        """The rule for one layer: the one that is exactly its name, else the first that matches; or none."""
        matching = [rule for rule in self.rules if rule.matches(name, kind)]
        return next((rule for rule in matching if rule.pattern == name), matching[0] if matching else None)

    def to_toml(self) -> str:
        """The recipe as TOML, which :meth:`parse` reads.

        Example:
            >>> print(Recipe.parse({"lm_head": "skip", "*": "int8"}).to_toml(), end="")
            [layers]
            "lm_head" = "skip"
            "*" = "int8"
        """
        named = {"device": self.device, "dtype": self.dtype, "method": self.method}
        head = [f"{key} = {json.dumps(value)}" for key, value in named.items() if value]
        schemes = [[str(scheme) for scheme in rule.schemes] or [SKIP] for rule in self.rules]
        values = [each if len(each) > 1 else each[0] for each in schemes]
        rules = [f"{json.dumps(rule.key)} = {json.dumps(each)}" for rule, each in zip(self.rules, values, strict=True)]
        return "\n".join([*head, *([""] if head else []), "[layers]", *rules, ""])


RecipeLike: TypeAlias = "Recipe | Scheme | str | os.PathLike[str] | Mapping[str, Any]"


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is a name or a part of it between dots; ``*`` and ``?`` as in the names of files.

    Example:
        >>> matches("lm_head", "model.lm_head"), matches("head", "model.lm_head"), matches("*head", "model.lm_head")
        (True, False, True)
    """
    return fnmatchcase(f".{name}.", f"*.{pattern}.*")


def _of_file(path: Path) -> Recipe:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(describe("recipe", f"{path} ({error})", "a file of TOML or JSON", "Check it")) from error
    if path.suffix == ".json":
        return _of_mapping(_json(text, str(path)), str(path))
    try:
        return _of_mapping(tomllib.loads(text), str(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(describe(str(path), f"no TOML ({error})", '[layers] and "*" = "int4"', _CHECK)) from error


def _json(text: str, where: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(describe(where, f"no JSON ({error})", '{"*": "int4"}', _CHECK)) from error
    if not isinstance(data, dict):
        raise ConfigError(describe(where, type(data).__name__, "an object of patterns and schemes", _WRITE))
    return data


def _of_mapping(spec: Mapping[str, Any], where: str) -> Recipe:
    """One of three forms: TorchChat's steps, ``layers`` with what belongs to it, or the layers alone."""
    if not spec:
        raise ConfigError(describe(where, "no rule", "at least one pattern with a scheme", _WRITE))
    if is_torchchat(spec):
        return _of_steps(steps(spec))
    if "layers" not in spec or isinstance(spec["layers"], str):
        return Recipe(tuple(_rule(key, value, where) for key, value in spec.items()))
    if unknown := sorted(set(spec) - set(KEYS)):
        expected = f"keys among {', '.join(KEYS)}"
        do = "Write patterns of layers below [layers]"
        raise ConfigError(describe(where, f"the key {unknown[0]!r}", expected, do))
    rules, *texts = (spec.get(key, "") for key in KEYS)
    if not isinstance(rules, Mapping) or not rules:
        raise ConfigError(describe(f"{where}: layers", repr(rules), "patterns and schemes", "Write some"))
    for key, value in zip(KEYS[1:], texts, strict=True):
        if not isinstance(value, str):
            raise ConfigError(describe(f"{where}: {key}", repr(value), "a string", "Write it in quotes"))
    return Recipe(tuple(_rule(key, value, where) for key, value in rules.items()), *texts)


def _rule(key: object, value: object, where: str) -> RecipeRule:
    if not isinstance(key, str) or not key.removeprefix(EMBEDDING):
        do = "Write a pattern before the equals sign"
        raise ConfigError(describe(where, f"the pattern {key!r}", "the name of a layer, or '*'", do))
    kind: Kind = "embedding" if key.startswith(EMBEDDING) else "linear"
    return RecipeRule(key.removeprefix(EMBEDDING), _schemes(value, f"{where}: {key}"), kind)


def _schemes(value: object, where: str) -> tuple[Scheme, ...]:
    """One scheme, several in order of preference, or none for ``"skip"``."""
    if value is None or value == SKIP:
        return ()
    if isinstance(value, Scheme):
        return (value,)
    parts: Sequence[object] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    if not parts:
        expected = 'a scheme such as "int4", a list of them, or "skip"'
        raise ConfigError(describe(where, repr(value), expected, 'Write "int4", or "skip" to leave the layer as it is'))
    return tuple(each if isinstance(each, Scheme) else Scheme.parse(str(each).strip()) for each in parts)


def _of_steps(result: Sequence[TorchChatStep]) -> Recipe:
    """The recipe that TorchChat's steps are: a layer that one step took is not seen by those after it."""
    taking = [each for each in result if each.pattern]
    rules = [RecipeRule(each.pattern, (each.scheme,) if each.scheme else (), each.kind) for each in taking]
    last = {name: value for each in result for name in KEYS[1:] if (value := getattr(each, name))}
    return Recipe(tuple(rules), **last, notes=tuple(note for each in result for note in each.notes))
