"""What a device lacks and does, operator by operator: a look-up that needs no device.

Two sources: what the installed torch says of itself (:mod:`.overloads`), and dated facts from its sources that are
data, one file a device, ``devices/known/operators_*.toml``, each with the place where it can be read. What
several devices do, and what only the C++ of torch says, stands in ``devices/known/operators.toml``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Literal

from assay.devices.capabilities import fact_file
from assay.devices.kinds import KINDS
from assay.devices.operators.overloads import Overload, overloads
from assay.errors import ConfigError, describe

MANY = 300  # kernels of a device in torch's own list: then it lists all of them
DeviceCheck = Literal["none", "all", "iterator", "placeholder", "index", "where", "fill", "put"]
"""How torch looks at the devices of an operator's tensors.

``all``: before the kernel, by the wrapper that torchgen writes. ``iterator``: in TensorIterator, which lets one
0-dimensional CPU tensor mix. ``where``: as that, with two of them. ``index``: indices may be on the CPU. ``put``:
indices may be anywhere, and numbers, too. ``fill``: a mask must be where the tensor is. ``placeholder``: inside the
kernel, as on MPS.
"""


@dataclass(frozen=True)
class Copies:
    """Whether a copy synchronizes with the device, and whether ``non_blocking=True`` can corrupt it."""

    waits: bool  # it synchronizes with the device
    corrupts: bool = False  # the values may be read before they are there, or after they have been overwritten
    why: str = ""  # the reason, or empty
    source: str = ""  # where it can be read


@dataclass(frozen=True)
class Nondeterminism:
    """One way in which an operator may give other bits from run to run."""

    named: str  # the name by which torch's error calls it, such as ``"cumsum_cuda_kernel"``
    when: str  # the condition on its arguments, for :func:`assay.devices.operators.conditions.applies`
    # what it does under ``torch.use_deterministic_algorithms(True)``: it ``"raises"``, ``"switches"`` to a
    # deterministic way, or ``"ignores"`` it
    deterministic: str
    source: str = ""  # where it can be read
    why: str = ""  # the reason, or what is not certain about it, or empty
    since: str = ""  # the first version of torch for which this holds, or empty


@dataclass(frozen=True)
class OperatorRule:
    """What one overload of an operator does on a device."""

    name: str  # torch's name, such as ``"aten::index.Tensor"``
    known: bool = True  # torch's own operator; of others nothing is known, and all else here is a guess in their favour
    available: bool = True  # the device can run it: it has a kernel, or it is made of other operators
    available_sparse: bool = True  # the same for tensors of a sparse layout
    on_cpu: bool = False  # torch itself quietly runs it on the CPU there
    checks_devices: bool = False  # torch checks, before the kernel, that all tensors are on one device
    iterates: bool = False  # a ``TensorIterator`` operator: 0-dimensional CPU tensors may mix with those of the device
    waits: str = ""  # when and why it synchronizes with the device, as ``"condition: reason"``; empty if it never does
    nondeterminism: tuple[Nondeterminism, ...] = ()  # the ways in which its result may differ from run to run
    # the way in which it looks at the devices of its tensors, where that is one of its own
    check: DeviceCheck | None = None
    # dtypes for which the device has no kernel of this operator, though it has the dtype
    missing_dtypes: tuple[str, ...] = ()
    dtype_error: str = ""  # the text of torch's error for these, with a field ``dtype``
    refused_when: str = ""  # the condition under which the device has no kernel for a call, or empty
    refusal: str = ""  # the text of torch's error then
    # dtypes that the device takes and the CPU's kernel, which is borrowed, does not: computed in float64
    wider: tuple[str, ...] = ()
    # the overload that an error names, which is the one that was looked for in vain: an operator that calls another
    # stumbles over that one (``"aten::heaviside.out"`` for ``"aten::heaviside"``)
    named: str = ""

    @property
    def waits_when(self) -> str:
        """The condition under which it synchronizes, for :func:`assay.devices.operators.conditions.applies`."""
        return self.waits.partition(": ")[0]

    @property
    def why_waits(self) -> str:
        """Why it synchronizes with the device."""
        return self.waits.partition(": ")[2]


@dataclass(frozen=True, eq=False)
class Rules:
    """What one kind of device lacks and does."""

    device: str  # a kind of device, such as ``"mps"``
    torch: str  # the version of torch from whose sources the facts were read; the operators are those installed
    missing_dtypes: dict[str, str]  # dtypes that the device lacks, with the text of torch's ``TypeError``
    # torch's messages there, with fields to be filled in: ``operator`` (it is missing), ``fallback`` (a warning),
    # ``mixed`` (operands on different devices, inside a kernel), ``deterministic``
    texts: dict[str, str]
    copies: dict[str, Copies]  # by way (``"to device"``, ``"to host"``, with ``", pinned"`` and ``", non_blocking"``)
    pinning: str  # torch's error for ``x.pin_memory()`` there, or empty where it works
    # the overloads with a kernel, where torch's native_functions.yaml does not list those of the device; else None
    listed: frozenset[str] | None
    quietly: frozenset[str]  # the overloads that torch itself runs on the CPU there
    assumed: str  # what is taken over from another device for want of a source, or empty
    facts: dict[str, Any]
    # operators that the device has, but had not in an older release that is asked for
    lacked: frozenset[str] = frozenset()

    def operator(self, name: str) -> OperatorRule:
        """The rule of one overload, by torch's name: ``"aten::index.Tensor"``, or ``"aten::mm"`` for the default one.

        Example:
            >>> rules("mps").operator("aten::frexp.Tensor_out").available
            False
            >>> rules("cuda").operator("aten::nonzero").waits_when
            'always'
        """
        rule = _operator(self.device, name)
        return replace(rule, available=False, available_sparse=False, on_cpu=False) if name in self.lacked else rule

    def missing(self, name: str) -> str:
        """The text of torch's error for an operator that the device lacks."""
        import torch

        commit = torch.version.git_version
        return self.texts["operator"].format(operator=self.operator(name).named or name, commit=commit)

    @cached_property
    def kernels(self) -> frozenset[str]:
        """All overloads for which the device has a kernel of its own, explicit or structured."""
        return frozenset(overload.name for overload in overloads().values() if self.has_kernel(overload))

    @cached_property
    def on_cpu(self) -> frozenset[str]:
        """All overloads that torch itself quietly runs on the CPU there."""
        return frozenset(overload.name for overload in overloads().values() if self.runs_on_cpu(overload))

    @property
    def falls_back(self) -> bool:
        """Whether everything without a kernel runs on the CPU there, and the warning `texts["fallback"]` says so."""
        variable = self.facts.get("fallback", {}).get("variable", "")
        return "fallback" in self.texts and (not variable or os.environ.get(variable) == "1")

    @property
    def quiet_fallback(self) -> bool:
        """Whether everything without a kernel runs on the CPU there, and no warning says so."""
        fallback = self.facts.get("fallback")
        return fallback is not None and "text" not in fallback

    def runs_on_cpu(self, overload: Overload) -> bool:
        return not {overload.name, overload.delegate}.isdisjoint(self.quietly)

    def has_kernel(self, overload: Overload) -> bool:
        absent = self.facts.get("missing", {}).get("operators", ())
        short = overload.name.removeprefix("aten::").partition(".")[0]
        if self.runs_on_cpu(overload) or any(fnmatchcase(short, pattern) for pattern in absent):
            return False
        own = KINDS[self.device].key in overload.kernels
        return own or (self.listed is not None and not self.listed.isdisjoint({overload.name, overload.delegate}))

    def has_sparse_kernel(self, overload: Overload) -> bool:
        return KINDS[self.device].key in overload.sparse or (bool(self.assumed) and "CUDA" in overload.sparse)


