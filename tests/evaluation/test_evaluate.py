from __future__ import annotations

import dataclasses
import inspect
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, SubsetRandomSampler, TensorDataset

import assay
from assay import Accuracy, ConfusionMatrix, Mean, Meter
from assay.errors import AssayWarning, ConfigError, ShapeError
from assay.evaluation import BatchError, evaluate
from assay.evaluation.arguments.options import EvaluateOptions
from assay.metrics import ClassReport, StatScores
from assay.pretend import pretend

CLASSES = 3
METRIC = Accuracy(num_classes=CLASSES)


def samples(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 4, generator=generator), torch.randint(CLASSES, (count,), generator=generator)


def model(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Linear(4, CLASSES)


def truth(net, x, y):
    with torch.no_grad():
        return float((net(x).argmax(1) == y).double().mean())


def value(report, name=None):
    (section,) = report.sections
    values = {each.name: each.value for each in section.values}
    return values[name] if name else next(iter(values.values()))


def table(report, name):
    return next(each for each in report.sections[0].tables if each.name == name).rows


def proof(report):
    return dict(table(report, "Every sample once"))


def counts(report):
    found = proof(report)
    return found["expected"], found["counted"], found["duplicated"], found["missed"]


X, Y = samples(50)
NET = model()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_is_counted_once_whatever_its_order_and_workers(workers, shuffle):
    loader = DataLoader(TensorDataset(X, Y), batch_size=7, shuffle=shuffle, num_workers=workers)
    report = evaluate(NET, loader, METRIC, device="cpu")
    assert value(report) == truth(NET, X, Y)
    assert counts(report) == (50, 50, 0, 0)
    assert report.sections[0].values[0].count == 50
    assert "Every sample once: 50 expected, 50 counted, 0 duplicated, 0 missed." in report.notes


class Mapped(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, k):
        return {"x": X[k], "label": Y[k], "name": f"sample {k}"}


class Shaped(NamedTuple):
    x: torch.Tensor
    target: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Pack:
    features: torch.Tensor
    targets: torch.Tensor


def batches(make):
    return [make(x, y) for x, y in zip(X.split(9), Y.split(9), strict=True)]


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (TensorDataset(X, Y), {}),
        (TensorDataset(X, Y), {"num_workers": 2, "batch_size": 13}),
        (Mapped(), {}),
        (batches(lambda x, y: (x, y)), {}),
        (batches(lambda x, y: [x, y.tolist()]), {}),
        (batches(lambda x, y: {"input": x, "labels": y}), {}),
        (batches(Shaped), {}),
        (batches(Pack), {}),
        (batches(lambda x, y: {"a": {"b": x}, "c": y}), {"inputs": lambda b: b["a"]["b"], "target": "c"}),
        (batches(lambda x, y: (y, x)), {"inputs": 1, "target": 0}),
        (batches(lambda x, y: {"input": x, "noise": x + 1, "t": y}), {"inputs": ["input"], "target": "t"}),
    ],
    ids=[f"form {k}" for k in range(11)],
)
def test_what_a_batch_may_be(data, more):
    assert value(evaluate(NET, data, METRIC, device="cpu", **more)) == truth(NET, X, Y)


class Output(dict):
    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    ("wrap", "preds"),
    [
        (lambda logits: Output(logits=logits, hidden=logits * 0), None),
        (lambda logits: {"out": logits}, None),
        (lambda logits: (logits,), None),
        (lambda logits: (logits.sum(), logits), 1),
        (lambda logits: {"head": {"scores": logits}}, lambda out: out["head"]["scores"]),
    ],
)
def test_what_a_model_may_give(wrap, preds):
    report = evaluate(lambda x: wrap(NET(x)), TensorDataset(X, Y), METRIC, device="cpu", preds=preds)
    assert value(report) == truth(NET, X, Y)


