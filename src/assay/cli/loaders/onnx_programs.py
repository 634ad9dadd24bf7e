"""Models in ONNX files, run by ONNX Runtime on the CPU where that is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe


class OnnxProgram:
    """A model in an ONNX file, which is opened at the first call.

    Args:
        path: the file.

    Raises:
        ConfigError: there is no such file; in use: ONNX Runtime is not installed.
    """

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise ConfigError(describe("--against", f"{path}, which does not exist", "an ONNX file", "Check the path"))
        self._path = path
        self._session: Any = None

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> Any:
        """The first output, for inputs in the order of the file or by name."""
        session = self._opened()
        names = [each.name for each in session.get_inputs()]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        outputs = session.run(None, {name: to_host(each).numpy() for name, each in given.items()})
        return torch.as_tensor(outputs[0], device="cpu")

    def _opened(self) -> Any:
        if self._session is None:
            try:
                runtime = import_module("onnxruntime")
            except ImportError as error:
                do = "Install onnxruntime"
                raise ConfigError(describe(self._path, "onnxruntime is not installed", "ONNX Runtime", do)) from error
            self._session = runtime.InferenceSession(self._path, providers=["CPUExecutionProvider"])
        return self._session
