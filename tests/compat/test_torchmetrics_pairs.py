"""Functions of each pair of rows under TorchMetrics' names: its numbers, from differences in float64, on any device."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from assay.compat.drop_ins import PAIRWISE
from assay.pretend import pretend

HOME = "torchmetrics.functional.pairwise"
SCIPY = {"cosine_similarity": "cosine", "euclidean_distance": "euclidean", "manhattan_distance": "cityblock"}


def both(name: str):
    return getattr(import_module(HOME), name), getattr(import_module(f"assay.compat.{HOME}"), name)


def rows(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("seed", range(6))
def test_numbers_shapes_and_dtypes_are_those_of_torchmetrics(name, seed):
    there, here = both(name)
    dtype = (torch.float32, torch.float64, torch.float16)[seed % 3]
    x = rows(seed, 1 + seed, 3 + seed % 2, dtype=dtype)
    y = rows(-seed - 1, 5, 3 + seed % 2, dtype=dtype) if seed % 2 else None
    options = [{}, {"zero_diagonal": seed % 2 == 1}, {"reduction": "mean"}, {"reduction": "sum"}, {"reduction": "none"}]
    if "minkowski" in name:
        options += [{"exponent": 3}, {"exponent": 1.5, "reduction": "mean"}]
    for given in options:
        loose = {"rtol": 4e-3, "atol": 4e-3} if dtype == torch.float16 else {"rtol": 2e-6, "atol": 2e-6}
        torch.testing.assert_close(here(x, y, **given), there(x, y, **given), **loose)
    assert here(x, y).dtype == there(x, y).dtype


@pytest.mark.parametrize("name", SCIPY)
def test_numbers_are_those_of_scipy(name):
    _, here = both(f"pairwise_{name}")
    x, y = rows(1, 40, 30), rows(2, 20, 30)
    expected = cdist(x.double().numpy(), y.double().numpy(), SCIPY[name])
    expected = 1 - expected if name == "cosine_similarity" else expected
    assert np.array_equal(here(x, y).numpy(), expected.astype(np.float32))


def test_rows_far_from_0_keep_their_distance():
    """TorchMetrics subtracts products in float64, of which nothing is left."""
    there, here = both("pairwise_euclidean_distance")
    x, y = torch.tensor([[1e8, 1.0]]), torch.tensor([[1e8, 0.0]])
    assert here(x, y).item() == 1
    assert there(x, y).item() != 1


def test_a_cosine_of_tiny_or_huge_rows_is_not_lost():
    _, here = both("pairwise_cosine_similarity")
    x = torch.tensor([[3e-200, 4e-200], [3e200, 4e200]], dtype=torch.float64)
    torch.testing.assert_close(here(x), torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64))


def test_a_row_of_zeros_has_no_cosine():
    there, here = both("pairwise_cosine_similarity")
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(here(x, x), there(x, x), equal_nan=True)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_gradient_is_that_of_torchmetrics(name):
    there, here = both(name)
    y = rows(2, 4, 3)
    gradients = []
    for function in (there, here):
        x = rows(1, 5, 3).requires_grad_()
        function(x, y).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("name", PAIRWISE)
def test_the_errors_are_those_of_torchmetrics(name):
    for function in both(name):
        with pytest.raises(ValueError, match="2D tensor"):
            function(torch.rand(3))
        with pytest.raises(ValueError, match="`d` should be same"):
            function(torch.rand(3, 2), torch.rand(3, 4))
        with pytest.raises(ValueError, match="reduction"):
            function(torch.rand(3, 2), reduction="max")
    if "minkowski" in name:
        with pytest.raises(Exception, match="greater than 1"):
            both(name)[1](torch.rand(3, 2), exponent=0.5)


@pytest.mark.parametrize("name", [each for each in PAIRWISE if "cosine" not in each])
def test_integers_stay_integers(name):
    there, here = both(name)
    x = torch.tensor([[2, 3], [3, 5], [5, 8]])
    torch.testing.assert_close(here(x), there(x))


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_device_without_float64_has_the_bits_of_the_cpu(name):
    _, here = both(name)
    x, y = rows(1, 5, 3), rows(2, 4, 3)
    expected = here(x, y)
    with pretend("mps"):
        found = here(x.to("mps"), y.to("mps"))
        assert found.device.type == "mps"
        found = found.cpu()
    assert torch.equal(found, expected)
