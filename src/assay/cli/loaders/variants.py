"""``--versus``: another form of the model, and what is different about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.cli.loaders.options import Options
from assay.cli.loaders.quantized_models import is_scheme
from assay.errors import ConfigError, describe

KEYS = ("precision", "device", "compile", "factory", "preds")


@dataclass(frozen=True)
class VariantRequest:
    """A form that was asked for.

    Attributes:
        options: its options.
        scheme: what it is quantized by; empty for as it is.
    """

    options: Options
    scheme: str = ""


def parse_variants(options: Options) -> dict[str, VariantRequest]:
    """The forms by their names, the model itself first.

    ``--versus net.pt2`` is another model, ``--versus precision=bfloat16`` the same one in another precision,
    ``--versus int4`` the same one quantized, and ``--versus net.pt2,device=cpu`` both of two.

    Raises:
        ConfigError: an option is unknown, or two forms are the same.

    Example:
        >>> both = parse_variants(Options(model="nets:net", versus=("net.pt2", "precision=bfloat16")))
        >>> list(both), both["net bfloat16"].options.precision
        (['net', 'net.pt2', 'net bfloat16'], 'bfloat16')
    """
    asked = [VariantRequest(options), *(_form(written, options) for written in options.versus)]
    if len(set(asked)) < len(asked):
        do = "Say what is different about it, as in --versus precision=bfloat16"
        raise ConfigError(describe("--versus", f"{', '.join(options.versus)}", "forms that differ", do))
    return dict(zip(_names(asked), asked, strict=True))


def _form(written: str, options: Options) -> VariantRequest:
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
                    "--versus", repr(part), f"MODEL, or one of {', '.join(KEYS)}", "Write --versus precision=bfloat16"
                )
            )
        else:
            changes[key] = _truth(value) if key == "compile" else value
    return VariantRequest(replace(options, **changes), scheme)


def _truth(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ConfigError(
            describe("--versus", f"compile={value}", "compile=true or compile=false", "Write --versus compile=true")
        )
    return value.lower() == "true"


def _names(asked: Sequence[VariantRequest]) -> list[str]:
    """Short names where they tell the forms apart."""
    for name in (_short, _long):
        names = [name(each, asked[0].options) for each in asked]
        if len(set(names)) == len(names):
            return names
    return [f"{k} {name}" for k, name in enumerate(names)]


def _short(asked: VariantRequest, first: Options) -> str:
    model = asked.options.model.rstrip("/").rpartition("/")[2]
    return " ".join([model.rpartition(":")[2], *_different(asked, first)])


def _long(asked: VariantRequest, first: Options) -> str:
    return " ".join([asked.options.model, *_different(asked, first)])


def _different(asked: VariantRequest, first: Options) -> list[str]:
    options = asked.options
    told = [asked.scheme] * bool(asked.scheme)
    told += [options.precision or "full precision"] * (options.precision != first.precision)
    told += [options.device] * (options.device != first.device)
    told += ["compiled" if options.compile else "not compiled"] * (options.compile != first.compile)
    told += [f"factory {options.factory}"] * (options.factory != first.factory)
    return told + [f"preds {options.preds}"] * (options.preds != first.preds)
