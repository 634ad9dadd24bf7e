"""``assay evaluate``: a model and data that are named, metrics by name, a report in a folder."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import assay.metrics
from assay.errors import ConfigError, StateError, describe
from assay.evaluate import evaluate
from assay.evaluate.ranks import process_group
from assay.metrics.base import Metric

WEIGHTS = (".pt", ".pth", ".safetensors")


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    data: str
    metrics: tuple[str, ...]
    factory: str = ""
    device: str = "auto"
    batch_size: int = 64
    workers: int = 0
    inputs: str = ""
    target: str = ""
    preds: str = ""
    weights: str = ""
    ids: str = ""
    precision: str = ""
    compile: bool = False
    shards: bool | None = None
    out: Path | None = None
    resume: Path | None = None
    on_error: str = "raise"
    seed: int = 0
    title: str = ""
    as_json: bool = False


def run(named: str, options: Options) -> None:
    """Evaluate, print the report, and write it where a folder was named; of several processes the first one does.

    Args:
        named: the model.
        options: everything else.

    Raises:
        ConfigError: a model, data or a metric that cannot be found or made.
    """
    sys.path.insert(0, os.getcwd())  # a command of its own has only its folder there
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    with process_group():  # samplers ask for it
        report = evaluate(
            model(named, options.factory, options.seed),
            made(options.data, "--data", options.seed),
            metrics(options.metrics),
            device=options.device,
            inputs=part(options.inputs, several=True),
            target=part(options.target),
            preds=part(options.preds),
            weights=part(options.weights),
            ids=part(options.ids),
            precision=options.precision or None,
            compile=options.compile,
            batch_size=options.batch_size,
            num_workers=options.workers,
            shards=options.shards,
            resume=options.resume,
            on_error=options.on_error,
            seed=options.seed,
            title=options.title or Path(named).name,
        )
    if os.environ.get("RANK", "0") != "0":
        return
    if options.as_json:
        print(report.to_json(), end="")
    else:
        report.show()
    if options.out is not None:
        for path in (report.save(options.out / "report.json"), report.to_html(options.out / "report.html")):
            print(path, file=sys.stderr)


def model(named: str, factory: str, seed: int = 0) -> Callable[..., Any]:
    """The model that was named.

    Args:
        named: ``package.module:factory``, or a file of weights.
        factory: ``package.module:factory`` of the model that the weights are for.
        seed: of random numbers, so that all processes make the same model.

    Raises:
        ConfigError: it cannot be found or made, or is none.
    """
    if named.endswith(WEIGHTS):
        return _with_weights(Path(named), factory, seed)
    found = _found(named, "MODEL")
    is_factory = not isinstance(found, nn.Module) and callable(found)
    built = _called(found, named, seed) if is_factory else found
    if not callable(built):
        expected = "a module, or a function that makes one"
        raise ConfigError(describe(named, type(built).__name__, expected, "Name that instead"))
    return built  # type: ignore[no-any-return]


def _with_weights(path: Path, factory: str, seed: int) -> nn.Module:
    if not factory:
        do = "Name the function that makes the model with --factory package.module:function"
        raise ConfigError(describe("MODEL", f"weights in {path}", "a model to load them into", do))
    if not path.is_file():
        raise ConfigError(describe("MODEL", f"{path}, which is no file", "a file of weights", "Check the path"))
    net = made(factory, "--factory", seed)
    if not isinstance(net, nn.Module):
        raise ConfigError(describe(factory, type(net).__name__, "a torch.nn.Module", "Return the module"))
    weights = _weights(path)
    try:
        net.load_state_dict(weights)
    except RuntimeError as error:
        got = " ".join(str(error).split())
        do = f"Name the factory of the model that {path.name} was saved from"
        raise ConfigError(describe(str(path), got, f"the weights of {factory}", do)) from error
    return net


def _weights(path: Path) -> dict[str, Any]:
    """A state dictionary; never by unpickling anything but tensors."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        got = f"a file that does not hold weights ({type(error).__name__})"
        do = "Save model.state_dict(), mostly as .safetensors; whole models are not unpickled"
        raise StateError(describe(str(path), got, "tensors by name", do)) from error
    for key in ("state_dict", "model"):
        if isinstance(held, dict) and isinstance(held.get(key), dict):
            held = held[key]
    if not isinstance(held, dict):
        raise StateError(describe(str(path), type(held).__name__, "tensors by name", "Save model.state_dict()"))
    return held


