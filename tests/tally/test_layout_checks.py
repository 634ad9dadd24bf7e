"""What a message about shapes says to do."""

from __future__ import annotations

import pytest
import torch

from assay.errors import ShapeError
from assay.tally.base import TensorLayout
from assay.tally.layout_checks import check_as_preds


@pytest.mark.parametrize(
    ("preds", "target", "advice"),
    [
        ((4, 1), (4,), "Reshape target"),
        ((3, 8, 8), (3, 8, 9), "Resize or crop"),
        ((8, 8), (8, 9), "Give target the shape of preds"),
        ((3, 8, 8), (8, 9), "Give target the shape of preds"),
    ],
)
def test_the_advice_fits_the_shapes(preds, target, advice):
    with pytest.raises(ShapeError, match=advice):
        check_as_preds("target", TensorLayout(torch.float32, target), TensorLayout(torch.float32, preds))
