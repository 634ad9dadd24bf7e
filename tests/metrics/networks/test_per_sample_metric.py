"""Means of what functions and networks of the caller give for each sample."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import assay
from assay.errors import (
    ConfigError,
    DtypeError,
    InputError,
    InvalidValuesError,
    PlacementWarning,
    ShapeError,
    StateError,
)
from assay.evaluation import compare_variants
from assay.meter import Meter
from assay.metrics import CharErrorRate, MeanSquaredError, PerSample
from assay.metrics.per_sample import per_sample_values
from assay.pretend import pretend
from assay.report import compare


class Distance(nn.Module):
    """A network with parts whose mode matters, and which gives numbers as LPIPS does."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
        self.modes: list[bool] = []

    def forward(self, preds, target):
        self.modes.append(any(module.training for module in self.modules()))
        return (self.features(preds) - self.features(target)).square().mean((1, 2, 3), keepdim=True)


def images(seed: int, count: int = 6):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(2, count, 3, 8, 8, generator=generator).unbind()


def mean_error(preds, target):
    return (preds - target).abs().flatten(1).mean(1)


def lengths(preds, target):
    return {
        "preds": [len(each) for each in preds],
        "ratio": np.array([len(p) / len(t) for p, t in zip(preds, target, strict=True)]),
    }


def total(preds, target=None, *, factor):
    return (preds * factor[:, None]).sum(1)


def test_the_value_is_the_exact_mean_of_what_the_function_gives():
    batches = [images(k, 5) for k in range(4)]
    given = torch.cat([mean_error(*batch) for batch in batches]).double().tolist()
    meter = Meter(error=PerSample(mean_error))
    for batch in batches:
        meter.update(*batch)
    assert float(meter.compute()["error"]) == float(sum(map(Fraction, given)) / 20)


def test_weights_multiply_each_number():
    batch, weights = images(1), torch.tensor([0.0, 1, 2, 0.5, 3, 4])
    value = PerSample(mean_error)(*batch, weights=weights)
    numbers = mean_error(*batch).double()
    assert float(value) == pytest.approx(float((numbers * weights).sum() / weights.sum()), rel=1e-14)


def test_a_module_is_in_evaluation_mode_while_it_is_called_and_afterwards_as_it_was():
    network, batch = Distance(), images(2)
    network.features[1].eval()  # frozen on purpose
    value = PerSample(network, "distance")(*batch)
    assert network.modes == [False]
    assert [module.training for module in network.modules()] == [True, True, True, False, True]
    with torch.no_grad():
        expected = network.eval()(*batch).double().mean()
    assert float(value) == pytest.approx(float(expected), rel=1e-12)


def test_modes_come_back_after_an_error_which_is_raised_as_it_is():
    network = Distance()
    with pytest.raises(RuntimeError, match="channels"):
        PerSample(network, "distance")(torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8))
    assert all(module.training for module in network.modules())


def test_a_method_of_a_module_is_called_as_the_module_is():
    class Judge(Distance):
        def score(self, preds):
            assert not self.training
            return preds.flatten(1).mean(1)

    judge = Judge()
    assert float(PerSample(judge.score, "judge", uses_target=False)(torch.ones(3, 3, 8, 8))) == 1
    assert judge.training


