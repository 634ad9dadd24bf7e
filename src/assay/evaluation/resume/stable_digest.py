"""A digest of Python values that is the same in every process: values, tensors, modules and code, never addresses.

Objects of any other class count by what they are pickled from. Code counts by its bytecode, so an edited function has
another digest; that of installed packages counts by its name, as their versions are known otherwise. Attributes of a
function do not count: hooks keep there what they have seen.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import io
import os
import sys
import sysconfig
import types
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from assay.devices.placement import to_host
from assay.evaluation.model.exported_models import ExportedModel

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_OWN = frozenset(nn.Module().__dict__)
_WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel)
_SALTED = frozenset({"_original_object_hash"})  # Hugging Face: Python's hash of a string, another in each process
_SCRIPT_EXTRA = (".debug_pkl", "serialization_id")
_INSTALLED = tuple(
    os.path.realpath(path) + os.sep
    for path in (
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).parents[2]),  # assay
    )
)


class NoDigestError(Exception):
    """A value has no digest.

    Args:
        path: where it is, as Python would write it.
        what: what it is.
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}, {what}")


def stable_digest(value: Any, path: str, stand_in: str | None = None, tensor_bytes: int | None = None) -> str:
    """The digest of a value.

    Args:
        value: any value; a module counts by its class, weights, hooks and attributes, wherever it is and in any mode.
        path: what to call the value in errors.
        stand_in: counts in place of what has no digest; None to raise.
        tensor_bytes: how much of a tensor is read from its beginning and its end; None for all of it.

    Raises:
        NoDigestError: a part of it has no digest: an open file, a lock, a generator.

    Example:
        >>> one, other = {"a": torch.ones(2), "b": {1, 2}}, {"b": {2, 1}, "a": torch.ones(2)}
        >>> stable_digest(one, "one") == stable_digest(other, "other")
        True
    """
    return _Digester(stand_in, tensor_bytes).of(value, path).hex()


