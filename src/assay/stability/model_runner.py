"""Runs of copies of a model on the same samples, in other batches."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.devices.modules import locations
from assay.devices.placement import move, to_host
from assay.errors import ShapeError, describe
from assay.evaluation.data.batch import Arguments
from assay.evaluation.nested_batch import structure
from assay.stability.model_state import out_of_reach
from assay.stability.samples import SampledInputs, samples_in

Groups = list[list[int]]


class ModelRunner:
    """Makes copies of a model, and runs them.

    Args:
        model: the model, which is not changed where it can be copied.
        samples: what it is run on.
        device: where it is run.
        mode: ``"eval"`` to put copies into evaluation mode, or ``"as is"``.

    Attributes:
        no_copy: why the model cannot be copied; empty where it can. All runs are then of the model itself.
    """

    def __init__(self, model: Callable[..., Any], samples: SampledInputs, device: torch.device, mode: str) -> None:
        self._model, self._samples, self._device, self._mode = model, samples, device, mode
        self.no_copy = ""
        try:
            _copied(model)
        except Exception as error:
            self.no_copy = f"{type(error).__name__}: {error}"

    def fresh(self) -> Any:
        """A copy of the model, in the state in which it was given."""
        return self.prepared(self._model if self.no_copy else _copied(self._model))

    def in_float64(self) -> Any:
        """A copy in float64 on the CPU.

        Raises:
            Exception: what the model raises that cannot be copied or converted.
        """
        model = _copied(self._model)
        if isinstance(model, nn.Module):
            for each in (model, *out_of_reach(model).values()):
                each.to("cpu").to(torch.float64)
        if isinstance(model, nn.Module) and self._mode == "eval":
            model.eval()
        return model

    def prepared(self, model: Any) -> Any:
        """A model on the device and in the mode in which copies are run."""
        if isinstance(model, nn.Module):
            if locations(model) - {self._device}:
                model.to(self._device)
            if self._mode == "eval":
                model.eval()
        return model

    def call(self, model: Any, group: list[int], dtype: torch.dtype | None = None) -> Tensor:
        """The outputs for one batch, in host memory.

        Args:
            model: what `fresh` or `in_float64` gave.
            group: which samples.
            dtype: float64 for the copy in float64.

        Raises:
            ShapeError: there is not one row of outputs a sample.
        """
        return self.outputs(model, self.arguments(group, dtype), len(group))

    def arguments(self, group: list[int], dtype: torch.dtype | None = None) -> Arguments:
        """What the model is given for some samples: on its device, or in float64 on the CPU."""
        arguments = self._samples.batch(group, dtype)
        return arguments if dtype is not None else move(arguments, self._device)

    def outputs(self, model: Any, arguments: Arguments, rows: int) -> Tensor:
        """The outputs for arguments that are where the model is, in host memory.

        Args:
            model: what is called.
            arguments: positions and keywords.
            rows: how many samples they are.

        Raises:
            ShapeError: there is not one row of outputs a sample.
        """
        args, kwargs = arguments
        with torch.no_grad():
            preds = self._samples.preds(model(*args, **kwargs))
        if preds.ndim == 0 or len(preds) != rows:
            do = "Return a row a sample, or name the predictions with preds="
            raise ShapeError(describe("outputs", structure(preds), f"{rows} rows, one a sample", do))
        return to_host(preds.detach()).clone()

    def run(self, model: Any, groups: Groups, dtype: torch.dtype | None = None) -> Tensor:
        """The outputs for batches, in the order of the samples."""
        outputs = torch.cat([self.call(model, group, dtype) for group in groups])
        order = torch.tensor(samples_in(groups), device="cpu").argsort()
        return outputs[order]


def _copied(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's own, of exported programs
        return copy.deepcopy(model)


@contextmanager
def random_state_unchanged() -> Iterator[None]:
    """Afterwards, generators of torch on the CPU, NumPy and Python are where they were."""
    python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(of_numpy)


def random_states() -> dict[str, str]:
    """Where the global generators are, to see which of them a model draws from."""
    return {
        "torch": str(hash(torch.get_rng_state().numpy().tobytes())),
        "Python's random": str(hash(random.getstate())),
        "numpy.random": repr(np.random.get_state(legacy=False)["state"]),
    }
