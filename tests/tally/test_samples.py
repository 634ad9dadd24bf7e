from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.errors import DtypeError, ShapeError
from assay.tally.base import Batch, BatchLayout, TensorLayout, merge
from assay.tally.stores.samples import SampleTally

CPU = torch.device("cpu")


def bits(made):
    return [(made.column(name).dtype, made.column(name).numpy().tobytes()) for name in made.columns]


def added(tally, *batches):
    state = tally.zero(CPU)
    for batch in batches:
        tally.add(state, batch)
    return tally.canonicalize(state, 0)


def test_the_tally_keeps_each_element_as_a_sample_of_one_output():
    tally = SampleTally(weighted=True)
    x = torch.arange(6.0).view(2, 3)
    kept = tally.compute(added(tally, Batch(x, x + 1, torch.tensor([1, 2]))))
    assert kept["preds"].shape == kept["target"].shape == (1, 6)
    assert np.array_equal(kept["target"], kept["preds"] + 1)
    assert kept.weights is not None
    assert np.array_equal(kept.weights, np.where(kept["preds"] < 3, 1, 2))


def test_the_tally_keeps_outputs_apart():
    tally = SampleTally(("preds",), num_outputs=2)
    kept = tally.compute(added(tally, Batch(torch.tensor([[1, 2], [3, 4]])), Batch(torch.tensor([[0, 9]]))))
    assert kept["preds"].dtype == np.int64
    assert sorted(map(tuple, kept["preds"].T.tolist())) == [(0, 9), (1, 2), (3, 4)]


def test_the_tally_merges_by_concatenation_and_settles_to_the_same_bits():
    tally, x = SampleTally(), torch.randn(200)
    whole = added(tally, Batch(x, x.exp()))
    parts = []
    for half in (slice(120, None), slice(0, 120)):
        parts.append(tally.zero(CPU))
        tally.add(parts[-1], Batch(x[half], x.exp()[half]))
    merged = tally.canonicalize(merge(tally, parts), 200)
    assert bits(merged["samples"]) == bits(whole["samples"])


def test_the_tally_counts_nan():
    tally = SampleTally()
    state = added(tally, Batch(torch.tensor([1.0, float("nan"), 2.0]), torch.zeros(3)))
    assert [(p.what, p.count, p.fatal) for p in tally.invalid_values(state)] == [("values are NaN", 1, False)]
    assert tally.invalid_values(added(tally)) == []


FLOATS = TensorLayout(torch.float32, ())


@pytest.mark.parametrize(
    ("tally", "layout", "error", "message"),
    [
        (SampleTally(), BatchLayout(FLOATS, None, None), ShapeError, "target: got nothing, expected a tensor"),
        (
            SampleTally(),
            BatchLayout(FLOATS, TensorLayout(torch.complex64, ()), None),
            DtypeError,
            "target: got torch.complex64",
        ),
        (
            SampleTally(),
            BatchLayout(FLOATS, TensorLayout(torch.float32, (2,)), None),
            ShapeError,
            r"target: got shape \(N, 2\)",
        ),
        (
            SampleTally(num_outputs=2),
            BatchLayout(FLOATS, FLOATS, None),
            ShapeError,
            r"preds: got shape \(N,\), expected shape",
        ),
        (
            SampleTally(),
            BatchLayout(FLOATS, FLOATS, TensorLayout(torch.float32, (3,))),
            ShapeError,
            r"weights: got shape \(N, 3\)",
        ),
        (
            SampleTally(),
            BatchLayout(FLOATS, FLOATS, TensorLayout(torch.complex64, ())),
            DtypeError,
            "weights: got torch.complex64",
        ),
    ],
)
def test_layouts_that_cannot_be_kept_raise(tally, layout, error, message):
    with pytest.raises(error, match=message):
        tally.check(layout)


def test_layouts_that_can_be_kept_pass():
    SampleTally().check(
        BatchLayout(
            TensorLayout(torch.int64, (3, 4)), TensorLayout(torch.float16, (3, 4)), TensorLayout(torch.float32, ())
        )
    )
    SampleTally(("preds",), num_outputs=1).check(BatchLayout(FLOATS, None, None))
