"""Exported programs of strangers as data: what is known is copied into a new archive, anything else is refused.

`torch.export.load` was not made for files of strangers: it unpickles what a file says is pickled, loads each entry
under ``models/`` with any name, and makes code of strings. So torch is never given the file. Its entries are read
here, those that `torch.export.save` writes and no other, checked field by field against torch's own schema of programs
(``torch/_export/serde/schema.py``), and written into a new archive, from which torch loads.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import io
import json
import math
import re
import sys
import types
import typing
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import torch
from torch._export.serde import schema
from torch._export.serde.union import _Union as Union

from assay.cli.loaders import program_strings as text
from assay.cli.loaders.program_strings import UnsafeError

_PROGRAM = "models/model.json"
_INPUTS = "data/sample_inputs/model.pt"
_CONFIGS = {
    "data/weights/model_weights_config.json": "data/weights/",
    "data/constants/model_constants_config.json": "data/constants/",
}
_FIXED = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": sys.byteorder.encode()}
_NEEDED = (*_FIXED, *_CONFIGS, _PROGRAM, _INPUTS)
_TENSORS = re.compile(r"data/weights/weight_\d{1,9}|data/constants/tensor_\d{1,9}")
_IGNORED = re.compile(r"\.data/(version|serialization_id)|extra/[\w./ -]+", re.ASCII)
_DROPPED = ("Node.metadata", "GraphModule.metadata")  # where code was, which nobody asks a file for
_INFINITE = ("NaN", "Infinity", "-Infinity")

Rule = re.Pattern[str] | Callable[[str], str]
_RULES: dict[str, Rule] = {
    "Argument.as_operator": text.target,
    "Argument.as_string": text.PRINTED,
    "Argument.as_string_to_argument": text.PLAIN,
    "Argument.as_strings": text.PRINTED,
    "BufferMutationSpec.buffer_name": text.ATTRIBUTE,
    "ConstantValue.as_string": text.PLAIN,
    "Device.type": text.NAME,
    "ExportedProgram.guards_code": text.guard,
    "ExportedProgram.opset_version": text.NAME,
    "ExportedProgram.range_constraints": text.SYMBOLS,
    "ExportedProgram.torch_version": text.PLAIN,
    "ExportedProgram.verifiers": text.NAME,
    "GradientToParameterSpec.parameter_name": text.ATTRIBUTE,
    "GradientToUserInputSpec.user_input_name": text.NAME,
    "Graph.custom_obj_values": text.NAME,
    "Graph.sym_bool_values": text.NAME,
    "Graph.sym_float_values": text.NAME,
    "Graph.sym_int_values": text.NAME,
    "Graph.tensor_values": text.NAME,
    "GraphArgument.name": text.NAME,
    "GraphModule.treespec_namedtuple_fields": text.DOTTED,
    "InputToBufferSpec.buffer_name": text.ATTRIBUTE,
    "InputToConstantInputSpec.name": text.OPTIONAL_NAME,
    "InputToParameterSpec.parameter_name": text.ATTRIBUTE,
    "InputToTensorConstantSpec.tensor_constant_name": text.ATTRIBUTE,
    "ModuleCallEntry.fqn": text.ATTRIBUTE,
    "ModuleCallSignature.forward_arg_names": text.NAME,
    "ModuleCallSignature.in_spec": text.inputs_spec,
    "ModuleCallSignature.out_spec": text.outputs_spec,
    "NamedArgument.name": text.OPTIONAL_NAME,
    "NamedTupleDef.field_names": text.NAME,
    "Node.name": text.NAME,
    "Node.target": text.target,
    "ParameterMutationSpec.parameter_name": text.ATTRIBUTE,
    "PayloadConfig.config": text.ATTRIBUTE,
    "PayloadMeta.path_name": text.PAYLOAD,
    "SymBoolArgument.as_name": text.NAME,
    "SymExpr.expr_str": text.expression,
    "SymFloatArgument.as_name": text.NAME,
    "SymIntArgument.as_name": text.NAME,
    "TensorArgument.name": text.NAME,
    "TokenArgument.name": text.NAME,
    "UserInputMutationSpec.user_input_name": text.NAME,
}


def screen(path: Path, into: IO[bytes]) -> None:
    """Write the program in a file into another file that holds nothing but what was looked at.

    Raises:
        UnsafeError: something in it is not what `torch.export.save` writes.
        Exception: what the packages raise that read zip files, JSON and tensors, where the file is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        records = _records(archive)
        for name, expected in _FIXED.items():
            if (got := archive.read(records[name])) != expected:
                raise UnsafeError(f"{got!r:.40} in {name}, not {expected!r},")
        entries = {_PROGRAM: json.dumps(_program(json.loads(archive.read(records[_PROGRAM])))).encode()}
        entries[_INPUTS] = _inputs(archive.read(records[_INPUTS]))
        wanted: list[str] = []
        for name, folder in _CONFIGS.items():
            config = checked(schema.PayloadConfig, json.loads(archive.read(records[name])))
            wanted += _tensors(config, records, folder)
            entries[name] = json.dumps(config).encode()
        entries |= {name: value for name, value in _FIXED.items() if name != "byteorder"}  # torch writes that itself
        writer = torch._C.PyTorchFileWriter(into)
        try:
            for name in (*entries, *wanted):
                data = entries[name] if name in entries else archive.read(records[name])
                writer.write_record(name, data, len(data))
        finally:  # a writer that is not ended writes when it is deleted, and aborts the process where it cannot
            writer.write_end_of_file()
    into.seek(0)