def test_nothing_is_tracked_and_autocast_is_off_during_the_call():
    observed = []

    def watch(preds, target):
        observed.append((torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")))
        return mean_error(preds, target)

    preds, target = images(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        PerSample(watch, "watch")(preds.requires_grad_(), target)
    assert observed == [(True, False)]


def test_narrow_floats_are_widened_to_the_weights_of_a_module():
    preds, target = (each.bfloat16() for each in images(4))
    network = Distance().eval()
    value = PerSample(network, "distance")(preds, target)
    assert float(value) == float(PerSample(network, "distance")(preds.float(), target.float()))


def test_one_call_a_batch_serves_every_metric_of_the_function():
    calls = []

    def sides(preds, target):
        calls.append(len(preds))
        return (target - preds).clamp(min=0), (preds - target).clamp(min=0)

    meter = Meter(**PerSample.each(sides, "sides", numbers=("below", "above")))
    meter.update(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0]))
    assert {name: float(value) for name, value in meter.compute().items()} == {"below": 1.0, "above": 0.5}
    assert calls == [2]
    assert len(meter.tallies) == 1
    everything = PerSample(sides, "sides", numbers=("below", "above"))
    assert {name: float(each) for name, each in everything(torch.zeros(2), torch.ones(2)).items()} == {
        "below": 1.0,
        "above": 0.0,
    }


@pytest.mark.parametrize(
    "result",
    [
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        [(1.0, 2.0), (3.0, 4.0)],
        np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
        (torch.tensor([1.0, 3.0]), [2, 4]),
        {"b": [2, 4], "a": torch.tensor([[1.0], [3.0]]), "unused": None},
    ],
    ids=["table", "rows", "array", "tuple", "dictionary"],
)
def test_several_numbers_come_in_any_form(result):
    metric = PerSample(lambda preds: result, "any", numbers=("a", "b"), uses_target=False)
    assert {name: float(value) for name, value in metric(torch.zeros(2)).items()} == {"a": 2.0, "b": 3.0}


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (torch.tensor(1.0), ShapeError, r"shape \(\), expected \(2,\).*reduction='none'"),
        (torch.ones(1, 2), ShapeError, r"shape \(1, 2\)"),
        (torch.ones(2, 3), ShapeError, r"shape \(2, 3\)"),
        ({"a": torch.ones(2)}, ShapeError, r"dictionary with a.*numbers=\('a',\)"),
        (object(), ShapeError, "object"),
        (torch.ones(2, dtype=torch.complex64), DtypeError, "complex64"),
    ],
)
def test_a_function_that_does_not_give_a_number_for_each_sample_raises(result, error, words):
    meter = Meter(own=PerSample(lambda preds: result, "own", uses_target=False))
    with pytest.raises(error, match=f"'own' gives: got .*{words}"):
        meter.update(torch.zeros(2))
    assert meter.rows == 0


def test_missing_numbers_are_named():
    with pytest.raises(ShapeError, match=r"dictionary with a, expected one with b"):
        PerSample(lambda preds: {"a": preds}, "own", numbers=("a", "b"), uses_target=False)(torch.zeros(2))
    with pytest.raises(ShapeError, match=r"3 results, expected 2: a, b"):
        PerSample(lambda preds: (preds,) * 3, "own", numbers=("a", "b"), uses_target=False)(torch.zeros(2))


def test_nan_raises_with_the_number_of_samples_and_infinity_is_a_value():
    logarithm = PerSample(torch.log, "log", uses_target=False)
    meter = Meter(log=logarithm)
    meter.update(torch.tensor([1.0, -1.0, -2.0]))
    with pytest.raises(InvalidValuesError, match=r"log: got 2 of the samples for which the function gave NaN"):
        meter.compute()
    assert float(logarithm(torch.tensor([1.0, 0.0]))) == -torch.inf


def test_metrics_of_tensors_share_a_meter_with_functions():
    preds, target = (each.flatten() for each in images(5))
    meter = Meter(own=PerSample(lambda p, t: (p - t).abs(), "error"), mse=MeanSquaredError())
    meter.update(preds, target)
    values = meter.compute()
    assert float(values["mse"]) == float(MeanSquaredError()(preds, target))
    assert float(values["own"]) == pytest.approx(float((preds - target).abs().double().mean()), rel=1e-12)


def test_batches_themselves_are_not_kept():
    meter = Meter(error=PerSample(mean_error))
    preds, target = images(6)
    meter.update(preds, target)
    expected = float(mean_error(preds, target).double().mean())
    preds.zero_()
    assert float(meter.compute()["error"]) == pytest.approx(expected, rel=1e-12)
    assert sum(value.nbytes for value in meter.state_dict().values()) < 4096


