"""What a meter counted, as named tensors and as a file: safetensors with a description in JSON, never pickle.

The tensors are named `<tally>.<field>`, and `<tally>.<field>.<column>` for samples. The description says which metrics
they belong to, by class name and fields, so that a file is enough to make the meter again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

import assay.metrics
from assay._atomic import Location, local_copy, location, write_whole
from assay.devices.placement import to_host
from assay.errors import AssayError, StateError, UnknownMetricError, describe
from assay.meter.checks.law_checks import READ_AGAIN, check_laws
from assay.meter.counting.tally_plan import TallyPlan
from assay.meter.options import RESERVED
from assay.metrics.base import Metric
from assay.tally.base import State, Tally
from assay.tally.conservation import HostCount
from assay.tally.stores.sample_store import SampleStore

SCHEMA = 1
ABOUT = "about"  # the name of the description among the tensors of a state dictionary
_KEY = "assay.meter"  # and among the metadata of a file
_CHECKSUM = "sha256"


@dataclasses.dataclass(frozen=True)
class MeterDescription:
    """What tensors mean: the metrics they were counted for, and of how many samples."""

    metrics: Mapping[str, Any]
    weighted: bool
    rows: int
    labels: Sequence[str] = ()

    @staticmethod
    def of(metrics: Mapping[str, Metric], weighted: bool, rows: int, labels: Sequence[str] = ()) -> MeterDescription:
        return MeterDescription({name: _plain(metric) for name, metric in metrics.items()}, weighted, rows, labels)

    def to_json(self) -> str:
        given = {name: value for name, value in vars(self).items() if name != "labels" or value}
        return json.dumps({"schema": SCHEMA, **given}, ensure_ascii=False)

    def same(self, other: MeterDescription) -> bool:
        """Whether both say the same, with the metrics in any order."""
        mine, theirs = (json.loads(json.dumps(each.metrics)) for each in (self, other))
        options, others = ((each.weighted, each.rows, tuple(each.labels)) for each in (self, other))
        return bool(mine == theirs) and options == others

    @staticmethod
    def from_json(text: str, where: str) -> MeterDescription:
        """Read a description.

        Raises:
            StateError: it is none, or one of another version.
        """
        try:
            fields = json.loads(text)
            schema = fields.pop("schema")
            if schema != SCHEMA:
                do = "Read it with the version of assay that wrote it"
                raise StateError(describe(where, f"a state of schema {schema}", f"schema {SCHEMA}", do))
            description = MeterDescription(**fields)
            if not (
                isinstance(description.metrics, dict)
                and isinstance(description.weighted, bool)
                and type(description.rows) is int
                and 0 <= description.rows < 1 << 63
                and all(isinstance(each, str) for each in description.labels)
            ):
                raise TypeError("a field of another type, or out of range")
            if RESERVED & set(description.metrics):
                raise TypeError(f"a metric named {min(RESERVED & set(description.metrics))}, as an option of Meter")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            got = f"a description that cannot be read ({error})"
            raise StateError(describe(where, got, "that of a meter", "Save the meter again")) from error
        return description

    def made(self, known: Iterable[type[Metric] | Metric], where: str) -> dict[str, Metric]:
        """The metrics.

        Raises:
            StateError: a class that is not known, or fields that it does not have.
        """
        known = tuple(known)
        if not self.metrics:
            raise StateError(describe(where, "no metric", "one or more", _AGAIN))
        own = _Known(
            {each.__name__: each for each in known if isinstance(each, type)},
            [each for each in known if isinstance(each, Metric)],
        )
        return {name: _metric(fields, own, where) for name, fields in self.metrics.items()}


@contextmanager
def as_file_error(where: str) -> Iterator[None]:
    """Turn every error inside, while a file becomes a meter, into a `StateError` that names the file."""
    try:
        yield
    except StateError:
        raise
    except (AssayError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise StateError(describe(where, f"what no meter holds ({reason})", "the counts of a meter", _AGAIN)) from error


def described(state: Mapping[str, Tensor], where: str) -> tuple[MeterDescription, dict[str, Tensor]]:
    """The description in a state dictionary, and its other tensors.

    Raises:
        StateError: they are missing, or one is not a tensor.
    """
    tensors = dict(state) if isinstance(state, Mapping) else {}
    others = sorted(str(name) for name, value in tensors.items() if not isinstance(value, Tensor))
    about = tensors.pop(ABOUT, None)
    if others or about is None or about.dtype != torch.uint8 or about.ndim != 1:
        got = f"no tensor under {', '.join(others)}" if others else f"no bytes under {ABOUT!r}"
        raise StateError(describe(where, got, "what Meter.state_dict gave", "Pass that of a meter, unchanged"))
    return MeterDescription.from_json(to_host(about).numpy().tobytes().decode(errors="replace"), where), tensors


SPARSE_ELEMENTS = 1 << 12
_PLACES, _COUNTS, _SHAPE = "/places", "/counts", "/shape"


def sparse(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of which large tables of few counts are replaced by the places and the counts; see `from_sparse`."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dtype != torch.int64 or tensor.numel() < SPARSE_ELEMENTS:
            found[name] = tensor
            continue
        flat = tensor.reshape(-1)
        places = flat.nonzero()[:, 0]
        if 4 * len(places) > len(flat):
            found[name] = tensor
            continue
        shape = torch.tensor(tensor.shape, dtype=torch.int64, device="cpu")
        found |= {name + _PLACES: places, name + _COUNTS: flat[places], name + _SHAPE: shape}
    return found


def from_sparse(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `sparse` was given; large tables of few counts are sparse tensors, which can be added to dense ones."""
    found = {name: each for name, each in tensors.items() if not name.endswith((_PLACES, _COUNTS, _SHAPE))}
    for name, shape in tensors.items():
        if name.endswith(_SHAPE):
            start = name.removesuffix(_SHAPE)
            size = tuple(shape.tolist())
            places = torch.stack(torch.unravel_index(tensors[start + _PLACES], size))
            found[start] = torch.sparse_coo_tensor(
                places, tensors[start + _COUNTS], size, dtype=torch.int64, device="cpu", check_invariants=True
            )
    return found


