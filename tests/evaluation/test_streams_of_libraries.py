"""Streams of Hugging Face and WebDataset whose shards are split between processes; ids are in the data."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from assay import evaluate
from assay.metrics import Accuracy
from ranks import processes

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
