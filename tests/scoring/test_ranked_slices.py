"""Values of ranked scores in slices of tables, against a meter of the rows of each slice."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from assay import AUROC, Accuracy, AveragePrecision, Meter
from assay.native.library import library
from assay.scoring import count, fragments_of, merge, score
from assay.tally.scores.score_cells import ScoreCells
from assay.tally.scores.sorted_scores import SortedScores
from thinning import one_of_each

CLASSES = 3
ROWS = 900
SLICES = ["a", "tags", ("a", "tags")]
A = ("most", "some", "few", "one class", "empty in most files")


def drawn(seed: int) -> pa.Table:
    """Random rows: slices of very different sizes, one of them with targets of one class, and lists of tags."""
    random = np.random.default_rng(seed)
    a = random.choice(len(A) - 1, ROWS, p=[0.7, 0.2, 0.05, 0.05])
    a[-3:] = len(A) - 1
    y = np.where(a == 3, 1, random.integers(0, CLASSES, ROWS))
    scores = random.random((ROWS, CLASSES), dtype=np.float32)
    scores[:200] = np.round(scores[:200], 1)  # ties
    scores[np.arange(ROWS), y] += 0.3
    scores /= scores.sum(1, keepdims=True)
    tags = [[tag for tag in "xyz" if random.random() < 0.4] for _ in range(ROWS)]
    columns = {f"p{k}": scores[:, k] for k in range(CLASSES)}
    weights = random.random(ROWS).astype(np.float32)
    return pa.table({**columns, "y": y, "w": weights, "a": [A[k] for k in a], "tags": pa.array(tags)})


def masks(table: pa.Table) -> dict[str, np.ndarray]:
    """By the name of a slice, which rows it has."""
    tags = {f"tags = {tag}": np.array([tag in each for each in table["tags"].to_pylist()]) for tag in "xyz"}
    tags["tags = missing"] = np.array([not each for each in table["tags"].to_pylist()])
    parts = {f"a = {part}": np.array(table["a"].to_pylist()) == part for part in A}
    crossed = {f"{a}, {tag}": parts[a] & tags[tag] for a, tag in itertools.product(parts, tags)}
    return {name: mask for name, mask in {**parts, **tags, **crossed}.items() if mask.any()}


def values_of(like: Meter, table: pa.Table, mask: np.ndarray) -> dict[str, float]:
    preds = torch.from_numpy(np.stack([table[f"p{k}"].to_numpy()[mask] for k in range(CLASSES)], 1))
    weights = torch.from_numpy(table["w"].to_numpy()[mask]) if like.weighted else None
    meter = like.fresh()
    meter.update(preds, torch.from_numpy(table["y"].to_numpy()[mask]), weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: value.item() for name, value in meter.compute().items()}


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("limit", [300, 10**6])
@one_of_each()
def test_slices_have_the_values_of_their_rows(tmp_path: Path, limit: int, weights: str | None):
    """From several files, counted at once or apart; values beyond the limit come from histograms."""
    table = drawn(limit)
    for k, start in enumerate((0, 100, 500)):
        rows = table.slice(start, (100, 500, ROWS)[k] - start)
        pq.write_table(rows, tmp_path / f"{k}.parquet", row_group_size=130)
    metrics = {
        "auroc": AUROC(num_classes=CLASSES, exact_up_to=limit),
        "ap": AveragePrecision(num_classes=CLASSES, exact=True),
        "thresholds": AUROC(num_classes=CLASSES, thresholds=20),
        "acc": Accuracy(num_classes=CLASSES),
    }
    options = {"preds": "p0..p2", "target": "y", "weights": weights, "slices": SLICES, "confidence_level": None}
    path = f"{tmp_path}/*.parquet"
    parts = [count(path, metrics, [key], **options) for key in fragments_of(path)]
    at_once, apart = score(path, metrics, **options), merge(parts[::-1]).report()
    assert len(parts) > 3
    assert apart.sections[0].slices == at_once.sections[0].slices
    expected, like = masks(table), Meter(weighted=weights is not None, **metrics)
    found = {each.name: each for each in at_once.sections[0].slices}
    assert found.keys() == expected.keys()
    for name, mask in expected.items():
        values = {each.name: each.value for each in found[name].values}
        np.testing.assert_equal(values, values_of(like, table, mask), name)
    whole = {each.name: each.value for each in at_once.sections[0].values}
    assert whole == values_of(like, table, np.ones(ROWS, bool))


def test_groups_of_all_slices_are_resampled_from_scores_that_are_sorted_once(monkeypatch: pytest.MonkeyPatch):
    """Slices by two columns and both crossed, and all rows: four kinds of groups, of which each had its own scores."""
    rows = 21_000
    random = np.random.default_rng(0)
    y = random.integers(0, CLASSES, rows)
    scores = np.round(random.random((rows, CLASSES), dtype=np.float32), 3)
    scores[np.arange(rows), y] += 0.3
    parts = {"a": random.integers(0, 3, rows), "b": random.integers(0, 2, rows)}
    table = pa.table({f"p{k}": scores[:, k] / scores.sum(1) for k in range(CLASSES)} | {"y": y, **parts})
    sorted_rows, plain = [], SortedScores._sorted
    monkeypatch.setattr(
        SortedScores, "_sorted", lambda self, *columns: sorted_rows.append(len(columns[0])) or plain(self, *columns)
    )
    options = {"preds": "p0..p2", "target": "y", "slices": ["a", "b", ("a", "b")]}
    found = score(table, "auroc", **options)
    assert sorted_rows == ([] if library() is None else [rows])
    monkeypatch.setattr(ScoreCells, "area_sums", lambda self, part_of: None)
    assert found.sections == score(table, "auroc", **options).sections
    assert all(value.replicates is not None for each in found.sections[0].slices for value in each.values)
