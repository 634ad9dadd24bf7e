"""How far the outputs of two models are apart, prediction by prediction, on their device."""

from __future__ import annotations

import math
from typing import get_args

import torch
from torch import Tensor

from assay.decide import first_largest
from assay.devices.policies import policy
from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.quantize.analysis.data_spec import DataSpec, Outputs
from assay.tally.sums.float_terms import as_float

KL, AGREES, LOSS_BEFORE, LOSS_AFTER = "KL divergence", "agreement", "loss before", "loss after"
CHANGE = "probability change"
ERROR, SIZE = "squared error", "squared size"
_SMALL = 0.25


def divergence(
    before: Tensor, after: Tensor, target: Tensor | None, data_spec: DataSpec
) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Compare two outputs.

    Args:
        before: what the model gave, `(B, C)`, `(B, T, V)`, ... with the classes in `class_dim`; any shape for values.
        after: what the other gave, of the same shape.
        target: the right classes, of the shape without `class_dim`; None, or anything else, for no losses.
        data_spec: what they are, where the classes are, and which target is left out.

    Returns:
        Names of K columns; `(B, P, K)` floats, P predictions a sample, losses NaN where the target is no class; and
        bool `(B, P)`, which of them count.

    Raises:
        ShapeError: outputs of two shapes, or without classes.
        DtypeError: outputs that are no floats.
        ConfigError: unknown outputs.
    """
    class_dim = data_spec.class_dim
    _check(before, after, data_spec.outputs, class_dim)
    if data_spec.outputs == "values":
        return (ERROR, SIZE), *_of_values(before, after)
    shape = before.movedim(class_dim, -1).shape
    rows = [each.movedim(class_dim, -1).reshape(-1, shape[-1]) for each in (before, after)]
    classes = _classes(target, shape[:-1])
    names = (KL, AGREES) if classes is None else (KL, AGREES, LOSS_BEFORE, LOSS_AFTER, CHANGE)
    size = max(1, policy(before.device).chunk_elements.value // shape[-1])
    parts = []
    for k in range(0, len(rows[0]), size):
        wide = (as_float(each[k : k + size]) for each in rows)
        log_p, log_q = (each.log_softmax(1) if data_spec.outputs == "logits" else each.log() for each in wide)
        parts.append(_compared(log_p, log_q, None if classes is None else classes[k : k + size]))
    result = torch.cat(parts) if parts else before.new_zeros(0, len(names), dtype=torch.float32)
    counted = torch.ones(len(result), dtype=torch.bool, device=result.device)
    if classes is not None:
        counted = torch.ne(classes, data_spec.ignore_index)
    return names, result.view(shape[0], -1, len(names)), counted.view(shape[0], -1)


def kl_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    r"""`sum(p log(p / q))` of each row, with every term at 0 or above.

    $$ \sum_i p_i \left(e^{d_i} - 1 - d_i\right), \qquad d_i = \log q_i - \log p_i $$

    is the same, as both sides sum to 1, and loses nothing to cancellation: near equal rows give a small number and not
    the rounding of the logarithms, which float32 would make as large as 8 bits of quantization.

    Args:
        log_p: logarithms of probabilities, `(N, C)`.
        log_q: others.

    Returns:
        `(N,)`; infinite where `q` excludes what `p` does not.

    Example:
        >>> p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.75, 0.25]])
        >>> kl_divergence(p.log(), q.log())
        tensor([0.1438])

    Source: Kullback, Leibler, Annals of Mathematical Statistics 22 (1951), 79-86.
    """
    apart = log_q - log_p
    p = log_p.exp()
    series = apart.square() * (0.5 + apart * (1 / 6 + apart * (1 / 24 + apart * (1 / 120 + apart / 720))))
    far = log_q.exp() - p - p * apart
    terms = torch.where(apart.abs() < _SMALL, p * series, far)
    impossible = torch.isneginf(log_p)
    return torch.where(impossible, log_q.exp(), terms).sum(1)


def _compared(log_p: Tensor, log_q: Tensor, classes: Tensor | None) -> Tensor:
    agrees = torch.eq(first_largest(log_p), first_largest(log_q)).to(log_p.dtype)
    columns = [kl_divergence(log_p, log_q), agrees]
    if classes is not None:
        known = classes.clamp(0, log_p.shape[1] - 1)
        losses = (-each.gather(1, known[:, None])[:, 0] for each in (log_p, log_q))
        columns += [each.masked_fill(torch.ne(known, classes), math.nan) for each in losses]  # which raises at the end
        columns.append((-columns[3]).exp() - (-columns[2]).exp())
    return torch.stack(columns, 1)


def _of_values(before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    a, b = (as_float(each).reshape(len(each), 1, -1) for each in (before, after))
    rows = torch.stack([(a - b).square().sum(2), a.square().sum(2)], 2)
    return rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)


def _classes(target: Tensor | None, shape: torch.Size) -> Tensor | None:
    """The right classes; None where the target is not one class a prediction."""
    if target is None or target.shape != shape or target.is_floating_point() or target.dtype == torch.bool:
        return None
    return target.reshape(-1).to(torch.int64)


def _check(before: Tensor, after: Tensor, outputs: Outputs, class_dim: int) -> None:
    if outputs not in get_args(Outputs):
        expected = ", ".join(map(repr, get_args(Outputs)))
        raise ConfigError(describe("outputs", repr(outputs), f"one of {expected}", "Say what the model gives"))
    if before.shape != after.shape:
        got, expected = f"shape {tuple(after.shape)}", f"that of the model before, {tuple(before.shape)}"
        raise ShapeError(describe("outputs of the model after", got, expected, "Compare models of one task"))
    for name, each in (("before", before), ("after", after)):
        if not each.is_floating_point():
            do = "Say with preds= which part of the outputs has logits"
            raise DtypeError(describe(f"outputs of the model {name}", each.dtype, "floats", do))
    if outputs != "values" and (before.ndim < 2 or not -before.ndim <= class_dim < before.ndim or not class_dim):
        got = f"shape {tuple(before.shape)} with class_dim={class_dim}"
        do = 'Pass class_dim=, or outputs="values" for a model that predicts numbers'
        raise ShapeError(describe("outputs of the model", got, "samples in dimension 0 and classes in another", do))
    if outputs != "values" and before.shape[class_dim] < 2:
        do = 'Pass outputs="values" for a model that predicts one number'
        raise ShapeError(describe("outputs of the model", f"shape {tuple(before.shape)}", "two classes or more", do))