@cache
def rules(device: str) -> Rules:
    """What a kind of device lacks and does.

    Args:
        device: a kind of device, such as ``"mps"``; an index is ignored.

    Raises:
        ConfigError: nothing is known of the device.
        AssayError: the installed torch does not carry the list of its operators.
    """
    device = device.partition(":")[0]
    if device not in KINDS:
        raise ConfigError(describe("device", repr(device), f"one of {', '.join(KINDS)}", "Name one of these"))
    facts = _of_kind(device)
    fallback = facts.get("fallback", {})
    said = {"fallback": fallback["text"]} if "text" in fallback else {}
    texts = {name: fact["text"].replace("{backend}", KINDS[device].key) for name, fact in facts["texts"].items()}
    return Rules(
        device=device,
        torch=facts["torch"],
        missing_dtypes={name: fact["error"] for name, fact in facts.get("missing_dtypes", {}).items()},
        texts=texts | said,
        copies={name: Copies(**fact) for name, fact in facts["copies"].items()},
        listed=_listed(device),
        quietly=_quietly(device, facts),
        pinning=facts.get("pinning", {}).get("error", ""),
        assumed=facts.get("assumed", ""),
        facts=facts,
    )


@cache
def _of_kind(device: str) -> dict[str, Any]:
    """The facts of a kind of device: its own, those of several kinds, and those taken over for want of a source."""
    every, own = fact_file("operators"), fact_file(f"operators_{device}")
    taken = own.get("taken_over", {})
    waits_as = taken.get("waits", device)
    return own | {
        "texts": every["texts"] | own.get("texts", {}),
        "copies": (_of_kind(taken["copies"])["copies"] if "copies" in taken else {}) | _by_way(own.get("copies", ())),
        "waits": [{"when": "always", **fact} for fact in every["waits"] if waits_as in fact["devices"]],
        "nondeterministic": [{"when": "always", **fact} for fact in _one_by_one(own, "nondeterministic", "named")],
        "dtypes": list(_one_by_one(own, "dtypes", "error")),
    }