def test_strings_go_to_the_function_as_they_are_beside_other_metrics_of_strings():
    metrics = PerSample.each(lengths, numbers=("preds", "ratio"), takes="strings")
    meter = Meter(cer=CharErrorRate(), **metrics)
    meter.update(["ab", "abcd"], ["a", "abcd"])
    values = {name: float(value) for name, value in meter.compute().items()}
    assert values == {"cer": 0.2, "preds": 3.0, "ratio": 1.5}


def test_named_columns_are_passed_by_keyword_and_are_not_counted():
    meter = Meter(total=PerSample(total, columns=("factor",)))
    meter.update(torch.ones(2, 3), torch.ones(2, 3), factor=torch.tensor([1.0, 3.0]))
    assert float(meter.compute()["total"]) == 6
    with pytest.raises(
        ConfigError, match=r"columns: got no column, expected factor. Pass factor=... to update, for total"
    ):
        meter.update(torch.ones(2, 3), torch.ones(2, 3))
    found = per_sample_values(
        meter.metrics["total"], torch.ones(2, 3), torch.ones(2, 3), factor=torch.tensor([1.0, 3.0])
    )
    assert found.terms["total"].tolist() == [3.0, 9.0]


def test_named_columns_may_be_lists_of_strings():
    def shared(preds, target, source):
        return [float(len(set(p) & set(s))) for p, s in zip(preds, source, strict=True)]

    meter = Meter(own=PerSample(shared, "shared", takes="strings", columns=("source",)))
    meter.update(["abc", "x"], ["", ""], source=["bc", "y"])
    assert float(meter.compute()["own"]) == 1


def test_the_name_is_what_a_function_is_known_by():
    one, other = PerSample(Distance(0), "distance"), PerSample(Distance(1), "distance")
    assert one == other
    assert hash(one) == hash(other)
    assert "distance" in repr(one)
    assert "0x" not in repr(one)
    assert PerSample(mean_error).name == "mean_error"
    with pytest.raises(ConfigError, match="two functions"):
        Meter(a=one, b=other)
    for nameless in (Distance(), lambda preds, target: preds, Distance):
        with pytest.raises(ConfigError, match="name: got none for"):
            PerSample(nameless)


def test_equal_metrics_never_run_each_others_function():
    preds = torch.ones(2)
    values = [float(PerSample(lambda x, k=k: x * k, "own", uses_target=False)(preds)) for k in range(3)]
    assert values == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"function": 3}, "function: got int"),
        ({"number": "a"}, "number: got 'a'"),
        ({"numbers": ("a", "a")}, "numbers: got .*different names"),
        ({"numbers": "ab"}, "numbers: got 'ab'"),
        ({"columns": (1,)}, "columns: got"),
        ({"higher_is_better": "yes"}, "higher_is_better: got 'yes'"),
    ],
)
def test_wrong_arguments_raise(arguments, words):
    with pytest.raises(ConfigError, match=words):
        PerSample(**{"function": mean_error, **arguments})


@pytest.mark.parametrize(
    ("preds", "target", "words"),
    [
        (["a"], ["b"], 'takes="strings"'),
        (torch.ones(2), None, "uses_target=False"),
        (torch.ones(2), torch.ones(3), "target: got 3 samples"),
        ([None], torch.ones(2), "preds: got list"),
    ],
)
def test_wrong_samples_raise(preds, target, words):
    with pytest.raises(InputError, match=words):
        PerSample(mean_error)(preds, target)


