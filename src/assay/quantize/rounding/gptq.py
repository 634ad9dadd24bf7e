"""GPTQ: rounding column by column, with what each column loses made good by those that follow; and what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from assay.devices.placement import to_host
from assay.errors import ConfigError, InputError, InvalidValuesError, ShapeError, describe
from assay.quantize.packed_weight import PackedWeight, pack
from assay.quantize.rounding.grids import METHODS, Grid
from assay.quantize.rounding.weight import checked_scheme
from assay.quantize.scheme import Scheme

BLOCK = 128  # columns whose errors are passed on at once
DAMPING = 0.01


def gptq(
    weight: Tensor,
    hessian: Tensor,
    scheme: Scheme | str,
    *,
    method: str = "search",
    scales: torch.dtype = torch.bfloat16,
    damping: float = DAMPING,
) -> PackedWeight:
    """Round a weight so that the layer's outputs on calibration data change least.

    Minimises ``‖(W - Ŵ) X‖²`` greedily: the scales and zeros of all groups are chosen first, then the columns are
    rounded in the order of how much data goes through them, and the error of each is spread over the columns that are
    still to come, by the inverse of ``H = X Xᵀ``.

    It runs on the CPU, in float32. The result is on the device of the weight.

    Args:
        weight: floats of shape (N, K).
        hessian: ``Σ x xᵀ`` over the layer's inputs, of shape (K, K); :class:`Calibration` collects it.
        scheme: of the integers.
        method: by which the scales and zeros of a group are chosen; one of :data:`METHODS`.
        scales: the dtype in which they are kept.
        damping: part of the mean of H's diagonal that is added to it. Where that does not make it positive definite,
            ten times as much is tried, up to the mean itself.

    Returns:
        The integers.

    Raises:
        ConfigError: there is no such scheme or method, the scheme cannot hold this shape, or damping is not positive.
        ShapeError: the hessian is not of shape (K, K).
        InvalidValuesError: the weight or the hessian has NaN or infinite values, or the weight none at all.

    Example:
        >>> x, weight = torch.randn(64, 32), torch.randn(8, 32)
        >>> gptq(weight, x.T @ x, "int4:g32").shape
        (8, 32)

    Source:
        Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2023; the
        order of the columns and groups that are fixed beforehand are the options ``act_order`` and ``static_groups`` of
        the authors' program.
    """
    if not damping > 0:
        raise ConfigError(describe("damping", repr(damping), "more than 0", f"Pass {DAMPING}"))
    scheme = checked_scheme(weight, scheme, method, scales)
    _check_hessian(hessian, weight)
    host = to_host(weight.detach()).to(torch.float32)
    grouped = torch.unflatten(host, 1, (-1, scheme.group(host.shape[1])))
    grid = METHODS[method](grouped, scheme, scales)
    values = _rounded(host, to_host(hessian.detach()).to(torch.float32), grid, scheme, damping)
    zeros = None if grid.zeros is None else grid.zeros.squeeze(-1)
    shape = host.shape[0], host.shape[1]
    return PackedWeight(pack(values, scheme.bits), grid.scales.squeeze(-1), zeros, scheme, shape).to(weight.device)


def _check_hessian(hessian: Tensor, weight: Tensor) -> None:
    width = weight.shape[1]
    if tuple(hessian.shape) != (width, width):
        got, expected = f"shape {tuple(hessian.shape)}", f"shape ({width}, {width})"
        raise ShapeError(describe("hessian", got, expected, "Collect it from the inputs of this layer"))
    if not bool(hessian.isfinite().all()):
        got = "values that are NaN or infinite"
        raise InvalidValuesError(describe("hessian", got, "finite ones", "Look at the calibration data"))


def _rounded(weight: Tensor, hessian: Tensor, grid: Grid, scheme: Scheme, damping: float) -> Tensor:
    """The integers, int8 of shape (N, K)."""
    width = weight.shape[1]
    order = hessian.diagonal().argsort(descending=True, stable=True)
    rest = weight[:, order].clone()
    factor = _inverse_factor(hessian[order][:, order], damping)
    group = (order // scheme.group(width)).tolist()
    columns = torch.empty_like(rest, dtype=torch.int8)
    for first in range(0, width, BLOCK):
        last = min(first + BLOCK, width)
        errors = torch.empty(weight.shape[0], last - first, dtype=weight.dtype, device="cpu")
        for at in range(first, last):
            one = Grid(grid.scales[:, group[at]], None if grid.zeros is None else grid.zeros[:, group[at]])
            column = rest[:, at : at + 1]
            columns[:, at : at + 1] = one.integers(column, scheme)
            error = (column - one.weights(columns[:, at : at + 1])) / factor[at, at]
            rest[:, at:last] -= error * factor[at, at:last]
            errors[:, at - first] = error[:, 0]
        rest[:, last:] -= errors @ factor[first:last, last:]
    values = torch.empty_like(columns)
    values[:, order] = columns
    return values


def _inverse_factor(hessian: Tensor, damping: float) -> Tensor:
    """The upper Cholesky factor of the inverse of a damped Hessian."""
    mean = hessian.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
    while True:
        damped = hessian + torch.diag(torch.full_like(hessian.diagonal(), float(damping * mean)))
        lower, failed = torch.linalg.cholesky_ex(damped)
        if not bool(failed):
            upper: Tensor
            upper, failed = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
            if not bool(failed) and bool(upper.isfinite().all()):
                return upper
        if damping >= 1:
            got = "one that is not positive definite"
            raise InvalidValuesError(describe("hessian", got, "Σ x xᵀ of real inputs", "Give more calibration data"))
        damping *= 10


class Calibration:
    """Collects ``Σ x xᵀ`` over the inputs of layers while a model runs; for :func:`gptq`.

    The sums are float32 on the layers' devices, K² numbers a layer: calibrate large models a few layers at a time.

    Args:
        model: any module.
        names: of the linear layers; by default all of them.

    Raises:
        ConfigError: the model has no such layer, or none at all.

    Example:
        >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> with Calibration(model) as data:
        ...     _ = model(torch.randn(16, 8))
        >>> sorted(data.rows.items()), data.hessian("0").shape
        ([('0', 16), ('2', 16)], torch.Size([8, 8]))
    """

    def __init__(self, model: nn.Module, names: Iterable[str] | None = None) -> None:
        modules = dict(model.named_modules())
        linears = [name for name, module in modules.items() if isinstance(module, nn.Linear)]
        self.names = linears if names is None else list(names)
        if others := [name for name in self.names if name not in linears]:
            raise ConfigError(describe("names", repr(others[0]), "the name of a linear layer", "Check the spelling"))
        if not self.names:
            raise ConfigError(describe("model", "no linear layer", "one at least", "Pass the model itself"))
        self.rows = dict.fromkeys(self.names, 0)
        self._modules = {name: modules[name] for name in self.names}
        self._sums: dict[str, Tensor] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> Calibration:
        for name, module in self._modules.items():
            self._hooks.append(module.register_forward_pre_hook(self._hook(name)))
        return self

    def __exit__(self, *_: object) -> None:
        while self._hooks:
            self._hooks.pop().remove()

    def hessian(self, name: str) -> Tensor:
        """What was collected for a layer, float32 of shape (K, K).

        Raises:
            InputError: the layer was not run.
        """
        if name not in self._sums:
            raise InputError(describe("calibration", f"no input of {name!r}", "some", "Run the model on data first"))
        return self._sums[name]

    def _hook(self, name: str) -> Any:
        def collect(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            x = inputs[0].detach()
            # neither half precision nor tensors of inference mode, independent of the model's mode
            with torch.inference_mode(False), torch.no_grad(), torch.autocast(x.device.type, enabled=False):
                x = x.reshape(-1, x.shape[-1]).to(torch.float32)
                self.rows[name] += x.shape[0]
                if name not in self._sums:
                    self._sums[name] = x.new_zeros(x.shape[1], x.shape[1])
                self._sums[name].addmm_(x.t(), x)

        return collect
