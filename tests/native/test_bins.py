"""The compiled histogram of scores against the same in torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import AUROC, Meter
from assay.native import bins
from assay.native.bins import count_confidence, place_scores
from assay.native.library import MISSING, library
from assay.tally.base import Batch, State, Tally
from assay.tally.scores.histogram import Confidence
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.score_bins import ScoreBins
from assay.tally.scores.scores import ScoreTally
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums import exact
from thinning import every_third

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)


def counted(tally: Tally, scores: torch.Tensor, target: torch.Tensor, compiled: bool) -> State:
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(scores, target, compiled=compiled))
    return tally.canonicalize(state, len(scores))


def assert_same(
    scores: torch.Tensor,
    target: torch.Tensor,
    logits: bool,
    ignore_index: int | None = None,
    num_classes: int | None = None,
    num_labels: int | None = None,
) -> None:
    data = score_spec(num_classes, num_labels, ignore_index, logits)
    tallies: list[Tally] = [ScoreTally(data, keep=0), ScoreTally(data, keep=3), ScoreTally(data, keep=None)]
    if num_labels is None:
        tallies += [Confidence(data), Confidence(data, num_bins=100)]
    for tally in tallies:
        compiled, in_torch = (counted(tally, scores, target, flag) for flag in (True, False))
        assert compiled.keys() == in_torch.keys()
        for name, value in compiled.items():
            assert all(map(torch.equal, columns(value), columns(in_torch[name]))), (tally, name)
        if isinstance(tally, Confidence) and scores.is_contiguous() and target.is_contiguous():
            assert_same_prepared(tally, scores, target, in_torch)


def assert_same_prepared(tally: Tally, scores: torch.Tensor, target: torch.Tensor, expected: State) -> None:
    state = tally.zero(torch.device("cpu"))
    add = tally.prepare(state, Batch(scores, target, compiled=True))
    if add is not None:
        add(scores, target, None)
        for name, value in tally.canonicalize(state, len(scores)).items():
            assert torch.equal(value, expected[name]), (tally, name)


def columns(value: torch.Tensor | SampleStore) -> list[torch.Tensor]:
    """The bits of a field of a state."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [value.column("scores").view(torch.int32), value.column("target")]


def drawn(kind: str, rows: int = 5000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(rows, generator=generator)
    match kind:
        case "uniform":
            return torch.rand(rows, generator=generator)
        case "confident":
            return torch.sigmoid(10 * normal)
        case "logits":
            return 5 * normal
        case "half":
            return torch.rand(rows, generator=generator).half().float()
        case "any bits":
            return torch.randint(-(2**31), 2**31 - 1, (rows,), generator=generator, dtype=torch.int32).view(
                torch.float32
            )
        case "ends":
            ends = torch.tensor([0.0, -0.0, 1.0, 0.5, math.nextafter(0.5, 0), 2.0**-149, math.inf, -math.inf, math.nan])
            return ends.float().repeat(rows // len(ends))
    raise AssertionError(kind)


@every_third
@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("ignore_index", [None, -100, 0, 1])
@pytest.mark.parametrize("kind", ["uniform", "confident", "logits", "half", "any bits", "ends"])
def test_same_counts_as_torch(kind: str, ignore_index: int | None, logits: bool) -> None:
    scores = drawn(kind)
    target = torch.randint(-1, 4, (len(scores),), generator=torch.Generator().manual_seed(1))
    target[::7] = -100
    assert_same(scores, target, logits, ignore_index)


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("ignore_index", [None, -100, 1])
@pytest.mark.parametrize("kind", ["confident", "logits", "any bits", "ends"])
def test_same_counts_of_labels(kind: str, ignore_index: int | None, logits: bool) -> None:
    scores = drawn(kind, 900).view(-1, 3)
    target = torch.randint(-1, 4, scores.shape, generator=torch.Generator().manual_seed(1))
    assert_same(scores, target, logits, ignore_index, num_labels=3)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 3])
def test_same_counts_of_more_classes_and_rows_than_are_counted_at_once(
    ignore_index: int | None, by_columns: bool
) -> None:
    scores = drawn("confident", 2500 * 37).view(2500, 37)
    scores[7, 20], scores[8, 36] = math.nan, 1.5
    target = torch.randint(-1, 38, (2500,), generator=torch.Generator().manual_seed(1))
    assert_same(scores.t().contiguous().t() if by_columns else scores, target, False, ignore_index, num_classes=37)


def test_same_counts_of_more_labels_than_are_counted_at_once() -> None:
    scores = drawn("confident", 300 * 21).view(300, 21)
    target = torch.randint(-1, 4, scores.shape, generator=torch.Generator().manual_seed(1))
    assert_same(scores, target, False, 1, num_labels=21)


