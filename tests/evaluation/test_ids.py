"""Ids that cannot tell samples apart are refused when they arrive, and not after the last batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay import Accuracy, evaluate
from assay.errors import ConfigError
from assay.evaluation.data.known_ids import KnownIds
from assay.evaluation.nested_batch import row_marks

METRIC = Accuracy(num_classes=3)
X = torch.eye(3).repeat(35, 1) * torch.arange(1, 106)[:, None]
Y = torch.arange(105) % 3


def batches(ids, x=X, y=Y, size=10):
    return [
        {"x": x[k : k + size], "y": y[k : k + size], "id": ids[k : k + size], "name": ids[k : k + size]}
        for k in range(0, len(ids), size)
    ]


def run(data, **more):
    how = {"inputs": "x", "ids": "id", "device": "cpu"}
    return evaluate(torch.nn.Identity(), data, METRIC, **{**how, **more})


def test_one_id_for_all_samples_is_refused():
    with pytest.raises(ConfigError, match=r"ids: got the id 'a' for two different samples \(2 rows so far, 1 distinct"):
        run(batches(["a"] * 105))


@pytest.mark.parametrize("second", [1, 104])
def test_one_id_for_two_samples_is_refused(second, tmp_path):
    ids = list(range(105))
    ids[second] = 0
    with pytest.raises(ConfigError, match=f"ids: got the id 0 for two different samples .{second + 1} rows so far, "):
        run(batches(ids), resume=tmp_path)


def test_a_sample_that_comes_again_is_counted_once_and_said():
    order = [*range(105), 0, 1, 7]
    report = run(batches([f"s{k}" for k in order], X[order], Y[order]))
    assert "105 counted, 0 duplicated" in report.notes[0]
    assert any("3 rows had the id of an earlier row" in note for note in report.notes)


def test_a_sample_with_another_padding_is_the_same_sample():
    padded = [
        {"x": torch.tensor([[0.0, 1.0, 0.0]]), "y": torch.tensor([1]), "id": ["a"], "tokens": torch.ones(1, 4)},
        {"x": torch.tensor([[0.0, 1.0, 0.0]]), "y": torch.tensor([1]), "id": ["a"], "tokens": torch.ones(1, 9)},
    ]
    assert run(padded).sections[0].note == "1 sample."


class Stops:
    """Stops once, before the fourth batch; that is no part of it."""

    def __init__(self):
        self.calls = 0

    def __reduce__(self):
        return Stops, ()

    def __call__(self, x):
        self.calls += 1
        if self.calls == 4:
            raise KeyboardInterrupt
        return x


def test_a_run_that_resumes_knows_what_told_its_samples_apart(tmp_path):
    ids = list(range(105))
    ids[60] = 3
    model = Stops()
    how = {"inputs": "x", "ids": "id", "device": "cpu", "resume": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, batches(ids), METRIC, **how)
    with pytest.raises(ConfigError, match="the id 3 for two different samples"):
        evaluate(model, batches(ids), METRIC, **how)
    assert model.calls == 7


@pytest.mark.parametrize("more", [{}, {"ids": None, "slices": ["name"]}])
def test_a_lone_surrogate_is_refused_when_it_arrives(more):
    ids = [f"s{k}" for k in range(105)]
    ids[13] = "\udcff.png"
    what = "slices: name" if more else "ids"
    with pytest.raises(ConfigError, match=rf"{what}: got '\\udcff.png' in row 3 of a batch"):
        run(batches(ids), **more)


def test_marks_of_rows():
    x, names = torch.randn(50, 300), [f"n{k % 7}" for k in range(50)]
    batch = {"x": x, "n": names, "y": np.arange(50) % 5, "scale": 2.0}
    marks = row_marks(batch, 50)
    assert len(set(marks.tolist())) == 50
    assert len(set((marks >> 48).tolist())) == 1
    some = [3, 4, 49]
    again = {"x": x[some], "n": [names[k] for k in some], "y": batch["y"][some], "scale": 2.0}
    assert row_marks(again, 3).tolist() == marks[some].tolist()
    assert row_marks({"n": ["a", "b", "a"]}, 3).tolist()[0] == row_marks({"n": ["a", "b", "a"]}, 3).tolist()[2]


@pytest.mark.parametrize("size", [1, 700, 5000])
def test_known_ids_are_those_of_a_dictionary(size):
    rng, expected, known = np.random.default_rng(0), {}, KnownIds()
    for _ in range(12):
        hashes = rng.permutation(rng.integers(-(2**62), 2**62, size) // 2**40 * 2**40)
        assert known.marks(hashes) == [expected.get(each) for each in hashes.tolist()]
        new = np.array([each for each in dict.fromkeys(hashes.tolist()) if each not in expected], np.int64)
        marks = rng.integers(-(2**63), 2**63 - 1, len(new)).tolist()
        expected.update(zip(new.tolist(), marks, strict=True))
        known.add(new, marks)
        assert len(known) == len(expected)
    hashes, marks = known.arrays()
    assert dict(zip(hashes.tolist(), marks.tolist(), strict=True)) == expected
    assert hashes.tolist() == sorted(expected)
