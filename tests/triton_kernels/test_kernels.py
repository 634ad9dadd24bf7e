"""Kernels in Triton against torch's operators, bit by bit: on CUDA where it is, otherwise in Triton's interpreter."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import MeanSquaredError, Meter
from assay.decide import Argmax, TopK
from assay.devices.policies import _triton
from assay.errors import KernelWarning
from assay.meter.counting import device_counts
from assay.tally import triton_check
from assay.tally.base import Batch, State, Tally
from assay.tally.labels.confusion import ClassCounts, Confusion
from assay.tally.labels.labels import Labels
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.scores import ScoreTally
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums import exact
from assay.tally.sums.row_sums import RowSums
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, AbsoluteValue, Product
from assay.triton_kernels import launch

pytest.importorskip("triton")

ON_CUDA = torch.cuda.is_available()
MOMENTS = frozenset({PREDS, Product(PREDS, TARGET), Product(PREDS, PREDS)})


@pytest.fixture(
    params=[
        pytest.param("cpu", marks=pytest.mark.skipif(ON_CUDA, reason="kernels are compiled here, not interpreted")),
        pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not ON_CUDA, reason="needs CUDA")]),
    ]
)
def device(request) -> torch.device:
    return torch.device(request.param)


def in_triton(tally: Tally, *batches: Batch, device: torch.device) -> State:
    """The canonical state after batches that kernels count."""
    state = tally.zero(device)
    for batch in batches:
        given_ = [None if each is None else each.to(device) for each in (batch.preds, batch.target, batch.weights)]
        tally.add(state, Batch(*given_, triton=True))
    assert not launch.failures(), "or torch's operators would have counted"
    on_host = {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in state.items()}
    return tally.canonicalize(on_host, sum(len(batch.preds) for batch in batches))


def in_torch(tally: Tally, *batches: Batch) -> State:
    state = tally.zero(torch.device("cpu"))
    for batch in batches:
        tally.add(state, batch)
    return tally.canonicalize(state, sum(len(batch.preds) for batch in batches))


def same(tally: Tally, *batches: Batch, device: torch.device) -> bool:
    got, expected = in_triton(tally, *batches, device=device), in_torch(tally, *batches)
    assert got.keys() == expected.keys()
    return all(_equal(got[name], expected[name]) for name in expected)


def _equal(a, b) -> bool:
    if isinstance(a, SampleStore):
        return all(torch.equal(a.column(name).nan_to_num(7), b.column(name).nan_to_num(7)) for name in b.columns)
    return torch.equal(a, b)


def drawn(kind: str, *shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, dtype=torch.int32)
    match kind:
        case "normal":
            return torch.randn(shape, generator=generator)
        case "any bits":
            return bits.view(torch.float32).nan_to_num(0, 1, -1)
        case "denormal":
            return (bits & 0x807FFFFF - 2**32).view(torch.float32)
        case "largest":
            return torch.full(shape, torch.finfo(torch.float32).max)
        case "not finite":
            return torch.where(bits % 5 == 0, torch.tensor([math.inf, -math.inf, math.nan])[bits % 3], bits / 7.0)
    raise AssertionError(kind)


# --- exact sums ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["any bits", "denormal", "largest", "not finite"])
def test_sums_and_products_are_those_of_torch(kind, device):
    batch = Batch(drawn(kind, 1025), drawn(kind, 1025, seed=1))
    assert same(Sums(MOMENTS), batch, device=device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_columns_of_outputs_in_every_dtype(dtype, device):
    preds, target = (drawn("any bits", 3, 130, seed=k).to(dtype).nan_to_num(0, 1, -1).t() for k in range(2))
    assert same(Sums(frozenset({PREDS, Product(PREDS, TARGET)}), 3), Batch(preds, target), device=device)


def test_weighted_absolute_errors_have_three_factors(device):
    preds, target, weights = (drawn("any bits", 33, seed=k) for k in range(3))
    terms = frozenset({AbsoluteError(), AbsoluteValue(), Product(PREDS, TARGET)})
    batch = Batch(preds, target, weights.abs())
    assert same(Sums(terms, weighted=True), batch, device=device)


@pytest.mark.parametrize("kind", ["any bits", "not finite"])
def test_sums_of_numbers_of_rows(kind, device):
    preds, weights = drawn(kind, 40, 3), drawn("any bits", 40).abs()
    weights[::7] = math.nan
    assert same(RowSums(RowNumbers(3)), Batch(preds), device=device)
    assert same(RowSums(RowNumbers(3), weighted=True), Batch(preds, None, weights), device=device)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_other_dtypes_are_counted_by_torch(dtype, device):
    batch = Batch(drawn("normal", 9).to(dtype), drawn("normal", 9, seed=1).to(dtype))
    assert same(Sums(MOMENTS), batch, device=device)


def test_words_are_carried_after_each_batch_so_that_no_number_of_batches_wraps(device):
    batch = Batch(drawn("largest", 40), -drawn("largest", 40))
    state = Sums(MOMENTS).zero(device)
    for _ in range(3):
        Sums(MOMENTS).add(state, Batch(batch.preds.to(device), batch.needed_target.to(device), triton=True))
    for name in ("sums1", "sums2"):
        assert state[name][..., :-1].abs().max() < 2**33 + 1
    assert same(Sums(MOMENTS), batch, Batch(batch.preds[:0], batch.needed_target[:0]), batch, device=device)


@settings(max_examples=4)
@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 2), max_size=20))
def test_a_sum_of_products_is_the_rational_one(rows):
    device = torch.device("cuda" if ON_CUDA else "cpu")
    columns = torch.tensor(rows, dtype=torch.float32).view(-1, 2)
    tally = Sums(frozenset({Product(PREDS, TARGET)}))
    (value,) = exact.fractions(in_triton(tally, Batch(*columns.unbind(1)), device=device)["sums2"], 2)
    assert value == sum((Fraction(a) * Fraction(b) for a, b in rows), Fraction(0))


# --- labels --------------------------------------------------------------------------------------------------------


def labelled(classes: int, *shape: int, dtype: torch.dtype = torch.float32) -> Batch:
    generator = torch.Generator().manual_seed(classes)
    scores = torch.randn(shape[0], classes, *shape[1:], generator=generator).mul(2).round()  # with ties
    scores[::7, classes // 2] = math.nan
    scores[1::7, 0] = math.inf
    scores[2::7] = -math.inf
    scores[3::7] = 0
    scores[3::7, ::2] = -0.0
    return Batch(scores.to(dtype), torch.randint(-2, classes + 2, shape, generator=generator))


@pytest.mark.parametrize("decision", [Argmax(), TopK(2)], ids=repr)
@pytest.mark.parametrize("classes", [2, 10, 300])
def test_labels_and_their_counts_are_those_of_torch(classes, decision, device):
    labels = Labels(classes, decision, ignore_index=1)
    batch = labelled(classes, 31)
    assert same(Confusion(labels), batch, device=device)
    assert same(ClassCounts(labels), batch, device=device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_pixels_in_every_dtype(dtype, device):
    batch = labelled(4, 8, 3, 5, dtype=dtype)
    tally = Confusion(Labels(4, TopK(3)))
    assert same(tally, batch, Batch(batch.preds[:0], batch.needed_target[:0]), device=device)
    strided = Batch(batch.preds.flip(3).transpose(2, 3), batch.needed_target.transpose(1, 2).to(torch.uint8))
    assert same(tally, strided, device=device)


def test_the_labels_of_one_launch_serve_other_tallies(device):
    labels = Labels(5, Argmax())
    batch = labelled(5, 20)
    on_device = Batch(batch.preds.to(device), batch.needed_target.to(device), triton=True)
    Confusion(labels).add(Confusion(labels).zero(device), on_device)
    assert on_device.has((labels.decision, True))
    assert torch.equal(labels.predicted(on_device).cpu(), labels.predicted(batch))


@pytest.mark.parametrize("decision", [Argmax(), TopK(1)], ids=repr)
def test_labels_instead_of_scores(decision, device):
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.randint(-2, 6, (2, 300), generator=generator)
    assert same(Confusion(Labels(4, Argmax())), Batch(preds, target), device=device)
    assert same(Confusion(Labels(2, Argmax(), multiclass=False)), Batch(preds, target > 1), device=device)


# --- scores --------------------------------------------------------------------------------------------------------


def scored(logits: bool, rows: int, *groups: int) -> torch.Tensor:
    values = drawn("normal", rows, *groups)
    values = values * 3 if logits else values.abs() / 4  # a few are above 1
    values[::9] = drawn("any bits", len(values[::9]), *groups)
    values[1::9] = math.nan
    values[2::9] = math.inf if logits else 2.0**-140
    values[3::9] = 1.0
    values[4::9] = -0.0
    return values


@pytest.mark.parametrize("keep", [0, 1 << 20])
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_bins_and_known_labels_are_those_of_torch(task, logits, keep, device):
    kinds = {"binary": (score_spec(None, None, 3, logits), ()), "multiclass": (score_spec(5, None, None, logits), (5,))}
    spec, groups = kinds.get(task, (score_spec(None, 3, -1, logits), (3,)))
    scores = scored(logits, 50, *groups)
    shape = (50, 3) if task == "multilabel" else (50,)
    target = torch.randint(-1, 6 if task == "multiclass" else 4, shape, generator=torch.Generator().manual_seed(0))
    assert same(ScoreTally(spec, keep), Batch(scores, target), device=device)


# --- what surrounds them -------------------------------------------------------------------------------------------


def test_the_self_test_passes(device):
    test = triton_check.check_kernels(device)
    assert test.passed, test.failures


def test_a_wrong_count_fails_the_self_test_and_turns_the_kernels_off(device, monkeypatch):
    monkeypatch.setattr(launch, "launch", lambda *a, **k: True)
    monkeypatch.setattr("assay.triton_kernels.sums.launch", lambda *a, **k: True)  # which counts nothing
    monkeypatch.setenv("ASSAY_TRITON", "interpreter")
    monkeypatch.setattr(triton_check, "policy", lambda device: type("Allowed", (), {"triton": _triton(device)}))
    with pytest.warns(KernelWarning, match="self-test .*sums of any numbers: .*sums1"):
        assert not triton_check.uses_triton.__wrapped__(device)


def test_a_kernel_that_does_not_compile_is_named_once_and_torch_counts(device, monkeypatch):
    monkeypatch.setattr(launch, "_failed", {})
    monkeypatch.setattr(launch, "import_module", lambda name: type("Program", (), {"add_products": None}))
    batch = Batch(drawn("normal", 9), drawn("normal", 9, seed=1))
    state = Sums(MOMENTS).zero(device)
    on_device = Batch(batch.preds.to(device), batch.needed_target.to(device), triton=True)
    with pytest.warns(KernelWarning, match=r"sums.add_products does not run on .*'NoneType' object"):
        Sums(MOMENTS).add(state, on_device)
    Sums(MOMENTS).add(state, on_device)  # without a warning
    got = Sums(MOMENTS).canonicalize({name: value.cpu() for name, value in state.items()}, 18)
    assert all(torch.equal(got[name], value) for name, value in in_torch(Sums(MOMENTS), batch, batch).items())


def test_a_meter_counts_in_them_where_they_are_allowed(device, monkeypatch):
    launched = []

    def noted(name, *arguments, **constants):
        launched.append(name)
        return launch.launch(name, *arguments, **constants)

    batch = drawn("normal", 50), drawn("normal", 50, seed=1)
    expected = MeanSquaredError()(*batch)
    monkeypatch.setattr("assay.triton_kernels.sums.launch", noted)
    monkeypatch.setattr(device_counts, "uses_triton", lambda device: True)
    meter = Meter(MeanSquaredError())
    meter.update(*(each.to(device) for each in batch))
    assert meter.compute()["MeanSquaredError"] == expected
    assert launched == ["sums.add_products", "sums.carry"]
