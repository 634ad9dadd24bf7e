from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.errors import ConfigError, InvalidValuesError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.language import perplexity
from assay.metrics import Accuracy, MeanSquaredError
from assay.pretend import pretend
from assay.quantize import QuantizedLinear, quantize_weight
from assay.quantize.analysis import Budget, DataSpec, measure, recipe_for_budget, sensitivity, sweep
from assay.quantize.analysis.budget import choose_options
from assay.quantize.analysis.layer_sensitivity import Sensitivity
from assay.quantize.analysis.speed import nbytes
from assay.quantize.rounding.gptq import Calibration
from assay.report import Report
from language.models import TEXT, Recurrent, llama

WIDTH, CLASSES = 64, 5
CPU = DataSpec(device="cpu", progress=False)
LANGUAGE = DataSpec(device="cpu", window=64, stride=32, progress=False)


def classifier(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES)
        ).eval()


def samples(count=200):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, WIDTH, generator=generator)
    return TensorDataset(x, torch.randint(CLASSES, (count,), generator=generator))


def quantized(model, scheme="int4:g32"):
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.Linear):
                integers = quantize_weight(child.weight, scheme)
                setattr(parent, name, QuantizedLinear(integers, child.bias, child.weight.dtype))
    return model


def section(report, name="Outputs"):
    return next(each for each in report.sections if each.name == name)


def values(report, name="Outputs"):
    return {value.name: value for value in section(report, name).values}


def outputs(model, data):
    with torch.no_grad():
        return model(data.tensors[0]).double()


MODEL, DATA = classifier(), samples()
INT4 = quantized(MODEL)


def test_outputs_quality_size_and_speed_are_told():
    report = measure(MODEL, INT4, DATA, Accuracy(num_classes=CLASSES), data_spec=CPU, speed=(1, 3))
    names = [each.name for each in report.sections]
    assert names == ["Outputs", "Quality", "Size", "Speed", "How it was measured"]
    p, q = (outputs(model, DATA).log_softmax(1) for model in (MODEL, INT4))
    found = values(report)
    assert found["KL divergence"].value == pytest.approx(float((p.exp() * (p - q)).sum(1).mean()), rel=1e-5)
    assert found["top-1 agreement"].value == float((p.argmax(1) == q.argmax(1)).double().mean())
    target = DATA.tensors[1]
    for name, logs in (("loss before", p), ("loss after", q)):
        assert found[name].value == pytest.approx(float(nn.functional.nll_loss(logs, target)), rel=1e-6)
    change = found["loss after"].value - found["loss before"].value
    assert found["loss change"].value == pytest.approx(change, abs=1e-12)
    assert found["loss change"].note == "paired: both models on the same samples"
    for value in found.values():
        assert value.lower < value.value < value.upper
        assert value.count == len(DATA)
    quality = section(report, "Quality").tables[0].rows[0]
    assert quality[1:3] == tuple(float((logs.argmax(1) == target).double().mean()) for logs in (p, q))
    assert values(report, "Size")["size ratio"].value == nbytes(INT4) / nbytes(MODEL)
    speed = section(report, "Speed").tables[0]
    assert [row[0] for row in speed.rows] == [1, 3]
    assert all(cell > 0 for row in speed.rows for cell in row)


def test_the_report_is_kept_drawn_and_its_samples_can_be_compared_with_another(tmp_path):
    from assay.report import compare

    int4 = measure(MODEL, INT4, DATA, data_spec=CPU, speed=(), title="int4")
    assert Report.load(int4.save(tmp_path / "r.json")) == int4
    assert "KL divergence" in int4.to_html(tmp_path / "r.html").read_text("utf-8")
    int8 = measure(MODEL, quantized(MODEL, "int8"), DATA, data_spec=CPU, speed=(), title="int8")
    delta = compare(int4, int8).delta("KL divergence", "Outputs")
    assert delta.paired
    assert delta.verdict == "better"