class _Digester:
    """Digests of values, each object once."""

    def __init__(self, stand_in: str | None, tensor_bytes: int | None) -> None:
        self._stand_in, self._tensor_bytes = stand_in, tensor_bytes
        self._done: dict[int, tuple[Any, bytes]] = {}  # the value, too, so that no other gets its address
        self._open: dict[int, int] = {}

    def of(self, value: Any, path: str) -> bytes:
        if isinstance(value, _SCALARS) and type(value) in _SCALARS:
            return _scalar(value)
        key = id(value)
        if key in self._done:
            return self._done[key][1]
        if key in self._open:  # a value within itself
            return _digest("within itself", _scalar(len(self._open) - self._open[key]))
        self._open[key] = len(self._open)
        try:
            result = self._of(value, path)
        except NoDigestError:
            if self._stand_in is None:
                raise
            result = self.typed_digest("stand-in", type(value), _scalar(self._stand_in))
        finally:
            del self._open[key]
        self._done[key] = value, result
        return result

    def _of(self, value: Any, path: str) -> bytes:
        for kind, digest in _BY_TYPE:
            if isinstance(value, kind):
                result: bytes = digest(self, value, path)
                return result
        if type(value) in (list, tuple, torch.Size):
            return _digest(type(value).__name__, *(self.of(each, f"{path}[{k}]") for k, each in enumerate(value)))
        if type(value) in (dict, OrderedDict):
            return self._mapping(value, path)
        if type(value) in (set, frozenset):
            return _digest("set", *sorted(self.of(each, path) for each in value))
        if hasattr(value, "__wrapped__"):  # a cache around a function
            return self.typed_digest("wrapper", type(value), self.of(value.__wrapped__, path))
        return self._reduced(value, path)

    def typed_digest(self, kind: str, cls: type, *parts: bytes) -> bytes:
        return _digest(kind, _scalar(f"{cls.__module__}.{cls.__qualname__}"), *parts)

    def _mapping(self, value: Mapping[Any, Any], path: str) -> bytes:
        pairs = ((self.of(key, path), self.of(each, f"{path}[{key!r}]")) for key, each in value.items())
        return _digest("mapping", *(part for pair in sorted(pairs) for part in pair))

    def _reduced(self, value: Any, path: str) -> bytes:
        """What the object says that it is made from."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                registered = copyreg.dispatch_table.get(type(value))
                reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        except Exception as error:
            cls = type(value)
            raise NoDigestError(path, f"a {cls.__module__}.{cls.__qualname__} ({error})") from error
        if isinstance(reduced, str):
            return _digest("global", _scalar(f"{getattr(value, '__module__', '')}.{reduced}"))
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = self._attributes(state, path) if isinstance(state, dict) else self.of(state, path)
        listed = [self.of(each, f"{path}[{k}]") for k, each in enumerate(items or ())]
        return _digest(
            "object", self.of(make, path), self.of(args, path), parts, *listed, self._mapping(dict(pairs or ()), path)
        )

    def _attributes(self, attributes: Mapping[str, Any], path: str) -> bytes:
        known = {name: each for name, each in attributes.items() if name not in _SALTED}
        pairs = ((_scalar(str(name)), self.of(each, f"{path}.{name}")) for name, each in known.items())
        return _digest("attributes", *(part for pair in sorted(pairs) for part in pair))

    def of_tensor(self, value: Tensor, path: str) -> bytes:
        tensor = value.detach()
        if type(tensor) is not Tensor and hasattr(tensor, "__tensor_flatten__"):
            names, context = tensor.__tensor_flatten__()
            inner = [self.of(getattr(tensor, name), f"{path}.{name}") for name in names]
            return self.typed_digest("tensor", type(tensor), self.of(context, path), *inner)
        about = _scalar(f"{tensor.dtype} {tuple(tensor.shape)}")
        try:
            if tensor.is_quantized:
                tensor = tensor.dequantize()
            flat = (tensor if tensor.layout == torch.strided else tensor.to_dense()).reshape(-1)
            return _digest("tensor", about, *(_bytes_of(part) for part in self._ends(flat)))
        except (RuntimeError, NotImplementedError) as error:
            raise NoDigestError(path, f"a tensor whose values cannot be read ({error})") from error

    def _ends(self, flat: Tensor) -> list[Tensor]:
        if self._tensor_bytes is None or flat.nbytes <= 2 * self._tensor_bytes:
            return [flat]
        count = self._tensor_bytes // flat.element_size()
        return [flat[:count], flat[-count:]]

    def of_array(self, value: np.ndarray[Any, Any], path: str) -> bytes:
        about = _scalar(f"{value.dtype} {value.shape}")
        if value.dtype.hasobject:
            return _digest("array", about, self.of(value.tolist(), path))
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return _digest("array", about, *(part.numpy().data for part in self._ends(torch.from_numpy(flat.copy()))))

    def of_module(self, module: nn.Module, path: str) -> bytes:
        if isinstance(module, ExportedModel):
            return self.of(module.program, path)
        if isinstance(module, torch.jit.ScriptModule):
            return _script(module)
        inner = module.module if isinstance(module, _WRAPPERS) else module._modules.get("_orig_mod")
        if inner is not None:
            return self.of(inner, path)
        state = module.__dict__
        with suppress(Exception):  # what it is pickled from, where it can be: no references to its own weights
            state = module.__getstate__()  # type: ignore[no-untyped-call]
        extra = (
            {name: each for name, each in state.items() if name not in _OWN} if isinstance(state, dict) else {"": state}
        )
        if isinstance(module, GraphModule):  # its class is made from its graph
            kind = _scalar(module.code)
            extra = {name: each for name, each in extra.items() if isinstance(each, Tensor)}
        else:
            kind = self.of(type(module), path)
        inside = {**module._parameters, **module._buffers, **module._modules}
        hooks = [self.of(hook, f"{path}.{name}") for name in _HOOKS for hook in getattr(module, name).values()]
        return _digest("module", kind, self._attributes(inside, path), self._attributes(extra, path), *hooks)

    def of_program(self, program: ExportedProgram, path: str) -> bytes:
        tensors = self._attributes({**program.state_dict, **program.constants}, path)
        return _digest("program", _scalar(program.graph_module.code), tensors)

    def of_function(self, function: types.FunctionType, path: str) -> bytes:
        name = f"{function.__module__}.{function.__qualname__}"
        code = function.__code__
        cells = [self._cell(cell, f"{path}: {free}") for free, cell in _cells(function)]
        if _is_installed(code.co_filename):
            return _digest("function", _scalar(name), *(cells if "<locals>" in code.co_qualname else ()))
        defaults = self.of([function.__defaults__, function.__kwdefaults__], path)
        return _digest("function", _scalar(name), self.of_code(code, path), defaults, *cells, *self._globals(function))

    def _cell(self, cell: types.CellType, path: str) -> bytes:
        try:
            value = cell.cell_contents
        except ValueError:
            return _digest("empty cell")
        return self.of(value, path)

    def _globals(self, function: types.FunctionType) -> Iterable[bytes]:
        """What a function finds in its module: constants, and code of the user's own."""
        for name in sorted(_names(function.__code__)):
            value = function.__globals__.get(name)
            is_code = isinstance(value, types.FunctionType | type) and not _is_installed(_file_of(value))
            if is_code or (isinstance(value, (*_SCALARS, Tensor, np.ndarray)) and value is not None):
                yield _scalar(name)
                with suppress(NoDigestError):
                    yield self.of(value, name)

    def of_code(self, code: types.CodeType, path: str) -> bytes:
        constants = [self.of(each, path) for each in code.co_consts]
        names = (*code.co_names, "", *code.co_varnames, "", *code.co_freevars)
        return _digest("code", code.co_code, *map(_scalar, names), *constants)

    def of_method(self, method: types.MethodType, path: str) -> bytes:
        return _digest("method", self.of(method.__func__, path), self.of(method.__self__, path))

    def of_builtin(self, function: types.BuiltinFunctionType, path: str) -> bytes:
        of = function.__self__
        bound = b"" if of is None or isinstance(of, types.ModuleType) else self.of(of, path)
        return _digest("builtin", _scalar(f"{function.__module__}.{function.__qualname__}"), bound)

    def of_descriptor(self, value: Any, path: str) -> bytes:
        parts = [getattr(value, name, None) for name in ("__func__", "func", "fget", "fset")]
        return _digest(type(value).__name__, *(self.of(part, path) for part in parts))

    def of_class(self, cls: type, path: str) -> bytes:
        """The name of a class, and the code of those of its bases that are the user's own."""
        own = [base for base in cls.__mro__ if not _is_installed(_file_of(base))]
        members = []
        for base in own:
            for name, value in sorted(vars(base).items()):
                is_constant = isinstance(value, _SCALARS) and not name.startswith("__")
                if is_constant or isinstance(value, _FUNCTIONS) or hasattr(value, "__wrapped__"):
                    members += [_scalar(name), self.of(value, f"{path}.{name}")]
        return self.typed_digest("class", cls, *members)


