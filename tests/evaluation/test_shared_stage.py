"""Rows that the meter stages are handed to the observers of samples as well: they are copied once, and none is lost."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
import torch

from assay import Accuracy, F1Score, Meter
from assay.evaluation import evaluate
from assay.evaluation.loop import progress
from assay.evaluation.observe.observers import Observers
from assay.meter.resampling.replicates import CountedGroups
from thinning import every_third

GENERATOR = torch.Generator().manual_seed(4)
SCORES = torch.rand(700, 3, generator=GENERATOR)
TRUE = torch.randint(3, (700,), generator=GENERATOR)
ROWS_AT_A_TIME = {"all": [700], "few": [1] * 50 + [50] * 13, "mixed": [3, 400, 1, 90, 200, 6]}


def measured(batches, stage_bytes=1 << 21, **options):
    """Values, slices and per-sample values of batches `(scores, true, ids)`."""
    metrics = Meter(acc=Accuracy(num_classes=3), f1=F1Score(num_classes=3, average="macro"), stage_bytes=stage_bytes)
    how = {"inputs": 0, "target": 1, "ids": 2, "slices": {"even": lambda batch: batch[2] % 2}}
    (section,) = evaluate(lambda x: x, batches, metrics, device="cpu", **how, **options).sections
    return section.values, section.slices, section.samples


def split(sizes, true=TRUE, scores=SCORES):
    parts = [each.split(sizes) for each in (scores, true, torch.arange(700))]
    return list(zip(*parts, strict=True))


@pytest.fixture(scope="module")
def expected():
    """Of one batch, which a meter without a stage counts at once."""
    values, slices, samples = measured(split([700]), stage_bytes=0)
    assert float(values[0].value) == (SCORES.argmax(1) == TRUE).double().mean()
    assert samples.column("correct").tolist() == (SCORES.argmax(1) == TRUE).tolist()
    return values, slices, samples


@every_third
@pytest.mark.parametrize("stage_bytes", [0, 30, 100, 3000, 1 << 21])
@pytest.mark.parametrize("sizes", ROWS_AT_A_TIME.values(), ids=ROWS_AT_A_TIME)
def test_a_report_is_the_same_however_rows_are_staged(expected, sizes, stage_bytes):
    assert measured(split(sizes), stage_bytes) == expected


@pytest.mark.parametrize("stage_bytes", [100, 1 << 21])
def test_values_that_are_computed_after_each_batch_take_no_row_from_the_observers(expected, stage_bytes, monkeypatch):
    read = []
    monkeypatch.setattr(progress.EvaluationProgress, "step", lambda bar, rows: read.append(bar._read()))
    monkeypatch.setattr(progress.EvaluationProgress, "watcher", property(lambda bar: bar))
    assert measured(split(ROWS_AT_A_TIME["few"]), stage_bytes) == expected
    assert len(read) == 63
    assert "acc" in read[-1]


def test_buffers_that_the_caller_writes_into_again_are_counted_as_they_were(expected):
    scores, true = torch.empty(50, 3), torch.empty(50, dtype=torch.int64)

    def batches():
        for x, y, ids in split([50] * 14):
            scores.copy_(x)
            true.copy_(y)
            yield scores, true, ids

    assert measured(batches()) == expected


@pytest.mark.parametrize("stage_bytes", [100, 3000, 1 << 21])
@pytest.mark.parametrize("sizes", ROWS_AT_A_TIME.values(), ids=ROWS_AT_A_TIME)
def test_samples_without_ids_have_the_same_values_however_they_are_staged(sizes, stage_bytes):
    """Nothing is known of them but their positions; buffers are written into again, and targets are of two dtypes."""

    def section(sizes, stage_bytes, dtypes=(torch.int64,)):
        scores, true = torch.empty(max(sizes), 3), torch.empty(max(sizes), dtype=torch.int64)

        def batches():
            for k, (x, y, _) in enumerate(split(sizes)):
                scores[: len(x)], true[: len(x)] = x, y
                yield scores[: len(x)], true[: len(x)].to(dtypes[k % len(dtypes)])

        f1 = F1Score(num_classes=3, average="macro", only_classes=(0, 2))  # it has no closed form
        metrics = Meter(acc=Accuracy(num_classes=3), f1=f1, stage_bytes=stage_bytes)
        return evaluate(lambda x: x, batches(), metrics, device="cpu").sections[0]

    whole = section([700], 0)
    assert "bootstrap" in whole.values[1].note
    assert whole.values[1].lower < whole.values[1].value < whole.values[1].upper
    for dtypes in ((torch.int64,), (torch.int64, torch.int64, torch.int32)):
        found = section(sizes, stage_bytes, dtypes)
        assert (found.values, found.counts) == (whole.values, whole.counts)


def test_what_no_one_reads_is_not_drawn(monkeypatch):
    """Without ids no one can pair replicates, so they are for intervals alone, of values without a closed form."""
    drawn, values = [], CountedGroups.drawn_values

    def noted(groups, n_resamples, seed, names, elements):
        drawn.append(list(names))
        return values(groups, n_resamples, seed, names, elements)

    monkeypatch.setattr(CountedGroups, "drawn_values", noted)
    metrics = {
        "f1": F1Score(num_classes=3, average="macro"),
        "part": F1Score(num_classes=3, average="macro", only_classes=(0, 2)),
    }
    batches = split([50] * 14)
    plain = [(x, y) for x, y, _ in batches]
    evaluate(lambda x: x, plain, metrics["f1"], device="cpu")
    assert drawn == []
    section = evaluate(lambda x: x, plain, metrics, device="cpu").sections[0]
    assert drawn == [["part"]]
    assert ["bootstrap" in each.note for each in section.values] == [False, True]
    rare = [(x, torch.arange(len(y)) % 25 % 3 % 2 + torch.arange(len(y)).eq(1)) for x, y in plain[:1]]
    evaluate(lambda x: x, rare, metrics["f1"], device="cpu")  # a class has too few samples for a closed form
    assert drawn[1:] == [["F1Score"]]
    evaluate(lambda x: x, batches, metrics["f1"], device="cpu", inputs=0, target=1, ids=2)
    assert drawn[2:] == [["F1Score"]]


def test_targets_of_several_dtypes_and_shapes_are_counted_in_their_order(expected):
    forms = (torch.int64, torch.int64, torch.int32, torch.int64, torch.int16, torch.int32)
    batches = [(x, y.to(form), ids) for (x, y, ids), form in zip(split(ROWS_AT_A_TIME["mixed"]), forms, strict=True)]
    assert measured(batches) == expected
    strided = [(x.t().contiguous().t(), y, ids) for x, y, ids in batches]
    assert measured(strided) == expected


def test_scores_with_a_dimension_too_many_are_staged_by_the_observers_as_they_are():
    def shares(shape):
        batches = [(each.view(shape), y > 0, ids) for each, y, ids in split([70] * 10, scores=SCORES[:, :1])]
        metrics = Meter(acc=Accuracy(), f1=F1Score())
        how = {"inputs": 0, "target": 1, "ids": 2}
        return evaluate(lambda x: x, batches, metrics, device="cpu", **how).sections[0]

    flat, wide = shares((-1,)), shares((-1, 1))
    assert (wide.values, wide.samples) == (flat.values, flat.samples)


def test_rows_are_copied_once(monkeypatch):
    """The observers of samples make no stage of their own where the meter has one."""
    expected = []
    monkeypatch.setattr(Observers, "_expect", lambda observers, batch: expected.append(batch))
    assert measured(split([50] * 14))[2].column("correct").tolist() == (SCORES.argmax(1) == TRUE).tolist()
    assert not expected


@pytest.mark.parametrize("stage_bytes", [100, 1 << 21])
def test_a_small_stage_of_the_meter_makes_no_more_calls_of_the_observers(expected, stage_bytes, monkeypatch):
    rows, hand_over = [], Observers._hand_over

    def noted(observers, batch):
        rows.append(len(batch.preds))
        hand_over(observers, batch)

    monkeypatch.setattr(Observers, "_hand_over", noted)
    assert measured(split([5] * 140), stage_bytes) == expected
    assert rows == [260, 440]


def test_an_evaluation_and_each_of_its_batches_cost_few_calls():
    """Functions of Python that one more batch calls, and that are called once; those of the model are not ours."""
    net = torch.nn.Linear(3, 3)

    def calls(count):
        batches = [(torch.rand(8, 3), torch.randint(3, (8,))) for _ in range(count)]
        called = Counter()

        def note(frame, event, _):
            if event == "call":
                called[frame.f_code.co_filename] += 1

        metrics = [Accuracy(num_classes=3), F1Score(num_classes=3, average="macro")]
        sys.setprofile(note)
        try:
            evaluate(net, batches, metrics, device="cpu", progress=False)
        finally:
            sys.setprofile(None)
        return sum(number for file, number in called.items() if "assay" in file)

    calls(40)
    few, many = calls(40), calls(80)  # of both, the first 256 rows are handed over, and at the end the others
    assert (many - few) / 40 <= 19
    assert 2 * few - many <= 2900  # what an evaluation costs once