def test_a_model_of_two_inputs_gets_both():
    class Two(nn.Module):
        def forward(self, a, b):
            return NET(a + b)

    expected = truth(NET, 2 * X, Y)
    assert value(evaluate(Two(), TensorDataset(X, X, Y), METRIC, device="cpu")) == expected
    nested = [((X, X), Y)]
    assert value(evaluate(Two(), nested, METRIC, device="cpu")) == expected


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ([(X, X, Y)], {}, r"batch: got \(float32 \(50, 4\), float32 \(50, 4\), int64 \(50,\)\), expected 1 inputs and"),
        ([{"a": X, "b": X, "y": Y}], {}, r"expected names that the model takes, or one tensor\. Say it with inputs="),
        ([(X, Y)], {"target": "nothing"}, r"target: got no 'nothing' in \(float32 \(50, 4\), int64 \(50,\)\)"),
        ([(X, Y)], {"inputs": 5}, r"inputs: got no 5 in"),
        ({"x": None}, {}, r"data: got \{'x': NoneType\}, expected a data loader"),
        ([(X, Y)], {"on_error": "ignore"}, r"on_error: got 'ignore', expected raise or skip"),
        ([(X, Y)], {"precision": "int4"}, r"precision: got 'int4', expected one of float32, bfloat16, float16"),
        ([(X, Y)], {"device": "cuda:7"}, r"device: got 'cuda:7', expected one of this machine \(cpu\)"),
        ([(X, Y)], {"device": "abacus"}, r"device: got 'abacus', expected a device such as"),
        ([(X, Y)], {"batch_size": 0}, r"batch_size: got 0, expected an integer, 1 or more"),
        ([(X, Y)], {"num_workers": -1}, r"num_workers: got -1, expected an integer, 0 or more"),
        ([(X, Y)], {"seed": -1}, r"seed: got -1, expected an integer from 0"),
        ([(X, Y)], {"seed": "a"}, r"seed: got 'a', expected an integer from 0"),
        ([(X, Y)], {"resume": ""}, r"resume: got '', expected a path"),
        ([(X, Y)], {"resume": 5}, r"resume: got 5, expected a path"),
        (
            [(X, Y)],
            {"compile": {"backend": "nope"}},
            r"compile: got InvalidBackend: .*expected what torch.compile takes",
        ),
    ],
)
def test_what_cannot_be_understood_is_told_with_what_was_found(data, more, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(NET, data, METRIC, **{"device": "cpu", **more})


@pytest.mark.parametrize(
    ("model", "got"), [(None, "None"), ("resnet18", "'resnet18'"), (torch.nn.Linear, "the class Linear")]
)
def test_what_is_no_model_is_told_before_anything_runs(model, got):
    with pytest.raises(ConfigError, match=f"model: got {got}, expected a module, an exported program or a function"):
        evaluate(model, [(X, Y)], METRIC, device="cpu", on_error="skip")


@pytest.mark.parametrize("name", ["weighted", "strict", "stage_bytes", "self"])
def test_a_name_that_no_metric_can_have_is_told(name):
    with pytest.raises(ConfigError, match=f"metrics: got the name {name!r}, expected a text other than self, weighted"):
        evaluate(NET, [(X, Y)], {name: METRIC}, device="cpu")


def test_arrays_are_told_from_tensors():
    with pytest.raises(ConfigError, match=r"outputs of the model: got array of float32 \(50, 3\), expected a tensor"):
        evaluate(lambda x: NET(x).numpy(), [(X, Y)], METRIC, device="cpu")


def test_outputs_that_could_be_anything_are_told():
    with pytest.raises(ConfigError, match=r"outputs of the model: got \(float32 \(\), float32 \(50, 3\)\), expected"):
        evaluate(lambda x: (x.sum(), NET(x)), [(X, Y)], METRIC, device="cpu")


def test_rows_that_are_not_the_samples_are_refused():
    with pytest.raises(ShapeError, match="got 1 rows of predictions for 50 samples"):
        evaluate(lambda x: NET(x).mean(0, keepdim=True), TensorDataset(X, Y), METRIC, device="cpu")


def test_metrics_come_alone_in_lists_by_name_or_as_a_meter():
    data = TensorDataset(X, Y)
    expected = truth(NET, X, Y)
    meter = Meter(acc=METRIC)
    for metrics, name in ((METRIC, "Accuracy"), ([METRIC], "Accuracy"), ({"acc": METRIC}, "acc"), (meter, "acc")):
        assert value(evaluate(NET, data, metrics, device="cpu"), name) == expected
    assert meter.rows == 0
    with pytest.raises(ConfigError, match="metrics: got int, expected a metric"):
        evaluate(NET, data, 3, device="cpu")


def test_weights_and_no_target():
    weights = torch.arange(50.0)
    data = [{"x": X, "w": weights}]
    report = evaluate(lambda x: x[:, 0], data, Mean(), device="cpu", inputs="x", weights="w")
    assert value(report) == pytest.approx(float((X[:, 0].double() * weights).sum() / weights.double().sum()))


def test_tables_plots_and_parts_of_values_are_in_the_report():
    metrics = {
        "each": Accuracy(num_classes=CLASSES, average=None),
        "matrix": ConfusionMatrix(num_classes=CLASSES),
        "stats": StatScores(num_classes=CLASSES, average="micro"),
        "classes": ClassReport(num_classes=CLASSES),
    }
    report = evaluate(NET, TensorDataset(X, Y), metrics, device="cpu", title="Parts")
    (section,) = report.sections
    assert [each.name for each in section.values] == [
        f"stats {part}" for part in StatScores(num_classes=CLASSES, average="micro")(NET(X), Y)._fields
    ]
    assert len(table(report, "each")) == CLASSES
    assert sum(map(sum, section.plots[0].counts)) == 50
    assert assay.report.Report.from_json(report.to_json()) == report
    assert report.title == "Parts"


def test_modes_and_places_are_restored_even_on_failure():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, CLASSES)).train()
    net[0].eval()
    modes = [module.training for module in net.modules()]
    seen = []
    net[1].register_forward_hook(lambda module, *_: seen.append(module.training))
    evaluate(net, TensorDataset(X, Y), METRIC, device="cpu")
    assert seen == [False]
    assert [module.training for module in net.modules()] == modes
    with pytest.raises(BatchError):
        evaluate(net, TensorDataset(X[:, :2], Y), METRIC, device="cpu")
    assert [module.training for module in net.modules()] == modes