def test_a_batch_of_many_classes_is_counted_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    count = bins.count_scores
    monkeypatch.setattr(bins, "count_scores", lambda *given: calls.append(len(given[2])) or count(*given))
    meter = Meter(value=AUROC(num_classes=400, exact_up_to=0))
    scores = torch.rand(1000, 400, generator=torch.Generator().manual_seed(0))
    meter.update(scores, torch.arange(1000) % 400)
    assert calls == [1000]
    parts = Meter(value=AUROC(num_classes=400, exact_up_to=0))
    for some in range(0, 1000, 250):
        parts.update(scores[some : some + 250], torch.arange(some, some + 250) % 400)
    (whole,), (other,) = meter.states(), parts.states()
    assert torch.equal(whole["histogram"], other["histogram"])


@given(st.lists(st.tuples(st.floats(width=32), st.integers(-2, 3)), min_size=1, max_size=20), st.booleans())
def test_any_floats(rows: list[tuple[float, int]], logits: bool) -> None:
    scores = torch.tensor([score for score, _ in rows], dtype=torch.float32)
    assert_same(scores, torch.tensor([label for _, label in rows]), logits)


@pytest.mark.parametrize("logits", [False, True])
def test_places_are_those_of_torch(logits: bool) -> None:
    scores = torch.cat([torch.randn(3_000) * 3, torch.rand(3_000), torch.tensor([math.nan, math.inf, -math.inf, 0, 1])])
    of_scores = ScoreBins(logits)
    for ours, theirs in zip(place_scores(scores, of_scores.layout), of_scores.place(scores), strict=True):
        assert torch.equal(ours.long(), theirs)


def test_which_batches_are_counted_as_rows_of_scores() -> None:
    scores, target = torch.rand(6, 3), torch.arange(6) % 3

    def is_prepared(tally: Confidence, *batch: torch.Tensor) -> bool:
        return tally.prepare(tally.zero(torch.device("cpu")), Batch(*batch, compiled=True)) is not None

    classes, binary = Confidence(score_spec(3)), Confidence(score_spec(None))
    assert is_prepared(classes, scores, target)
    assert is_prepared(binary, scores, target[:, None].expand(6, 3) % 2)
    assert not is_prepared(classes, torch.rand(3, 3, 3), torch.zeros(3, 3, dtype=torch.int64))  # classes second
    assert not is_prepared(classes, scores.double(), target)
    assert not is_prepared(classes, scores, target.int())
    assert not is_prepared(Confidence(score_spec(3, ignore_index=1)), scores, target)
    assert not is_prepared(Confidence(score_spec(3, logits=True)), scores, target)


def test_strided_scores_and_narrow_targets() -> None:
    scores = torch.rand(2000, 2)[:, 1]
    assert_same(scores, torch.randint(0, 2, (2000,), dtype=torch.uint8), False)
    assert_same(scores.view(20, 100).t(), torch.randint(0, 2, (100, 20)).bool(), False)


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("ignore_index", [None, 2])
def test_confidence_of_many_classes(ignore_index: int | None, logits: bool) -> None:
    scores = torch.randn(3000, 7, generator=torch.Generator().manual_seed(0))
    scores[5, 3], scores[6] = math.nan, 0.25
    scores = scores if logits else scores.softmax(1)
    target = torch.randint(-1, 8, (3000,), generator=torch.Generator().manual_seed(1))
    assert_same(scores, target, logits, ignore_index, num_classes=7)


@pytest.mark.skipif(library() is None, reason=MISSING)
@pytest.mark.parametrize("num_bins", [1, 15, 64, 65])
@pytest.mark.parametrize("first", [0.0, -0.0, 1.0, 2.0**-29, 2.0**-30, 1e-40, -0.5, 1.5, math.inf, math.nan])
def test_confidences_are_those_counted_in_torch(first: float, num_bins: int) -> None:
    """The first one decides whether its block is counted one by one; the blocks behind it are not."""
    confidence = torch.rand(2500, generator=torch.Generator().manual_seed(0))
    confidence[0] = first
    confidence[1:40] = torch.arange(39) / 38  # edges of bins
    outcome = torch.randint(-1, 2, (2500,), generator=torch.Generator().manual_seed(1)).to(torch.int8)
    outcome[0] = 1
    counts, limbs = (
        torch.zeros(num_bins, 2, dtype=torch.int64),
        torch.zeros(num_bins, exact.num_limbs(1), dtype=torch.int64),
    )
    count_confidence(counts, limbs, exact.origin(1), confidence, outcome)
    kept = (outcome >= 0) & confidence.isfinite()
    sure, right = confidence[kept], outcome[kept].long()
    place = (sure * num_bins).clamp(0, num_bins - 1).long()
    expected, sums = torch.zeros_like(counts), torch.zeros_like(limbs)
    expected[:, 0], expected[:, 1] = place.bincount(minlength=num_bins), place[right == 1].bincount(minlength=num_bins)
    exact.add_to(sums, exact.parts(sure), place)
    assert torch.equal(counts, expected)
    assert torch.equal(exact.canonical(limbs), exact.canonical(sums))