def _by_way(copies: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        way: {key: value for key, value in fact.items() if key != "ways"} for fact in copies for way in fact["ways"]
    }


def _one_by_one(facts: dict[str, Any], topic: str, text: str) -> Iterator[dict[str, Any]]:
    """The facts of a topic; one with a table of texts, and the operators of each, is as many facts."""
    for fact in facts.get(topic, ()):
        if isinstance(fact[text], dict):
            yield from ({**fact, text: each, "operators": operators} for each, operators in fact[text].items())
        else:
            yield fact


def _listed(device: str) -> frozenset[str] | None:
    """The overloads of a generated list, in which a device has kernels that torch's own list does not name."""
    file, key = KINDS[device].kernels, KINDS[device].key
    if not file or sum(key in each.kernels for each in overloads().values()) > MANY:
        return None
    return _of_release(file, "kernels")


def _quietly(device: str, facts: dict[str, Any]) -> frozenset[str]:
    """The overloads that torch runs on the CPU there: those of a generated list, or of the facts.

    What the facts say of releases without a kernel does not count where the installed one has it.
    """
    file = KINDS[device].kernels
    if file and "on_cpu" in fact_file(file):
        listed = _of_release(file, "on_cpu")
        return frozenset(name for name in listed if not _is_listed(device, name.removeprefix("aten::")))
    table = facts.get("on_cpu", {})
    lacking = (name for name, worker in table.get("without_kernel", {}).items() if not _is_listed(device, worker))
    return frozenset(f"aten::{name}" for name in (*table.get("operators", ()), *lacking))


def _is_listed(device: str, name: str) -> bool:
    overload = overloads().get(f"aten::{name}")
    return overload is not None and KINDS[device].key in overload.kernels


def _of_release(file: str, topic: str) -> frozenset[str]:
    """The operators of the installed release in a generated list; of the nearest release where that has none."""
    tables = fact_file(file)[topic]
    known = {release for table in tables for release in table["releases"]}
    release = nearest(version("torch"), known)
    listed = " ".join(table["operators"] for table in tables if release in table["releases"])
    return frozenset(f"aten::{name}" for name in listed.split())


