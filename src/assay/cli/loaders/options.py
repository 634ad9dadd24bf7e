"""The options of ``assay evaluate``: from the command line, and the same from a TOML file. Needs no torch."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from assay.errors import ConfigError, StateError, describe


@dataclass(frozen=True)
class Options:
    """What was asked for; what is None is left to `assay.evaluate`.

    Each field is an option of the command line and, with dashes, a key of the file. docs/command_line.md says what they
    do.
    """

    model: str = ""
    data: str = ""
    metrics: tuple[str, ...] = ()
    num_classes: int | None = None
    num_labels: int | None = None
    logits: bool | None = None
    task: str = ""
    window: int | None = None
    stride: int | None = None
    versus: tuple[str, ...] = ()
    factory: str = ""
    trust: bool = False
    device: str = "auto"
    precision: str = ""
    compile: bool = False
    batch_size: int | None = None
    workers: int = 0
    shards: bool | None = None
    inputs: str = ""
    target: str = ""
    preds: str = ""
    weights: str = ""
    ids: str = ""
    features: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    image_size: int = 0
    image_resize: int = 0
    image_mode: str = "RGB"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    slice: tuple[str, ...] = ()
    min_slice: int | None = None
    level: float | None = None
    replicates: int | None = None
    samples: bool | None = None
    details: bool | None = None
    out: Path | None = None
    resume: Path | None = None
    run_id: str | None = None
    checkpoint_s: float | None = None
    rank_timeout_s: float | None = None
    on_error: str = "raise"
    seed: int = 0
    title: str = ""
    json: bool = False
    verbose: bool = False

    @property
    def shared(self) -> dict[str, Any]:
        """The arguments that every metric gets that has them."""
        given = {"num_classes": self.num_classes, "num_labels": self.num_labels, "logits": self.logits}
        return {name: value for name, value in given.items() if value is not None}


TASKS = ("", "lm")


def settled(given: Mapping[str, Any], config: Path | None = None) -> Options:
    """The options of a file, and over them those of the command line.

    Args:
        given: what was said on the command line, by the names of the fields; None and empty lists for nothing.
        config: a TOML file with the same options.

    Raises:
        ConfigError: a key is unknown, a value is of the wrong kind, or model, data or metrics are named nowhere.
        StateError: the file is not TOML.
        OSError: it cannot be read.

    Example:
        >>> settled({"model": "m:net", "data": "x.csv", "metrics": ["accuracy"], "classes": "cat,dog"}).classes
        ('cat', 'dog')
    """
    told = {} if config is None else read_config(config)
    said = {name: value for name, value in given.items() if value is not None and value != []}
    told |= {name: _kept(f"--{name.replace('_', '-')}", name, value) for name, value in said.items()}
    options = Options(**told)
    if not 0 <= options.seed < 2**63:
        raise ConfigError(describe("--seed", str(options.seed), "a whole number from 0 to 2^63 - 1", "Write --seed 0"))
    if options.task not in TASKS:
        expected = '"lm" for the perplexity of a text, or nothing'
        raise ConfigError(describe("--task", repr(options.task), expected, "Correct it, or name --metrics"))
    if not options.task and (options.window or options.stride):
        got = "--window or --stride without a text"
        raise ConfigError(describe("--task", got, '"lm"', "Add --task lm, or leave them out"))
    for name, do in (("model", "MODEL"), ("data", "--data"), ("metrics", "--metrics")):
        if not getattr(options, name) and not (name == "metrics" and options.task):
            raise ConfigError(describe(do, "none", f"{_NAMED[name]}", "Name it, or write it into a --config file"))
    return options


_NAMED = {
    "model": "package.module:factory, a file or a folder",
    "data": "package.module:function, a file or a folder",
    "metrics": "one or more, such as accuracy:num_classes=10",
}


def read_config(path: Path) -> dict[str, Any]:
    """The options in a TOML file.

    Paths in it are seen from its own folder.

    Raises:
        StateError: it is not TOML.
        ConfigError: a key is unknown, or a value is of the wrong kind.
        OSError: it cannot be read.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StateError(
            describe(str(path), f"a file that is not TOML: {error}", "TOML", "Check the line and column named")
        ) from error
    known = {field.name.replace("_", "-"): field.name for field in fields(Options)}
    found: dict[str, Any] = {}
    for key, value in data.items():
        if key not in known:
            raise ConfigError(
                describe(str(path), f"the key {key!r}", _nearest(key, list(known)), "Rename the key or remove it")
            )
        found[known[key]] = _kept(f"{path}: {key}", known[key], value)
    return {name: _placed(name, value, path.parent) for name, value in found.items()}


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), known, n=1)
    return repr(near[0]) if near else f"one of {', '.join(known)}"


_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": ("a text", (str,)),
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "bool": ("true or false", (bool,)),
    "Path": ("a path", (str, Path)),
    "tuple[str, ...]": ("a list of texts", (list, tuple)),
    "tuple[float, ...]": ("a list of numbers", (list, tuple)),
}
_MAKES: dict[str, Any] = {"float": float, "Path": Path, "tuple[str, ...]": tuple}


def _kept(where: str, name: str, value: Any) -> Any:
    """A value as the field of `Options` holds it."""
    kind = str(Options.__annotations__[name]).removesuffix(" | None")
    expected, types = _KINDS[kind]
    value = _written(name, value)
    is_of_kind: bool = isinstance(value, types)
    if not is_of_kind or (isinstance(value, bool) and bool not in types):
        raise ConfigError(describe(where, repr(value), expected, f"Write {expected} there"))
    if kind == "tuple[str, ...]" and not all(isinstance(each, str) for each in value):
        raise ConfigError(describe(where, repr(value), expected, f"Write {expected} there"))
    if kind == "tuple[float, ...]":
        return tuple(_number(where, each) for each in value)
    return _MAKES[kind](value) if kind in _MAKES else value


_LISTS = ("features", "text", "classes", "mean", "std")


def _written(name: str, value: Any) -> Any:
    """A value as it would stand on the command line: tables and lists as texts, texts with commas as lists."""
    if name == "metrics" and isinstance(value, dict):
        return [f"{key}={each}" if isinstance(each, str) else each for key, each in value.items()]
    if name == "versus" and isinstance(value, list):
        return [_form(each) if isinstance(each, dict) else each for each in value]
    if name in ("inputs", "ids", "target") and isinstance(value, list) and all(isinstance(e, str) for e in value):
        return ",".join(value)
    if name in _LISTS and isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return value


def _form(table: dict[str, Any]) -> str:
    named = [str(table["model"])] if "model" in table else []
    rest = [f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in table.items()]
    return ",".join(named + [each for each in rest if not each.startswith("model=")])


def _number(where: str, value: Any) -> float:
    try:
        return float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError) as error:
        raise ConfigError(
            describe(where, repr(value), "numbers", "Write numbers with commas, as in 0.5,0.5,0.5")
        ) from error


def _placed(name: str, value: Any, folder: Path) -> Any:
    """A value in which paths are seen from the folder of the file."""
    if name in ("out", "resume"):
        if "://" in str(value):
            do = "Write there, and copy it afterwards"
            raise ConfigError(describe(name, value, "a path on this machine", do))
        return folder / value
    if name in ("model", "data"):
        return _if_there(value, folder)
    if name == "versus":
        return tuple(",".join([_if_there(head, folder), *rest]) for head, *rest in (e.split(",") for e in value))
    return value


def _if_there(named: str, folder: Path) -> str:
    return os.fspath(folder / named) if named and (folder / named).exists() else named
