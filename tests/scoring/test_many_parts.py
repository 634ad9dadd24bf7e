"""Many parts that were counted apart: merged from files one after the other, as a tree, and with little work each."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa
import pytest
import torch

from assay.errors import StateError
from assay.meter import Meter
from assay.meter.file import counts_in_state, from_sparse, sparse
from assay.metrics import AUROC, ConfusionMatrix
from assay.scoring import Partial, count, merge, score
from assay.scoring.part_files import packed, unpacked
from assay.tally.stores.sample_store import SampleStore
from thinning import one_of_each

PARTS, ROWS = 24, 25
METRICS = {
    "accuracy": "accuracy,f1:average=macro",
    "ranked": "auroc",
    "ranked, few kept": "auroc:exact_up_to=200",
    "ranked, none kept": "auroc:exact_up_to=0",
    "sums": "mae,mse,spearman",
}
NAMES = [f"part {k}" for k in range(PARTS)]
OPTIONS = {"preds": "p", "target": "y", "slices": ["g"], "n_resamples": 25, "ids": "id"}


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    scores = random.random(PARTS * ROWS, dtype=np.float32)
    g = np.array(["a", "b", "c"])[random.integers(0, 3, len(scores))]
    return pa.table({"p": scores, "y": (random.random(len(scores)) < scores) * 1, "g": g, "id": np.arange(len(g))})


def counted(table, metrics):
    return [count(table.slice(k * ROWS, ROWS), metrics, name, **OPTIONS) for k, name in enumerate(NAMES)]


def contents(report):
    section = report.sections[0]
    return section.values, section.slices, section.samples, section.resampling


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metrics", METRICS.values(), ids=METRICS)
@one_of_each()
def test_files_trees_and_memory_give_the_bits_of_one_run(table, metrics, tmp_path):
    if metrics == METRICS["sums"]:
        table = table.set_column(1, "y", pa.array(table["y"].to_numpy() + 0.25))
    parts = counted(table, metrics)
    expected = contents(score(table, metrics, **OPTIONS))
    assert contents(merge(parts, NAMES).report()) == expected
    files = [each.to_file(tmp_path / f"{k}.safetensors") for k, each in enumerate(parts)]
    assert contents(merge(reversed(files), NAMES).report()) == expected
    sums = [merge(files[k::5]).to_file(tmp_path / f"sum-{k}.safetensors") for k in range(5)]
    assert contents(merge([*sums[:3], merge(sums[3:])], NAMES).report()) == expected


@pytest.mark.exhaustive
def test_work_and_memory_do_not_grow_with_the_files(table, tmp_path, monkeypatch):
    """A partial and a histogram for all files, and not for each; and no rows that were added are copied again."""
    parts = counted(table, METRICS["ranked, none kept"])
    files = [each.to_file(tmp_path / f"{k}.safetensors") for k, each in enumerate(parts)]
    assert max(each.stat().st_size for each in files) < 100_000, "the histograms have 16 MB"
    made, opened, copied = [], [], []
    init, zeros, copy = Partial.__init__, torch.zeros, SampleStore.copy
    monkeypatch.setattr(Partial, "__init__", lambda self, *a, **b: made.append(1) or init(self, *a, **b))
    monkeypatch.setattr(SampleStore, "copy", lambda self: copied.append(self.rows) or copy(self))

    def counting(*shape, **named):
        found = zeros(*shape, **named)
        if found.numel() > 1 << 20 and found.device.type == "cpu":
            opened.append(1)
        return found

    monkeypatch.setattr(torch, "zeros", counting)
    merge(files[:6])
    few = len(made), len(opened), sum(copied)
    merge(files)
    many = tuple(each - before for each, before in zip((len(made), len(opened), sum(copied)), few, strict=True))
    assert many == few


@pytest.mark.exhaustive
def test_memory_has_one_file_at_a_time(table, tmp_path):
    """What is merged from a generator is not held until its end."""
    alive = []

    def made():
        for number in range(600):
            part = Partial.from_bytes(data)
            part.record.rows = {f"part {number}": ROWS}
            alive.append(weakref.ref(part))
            yield part

    data = counted(table, "accuracy")[0].to_bytes()
    most = 0

    def watched():
        nonlocal most
        for part in made():
            most = max(most, sum(each() is not None for each in alive))
            yield part

    assert merge(watched()).rows == 600 * ROWS
    assert most < 300


def test_a_file_of_another_table_or_a_part_twice_is_refused(table, tmp_path):
    parts = counted(table, "accuracy")
    for number, part in enumerate(parts[:3]):
        part.record.manifest = ("another", "table") if number == 2 else tuple(NAMES)
    files = [each.to_file(tmp_path / f"{k}.safetensors") for k, each in enumerate(parts[:3])]
    assert merge(files[:2]).manifest == tuple(NAMES)
    with pytest.raises(StateError, match=r"2\.safetensors: got partials of different tables"):
        merge(files)
    with pytest.raises(StateError, match=r"1\.safetensors: got the fragment 'part 1' twice"):
        merge([*files[:2], files[1]])
    other = counted(table, "f1")[3].to_file(tmp_path / "f1.safetensors")
    with pytest.raises(StateError, match=r"f1\.safetensors: got a partial of other metrics"):
        merge([files[0], other])


@pytest.mark.parametrize("changed", [{"fragments": {"part 0": [25]}}, {"fragments": [25]}, {"filtered": -1}])
def test_a_part_whose_numbers_of_rows_are_no_counts_is_refused(table, tmp_path, monkeypatch, changed):
    (part,) = counted(table, "accuracy")[:1]
    about = part.about() | changed
    monkeypatch.setattr(part, "about", lambda: about)
    path = part.to_file(tmp_path / "0.safetensors")
    with pytest.raises(StateError, match=r"0\.safetensors: got numbers of rows that are no counts"):
        Partial.from_file(path)


@pytest.mark.parametrize(("entry", "by"), [("fragments", 1), ("fragments", -1), ("filtered", 1)])
def test_parts_whose_counts_are_of_other_rows_than_their_fragments_are_refused(table, entry, by):
    about, tensors = unpacked(counted(table, "accuracy")[0].to_bytes(), "part")
    about.pop("schema")
    changed = {NAMES[0]: ROWS + by} if entry == "fragments" else by
    part = Partial.from_bytes(packed({**about, entry: changed}, tensors))
    expected = ROWS + (by if entry == "fragments" else -by)
    with pytest.raises(StateError, match=rf"no rows give \({ROWS} rows, {expected} in the fragments\)"):
        part.report()


def test_sparse_tables_are_those_that_were_packed():
    """Integers of kept samples, which may be mostly 0, and tables of which every count is there come back as well."""
    rows = 1 << 13
    scores, target = torch.rand(rows, dtype=torch.float64), torch.zeros(rows, dtype=torch.int64)
    target[:9] = 1
    for metric in (AUROC(exact_up_to=0), AUROC(), AUROC(num_classes=200), ConfusionMatrix(num_classes=90)):
        meter = Meter(metric)
        if hasattr(metric, "num_classes") and metric.num_classes:
            meter.update(torch.rand(50, metric.num_classes).softmax(1), torch.randint(metric.num_classes, (50,)))
        else:
            meter.update(scores.float(), target)
        packed = sparse(meter.state_dict())
        total = meter.fresh()
        for _ in range(3):
            total.counts.extend(*counts_in_state(total.plan, from_sparse(packed)))
        expected = meter.fresh().merge(meter, meter, meter)
        assert total.rows == expected.rows
        for one, other in zip(total.states(), expected.states(), strict=True):
            assert one.keys() == other.keys()
            for name, value in one.items():
                if isinstance(value, SampleStore):
                    assert all(torch.equal(value.column(c), other[name].column(c)) for c in value.columns)
                else:
                    assert torch.equal(value, other[name])


def test_counts_that_no_rows_give_are_one_error():
    table = pa.table({"p": [0, 1] * 20, "y": [0, 1, 1, 0] * 10, "g": ["a", "b"] * 20})
    part = count(table, "accuracy,precision", preds="p", target="y", slices=["g"])
    about, tensors = unpacked(part.to_bytes(), "part")
    del about["schema"]
    for name in ("observer slices/meters g/tables/0/counts", "observer slices/meters g/rows"):
        edited = Partial.from_bytes(packed(about, {**tensors, name: -tensors[name]}))
        with pytest.raises(StateError, match=r"report: got counts that no rows give .*assay score --part"):
            merge([edited]).report()
