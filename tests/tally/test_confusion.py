"""The confusion matrix and the class counts: every cell, what should not be there, and that one covers the other."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assay.decide import Argmax, Threshold
from assay.errors import ConfigError
from assay.meter import Meter
from assay.metrics.classification.agreement import CohenKappa, MatthewsCorrCoef
from assay.metrics.classification.confusion import ConfusionMatrix
from assay.metrics.classification.rates import (
    Accuracy,
    F1Score,
    HammingDistance,
    JaccardIndex,
    Precision,
    Recall,
    Specificity,
)
from assay.tally.base import Batch
from assay.tally.labels import confusion
from assay.tally.labels.confusion import ClassCounts, Confusion, class_tally
from assay.tally.labels.labels import Labels
from counting import counted

CPU = torch.device("cpu")
SIZE = 4
labels_lists = st.lists(st.tuples(st.integers(-3, 6), st.integers(-3, 6)), max_size=40)
every_ignored = pytest.mark.parametrize("ignored", [None, -3, 0, 2, 6])


def counts_of(tally, pairs, weights=None) -> dict[str, Tensor]:
    """The canonical state of (predicted, true) pairs."""
    state = tally.zero(CPU)
    preds, target = torch.tensor(pairs, dtype=torch.long).view(-1, 2).unbind(1)
    tally.add(state, Batch(preds, target, None if weights is None else torch.tensor(weights)))
    return tally.canonicalize(state, len(pairs))


def column_of(label: int) -> int:
    return min(max(label, -1), SIZE) + 1


def row_of(label: int, ignored: int | None) -> int:
    return SIZE + 2 if label == ignored else column_of(label)


@every_ignored
@given(labels_lists)
def test_every_pair_falls_into_its_cell(ignored, pairs):
    tally = Confusion(Labels(SIZE, Argmax(), ignore_index=ignored))
    table = torch.zeros(1, SIZE + 3, SIZE + 2, dtype=torch.long)
    for predicted, true in pairs:
        table[0, row_of(true, ignored), column_of(predicted)] += 1
    assert torch.equal(counts_of(tally, pairs)["counts"], table)
    known = [(p, t) for p, t in pairs if 0 <= t < SIZE and t != ignored and 0 <= p < SIZE]
    matrix = tally.compute(counts_of(tally, pairs)).values
    assert matrix.shape == (1, SIZE, SIZE)
    for i, j in itertools.product(range(SIZE), repeat=2):
        assert matrix[0, i, j] == known.count((j, i))


@every_ignored
@pytest.mark.parametrize("kind", [Confusion, ClassCounts])
@given(labels_lists)
def test_what_should_not_be_there_is_counted(kind, ignored, pairs):
    tally = kind(Labels(SIZE, Argmax(), ignore_index=ignored))
    targets = sum(not 0 <= true < SIZE and true != ignored for _, true in pairs)
    predictions = sum(0 <= true < SIZE and true != ignored and not 0 <= p < SIZE for p, true in pairs)
    problems = {problem.what.split()[0]: problem.count for problem in tally.invalid_values(counts_of(tally, pairs))}
    expected = {"targets": targets, "predictions": predictions}
    assert problems == {name: count for name, count in expected.items() if count}


@every_ignored
@pytest.mark.parametrize("weighted", [False, True])
@given(labels_lists, st.data())
def test_class_counts_are_part_of_the_confusion_matrix(weighted, ignored, pairs, data):
    labels = Labels(SIZE, Argmax(), ignore_index=ignored)
    whole, part = Confusion(labels, weighted), ClassCounts(labels, weighted)
    weights = None
    if weighted:
        numbers = st.floats(0, 2**100, width=32)
        weights = data.draw(st.lists(numbers, min_size=len(pairs), max_size=len(pairs)))
    own, read = counts_of(part, pairs, weights), whole.extract(counts_of(whole, pairs, weights), part)
    assert own.keys() == read.keys()
    for name in own:
        assert torch.equal(own[name], read[name]), name
    a, b = part.compute(own), whole.compute(counts_of(whole, pairs, weights)).totals()
    for one, other in ((a.target, b.target), (a.hits, b.hits)):
        if all(0 <= p < SIZE for p, _ in pairs):
            assert one.tolist() == other.tolist()


def test_one_covers_the_other_in_either_order():
    labels, other = Labels(200, Argmax()), Labels(200, Argmax(), ignore_index=3)
    whole, part = Confusion(labels), ClassCounts(labels)
    assert whole.union(part) == part.union(whole) == whole
    assert part.union(part) == part
    assert whole.union(ClassCounts(other)) is None
    assert part.union(Confusion(other)) is None
    assert part.union(ClassCounts(other)) is None
    assert whole.union(ClassCounts(labels, weighted=True)) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_summed_exactly(weighted):
    tally = Confusion(Labels(2, Threshold(), multiclass=False), weighted=True)
    weights = [1e30, 1.0, 2.0**-149, -1e30] if weighted else [1.0, 1.0, 1.0, 1.0]
    counts = tally.compute(counts_of(tally, [(1, 1), (1, 1), (1, 1), (1, 1)], weights))
    exact = sum(Fraction(float(torch.tensor(w))) for w in weights)
    assert Fraction(counts.values[0, 1, 1], 1 << -counts.unit) == exact
    assert counts.values[0].sum() == counts.values[0, 1, 1]


def test_multilabel_labels_have_a_matrix_each():
    tally = Confusion(Labels(2, Threshold(), num_labels=3, multiclass=False))
    state = tally.zero(CPU)
    target = torch.tensor([[0, 1, 1], [0, 0, 1]])
    tally.add(state, Batch(torch.tensor([[0.9, 0.9, 0.1], [0.1, 0.1, 0.1]]), target))
    assert tally.compute(state).values.tolist() == [[[1, 1], [0, 0]], [[1, 0], [0, 1]], [[0, 0], [2, 0]]]


def test_the_smallest_state_is_chosen():
    few, many = Labels(confusion.FEW_CLASSES, Argmax()), Labels(confusion.FEW_CLASSES + 1, Argmax())
    assert isinstance(class_tally(few, weighted=False), Confusion)
    assert isinstance(class_tally(few, weighted=True), ClassCounts)
    assert isinstance(class_tally(many, weighted=False), ClassCounts)


@pytest.mark.parametrize("classes", [10, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_state_has_the_size_that_is_stated(classes, weighted):
    labels = Labels(classes, Argmax())
    sizes = {Confusion: 8 * (classes + 3) * (classes + 2), ClassCounts: 24 * (classes + 3)}
    for kind, size in sizes.items():
        state = kind(labels, weighted).zero(CPU)
        limit = size * 70 + 8 if weighted else size
        assert size <= sum(tensor.nbytes for tensor in state.values()) <= limit


def test_a_matrix_that_is_too_large_says_what_to_do():
    with pytest.raises(ConfigError) as error:
        Confusion(Labels(20_000, Argmax()))
    assert str(error.value) == (
        "num_classes: got 20000, whose Confusion takes 3.0 GiB, expected at most 2 GiB. "
        "Use metrics that need no confusion matrix, such as Accuracy or F1Score, or merge classes."
    )
    ClassCounts(Labels(1_000_000, Argmax()))


# --- what an update costs ------------------------------------------------------------------------------------------


def twelve(classes: int) -> dict[str, object]:
    """The collection of the benchmarks."""
    return {
        "micro": Accuracy(num_classes=classes),
        "macro": Accuracy(num_classes=classes, average="macro"),
        "top5": Accuracy(num_classes=classes, top_k=5),
        "precision": Precision(num_classes=classes),
        "recall": Recall(num_classes=classes),
        "f1": F1Score(num_classes=classes),
        "specificity": Specificity(num_classes=classes),
        "mcc": MatthewsCorrCoef(num_classes=classes),
        "kappa": CohenKappa(num_classes=classes),
        "jaccard": JaccardIndex(num_classes=classes),
        "matrix": ConfusionMatrix(num_classes=classes),
        "hamming": HammingDistance(num_classes=classes),
    }


@pytest.mark.parametrize("classes", [10, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_twelve_metrics_are_two_tallies(classes, reverse):
    named = dict(reversed(twelve(classes).items())) if reverse else twelve(classes)
    tallies = Meter(**named).tallies
    assert len(tallies) == 2
    assert {type(tally) for tally in tallies} == ({Confusion} if classes == 10 else {Confusion, ClassCounts})


@pytest.mark.parametrize(
    ("metrics", "classes", "most"),
    [("one", 10, 11), ("one", 1000, 21), ("twelve", 10, 28), ("twelve", 1000, 38)],
)
def test_an_update_starts_few_kernels_and_waits_for_none(metrics, classes, most):
    named = twelve(classes) if metrics == "twelve" else {"acc": Accuracy(num_classes=classes)}
    generator = torch.Generator().manual_seed(0)
    scores, target = torch.rand(64, classes, generator=generator), torch.randint(0, classes, (64,), generator=generator)
    at_once, staged = Meter(stage_bytes=0, **named), Meter(**named)
    for meter in (at_once, staged):
        meter.update(scores, target)
    staged.update(scores, target)  # into room for many, which the second batch makes
    with counted() as counts:
        at_once.update(scores, target)
    assert counts.syncs == []
    assert counts.copies == []
    assert 0 < counts.calls <= most
    with counted() as counts:
        staged.update(scores, target)
    assert counts.syncs == []
    assert not counts.ops  # compiled code copies the rows
    for _ in range(2):
        at_once.update(scores, target)
    staged.update(scores, target)
    for name, value in at_once.compute().items():
        assert torch.equal(value, staged.compute()[name])