def test_ids_are_those_of_the_samples_whatever_the_order():
    def contributions(data):
        kept = section(measure(MODEL, INT4, data, data_spec=CPU, speed=())).samples
        return kept.ids.values.tolist(), kept.column("KL divergence")

    ids, expected = contributions(DATA)
    assert ids == list(range(len(DATA)))
    torch.manual_seed(0)
    for data in (DataLoader(DATA, batch_size=7, shuffle=True), DataLoader(DATA, batch_size=64)):
        again, found = contributions(data)
        assert again == ids
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_the_worst_samples_are_named():
    report = measure(MODEL, INT4, DATA, data_spec=CPU, speed=(), worst=3)
    p, q = (outputs(model, DATA).log_softmax(1) for model in (MODEL, INT4))
    expected = (p.exp() * (p - q)).sum(1).topk(3)
    table = next(each for each in section(report).tables if each.name == "Worst samples")
    assert [row[0] for row in table.rows] == expected.indices.tolist()
    assert [row[1] for row in table.rows] == pytest.approx(expected.values.tolist(), rel=1e-4)


def test_every_sample_is_proved_to_be_counted_once():
    report = measure(MODEL, INT4, DATA, data_spec=CPU, speed=())
    assert "Every sample once: 200 expected, 200 counted, 0 duplicated, 0 missed." in report.notes


def test_a_text_is_cut_into_windows_and_has_perplexities():
    model = llama()
    after = quantized(model)
    report = measure(model, after, TEXT, data_spec=replace(LANGUAGE, stride=16), speed=(1,))
    found = values(report)
    for name, each in (("perplexity before", model), ("perplexity after", after)):
        alone = perplexity(each, TEXT, window=64, stride=16, device="cpu")
        assert found[name].value == pytest.approx(alone.sections[0].values[0].value, rel=1e-6)
    ratio = found["perplexity after"].value / found["perplexity before"].value
    assert found["perplexity ratio"].value == pytest.approx(ratio, rel=1e-9)
    assert found["KL divergence"].count == len(TEXT.encode()) - 1
    assert section(report).note.startswith(f"{len(TEXT.encode()) - 1:,} tokens predicted once each")
    kinds = {row[0] for row in section(report, "Speed").tables[0].rows}
    assert kinds == {"one token each", "64 tokens each"}
    worst = next(each for each in section(report).tables if each.name == "Worst samples")
    assert all(isinstance(row[-1], str) and row[-1] for row in worst.rows)


def test_numbers_are_compared_by_their_squared_error():
    before, after = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)
    data = TensorDataset(DATA.tensors[0], torch.randn(200, 1))
    report = measure(before, after, data, MeanSquaredError(), data_spec=replace(CPU, outputs="values"), speed=())
    a, b = outputs(before, data), outputs(after, data)
    expected = float((a - b).square().sum() / a.square().sum())
    assert values(report)["relative squared error"].value == pytest.approx(expected, rel=1e-5)
    errors = section(report, "Quality").tables[0].rows[0][1:3]
    assert errors == pytest.approx([float((each - data.tensors[1]).square().mean()) for each in (a, b)], rel=1e-6)


def test_more_bits_move_the_outputs_less():
    found = sweep(llama(), TEXT, ["int8", "int4:g32", "int3:g32"], data_spec=LANGUAGE)
    by_name = {each.name: each for each in found.points}
    distances = [by_name[name].distance for name in ("int8", "int4:g32", "int3:g32")]
    assert distances[0] < distances[1] / 10
    assert distances[1] < distances[2] / 2
    assert by_name["int8"].upper < by_name["int4:g32"].lower < by_name["int4:g32"].upper < by_name["int3:g32"].lower
    agreements = [by_name[name].agreement for name in ("int8", "int4:g32", "int3:g32")]
    assert agreements == sorted(agreements, reverse=True)
    assert [each.bits for each in found.points] == sorted(each.bits for each in found.points)
    assert by_name["int4:g32"].bits == 5.0


def test_conv1d_of_transformers_is_rounded_without_calibration_as_a_plan_does():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D(32, WIDTH)
    nn.init.normal_(conv1d.weight)
    model, data = nn.Sequential(conv1d, nn.Linear(32, CLASSES)).eval(), torch.randn(50, WIDTH)
    with Calibration(model) as calibration:
        model(data)
    found = sensitivity(model, [data], "int8", method="search", calibration=calibration, data_spec=CPU)
    assert {each.layer for each in found.layers} == {"0", "1"}


def test_calibration_makes_the_outputs_move_less():
    model = llama()
    other = TEXT[::-1] + TEXT.upper()  # not what is measured on
    with Calibration(model) as calibration:
        perplexity(model, other, window=64, stride=64, device="cpu", progress=False)
    for scheme in ("int4:g32", "int3:g64"):
        nearest, gptq = (
            sweep(model, TEXT, [scheme], calibration=data, data_spec=LANGUAGE).points[0] for data in (None, calibration)
        )
        assert gptq.upper < nearest.lower
        assert gptq.bits == nearest.bits