def made(named: str, option: str, seed: int = 0) -> Any:
    """What a function that is named gives; an object that is no function is taken as it is."""
    found = _found(named, option)
    return _called(found, named, seed) if inspect.isroutine(found) or inspect.isclass(found) else found


def _found(named: str, option: str) -> Any:
    module, _, name = named.partition(":")
    if not module or not name:
        do = "Write package.module:function; a file module.py in this folder is the module 'module'"
        raise ConfigError(describe(option, repr(named), "package.module:function", do))
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise ConfigError(
            describe(option, f"{named}, but no module {error.name}", "one that is there", _PATH)
        ) from error
    for each in name.split("."):
        if not hasattr(found, each):
            raise ConfigError(describe(option, f"{named}, but {module} has no {name}", "a name in it", "Correct it"))
        found = getattr(found, each)
    return found


_PATH = "Check the spelling, and run it in the folder that the module is in"


def _called(function: Any, named: str, seed: int) -> Any:
    needed = [each.name for each in _parameters(function) if each.default is each.empty and each.kind in _NEEDED]
    if needed:
        do = "Name a function without arguments that makes it"
        raise ConfigError(describe(named, f"a function that needs {', '.join(needed)}", "none", do))
    torch.manual_seed(seed)
    return function()


_NEEDED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def metrics(texts: Sequence[str]) -> dict[str, Metric]:
    """Metrics by name, each as ``[name=]metric[:argument=value,...]``.

    Example:
        >>> metrics(["top2=accuracy:num_classes=10,top_k=2"])["top2"].top_k
        2

    Raises:
        ConfigError: no such metric, no such argument, or one name twice.
    """
    if not texts:
        raise ConfigError(describe("--metrics", "none", "one or more", "Write --metrics accuracy:num_classes=10"))
    found: dict[str, Metric] = {}
    for text in texts:
        head, _, arguments = text.partition(":")
        label, _, kind = head.rpartition("=")
        metric = _metric(kind, arguments)
        name = label or kind
        if name in found:
            do = "Give names, as in a=accuracy:num_classes=10"
            raise ConfigError(describe("--metrics", f"{name} twice", "names that differ", do))
        found[name] = metric
    return found


def _metric(kind: str, arguments: str) -> Metric:
    known = {name.lower(): name for name in assay.metrics.__all__ if name != Metric.__name__}
    wanted = kind.lower().replace("_", "").replace("-", "")
    wanted = next((name for name in (wanted, f"{wanted}score", f"{wanted}error") if name in known), wanted)
    if wanted not in known:
        names = ", ".join(sorted(known))
        raise ConfigError(describe("--metrics", repr(kind), f"one of {names}", "Check the spelling"))
    fields = dict(_argument(each) for each in arguments.split(",") if each)
    cls: Callable[..., Metric] = getattr(assay.metrics, known[wanted])
    try:
        return cls(**fields)
    except TypeError as error:
        allowed = ", ".join(inspect.signature(cls).parameters) or "none"
        got = f"{', '.join(fields) or 'no arguments'} ({error})"
        raise ConfigError(describe(f"--metrics {kind}", got, f"arguments among {allowed}", "Correct them")) from error


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        do = "Write accuracy:num_classes=10,average=macro"
        raise ConfigError(describe("--metrics", repr(text), "argument=value", do))
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name, words[value.lower()]
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def part(text: str, several: bool = False) -> Any:
    """A part of a batch: a position, a name, several of them, or a function that is named.

    Example:
        >>> part("1"), part("labels"), part("ids,mask", several=True), part("")
        (1, 'labels', ['ids', 'mask'], None)
    """
    if not text:
        return None
    if ":" in text:
        return _found(text, "a part of the batch")
    if several and "," in text:
        return [_position(each) for each in text.split(",")]
    return _position(text)


def _position(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text
