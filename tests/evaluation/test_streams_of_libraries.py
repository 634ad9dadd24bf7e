"""Streams of Hugging Face, WebDataset and MosaicML Streaming, split between processes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from assay import evaluate
from assay.metrics import Accuracy
from evaluation.stopping import Stops
from ranks import as_torchrun, processes

ROWS = 60
SHARDS = 4
RANDOM = np.random.default_rng(3)
X = RANDOM.random((ROWS, 3)).astype(np.float32)
Y = RANDOM.integers(0, 3, ROWS)


def measured(stream, **columns):
    options = {"n_resamples": 25, "diagnostics": False, "batch_size": 8, "device": "cpu", "sharded": True}
    report = evaluate(torch.nn.Identity(), stream, Accuracy(num_classes=3), **options, **columns)
    section = report.sections[0]
    return [section.values[0].to_json(), section.samples.to_json(), report.notes[0]]


def of_hugging_face(rank, size, folder):
    import datasets
    from datasets.distributed import split_dataset_by_node

    def rows(shards):
        for shard in shards:
            for k in range(shard, ROWS, SHARDS):
                yield {"x": X[k], "y": int(Y[k]), "id": f"row {k}"}

    stream = datasets.IterableDataset.from_generator(rows, gen_kwargs={"shards": list(range(SHARDS))})
    return measured(split_dataset_by_node(stream, rank, size).with_format("torch"), inputs="x", target="y", ids="id")


def of_webdataset(rank, size, folder):
    import webdataset

    files = [f"{folder}/{shard}.tar" for shard in range(SHARDS)]
    stream = webdataset.WebDataset(files, nodesplitter=lambda each: list(each)[rank::size], shardshuffle=False)
    return measured(stream.decode(), inputs="x.npy", target="y.cls", ids="__key__")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shards of WebDataset."""
    webdataset = pytest.importorskip("webdataset")
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(SHARDS):
        with webdataset.TarWriter(f"{folder}/{shard}.tar") as tar:
            for k in range(shard, ROWS, SHARDS):
                tar.write({"__key__": f"row {k}", "x.npy": X[k], "y.cls": int(Y[k])})
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("library", "stream"), [("datasets", of_hugging_face), ("webdataset", of_webdataset)])
def test_shards_of_a_stream_have_the_bits_of_one_process(library, stream, folder, tmp_path):
    pytest.importorskip(library)
    expected = stream(0, 1, folder)
    assert expected[-1].endswith(f"{ROWS} counted, 0 duplicated.")
    assert processes(partial(stream, folder=folder), 2, tmp_path) == [expected, expected]


def of_mosaic(rank, size, folder, loader="", **more):
    """The report of an MDS folder; its iterator would give 32 samples to each of two processes, of 61."""
    import streaming

    as_torchrun(rank, size)
    data = streaming.StreamingDataset(local=str(folder), batch_size=8, shuffle=True, num_canonical_nodes=64)
    if loader:
        data = {"torch": DataLoader, "mosaic": streaming.StreamingDataLoader}[loader](data, batch_size=8, num_workers=1)
    return measured(data, inputs="x", target="y", **more)


@pytest.fixture(scope="module")
def mosaic_folder(tmp_path_factory):
    streaming = pytest.importorskip("streaming")
    folder = tmp_path_factory.mktemp("mds") / "shards"
    columns = {"x": "ndarray:float32:3", "y": "int", "id": "str"}
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=600) as writer:
        for k in range(ROWS):
            writer.write({"x": X[k], "y": int(Y[k]), "id": f"row {k}"})
        writer.write({"x": X[0], "y": int(Y[0]), "id": "one more"})
    assert len(list(folder.glob("shard.*"))) > 2
    return folder


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """What a test told of processes is forgotten."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loader", ["", "torch", "mosaic"])
def test_mosaic_streaming_is_read_by_index_without_padding(loader, mosaic_folder, tmp_path, monkeypatch):
    act = partial(of_mosaic, folder=mosaic_folder, loader=loader)
    with monkeypatch.context() as patch:
        patch.setenv("RANK", "0")  # so that it is taken back
        expected = act(0, 1)
    for name in ("WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    assert expected[-1] == f"Every sample once: {ROWS + 1} expected, {ROWS + 1} counted, 0 duplicated, 0 missed."
    assert processes(act, 2, tmp_path) == [expected, expected]


def _look_alike(**attributes):
    """A data set with the names of `streaming.StreamingDataset`, which need not be installed."""

    class StreamingDataset(IterableDataset):
        __module__ = "streaming.base.dataset"

        def __init__(self):
            stream = type("Stream", (), {"choose": ROWS})()
            given = {
                "num_samples": ROWS,
                "epoch_size": ROWS,
                "streams": [stream],
                "samples_per_stream": np.array([ROWS]),
            }
            self.__dict__.update(given | attributes)

        def __getitem__(self, k):
            return {"x": X[k], "y": int(Y[k])}

        def __iter__(self):
            return (self[k] for k in [*range(ROWS), 0, 1])  # padded

    return StreamingDataset()


@pytest.mark.parametrize("batch_size", [None, 8])
def test_a_streaming_dataset_is_read_by_index(batch_size):
    data = _look_alike() if batch_size is None else DataLoader(_look_alike(), batch_size=batch_size)
    _, samples, proof = measured(data, inputs="x", target="y")
    assert proof == f"Every sample once: {ROWS} expected, {ROWS} counted, 0 duplicated, 0 missed."
    assert '"range"' in samples


def test_one_that_chooses_samples_stays_a_stream():
    assert measured_rows(_look_alike(epoch_size=ROWS + 2)) == ROWS + 2
    assert measured_rows(_look_alike(samples_per_stream=np.array([ROWS // 2]))) == ROWS + 2


def measured_rows(data):
    report = evaluate(torch.nn.Identity(), data, Accuracy(num_classes=3), inputs="x", target="y", batch_size=8)
    return report.sections[0].values[0].count


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mosaic_streaming_resumes(mosaic_folder, tmp_path):
    import streaming

    def run(model, folder):
        data = streaming.StreamingDataset(local=str(mosaic_folder), batch_size=8)
        options = {"inputs": "x", "target": "y", "batch_size": 8, "device": "cpu", "n_resamples": 25}
        return evaluate(model, data, Accuracy(num_classes=3), **options, resume=folder, checkpoint_every=0.0)

    first, second = Stops(3), Stops(99)
    expected = run(Stops(99), tmp_path / "whole").sections[0]
    with pytest.raises(KeyboardInterrupt):
        run(first, tmp_path / "stopped")
    found = run(second, tmp_path / "stopped").sections[0]
    assert (first.counters.rows, second.counters.rows) == (24, ROWS + 1 - 24)
    assert (found.values, found.samples) == (expected.values, expected.samples)


@pytest.mark.parametrize("kind", [None, "numpy", "torch"])
def test_a_stream_needs_no_format(kind):
    data = pytest.importorskip("datasets").Dataset.from_dict({"x": X.tolist(), "y": Y.tolist()})
    stream = data.to_iterable_dataset(num_shards=SHARDS)
    options = {"inputs": "x", "target": "y", "device": "cpu", "progress": False}
    report = evaluate(
        torch.nn.Identity(), stream.with_format(kind) if kind else stream, "accuracy:num_classes=3", **options
    )
    assert report.sections[0].values[0].value == (X.argmax(1) == Y).mean()