def test_bits_count_what_a_scheme_leaves_alone():
    """Groups of 64 do not fit rows of 32: that layer stays at 32 bits a weight, and the point says so."""
    found = {each.name: each for each in sweep(MODEL, DATA, ["int4:g64", "int4:g32"], data_spec=CPU).points}
    assert (found["int4:g32"].layers, found["int4:g64"].layers) == (3, 2)
    weights = [64 * 64, 64 * 32, 32 * CLASSES]
    expected = ((weights[0] + weights[1]) * 4.5 + weights[2] * 32) / sum(weights)
    assert found["int4:g64"].bits == pytest.approx(expected)
    assert found["int4:g64"].nbytes == nbytes(quantized_some(MODEL))


def quantized_some(model):
    whole = quantized(nn.Sequential(*copy.deepcopy(model)[:4]), "int4:g64")
    return nn.Sequential(whole, model[4])


def test_a_sweep_is_the_measure_of_each_model():
    found = sweep(MODEL, DATA, ["int4:g32"], data_spec=CPU).points[0]
    report = measure(MODEL, INT4, DATA, data_spec=CPU, speed=())
    assert found.distance == values(report)["KL divergence"].value
    assert found.nbytes == nbytes(INT4)
    assert found.loss_change == pytest.approx(values(report)["loss change"].value, abs=1e-12)


def test_layers_are_measured_alone():
    found = sensitivity(MODEL, DATA, "int4:g32", data_spec=CPU)
    assert {each.layer for each in found.layers} == {"0", "2", "4"}
    assert [each.distance for each in found.layers] == sorted((each.distance for each in found.layers), reverse=True)
    alone = copy.deepcopy(MODEL)
    alone[2] = copy.deepcopy(INT4[2])
    expected = values(measure(MODEL, alone, DATA, data_spec=CPU, speed=()))["KL divergence"]
    two = found.of("2")["int4:g32"]
    assert (two.distance, two.lower, two.upper) == (expected.value, expected.lower, expected.upper)
    assert two.bytes_after == 64 * 32 * 5 // 8
    table = found.report.sections[0].tables[0]
    assert [row[0] for row in table.rows] == [each.layer for each in found.layers]


def test_names_in_a_picture_tell_layers_apart():
    report = sensitivity(llama(), TEXT[:200], "int4:g32", data_spec=LANGUAGE).report
    (bars,) = report.sections[0].plots
    assert len(set(bars.labels)) == len(bars.labels) == 15
    assert max(map(len, bars.labels)) <= 22


class FailsLater(nn.Module):
    """A model that fails in its fourth run."""

    def __init__(self):
        super().__init__()
        self.inner = classifier()
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        if self.runs == 4:
            raise RuntimeError("it broke")
        return self.inner(x)


@pytest.mark.parametrize("model", [MODEL, FailsLater()], ids=["works", "fails"])
def test_the_model_is_given_back_as_it_was(model):
    model.train()
    modules = {name: id(module) for name, module in model.named_modules()}
    state = {name: value.clone() for name, value in model.state_dict().items()}
    if isinstance(model, FailsLater):
        with pytest.raises(Exception, match="it broke"):
            sensitivity(model, DATA, "int4:g32", data_spec=CPU)
    else:
        sensitivity(model, DATA, "int4:g32", data_spec=CPU)
    assert {name: id(module) for name, module in model.named_modules()} == modules
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    model.eval()


def test_a_layer_that_hangs_in_two_places_is_replaced_in_both():
    shared = nn.Linear(32, 32)
    model = nn.Sequential(shared, nn.ReLU(), shared, nn.Linear(32, 3))
    found = sensitivity(model, [torch.randn(50, 32)], "int2:g32", data_spec=CPU)
    assert {each.layer for each in found.layers} == {"0", "3"}
    after = copy.deepcopy(model)
    after[0] = after[2] = QuantizedLinear(quantize_weight(shared.weight, "int2:g32"), shared.bias)
    data = [torch.randn(50, 32)]
    expected = values(measure(model, after, data, data_spec=CPU, speed=()))["KL divergence"].value
    again = sensitivity(model, data, "int2:g32", data_spec=CPU).of("0")["int2:g32"].distance
    assert again == expected