def saved(plan: TallyPlan, states: Sequence[State], rows: int) -> tuple[MeterDescription, dict[str, Tensor]]:
    """The description of canonical host states, and them as tensors by name."""
    tensors: dict[str, Tensor] = {}
    for k, (tally, state) in enumerate(zip(plan.tallies, states, strict=True)):
        for name in tally.fields:
            value = state.get(name)
            if isinstance(value, SampleStore):
                tensors |= {f"{k}.{name}.{column}": value.column(column) for column in value.columns}
            elif value is not None:
                tensors[f"{k}.{name}"] = value.contiguous()
    return MeterDescription.of(plan.metrics, plan.weighted, rows, plan.labels), tensors


def counts_in(
    plan: TallyPlan, description: MeterDescription, tensors: Mapping[str, Tensor], where: str
) -> tuple[list[State], int]:
    """The states and rows that `saved` was given, with tensors of their own.

    Raises:
        StateError: they are of other metrics; or tensors are missing, left over, or of another shape or dtype.
        DeviceFaultError: they break a conservation law.
    """
    own = MeterDescription.of(plan.metrics, plan.weighted, description.rows, plan.labels)
    if not own.same(description):
        got = f"counts for {description.metrics}{', weighted' if description.weighted else ''}"
        expected = f"for {own.metrics}{', weighted' if own.weighted else ''}"
        raise StateError(describe(where, got, expected, "Load it into a meter with equal metrics"))
    left = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    states = [_state(k, tally, left, where) for k, tally in enumerate(plan.tallies)]
    if left:
        raise StateError(describe(where, f"also {', '.join(sorted(left))}", "the fields of its metrics only", _AGAIN))
    check_laws(plan.tallies, states, HostCount(description.rows), where, READ_AGAIN)
    return states, description.rows


def counts_in_state(plan: TallyPlan, state: Mapping[str, Tensor]) -> tuple[list[State], int]:
    """The states and rows in a state dictionary.

    Raises:
        StateError: as `counts_in`; or something is no tensor.
    """
    return counts_in(plan, *described(state, "state_dict"), "state_dict")


def write(path: str | os.PathLike[str], description: MeterDescription, tensors: Mapping[str, Tensor]) -> Location:
    """Write a file so that a crash leaves the old one or the new one, never a part."""
    from safetensors.torch import save_file  # here, so that meters without files need no safetensors

    about = description.to_json()
    metadata = {_KEY: about, _CHECKSUM: checksum(about, tensors)}
    return write_whole(path, lambda part: save_file(dict(tensors), part, metadata))