def test_no_gradients_and_the_random_numbers_of_the_process_stay():
    seen = []
    before = torch.random.get_rng_state()

    def predict(x):
        seen.append(torch.is_inference_mode_enabled())
        torch.rand(3)
        return NET(x)

    evaluate(predict, DataLoader(TensorDataset(X, Y), batch_size=10, shuffle=True), METRIC, device="cpu")
    assert set(seen) == {True}
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_precision_is_that_of_autocast(precision):
    seen = []

    def predict(x):
        seen.append(NET(x).dtype)
        return NET(x)

    evaluate(predict, TensorDataset(X, Y), METRIC, device="cpu", precision=precision)
    assert seen == [getattr(torch, precision)]


def test_a_sampler_of_a_part_is_told():
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, sampler=SubsetRandomSampler(range(20)), drop_last=True)
    report = evaluate(NET, loader, METRIC, device="cpu")
    assert counts(report) == (16, 16, 0, 0)
    assert "The loader gives 34 samples of the data set to nobody (a sampler, or drop_last)." in report.notes


def test_a_sampler_that_gives_samples_again_counts_them_once():
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, sampler=[*range(50), 3, 3, 49])
    report = evaluate(NET, loader, METRIC, device="cpu")
    assert counts(report) == (50, 50, 0, 0)
    assert proof(report)["given again, and not counted again"] == 3
    assert value(report) == truth(NET, X, Y)


