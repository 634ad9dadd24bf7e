from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple

import numpy as np
import torch

from assay.evaluation.nested_batch import digest, mapped, row_count, structure, take

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Box:
    inner: object
    label: str = "box"


X = torch.arange(12).view(6, 2)
TREE = {
    "pair": Pair(X, [1, 2, 3, 4, 5, 6]),
    "box": Box({"array": np.arange(6), "whole": torch.tensor(1.0)}),
    "list": [X, X.float()],
    "names": ["a", "b", "c", "d", "e", "f"],
    "short": ["a", "b"],
    "ordered": OrderedDict(k=X),
    "none": None,
}


def test_taking_rows_cuts_what_has_as_many_and_keeps_all_types():
    cut = take(TREE, 6, slice(1, 3))
    assert isinstance(cut["pair"], Pair)
    assert cut["pair"].a.equal(X[1:3])
    assert cut["pair"].b == [2, 3]
    assert isinstance(cut["box"], Box)
    assert cut["box"].inner["array"].tolist() == [1, 2]
    assert cut["box"].inner["whole"].item() == 1
    assert cut["box"].label == "box"
    assert [each.shape[0] for each in cut["list"]] == [2, 2]
    assert (cut["names"], cut["short"], cut["none"]) == (["b", "c"], ["a", "b"], None)
    assert isinstance(cut["ordered"], OrderedDict)
    assert TREE["pair"].b == [1, 2, 3, 4, 5, 6]
    rows = take(TREE, 6, [5, 0])
    assert rows["pair"].a.equal(X[[5, 0]])
    assert rows["names"] == ["f", "a"]


def test_a_list_of_one_tensor_a_sample_is_cut_as_a_list():
    images = [torch.zeros(k + 1) for k in range(4)]
    assert [len(each) for each in take(images, 4, slice(2, 4))] == [3, 4]


def test_rows_are_those_of_the_first_tensor_or_list():
    assert row_count(TREE) == 6
    assert row_count({"scale": torch.tensor(1.0), "names": ["a", "b"]}) == 2
    assert row_count({"scale": 1.0}) is None


def test_structure_is_short():
    assert structure(TREE["pair"]) == "Pair{'a': int64 (6, 2), 'b': list of 6 int}"
    assert structure({str(k): k for k in range(20)}).endswith("…}")
    assert structure({"a": {"b": {"c": {"d": X}}}}) == "{'a': {'b': {'c': dict}}}"
    assert structure([torch.zeros(2), 1]) == "[float32 (2,), int]"


def test_a_digest_tells_values_apart_and_nothing_else():
    assert digest(TREE) == digest(mapped(TREE, lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf))
    assert digest(X) != digest(X + 1)
    assert digest(X) != digest(X.float())
    assert digest((X, "a")) != digest((X, "b"))
    assert digest(X.bfloat16()) != digest(X.half())
