"""``--variant``: another variant of the model, and what is different about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.cli.loaders.quantized_models import is_scheme
from assay.cli.options.measurement import EvaluateCommand
from assay.errors import ConfigError, describe

KEYS = ("model", "precision", "device", "compile", "model-factory", "preds")


@dataclass(frozen=True)
class VariantRequest:
    """A variant named on the command line.

    Attributes:
        options: its options.
        scheme: what it is quantized by; empty for none.
    """

    options: EvaluateCommand
    scheme: str = ""


def parse_variants(options: EvaluateCommand) -> dict[str, VariantRequest]:
    """The variants by their names, the model itself first.

    ``--variant net.pt2`` is another model, ``--variant precision=bfloat16`` the same one in another precision,
    ``--variant int4`` the same one quantized, and ``--variant net.pt2,device=cpu`` both of two.

    Example:
        >>> both = parse_variants(EvaluateCommand(model="nets:net", variant=("net.pt2", "precision=bfloat16")))
        >>> list(both), both["net bfloat16"].options.precision
        (['net', 'net.pt2', 'net bfloat16'], 'bfloat16')
    """
    requests = [VariantRequest(options), *(_parse(written, options) for written in options.variant)]
    if len(set(requests)) < len(requests):
        do = "Say what is different about it, as in --variant precision=bfloat16"
        raise ConfigError(describe("--variant", f"{', '.join(options.variant)}", "variants that differ", do))
    return dict(zip(_names(requests), requests, strict=True))


def _parse(written: str, options: EvaluateCommand) -> VariantRequest:
    changes: dict[str, Any] = {}
    scheme = ""
    for part in written.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals and is_scheme(key):
            scheme = key
        elif not equals:
            changes["model"] = key
        elif key not in KEYS:
            raise ConfigError(
                describe(
                    "--variant", repr(part), f"MODEL, or one of {', '.join(KEYS)}", "Write --variant precision=bfloat16"
                )
            )
        else:
            changes[key.replace("-", "_")] = _truth(value) if key == "compile" else value
    return VariantRequest(replace(options, **changes), scheme)


def _truth(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ConfigError(
            describe("--variant", f"compile={value}", "compile=true or compile=false", "Write --variant compile=true")
        )
    return value.lower() == "true"


def _names(requests: Sequence[VariantRequest]) -> list[str]:
    """Short names where they tell the variants apart."""
    for name in (_short, _long):
        names = [name(each, requests[0].options) for each in requests]
        if len(set(names)) == len(names):
            return names
    return [f"{k} {name}" for k, name in enumerate(names)]


def _short(request: VariantRequest, first: EvaluateCommand) -> str:
    model = request.options.model.rstrip("/").rpartition("/")[2]
    return " ".join([model.rpartition(":")[2], *_differences(request, first)])


def _long(request: VariantRequest, first: EvaluateCommand) -> str:
    return " ".join([request.options.model, *_differences(request, first)])


def _differences(request: VariantRequest, first: EvaluateCommand) -> list[str]:
    options = request.options
    parts = [request.scheme] * bool(request.scheme)
    parts += [options.precision or "full precision"] * (options.precision != first.precision)
    parts += [options.device] * (options.device != first.device)
    parts += ["compiled" if options.compile else "not compiled"] * (options.compile != first.compile)
    parts += [f"factory {options.model_factory}"] * (options.model_factory != first.model_factory)
    return parts + [f"preds {options.preds}"] * (options.preds != first.preds)