class StreamResult(IterableDataset):
    """As many do it by mistake, every worker gives everything."""

    def __iter__(self):
        return ({"input": X[k], "label": Y[k], "id": f"s{k}"} for k in range(len(X)))


class StreamOfBatches(IterableDataset):
    def __iter__(self):
        return ({"input": X[k : k + 8], "label": Y[k : k + 8]} for k in range(0, len(X), 8))


def test_a_stream_of_batches_is_not_batched_again():
    report = evaluate(NET, StreamOfBatches(), METRIC, device="cpu", inputs="input", batch_size=None)
    assert value(report) == truth(NET, X, Y)
    with pytest.raises(ConfigError, match="batch_size=None"):
        evaluate(NET, TensorDataset(X, Y), METRIC, device="cpu", batch_size=None)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_streams_with_ids_count_each_once_with_any_workers(workers):
    loader = DataLoader(StreamResult(), batch_size=8, num_workers=workers)
    report = evaluate(NET, loader, METRIC, device="cpu", ids="id", inputs="input")
    assert value(report) == truth(NET, X, Y)
    assert counts(report) == (None, 50, 0, None)
    assert report.notes[0] == "Every sample once: 50 counted, 0 duplicated."
    assert any("had the id of an earlier row" in note for note in report.notes) == (workers > 1)
    assert proof(report)["given again, and not counted again"] == 50 * max(workers - 1, 0)


def test_streams_without_ids_say_that_nobody_can_tell():
    report = evaluate(NET, DataLoader(StreamResult(), batch_size=8), METRIC, device="cpu", inputs="input")
    assert counts(report) == (None, 50, None, None)
    assert report.notes == ("Samples are identified by nothing, so duplicates cannot be detected: 50 counted.",)
    text = next(each for each in report.sections[0].tables if each.name == "Every sample once").note
    assert "duplicates cannot be detected" in text


def test_ids_must_be_numbers_or_texts():
    with pytest.raises(ConfigError, match=r"ids: got float in .*, expected ids"):
        evaluate(NET, [{"input": X, "y": Y, "id": X[:, 0]}], METRIC, device="cpu", ids="id")


@pytest.mark.parametrize("id", [7, "seven"])
def test_samples_in_place_of_batches_are_one_clear_line(id):
    with pytest.raises(ConfigError, match=r"ids: got (int|str) in .*, expected one id for each sample of a batch"):
        evaluate(NET, [{"input": X, "y": Y, "id": id}], METRIC, device="cpu", ids="id")


@pytest.mark.parametrize("fails_at", [24, 0])
def test_a_batch_that_fails_names_its_samples(fails_at):
    def predict(x):
        if (x == X[fails_at]).all(1).any():
            raise ZeroDivisionError("by design")
        return NET(x)

    loader = DataLoader(TensorDataset(X, Y), batch_size=10)
    first = fails_at // 10 * 10
    ids = ", ".join(map(str, range(first, first + 8)))
    with pytest.raises(BatchError, match=f"batch with the ids {ids} and 2 more .*ZeroDivisionError while predicting"):
        evaluate(predict, loader, METRIC, device="cpu")
    report = evaluate(predict, loader, METRIC, device="cpu", on_error="skip")
    kept = torch.cat([torch.arange(first), torch.arange(first + 10, 50)])
    assert value(report) == truth(NET, X[kept], Y[kept])
    assert proof(report)["skipped"] == 10
    assert counts(report) == (50, 40, 0, 0)
    assert "1 batches failed and were left out: 10 samples." in report.notes
    assert table(report, "Batches left out") == (("ZeroDivisionError: by design", f"the ids {ids} and 2 more"),)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sample_that_cannot_be_loaded_is_named_too(workers):
    data = Broken()
    loader = DataLoader(data, batch_size=10, num_workers=workers)
    with pytest.raises(BatchError, match=r"batch with the ids 20, 21, .*OSError while loading"):
        evaluate(NET, loader, METRIC, device="cpu")
    report = evaluate(NET, loader, METRIC, device="cpu", on_error="skip")
    assert counts(report) == (50, 40, 0, 0)