def test_a_file_has_the_name_and_takes_the_metric_again(tmp_path):
    metric, batch = PerSample(Distance(), "distance"), images(7)
    meter = Meter(distance=metric, error=PerSample(mean_error))
    meter.update(*batch)
    path = meter.to_file(tmp_path / "meter.safetensors")
    known = [metric, PerSample(mean_error)]
    assert Meter.from_file(path, known).compute() == meter.compute()
    with pytest.raises(StateError, match=r"PerSample .*'distance'.*known="):
        Meter.from_file(path, known[1:])
    other = Meter(distance=PerSample(Distance(), "other weights"), error=PerSample(mean_error))
    with pytest.raises(StateError, match="other weights"):
        other.load_state_dict(meter.state_dict())


def test_copies_hold_the_function(tmp_path):
    meter = Meter(distance=PerSample(Distance(), "distance"))
    meter.update(*images(8))
    for other in (copy.deepcopy(meter), pickle.loads(pickle.dumps(meter))):
        other.update(*images(9))
        meter_of_both = meter.fresh().merge(meter)
        meter_of_both.update(*images(9))
        assert other.compute() == meter_of_both.compute()
        assert (other + meter).rows == 18


def test_tensors_meet_on_the_device_of_the_module_with_a_warning():
    network, (preds, target) = Distance().eval(), images(10)
    expected = float(PerSample(network, "distance")(preds, target))
    metric, meter = PerSample(network, "distance"), Meter(distance=PerSample(network, "distance"))
    with pretend("cuda:1") as device:
        network.to("cuda:1")
        with pytest.warns(PlacementWarning, match="expected one on cuda:1, where the weights of"):
            assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-5)
        assert {str(parameter.device) for parameter in network.parameters()} == {"cuda:1"}
        there = preds.to("cuda:1"), target.to("cuda:1")
        device.events.clear()
        meter.update(*there)
        assert [str(event) for event in device.events] == []
        assert [str(each) for each in meter.device_states()] == ["cuda:1"]
        assert float(meter.compute()["distance"]) == pytest.approx(expected, rel=1e-5)


# --- evaluation ------------------------------------------------------------------------------------------------------


def halve(x):
    return x / 2


def mean_of(preds):
    return preds.flatten(1).mean(1)


def test_a_report_has_intervals_slices_and_worst_samples_and_is_compared():
    x, y = images(11, 40)
    data = torch.utils.data.DataLoader([{"x": x[k], "target": y[k], "half": k % 2} for k in range(40)], batch_size=7)
    metrics = {
        "error": PerSample(mean_error, higher_is_better=False),
        "brightness": PerSample(mean_of, uses_target=False),
    }
    first, second = (
        assay.evaluate(model, data, metrics, inputs="x", slices=["half"], device="cpu")
        for model in (halve, torch.nn.Identity())
    )
    error = {each.name: each for each in first.sections[0].values}["error"]
    numbers = mean_error(x / 2, y).double()
    assert error.value == pytest.approx(float(numbers.mean()), rel=1e-12)
    assert error.lower < error.value < error.upper
    column = first.sections[0].samples.column("mean_error")
    assert column.tolist() == numbers.tolist()
    delta = compare(first, second).delta("error")
    assert delta.paired
    assert delta.difference == pytest.approx(float(mean_error(x, y).double().mean() - numbers.mean()), rel=1e-9)
    text = first.to_text()
    assert "half" in text
    assert "mean_error" in text


def test_evaluation_of_functions_of_raw_samples_without_a_target():
    data = [{"words": "a" * k} for k in range(1, 20)]
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    metric = PerSample(
        lambda preds: [len(p) for p in preds], "length", takes="strings", uses_target=False, higher_is_better=True
    )
    report = assay.evaluate(lambda words: words, loader, {"length": metric}, inputs="words", device="cpu")
    assert report.sections[0].values[0].value == 10


def test_variants_whose_outputs_only_functions_take_are_not_called_equal():
    data = torch.utils.data.TensorDataset(*images(12, 8))
    variants = {"half": halve, "whole": torch.nn.Identity()}
    comparison = compare_variants(variants, data, {"error": PerSample(mean_error)}, device="cpu")
    assert all("only functions take" in each.reason for each in comparison.outputs)
    assert len(comparison.outputs) == 1