_BY_TYPE: tuple[tuple[Any, Any], ...] = (
    (Tensor, _Digester.of_tensor),
    (np.ndarray, _Digester.of_array),
    (nn.Module, _Digester.of_module),
    (ExportedProgram, _Digester.of_program),
    (types.FunctionType, _Digester.of_function),
    (types.MethodType, _Digester.of_method),
    (types.BuiltinFunctionType, _Digester.of_builtin),
    (types.CodeType, _Digester.of_code),
    (type, _Digester.of_class),
    (types.ModuleType, lambda digester, value, path: _digest("python module", _scalar(value.__name__))),
    ((staticmethod, classmethod, property, functools.cached_property), _Digester.of_descriptor),
    (Enum, lambda digester, value, path: digester.typed_digest("enum", type(value), _scalar(value.name))),
    (PurePath, lambda digester, value, path: _digest("path", _scalar(os.fspath(value)))),
    (torch.device, lambda digester, value, path: _digest("device")),  # results do not depend on where they come from
    (torch.dtype, lambda digester, value, path: _digest("dtype", _scalar(str(value)))),
)


def _scalar(value: Any) -> bytes:
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return type(value).__name__.encode() + b":" + raw


def _digest(kind: str, *parts: Any) -> bytes:
    result = hashlib.sha256(kind.encode())
    for part in parts:
        result.update(len(part).to_bytes(8, "little"))
        result.update(part)
    return result.digest()[:16]


def _script(module: torch.jit.ScriptModule) -> bytes:
    """What torch would save of it, without where its source was."""
    with zipfile.ZipFile(io.BytesIO(module.save_to_buffer())) as archive:
        entries = {name: archive.read(name) for name in sorted(archive.namelist()) if not name.endswith(_SCRIPT_EXTRA)}
    for name in entries:
        if name.endswith(".py"):  # constants of a class are written in the order of a set
            lines = entries[name].split(b"\n")
            constants = sorted(line for line in lines if b" : Final[" in line)
            entries[name] = b"\n".join([line for line in lines if b" : Final[" not in line] + constants)
    return _digest("script", *(part for name, entry in entries.items() for part in (_scalar(name), entry)))


def _bytes_of(flat: Tensor) -> memoryview:
    host = to_host(flat).resolve_conj().resolve_neg().contiguous()
    return host.view(torch.uint8).numpy().data


def _cells(function: types.FunctionType) -> Iterable[tuple[str, types.CellType]]:
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def _names(code: types.CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _file_of(value: Any) -> str:
    if isinstance(value, types.FunctionType):
        return value.__code__.co_filename
    return getattr(sys.modules.get(value.__module__), "__file__", None) or (
        "" if value.__module__ == "__main__" else "<frozen>"
    )


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether code is of Python, of a package that was installed, or of assay."""
    file = os.path.realpath(file)
    return "<frozen" in file or "site-packages" in file or file.startswith(_INSTALLED)