class Broken(Dataset):
    def __len__(self):
        return 50

    def __getitem__(self, k):
        if k == 24:
            raise OSError("the disk")
        return X[k], Y[k]


def test_what_cannot_be_measured_names_the_batch():
    with pytest.raises(ShapeError) as raised:
        evaluate(lambda x: x[:, :2], TensorDataset(X, Y), METRIC, device="cpu")
    assert raised.value.__notes__ == ["In the batch with the ids 0, 1, 2, 3, 4, 5, 6, 7 and 42 more."]


class Tight(nn.Module):
    """A model for which memory runs out above some batch size."""

    def __init__(self, most, error):
        super().__init__()
        self.most, self.error, self.sizes, self.net = most, error, [], model()

    def forward(self, x):
        self.sizes.append(len(x))
        if len(x) > self.most:
            raise self.error
        return self.net(x)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("MPS backend out of memory (MPS allocated: 5.56 GB, max allowed: 6.80 GB)."),
        MemoryError(),
    ],
    ids=repr,
)
def test_batches_that_do_not_fit_are_split_and_counted_once(error):
    net = Tight(5, error)
    report = evaluate(net, DataLoader(TensorDataset(X, Y), batch_size=20), METRIC, device="cpu")
    assert value(report) == truth(net.net, X, Y)
    assert counts(report) == (50, 50, 0, 0)
    assert net.sizes == [20, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
    memory = {row[0]: row[1] for row in table(report, "Decisions")}["memory"]
    assert memory == "memory ran out 2 times, last with 10 samples: at most 5 are predicted at once"


def test_a_sample_that_does_not_fit_alone_is_named():
    with pytest.raises(BatchError, match=r"batch with the ids 0 .*memory runs out on cpu with one sample"):
        evaluate(Tight(0, MemoryError()), DataLoader(TensorDataset(X, Y), batch_size=4), METRIC, device="cpu")


def test_nested_batches_are_split_with_all_their_parts():
    seen = []

    class Names(nn.Module):
        def forward(self, x, names, scale):
            if len(x) > 3:
                raise torch.OutOfMemoryError("no memory")
            seen.extend(names)
            assert len(names) == len(x)
            return NET(x * scale)

    names = [f"n{k}" for k in range(50)]
    data = [{"x": X, "names": names, "scale": torch.tensor(1.0), "y": np.asarray(Y)}]
    report = evaluate(Names(), data, METRIC, device="cpu")
    assert seen == names
    assert value(report) == truth(NET, X, Y)


class Returning(nn.Module):
    """Puts a part of itself into training mode while it predicts."""

    def __init__(self, part):
        super().__init__()
        self.body, self.part = nn.Sequential(nn.Linear(4, CLASSES), nn.Dropout(0.5)), part

    def forward(self, x):
        self.get_submodule(self.part).train()
        return self.body(x).softmax(1)


@pytest.mark.parametrize(("part", "named"), [("", "the model itself"), ("body.1", "'body.1'")])
def test_a_model_that_returns_to_training_mode_is_named_once(part, named):
    net, data = Returning(part), TensorDataset(torch.randn(40, 4), torch.zeros(40).long())
    with pytest.warns(AssayWarning, match=f"model: got .*training mode after the first batch.*({named})") as caught:
        evaluate(net, data, Accuracy(num_classes=CLASSES), batch_size=8)
    assert len([each for each in caught if "training mode" in str(each.message)]) == 1


def test_compiled_models_are_measured():
    called = []

    def backend(graph, _):
        called.append(graph)
        return graph.forward

    report = evaluate(NET, TensorDataset(X, Y), METRIC, device="cpu", compile={"backend": backend})
    assert called
    assert value(report) == truth(NET, X, Y)


def test_an_empty_data_set_reads_nan_and_says_so():
    with pytest.warns(assay.errors.NoDataWarning) as told:
        report = evaluate(NET, TensorDataset(X[:0], Y[:0]), METRIC, device="cpu")
    assert {each.filename for each in told} == {__file__}
    assert np.isnan(value(report))
    assert counts(report) == (0, 0, 0, 0)


def test_evaluate_is_a_function_of_the_package_whatever_was_imported():
    import assay.evaluation.evaluate_model

    assert inspect.isfunction(assay.evaluate)
    assert assay.evaluate is assay.evaluation.evaluate


def test_the_signature_of_evaluate_is_made_of_its_options():
    parameters = inspect.signature(assay.evaluate).parameters
    options = {each.name: each.default for each in dataclasses.fields(EvaluateOptions)}
    assert list(parameters) == ["model", "data", "metrics", *options]
    assert {name: parameters[name].default for name in options} == options
    assert parameters["batch_size"].kind == inspect.Parameter.KEYWORD_ONLY
    described = inspect.getdoc(assay.evaluate)
    assert [name for name in parameters if f"    {name}: " not in described] == []


def test_an_argument_that_does_not_exist_names_the_nearest():
    with pytest.raises(ConfigError, match=r"evaluate: got an argument 'batch_sizes'.*Write batch_size="):
        evaluate(nn.Identity(), [], Accuracy(), batch_sizes=3)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "metrics: got none, expected one or more"),
        (None, "metrics: got nothing, expected a metric"),
        ({1: Accuracy()}, "metrics: got the name 1, expected a string"),
        ({"accuracy"}, "metrics: got set, .* Pass a list"),
        (iter(["accuracy"]), "metrics: got list_iterator, .* Pass a list"),
        (b"accuracy", "metrics: got bytes, expected a metric"),
        (["accuracy", 3], "metrics: got int, expected a metric"),
    ],
)
def test_what_are_no_metrics_is_refused(metrics, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(nn.Identity(), [(torch.rand(4), torch.ones(4).long())], metrics, progress=False)


def test_metrics_as_strings_say_which_needs_the_number_of_classes():
    data = [(torch.rand(6, 3), torch.arange(6) % 3)]
    with pytest.raises(ShapeError, match=r"as a string accuracy:num_classes=3; and .* f1:num_classes=3\.") as error:
        evaluate(nn.Identity(), data, ["accuracy", "f1:average=macro"], progress=False)
    assert "details." not in str(error.value)
    with pytest.raises(ShapeError, match=r"f1: preds: got .* as a string f1:num_classes=3,zero_division=1\."):
        evaluate(nn.Identity(), data, ["accuracy:num_classes=3", "f1:zero_division=1"], progress=False)


@pytest.mark.parametrize(
    ("options", "said"), [({}, "3 of 3"), ({"recount": "all"}, "3 of 3"), ({"recount": "off"}, "")]
)
def test_the_report_of_a_device_says_how_many_batches_were_recounted(options, said):
    net = model()  # the Python engine moves no parameters to which other tests have left weak references
    with pretend("mps"):
        report = evaluate(net, TensorDataset(X, Y), METRIC, device="mps", batch_size=-(-len(X) // 3), **options)
        with pytest.raises(ConfigError, match=r"recount: got 'some', expected 'sampled'"):
            evaluate(net, TensorDataset(X, Y), METRIC, device="mps", recount="some")
        given = evaluate(net, TensorDataset(X, Y), Meter(METRIC, recount="off"), device="mps")
    notes = [note for note in report.notes if "recounted" in note]
    assert notes == [note for note in notes if said and note.startswith(f"{said} batches were recounted on the CPU")]
    assert len(notes) == bool(said)
    assert not any("recounted" in note for note in given.notes)
    on_cpu = evaluate(NET, TensorDataset(X, Y), METRIC, device="cpu", recount="all")
    assert not any("recounted" in note for note in on_cpu.notes)
