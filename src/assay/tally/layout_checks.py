"""Checks of the shapes and dtypes of a batch that several tallies need."""

from __future__ import annotations

import math

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import TensorLayout, shown

NO_TARGET = "Pass preds and target; of a table or batches, name it with target= (--target)"
"""What to do where there is no target."""
AS_INTEGERS = "Pass target.long(), of an array target.astype(int)"
"""What to do where labels are floats."""
AS_SCORES = "Pass scores, such as probabilities, and no labels; integers that are scores as floats"
"""What to do where scores are integers."""
OUTSIDE = "outside [0, 1] (divide percentages by 100; scores of any size are for logits=True)"
"""How scores are invalid that are no probabilities."""


def check_real(name: str, column: TensorLayout) -> None:
    """Raise for complex numbers."""
    if column.dtype.is_complex:
        raise DtypeError(describe(name, column.dtype, "real numbers", "Pass the real part or the modulus"))


def check_as_preds(name: str, column: TensorLayout | None, preds: TensorLayout) -> TensorLayout:
    """An argument that must be there, real, and of the shape of preds."""
    if column is None:
        raise ShapeError(describe(name, "nothing", "a tensor of the shape of preds", f"Pass {name}"))
    check_real(name, column)
    if column.tail != preds.tail:
        got = f"shape {shown(column.tail)} with preds of shape {shown(preds.tail)}"
        do = f"Give {name} the shape of preds"
        if math.prod(column.tail) == math.prod(preds.tail):
            do = f"Reshape {name}, for example with squeeze(-1) or unsqueeze(-1)"
        elif len(column.tail) == len(preds.tail) > 2:
            do = f"Resize or crop preds and {name} to one size"
        raise ShapeError(describe(name, got, "the shape of preds", do))
    return column


def check_weights(weights: TensorLayout | None, tail: tuple[int, ...] = ()) -> None:
    """Raise where weights are not `(N,)` or of the shape `(N, *tail)`, or complex."""
    if weights is None:
        return
    check_real("weights", weights)
    if weights.tail not in ((), tail):
        expected = "shape (N,)" + (f" or {shown(tail)}" if tail else "")
        do = "Give one weight per row" + (", or one each" if tail else "")
        raise ShapeError(describe("weights", f"shape {shown(weights.tail)}", expected, do))


def shown_or_nothing(column: TensorLayout | None) -> str:
    """The shape of an argument that may be missing, for messages."""
    return "nothing" if column is None else shown(column.tail)