def nearest(installed: str, known: Iterable[str]) -> str:
    """The newest of some releases that is not newer than the installed one; else the oldest.

    Example:
        >>> nearest("2.13.0+cpu", ["2.6", "2.12", "2.14"]), nearest("2.5.1", ["2.6", "2.12"])
        ('2.12', '2.6')
    """
    in_order = sorted(known, key=_numbers)
    return max((each for each in in_order if _numbers(each) <= _numbers(installed)), key=_numbers, default=in_order[0])


def _numbers(release: str) -> tuple[int, int]:
    major, minor, *_ = release.split(".")
    return int(major), int(re.match(r"\d*", minor)[0] or 0)  # type: ignore[index]


@cache
def _operator(device: str, name: str) -> OperatorRule:
    rule, overload = rules(device), overloads().get(name)
    waits = next(_facts(rule, "waits", name), None)
    dtypes: dict[str, Any] = next(_facts(rule, "dtypes", name), {"lacks": (), "error": ""})
    refused: dict[str, Any] = next(_facts(rule, "refused", name), {"when": "", "error": ""})
    common = OperatorRule(
        name,
        known=overload is not None,
        waits=f"{waits['when']}: {waits['why']}" if waits else "",
        nondeterminism=tuple(Nondeterminism(**fact) for fact in _facts(rule, "nondeterministic", name)),
        check=next((fact["check"] for fact in _facts_of(fact_file("operators")["checks"], name)), None),
        missing_dtypes=tuple(dtypes["lacks"]),
        dtype_error=dtypes["error"],
        refused_when=refused["when"],
        refusal=refused["error"],
        wider=tuple(next((fact["dtypes"] for fact in _facts_of(fact_file("operators")["wider"], name)), ())),
        named=name,
    )
    if overload is None:
        lacked = name.partition("::")[0] in rule.facts.get("missing", {}).get("libraries", ())
        return replace(common, available=not lacked)
    on_cpu, own = rule.runs_on_cpu(overload), rule.has_kernel(overload)
    lacks = "" if own or on_cpu else _stumbles(device, overload)
    if lacks and rule.quiet_fallback:
        lacks, on_cpu = "", True
    return replace(
        common,
        available=not lacks,
        available_sparse=rule.has_sparse_kernel(overload) or overload.composite or on_cpu,
        on_cpu=on_cpu,
        checks_devices=own and overload.checks and rule.facts["checks_devices"],
        iterates=overload.iterates,
        named=lacks or name,
    )


def _stumbles(device: str, overload: Overload) -> str:
    """The overload that torch looks for in vain on a device without a kernel for this one, or empty."""
    if not overload.composite:
        return overload.delegate or overload.name
    called = fact_file("operators")["calls"].get(overload.name.removeprefix("aten::"))
    return "" if called is None or _operator(device, f"aten::{called}").available else f"aten::{called}"


def _facts(rule: Rules, topic: str, name: str) -> Iterator[dict[str, Any]]:
    """The facts of a topic that hold of an operator in the installed release of torch."""
    for fact in _facts_of(rule.facts.get(topic, ()), name):
        if holds(fact, version("torch")):
            yield {key: value for key, value in fact.items() if key != "until"}


def holds(fact: dict[str, Any], release: str) -> bool:
    """Whether a fact is one of a release: from ``since`` on, and before ``until``.

    Example:
        >>> holds({"since": "2.14"}, "2.13.0+cpu"), holds({"until": "2.15"}, "2.14.1")
        (False, True)
    """
    since, until = fact.get("since", "0.0"), fact.get("until", "")
    return _numbers(since) <= _numbers(release) and (not until or _numbers(release) < _numbers(until))


def _facts_of(facts: Iterable[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """The facts that name the overload, or the operator for all its overloads."""
    short = name.removeprefix("aten::")
    for fact in facts:
        if short in fact["operators"] or short.partition(".")[0] in fact["operators"]:
            yield {key: value for key, value in fact.items() if key != "operators"}
