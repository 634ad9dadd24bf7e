"""Whatever the arguments of an update are, a metric gives a value or one error of its own."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.errors import AssayError, AssayWarning
from assay.metrics.samples import draw_columns, draw_for, examples, public_metrics
from thinning import TURNS, one_of_each

ROWS = 4
EACH = 3
"""A metric is given every third of the inputs for each argument, another third than the metric before it."""


def _filled(value: float) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.full(x.shape, value, dtype=torch.float64)


TENSORS: dict[str, Callable[[Tensor], Any]] = {
    "one dimension more": lambda x: x[..., None],
    "another first dimension": lambda x: x[None],
    "no dimension": lambda x: x.flatten()[0],
    "one sample less": lambda x: x[:-1],
    "no sample": lambda x: x[:0],
    "no element": lambda x: torch.empty(len(x), 0),
    "NaN": _filled(math.nan),
    "infinity": _filled(math.inf),
    "-infinity": _filled(-math.inf),
    "the largest floats": _filled(1e308),
    "the smallest float": _filled(5e-324),
    "zeros": torch.zeros_like,
    "the largest integers": lambda x: torch.full(x.shape, (1 << 63) - 1),
    "the least integer": lambda x: torch.full(x.shape, -1 << 63),
    "unsigned integers": lambda x: torch.full(x.shape, (1 << 64) - 1, dtype=torch.uint64),
    "float8": lambda x: x.float().to(torch.float8_e4m3fn),
    "bool": lambda x: x.bool(),
    "complex": lambda x: x.to(torch.complex64),
    "sparse": lambda x: x.to_sparse(),
    "meta": lambda x: x.to("meta"),
    "with a gradient": lambda x: x.float().clone().requires_grad_(),
    "not contiguous": lambda x: x.repeat_interleave(2, 0)[::2],
    "one row repeated": lambda x: x[:1].expand(x.shape),
    "a list of tensors": list,
    "NumPy": lambda x: x.numpy(),
}
LISTS: dict[str, Callable[[Any], Any]] = {
    "one sample less": lambda x: x[:-1],
    "no sample": lambda x: x[:0],
    "None among them": lambda x: [None, *x[1:]],
    "bytes among them": lambda x: [b"a", *x[1:]],
    "lists in lists": lambda x: [[each] for each in x],
    "numbers": lambda x: [math.nan] * len(x),
    "large integers": lambda x: [1 << 70] * len(x),
    "tensors": lambda x: [torch.zeros(3)] * len(x),
    "empty strings": lambda x: [""] * len(x),
    "empty lists": lambda x: [[]] * len(x),
    "half a character": lambda x: ["\ud800 \0"] * len(x),
    "a tensor": lambda x: torch.zeros(len(x)),
}
ANYTHING: dict[str, Callable[[Any], Any]] = {
    "None": lambda _: None,
    "a string": lambda _: "abcd",
    "bytes": lambda _: b"abcd",
    "a number": lambda _: 3,
    "a dictionary": lambda x: {"preds": x},
    "a set": lambda _: {1, 2},
    "an object": lambda _: object(),
    "a generator": lambda x: (each for each in x),
}
KINDS = [kind for name, kind in public_metrics().items() if name != "PerSample"]  # whose function is the caller's


def _hostile(argument: Any, turn: int) -> list[tuple[str, Any]]:
    """Some of what an argument may be instead."""
    inputs = ANYTHING | (TENSORS if isinstance(argument, Tensor) else LISTS)
    return [(name, make(argument)) for name, make in itertools.islice(inputs.items(), turn % EACH, None, EACH)]


@one_of_each(lambda turn: turn, TURNS)
@pytest.mark.parametrize("turn", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_a_metric_gives_a_value_or_an_error_of_its_own(turn):
    metric = next(examples(KINDS[turn]))
    generator = torch.Generator().manual_seed(turn)
    data = dict(zip(("preds", "target"), draw_for(metric)(generator, ROWS), strict=False))
    data |= draw_columns(metric, generator, ROWS)
    for place, argument in enumerate({**data, "weights": torch.ones(ROWS)}.items()):
        for name, value in _hostile(argument[1], turn + place):
            _call(metric, f"{argument[0]}: {name}", **{**data, argument[0]: value})
    for name in list(TENSORS)[turn % EACH :: EACH]:
        if all(isinstance(each, Tensor) and not each.is_complex() for each in data.values()):
            _call(metric, f"all: {name}", **{key: TENSORS[name](each) for key, each in data.items()})


def _call(metric, what, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        try:
            metric(**arguments)
        except AssayError:
            pass
        except Exception as error:
            raise AssertionError(f"{metric!r} with {what}") from error


@pytest.mark.parametrize("name", ["AveragePrecision", "CHRFScore", "ClusterAccuracy", "DaviesBouldinScore"])
def test_the_largest_weights_of_all_samples_change_no_mean(name):
    metric = next(examples(public_metrics()[name]))
    data = draw_for(metric)(torch.Generator().manual_seed(0), 12)
    weights = torch.full((12,), 1e308, dtype=torch.float64)
    assert float(metric(*data, weights=weights)) == pytest.approx(float(metric(*data)), rel=1e-14)


def test_what_is_beyond_float64_is_infinite_and_what_is_not_is_a_number():
    preds, target = torch.full((1, 1, 2, 2), 1e308, dtype=torch.float64), torch.zeros(1, 1, 2, 2)
    assert float(public_metrics()["PeakSignalNoiseRatio"](data_range=1.0)(preds, target)) == pytest.approx(-6160)
    metric = public_metrics()["MemorizationInformedFrechetInceptionDistance"](num_features=2)
    features, real = torch.rand(12, 2, generator=torch.Generator().manual_seed(0)).double(), torch.arange(12) % 2
    large = metric(features * 2.0**450, real)
    assert float(large) == pytest.approx(float(metric(features, real)) * 2.0**900, rel=1e-12)
    assert float(metric(features * 2.0**1000, real)) == math.inf
    support = public_metrics()["StatScores"]()(
        real, real, weights=torch.full((12,), 1.7e308, dtype=torch.float64)
    ).support
    assert float(support) == math.inf