def read(path: str | os.PathLike[str]) -> tuple[MeterDescription, dict[str, Tensor]]:
    """Read a file, after its checksum was found to be right.

    Raises:
        StateError: the file is cut short, changed, of another version, or not one of a meter.
    """
    from safetensors import SafetensorError, safe_open

    where = os.fspath(path)
    if location("path", path).is_dir():
        raise StateError(describe(where, "a folder", "a file that Meter.to_file wrote", "Pass a file in it"))
    try:
        with local_copy(path) as copy, safe_open(copy, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except SafetensorError as error:
        raise StateError(
            describe(where, f"no whole safetensors file ({error})", "a file that Meter.to_file wrote", "Write it again")
        ) from error
    if _KEY not in metadata or _CHECKSUM not in metadata:
        do = "Pass a file that Meter.to_file wrote"
        raise StateError(describe(where, "a safetensors file of something else", "the counts of a meter", do))
    description = MeterDescription.from_json(metadata[_KEY], where)
    if checksum(metadata[_KEY], tensors) != metadata[_CHECKSUM]:
        do = "Copy the file again, or count again"
        raise StateError(describe(where, "bytes that were changed", "those of its checksum", do))
    return description, tensors


def checksum(about: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of a description and of the names, dtypes, shapes and bytes of its tensors."""
    digest = hashlib.sha256(about.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.numel():  # an empty one from NumPy has a stride of 0, and no view as bytes
            digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


_AGAIN = "Save the meter again, with equal metrics and this version of assay"


def _state(k: int, tally: Tally, left: dict[str, Tensor], where: str) -> State:
    """Take the fields of a tally out of the tensors."""
    state = tally.zero(torch.device("meta"))  # for its shapes: every field is replaced
    late = {name: f"{k}.{name}" in left for name, rule in tally.fields.items() if rule == "late"}
    if any(late.values()) and not all(late.values()):
        there, missing = (
            ", ".join(name for name, is_there in late.items() if is_there is each) for each in (True, False)
        )
        raise StateError(describe(f"{where}, {k}", f"{there} without {missing}", "both or neither", _AGAIN))
    for name, rule in tally.fields.items():
        key, zero = f"{k}.{name}", state.pop(name, None)
        if isinstance(zero, SampleStore):
            columns = {column: _dense(left.pop(f"{key}.{column}", None)) for column in zero.columns}
            state[name] = _store(zero, columns, where, key)
            continue
        value = left.pop(key, None)
        if value is None and rule == "late":
            continue
        if value is None or value.dtype != torch.int64 or (zero is not None and value.shape != zero.shape):
            got = "nothing" if value is None else f"{value.dtype} of shape {tuple(value.shape)}"
            expected = "torch.int64" + ("" if zero is None else f" of shape {tuple(zero.shape)}")
            raise StateError(describe(f"{where}, {key}", got, expected, _AGAIN))
        state[name] = value if rule in ("sum", "late") else _dense(value)
    return state


def _dense(tensor: Tensor | None) -> Tensor | None:
    return tensor.to_dense() if tensor is not None and tensor.is_sparse else tensor


def _store(zero: SampleStore, columns: Mapping[str, Tensor | None], where: str, key: str) -> SampleStore:
    missing = sorted(name for name, column in columns.items() if column is None)
    if missing:
        raise StateError(describe(f"{where}, {key}", f"no {', '.join(missing)}", "every column of its samples", _AGAIN))
    try:
        return zero.replaced({name: column for name, column in columns.items() if column is not None})
    except AssayError as error:
        raise StateError(describe(f"{where}, {key}", str(error), "rows of its columns", _AGAIN)) from error


def _plain(metric: Metric) -> dict[str, Any]:
    """A metric as its class name and the fields that are part of its equality, as functions are not."""
    every = dataclasses.fields(metric)  # type: ignore[arg-type]
    fields = [field.name for field in every if field.init and field.compare]
    return {"class": type(metric).__name__, "fields": {name: _said(getattr(metric, name)) for name in fields}}


def _said(value: Any) -> Any:
    """A field in words of JSON: metrics may have metrics."""
    if isinstance(value, Metric):
        return _plain(value)
    return [_said(each) for each in value] if isinstance(value, tuple) else value


class _Known(NamedTuple):
    """What a reader of a file brings: classes of metrics by name, and metrics that hold a function."""

    classes: Mapping[str, type[Metric]]
    metrics: Sequence[Metric]


def _metric(saved: Any, own: _Known, where: str) -> Metric:
    for metric in own.metrics:
        if json.loads(json.dumps(_plain(metric))) == saved:
            return metric
    try:
        name, fields = saved["class"], {key: _meant(value, own, where) for key, value in saved["fields"].items()}
        if name not in own.classes and name not in assay.metrics.__all__:
            do = "Pass it in known=, or read the file with the version of assay that wrote it"
            raise UnknownMetricError(describe(where, f"the metric {name!r}", "one that assay brings", do))
        kind = own.classes.get(name) or getattr(assay.metrics, name)
        if not all(field.compare for field in dataclasses.fields(kind)):  # type: ignore[arg-type]
            do = "Pass the metric itself, with its function, in known="
            raise UnknownMetricError(describe(where, f"the metric {name} {fields}", "one with its function", do))
        metric = kind(**fields)
        if not isinstance(metric, Metric):
            raise TypeError("not a metric")
        return metric
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StateError(describe(where, f"the metric {saved!r} ({error})", "a metric that can be", _AGAIN)) from error


def _meant(value: Any, own: _Known, where: str) -> Any:
    """A field from words of JSON, which has no tuples; fields of metrics have no lists, and no dictionaries."""
    if isinstance(value, dict):
        return _metric(value, own, where)
    return tuple(_meant(each, own, where) for each in value) if isinstance(value, list) else value