def _records(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, without the folder that all of them lie in."""
    entries = archive.infolist()
    root = entries[0].filename.partition("/")[0] + "/"
    records: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.filename.removeprefix(root)
        is_known = name in _NEEDED or _TENSORS.fullmatch(name) or _IGNORED.fullmatch(name)
        if not entry.filename.startswith(root) or not is_known:
            raise UnsafeError(f"the entry {entry.filename!r:.80}")
        if name in records:
            raise UnsafeError(f"the entry {entry.filename!r:.80} twice")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise UnsafeError(f"the entry {entry.filename!r:.80}, which is compressed,")
        records[name] = entry
    if missing := [name for name in _NEEDED if name not in records]:
        raise UnsafeError(f"no entry {missing[0]}")
    return records


def _program(data: Any) -> Any:
    program = checked(schema.ExportedProgram, data)
    module = program["graph_module"]
    for entry in module["graph"]["inputs"]:
        _matching(text.PLAIN, "Graph.inputs", entry.get("as_string", ""))
    module["module_call_graph"] = [each for each in module["module_call_graph"] if not each["fqn"]]
    return program


def checked(kind: Any, data: Any, at: str = "") -> Any:
    """JSON as one of the classes of torch's schema describes it, without what that does not know.

    Args:
        kind: the class, or the type of a field.
        data: what was read.
        at: the field, as ``Class.field``.

    Raises:
        UnsafeError: a value has another type, or a string has another form than that of its field.
    """
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return None if data is None else checked(next(each for each in parts if each is not type(None)), data, at)
    if origin is list and isinstance(data, list):
        return [checked(parts[0], each, at) for each in data]
    if origin is dict and isinstance(data, dict):
        return {_string(key, at): checked(parts[1], each, at) for key, each in data.items()}
    if dataclasses.is_dataclass(kind) and isinstance(data, dict):
        return _object(kind, data)
    if kind is str and isinstance(data, str):
        return _string(data, at)
    if kind is float and (data in _INFINITE or (type(data) in (int, float) and math.isfinite(data))):
        return data
    if kind in (int, bool) and type(data) is kind:
        return data
    if isinstance(kind, type) and issubclass(kind, enum.IntEnum) and type(data) is int and data in list(kind):
        return data
    raise UnsafeError(f"{data!r:.60} as {at or kind.__name__}")


def _object(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    fields, name = _fields(kind), kind.__name__
    if issubclass(kind, Union) and not (len(data) == 1 and set(data) <= set(fields)):
        raise UnsafeError(f"{list(data)!r:.60} as {name}")
    attributes = {}
    for field, its in fields.items():
        if field in data:
            at = f"{name}.{field}"
            attributes[field] = {} if at in _DROPPED else checked(its, data[field], at)
    return attributes


@functools.cache
def _fields(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, globalns=vars(schema))


def _string(value: str, at: str) -> str:
    rule = _RULES.get(at)
    if isinstance(rule, re.Pattern):
        rule = functools.partial(_matching, rule, at)
    if rule is None:
        raise UnsafeError(f"{value!r:.60} as {at}, of which it is not known what torch does with it,")
    return rule(value)


def _matching(form: re.Pattern[str], at: str, value: str) -> str:
    if not form.fullmatch(value):
        raise UnsafeError(f"{value!r:.80} as {at}")
    return value


def _tensors(config: Any, records: Mapping[str, zipfile.ZipInfo], folder: str) -> list[str]:
    """The entries that a list of weights or constants names."""
    wanted: dict[str, None] = {}
    for name, meta in config["config"].items():
        entry = folder + meta["path_name"]
        if meta["use_pickle"] or meta["tensor_meta"] is None:
            raise UnsafeError(f"the pickled object {name!r:.60}")
        if entry not in records:
            raise UnsafeError(f"no entry {entry}, which holds {name!r:.60},")
        empty = any(each == {"as_int": 0} for each in meta["tensor_meta"]["sizes"])
        if not records[entry].file_size and not empty:  # torch would make zeros of it
            raise UnsafeError(f"no bytes in {entry}, which holds {name!r:.60},")
        wanted[entry] = None
    return list(wanted)


def _inputs(data: bytes) -> bytes:
    """Example inputs, pickled anew from what was unpickled as tensors."""
    if not data:
        return data
    inputs = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    _check_inputs(inputs)
    file = io.BytesIO()
    torch.save(inputs, file)
    return file.getvalue()


def _check_inputs(value: Any) -> None:
    """Raise where example inputs hold more than tensors, or keys that would become code."""
    if type(value) in (tuple, list):
        for each in value:
            _check_inputs(each)
    elif type(value) in (dict, OrderedDict):
        for key, each in value.items():
            if not (type(key) is int or (type(key) is str and text.ATTRIBUTE.fullmatch(key))):
                raise UnsafeError(f"the key {key!r:.80} of an example input")
            _check_inputs(each)
    elif type(value) is str and not text.PLAIN.fullmatch(value):
        raise UnsafeError(f"the example input {value!r:.80}")
    elif type(value) not in (str, int, float, bool, type(None), torch.Tensor, torch.nn.Parameter):
        raise UnsafeError(f"a {type(value).__name__} as example input")