def test_weights_that_are_shared_are_left_out():
    model = Recurrent()
    model.head.weight = model.embed.weight
    with pytest.raises(ConfigError, match="shares its weight"):
        sensitivity(model, TEXT[:100], "int4:g32", data_spec=LANGUAGE)


def test_few_layers_at_a_time_give_the_same(monkeypatch):
    whole = sensitivity(MODEL, DATA, "int4:g32", data_spec=CPU)
    monkeypatch.setattr("assay.quantize.analysis.trials.AT_ONCE", 1)
    parts = sensitivity(MODEL, DATA, "int4:g32", data_spec=CPU)
    assert [(each.layer, each.distance) for each in parts.layers] == [(e.layer, e.distance) for e in whole.layers]


SCHEMES = ["int3:g32", "int4:g32", "int6:g32"]


@pytest.mark.exhaustive
def test_a_recipe_keeps_its_budget_and_is_better_than_a_scheme_of_its_size():
    model = llama()
    found = recipe_for_budget(model, TEXT, "5bits", schemes=SCHEMES, data_spec=LANGUAGE)
    assert found.bits <= 5
    by_name = {each.name: each for each in found.sweep.points}
    assert by_name["chosen"].bits == pytest.approx(found.bits)
    assert found.distance == by_name["chosen"].distance < by_name["int4:g32"].distance
    assert by_name["int4:g32"].bits == 5
    named = {rule.pattern: rule.schemes for rule in found.recipe.rules}
    assert set(named) == {layer.layer for layer in found.sensitivities.layers} | {"*"}
    assert found.expected == pytest.approx(found.distance, rel=0.5)
    assert "Asked for: 5 bits a weight." in found.report.sections[0].note


class Masked(nn.Module):
    """A model that calls one class impossible."""

    def __init__(self, impossible):
        super().__init__()
        self.model, self.impossible = MODEL, impossible

    def forward(self, x):
        y = self.model(x)
        return y.masked_fill(torch.arange(y.shape[-1]) == self.impossible, -math.inf)


def test_targets_that_either_model_calls_impossible_are_told_and_not_tripped_over():
    with pytest.warns(InvalidValuesWarning, match="distance: got .* of the values are NaN or infinite"):
        report = measure(Masked(0), Masked(1), DATA, data_spec=CPU)
    values = {value.name: value.value for value in report.sections[0].values}
    assert values["KL divergence"] == values["loss before"] == values["loss after"] == math.inf
    assert math.isnan(values["loss change"])


def test_data_without_a_sample_are_told():
    nothing = TensorDataset(torch.empty(0, WIDTH), torch.empty(0, dtype=torch.long))
    with pytest.raises(ConfigError, match="data: got no sample, expected at least one"), pytest.warns(NoDataWarning):
        measure(MODEL, copy.deepcopy(MODEL), nothing, data_spec=CPU)


@pytest.mark.parametrize("budget", ["100bits", "1GB"])
def test_a_budget_that_the_model_keeps_as_it_is_is_told(budget):
    with pytest.raises(ConfigError, match=r"budget: got .*, in which the model fits as it is, expected less"):
        recipe_for_budget(MODEL, DATA, budget, schemes=SCHEMES, data_spec=CPU)


def test_a_budget_in_bytes_is_that_of_the_model():
    most = int(nbytes(MODEL) * 0.25)
    found = recipe_for_budget(MODEL, DATA, f"{most}B", schemes=SCHEMES, data_spec=CPU)
    assert most * 0.8 < found.nbytes <= most
    with pytest.raises(ConfigError, match="budget: got 1,000 bytes, 596 bytes for the layers that can be quantized"):
        recipe_for_budget(MODEL, DATA, "1kB", schemes=SCHEMES, data_spec=CPU)


def option(layer, size, distance, scheme="s"):
    return Sensitivity(layer, f"{scheme}{size}", 100, 400, size, distance, None, None, None)


def test_steps_are_taken_by_what_a_byte_gains():
    options = {
        "a": [option("a", 40, 1.0), option("a", 50, 0.5), option("a", 80, 0.4)],
        "b": [option("b", 40, 1.0), option("b", 50, 0.9), option("b", 80, 0.1)],  # 50 is above the hull
    }
    chosen = choose_options(options, 130)
    assert {layer: each.bytes_after for layer, each in chosen.items()} == {"a": 50, "b": 80}
    assert choose_options(options, 10_000) == {"a": None, "b": None}
    assert {layer: each.bytes_after for layer, each in choose_options(options, 80).items()} == {"a": 40, "b": 40}
    with pytest.raises(ConfigError, match="expected at least 80, with each in its smallest scheme"):
        choose_options(options, 79)


