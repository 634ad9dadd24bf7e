"""Updates inside compiled functions and captured graphs: one graph, no break, no recompilation, the same bits."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch._dynamo
from torch._dynamo.utils import counters

from assay import AUROC, Accuracy
from assay.errors import StateError
from assay.meter import Meter
from assay.meter.counting import tally_plan
from assay.meter.counting.compiled_rows import CAN_TRACE, update_by_one_operator
from assay.metrics import PerSample, WordErrorRate
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
@pytest.mark.skipif(not CAN_TRACE, reason="this release of torch traces no update")
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


def test_on_a_release_that_traces_no_update_each_is_one_operator(monkeypatch):
    monkeypatch.setattr(tally_plan, "CAN_TRACE", False)
    meters, graphs = [Meter(on_this_release=Accuracy(num_classes=3)) for _ in range(2)], []

    def backend(graph, inputs):
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph

    update = torch.compile(meters[0].update, fullgraph=True, backend=backend)
    for seed in range(3):
        preds, target = torch.eye(3)[[seed, 1, 2, 0]], torch.tensor([0, 1, 1, seed])
        update(preds, target)
        meters[1].update(preds, target)
    assert graphs == [["assay.update_meter"]]
    assert meters[0].rows == 12
    assert bits(meters[0]) == bits(meters[1])


KEPT = list(
    {type(case.metric): case for case in reversed(CASES) if keeps_samples(case.metric) and not case.raw}.values()
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@one_of_each(lambda case, backend: backend)
@pytest.mark.parametrize("case", KEPT, ids=str)
def test_an_update_that_keeps_samples_is_one_graph_with_the_same_bits(case, backend):
    batches = [case.data(seed, 12) for seed in range(4)]
    meter = case.meter()
    update = torch.compile(meter.update, fullgraph=True, backend=backend)
    for batch in batches:
        update(batch.preds, batch.target, weights=batch.weights, **batch.columns)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert meter.rows == 48
    assert bits(meter) == bits(case.counted(*batches))


def test_a_function_of_samples_is_called_by_the_operator():
    meter = Meter(PerSample(lambda preds, target: (preds - target) ** 2, name="squared"))
    update = compiled(meter)
    preds, target = torch.rand(3, 8), torch.rand(3, 8)
    for row in range(3):
        update(preds[row], target[row])
    assert counters["stats"]["unique_graphs"] == 1
    expected = Meter(PerSample(lambda preds, target: (preds - target) ** 2, name="squared"))
    expected.update(preds.flatten(), target.flatten())
    assert meter.rows == 24
    assert meter.compute()["PerSample"] == expected.compute()["PerSample"]


def test_the_operator_counts_with_weights():
    scores, target, weights = torch.rand(8), torch.arange(8) % 2, torch.arange(1.0, 9.0)
    meter, expected = Meter(AUROC(), weighted=True), Meter(AUROC(), weighted=True)
    compiled(meter)(scores, target, weights=weights)
    expected.update(scores, target, weights=weights)
    assert bits(meter) == bits(expected)


def test_strings_are_refused_inside_a_compiled_function():
    meter = Meter(WordErrorRate())
    with pytest.raises(StateError, match=r"preds that is no tensor, expected tensors\. Call update outside"):
        update_by_one_operator(meter, {"preds": ["a b"], "target": ["a"], "weights": None})
    with pytest.raises(torch._dynamo.exc.Unsupported, match="preds that is no tensor"):
        compiled(meter)(["a b"], ["a"])


def test_a_compiled_loss_and_an_update_that_keeps_its_scores_give_gradients_and_the_value():
    meter, seen = Meter(AUROC()), []

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(inputs, target):
        scores = torch.sigmoid(inputs * 2)
        meter.update(scores, target)
        return torch.nn.functional.binary_cross_entropy(scores, target.float())

    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        inputs = torch.randn(20, generator=generator, requires_grad=True)
        target = torch.randint(2, (20,), generator=generator)
        step(inputs, target).backward()
        assert inputs.grad.abs().sum() > 0
        seen.append((torch.sigmoid(inputs.detach() * 2), target))
    scores, targets = (torch.cat(each) for each in zip(*seen, strict=True))
    assert meter.rows == 60
    assert meter.compute()["AUROC"] == AUROC()(scores, targets)


def test_two_meters_of_one_compiled_function_keep_their_own_samples():
    meters = Meter(AUROC()), Meter(AUROC())

    @torch.compile(fullgraph=True, backend="eager")
    def step(scores, target):
        meters[0].update(scores, target)
        meters[1].update(1 - scores, target)

    scores, target = torch.rand(30), torch.arange(30) % 2
    step(scores, target)
    assert [meter.rows for meter in meters] == [30, 30]
    assert float(meters[0].compute()["AUROC"]) == pytest.approx(1 - float(meters[1].compute()["AUROC"]), abs=1e-15)


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
