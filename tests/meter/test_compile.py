"""Updates inside compiled functions and captured graphs: one graph, no break, no recompilation, the same bits."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

from assay.errors import StateError
from assay.meter import Meter
from laws import CASES, Case, bits, feed, keeps_samples
from thinning import one_of_each

COMPILED = [case for case in CASES if not (keeps_samples(case.metric) or case.raw)]


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def compiled(meter: Meter):
    return torch.compile(meter.update, fullgraph=True, backend="eager")


def first_cases() -> list[Case]:
    """The first case of every metric."""
    return list({type(case.metric): case for case in reversed(COMPILED)}.values())


@one_of_each(lambda case: len(case.metric.tally(False).fields) > 2)  # compiling takes long
@pytest.mark.parametrize("case", first_cases(), ids=str)
def test_an_update_is_one_graph_with_the_same_bits(case):
    batches = [case.data(seed, 12) for seed in range(4)]
    meter = case.counted(batches[0].rows(slice(0, 0)), stage_bytes=0)
    update = compiled(meter)
    for batch in batches:
        update(batch.preds, batch.target, weights=batch.weights, **batch.columns)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert bits(meter) == bits(case.counted(*batches))


@pytest.mark.parametrize("stage_bytes", [0, 1 << 21])
@one_of_each()
def test_a_hundred_updates_compile_once(stage_bytes):
    case = COMPILED[0]
    meter = case.counted(case.data(0, 8), stage_bytes=stage_bytes)
    update = compiled(meter)
    batches = [case.data(seed, 12) for seed in range(100)]
    for batch in batches:
        update(batch.preds, batch.target, weights=batch.weights, **batch.columns)
    assert counters["stats"]["unique_graphs"] == 1
    assert bits(meter) == bits(case.counted(case.data(0, 8), *batches))
    assert meter.rows == 8 + 100 * 12


@pytest.mark.exhaustive
def test_batches_of_many_sizes_share_a_second_graph():
    case = COMPILED[0]
    meter = case.counted(case.data(0, 8))
    update = compiled(meter)
    batches = [case.data(rows, rows) for rows in (12, 5, 31, 12, 64, 7, 100, 3)]
    for batch in batches:
        update(batch.preds, batch.target, weights=batch.weights, **batch.columns)
    assert counters["stats"]["unique_graphs"] == 2
    assert bits(meter) == bits(case.counted(case.data(0, 8), *batches))


@pytest.mark.exhaustive
def test_a_compiled_step_may_hold_the_model_and_the_update():
    case = COMPILED[0]
    data = case.data(1, 16)
    meter = case.counted(data.rows(slice(0, 0)))

    @torch.compile(fullgraph=True, backend="eager")
    def step(inputs, target):
        meter.update(inputs * 2, target)
        return inputs.sum()

    step(data.preds, data.target)
    assert bits(meter) == bits(case.counted(data._replace(preds=data.preds * 2)))


def test_compiled_and_eager_updates_mix():
    case = COMPILED[0]
    batches = [case.data(seed, 12) for seed in range(3)]
    meter = feed(case.meter(), batches[0])
    compiled(meter)(batches[1].preds, batches[1].target)
    feed(meter, batches[2])
    assert bits(meter) == bits(case.counted(*batches))


@pytest.mark.exhaustive
def test_the_first_batch_of_a_device_is_not_compiled():
    case = COMPILED[0]
    data = case.data(1, 16)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Call update once outside of the compiled function"):
        compiled(case.meter())(data.preds, data.target)
    torch._dynamo.reset()
    meter = case.meter()
    with pytest.raises(StateError, match="got the first batch of cpu"):
        meter.counts.traced(torch.device("cpu"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the caches that it looks into
        torch.compile(meter.update, backend="eager")(data.preds, data.target)  # may break: then it runs uncompiled
    assert bits(meter) == bits(case.counted(data))


def test_metrics_that_keep_samples_are_refused_in_one_graph_and_counted_otherwise():
    case = next(case for case in CASES if keeps_samples(case.metric) and not case.raw)
    data = case.data(1, 16)
    meter = case.counted(data.rows(slice(0, 0)))
    arguments = data.preds, data.target
    with pytest.raises(torch._dynamo.exc.Unsupported, match="metrics that keep samples, in tensors that grow"):
        compiled(meter)(*arguments, weights=data.weights, **data.columns)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the caches that it looks into
        torch.compile(meter.update, backend="eager")(*arguments, weights=data.weights, **data.columns)
    assert bits(meter) == bits(case.counted(data))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("case", first_cases(), ids=str)
def test_an_update_is_captured_in_a_cuda_graph_and_replayed(case):
    batches = [case.data(seed, 12) for seed in range(4)]
    meter = case.meter(stage_bytes=0)
    fixed = batches[0].map(torch.Tensor.cuda)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # a captured graph needs a warm-up on another stream
        feed(meter, fixed)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        feed(meter, fixed)
    for batch in batches[1:]:
        for into, tensor in zip(fixed, batch, strict=True):
            if into is not None:
                into.copy_(tensor)
        graph.replay()
    assert bits(meter) == bits(case.counted(*batches))