def test_the_greedy_choice_is_as_good_as_trying_all():
    """Along the hull greedy is the best of all choices of the size that it reaches."""
    from itertools import product

    generator = np.random.default_rng(0)
    for _ in range(20):
        options = {}
        for layer in "abc":
            sizes, distances = np.sort(generator.integers(10, 90, 3)), np.sort(generator.random(3))[::-1]
            options[layer] = [option(layer, int(s), float(d)) for s, d in zip(sizes, distances, strict=True)]
        chosen = choose_options(options, 200)
        size = sum(each.bytes_after for each in chosen.values())
        cost = sum(each.distance for each in chosen.values())
        best = min(
            sum(each.distance for each in every)
            for every in product(*options.values())
            if sum(each.bytes_after for each in every) <= size
        )
        assert cost <= best + max(each.distance for every in options.values() for each in every)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4.5bits", Budget(4.5)),
        ("4 bit", Budget(4.0)),
        (4.25, Budget(4.25)),
        ("3.9", Budget(3.9)),
        ("300MB", Budget(nbytes=300_000_000)),
        ("1.5 GiB", Budget(nbytes=3 * 2**29)),
        ("100b", Budget(nbytes=100)),
    ],
)
def test_budgets_are_read(text, expected):
    assert Budget.parse(text) == expected


@pytest.mark.parametrize("text", ["", "few", "4.5 bytes a weight", "-3bits", "0", "4TB", True, "nan", "1e3"])
def test_other_budgets_are_refused(text):
    with pytest.raises(ConfigError, match="expected bits a weight, or bytes of the model"):
        Budget.parse(text)


class Nan(nn.Module):
    def forward(self, x):
        return torch.full((len(x), CLASSES), math.nan)


@pytest.mark.parametrize(
    ("after", "data", "options", "error", "message"),
    [
        (MODEL, DATA, {}, ConfigError, "after: got the same model as before, expected another. Quantize a copy"),
        (nn.Linear(WIDTH, 3), DATA, {}, ShapeError, r"outputs of the model after: got shape \(64, 3\)"),
        (Nan(), DATA, {}, InvalidValuesError, "outputs of the model before or of after: got NaN in 200 of 200 samples"),
        (
            INT4,
            TensorDataset(DATA.tensors[0], torch.full((200,), CLASSES)),
            {},
            InvalidValuesError,
            "target: got classes that the model does not have, in 200 of 200 samples",
        ),
        (INT4, iter([DATA[0]]), {}, ConfigError, "which gives its batches once"),
        (INT4, DATA, {"speed": (0,)}, ConfigError, r"speed: got \(0,\), expected sizes of batches, 1 or more"),
        (INT4, DATA, {"data_spec": replace(CPU, outputs="scores")}, ConfigError, "outputs: got 'scores'"),
        (INT4, DATA.tensors[0], {}, ConfigError, "expected a data loader, a data set, or batches"),
    ],
)
def test_what_cannot_be_measured_is_refused(after, data, options, error, message):
    with pytest.raises(error, match=message):
        measure(MODEL, after, data, **{"data_spec": CPU, "speed": (), **options})


def test_models_in_two_places_are_refused():
    with pytest.raises(ConfigError, match="models: got weights on cpu and meta, expected both in one place"):
        measure(MODEL, classifier().to("meta"), DATA, data_spec=CPU)


def test_several_processes_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="processes: got 2, expected one"):
        measure(MODEL, INT4, DATA, data_spec=CPU)


@pytest.mark.parametrize("device", ["mps", "cuda:0", "xpu"])
def test_other_devices_give_the_same(device):
    after = quantized(MODEL, "int3:g32")  # packed kernels of four bits need a real device
    expected = values(measure(MODEL, after, DATA, data_spec=CPU, speed=()))
    with pretend(device):
        found = measure(MODEL, after, DATA, data_spec=replace(CPU, device=device), speed=())
        assert found.device.startswith(device.partition(":")[0])
    for name, value in values(found).items():
        assert value.value == pytest.approx(expected[name].value, rel=1e-4), name
    assert {each.device.type for each in MODEL.parameters()} == {"cpu"}
