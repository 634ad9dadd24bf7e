from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy
from assay.errors import ConfigError
from assay.evaluation import Variant, compare_variants
from assay.evaluation.observe.observers import SampleRows
from assay.evaluation.variants import OutputDifference, _FirstOutputs, _OutputComparer, file_name
from assay.meter.inputs.arguments import Arguments
from assay.report import Comparison, Report

X = torch.randn(300, 4, generator=torch.Generator().manual_seed(1))


def net():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


def data():
    noise = torch.randn(300, 3, generator=torch.Generator().manual_seed(3))
    return TensorDataset(X, (net()(X).detach() + 0.3 * noise).argmax(1))


def broken():
    """The same model, one weight far off."""
    other = net()
    with torch.no_grad():
        other[2].bias[1] += 0.5
    return other


METRICS = {"accuracy": Accuracy(num_classes=3)}


def test_variants_are_compared_sample_by_sample(tmp_path):
    first, second = net(), broken()
    found = compare_variants({"main": first, "broken": second}, data(), METRICS, device="cpu", batch_size=32)
    a, b = first(X).detach(), second(X).detach()
    target = data().tensors[1]
    right_a, right_b = a.argmax(1) == target, b.argmax(1) == target
    delta = found.comparison.delta("accuracy")
    assert delta.paired
    assert delta.difference == pytest.approx(float(right_b.double().mean() - right_a.double().mean()))
    flips = found.comparison.flips[0]
    assert (flips.up, flips.down) == (int((right_b & ~right_a).sum()), int((right_a & ~right_b).sum()))
    assert flips.changed == int((a.argmax(1) != b.argmax(1)).sum())
    assert flips.downs[0][0] == int((right_a & ~right_b).nonzero()[0])
    far = (a.double() - b.double()).abs().amax(1)
    assert found.outputs[0].samples == 300
    assert found.outputs[0].equal == 0
    assert found.outputs[0].largest == pytest.approx(float(far.max()), rel=1e-5)
    assert [report.title for report in found.reports] == ["main", "broken"]
    written = {path.relative_to(tmp_path).as_posix() for path in found.save(tmp_path)}
    assert written == {
        "main/report.json",
        "main/report.html",
        "broken/report.json",
        "broken/report.html",
        "comparison.json",
        "comparison.html",
    }
    assert Comparison.load(tmp_path / "comparison.json") == found.comparison
    assert Report.load(tmp_path / "main" / "report.json") == found.reports[0]
    assert "300 samples have the same outputs to the bit" in (tmp_path / "comparison.html").read_text("utf-8")


def test_three_variants_eager_exported_and_in_another_precision(capsys):
    first = net()
    variants = {
        "eager": first,
        "exported": torch.export.export(first, (torch.ones(8, 4),)),
        "bfloat16": Variant(first, options={"precision": "bfloat16"}),
    }
    found = compare_variants(variants, DataLoader(data(), batch_size=32, shuffle=True), METRICS, device="cpu")
    exported, rounded = found.outputs
    assert exported.samples == 300
    assert exported.largest < 1e-5
    with torch.autocast("cpu", torch.bfloat16):
        half = first(X).detach().double()
    far = (half - first(X).detach().double()).abs().amax(1)
    assert rounded.largest == pytest.approx(float(far.max()), rel=0.2)
    assert far[rounded.sample] == pytest.approx(rounded.largest, rel=0.2)
    assert found.comparison.delta("accuracy", run="exported").difference == 0.0
    found.show()
    shown = capsys.readouterr().out
    assert "Outputs of bfloat16: 0 of 300 samples" in shown.replace("\n", " ")


def test_a_form_may_have_data_of_its_own():
    doubled = TensorDataset(X.double(), data().tensors[1])
    found = compare_variants(
        {"float32": net(), "float64": Variant(copy.deepcopy(net()).double(), doubled)}, data(), METRICS
    )
    assert found.outputs[0].samples == 300
    assert found.outputs[0].largest < 1e-5


def test_streams_are_measured_and_their_outputs_not_compared():
    batches = [(X[:5], data().tensors[1][:5]), (X[5:9], data().tensors[1][5:9])]
    found = compare_variants({"a": net(), "b": broken()}, batches, METRICS, device="cpu")
    assert str(found.outputs[0]) == "Outputs of b were not compared: the samples of a stream have no numbers."


def test_a_form_that_goes_on_from_a_checkpoint_says_of_what_it_cannot_tell(tmp_path):
    again = {"device": "cpu", "resume": tmp_path}
    first = compare_variants({"a": net(), "b": broken()}, data(), METRICS, **again)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    second = compare_variants({"a": net(), "b": broken()}, data(), METRICS, **again)
    assert second.comparison.delta("accuracy").difference == first.comparison.delta("accuracy").difference
    assert second.outputs == first.outputs  # what was found is in the checkpoint


@pytest.mark.parametrize(
    ("variants", "given", "message"),
    [
        ({"a": net()}, data(), "variants: got 1, expected two or more"),
        ({"a b": net(), "a-b": net()}, data(), "variants: got a b, a-b, expected names that tell folders apart"),
        ({"a": net(), "b": net()}, iter([]), "data: got list_iterator, expected data that can be read once for each"),
        (
            {"a": net(), "b": Variant(net(), options={"bits": 4})},
            data(),
            "compare_variants: got .*'bits', expected arguments of",
        ),
        ({"a": net(), "b": Variant(net(), options={"confidence_level": 2.0})}, data(), "confidence_level: got 2.0"),
    ],
)
def test_what_cannot_be_compared_is_told_before_anything_runs(variants, given, message):
    with pytest.raises(ConfigError, match=message):
        compare_variants(variants, given, METRICS)


def rows(preds, index, ids=None):
    return SampleRows(
        Arguments((torch.tensor(preds), None, None)), None if index is None else np.array(index), ids, 0, {}
    )


def beside(first, second, **options):
    outputs = _FirstOutputs(**options)
    for each in first:
        outputs.count(each)
    found = _OutputComparer("b", outputs)
    for each in second:
        found.count(each)
    return found


def test_outputs_are_found_by_their_samples_in_any_order():
    first = [rows([[1.0], [2.0]], [7, 3]), rows([[5.0]], [4])]
    found = beside(first, [rows([[2.5], [5.0], [1.0]], [3, 4, 7], ["x", "y", "z"])]).difference
    assert found == OutputDifference("b", 3, 2, 0.5, "x")


def test_of_equal_differences_the_first_sample_is_named_on_any_number_of_processes():
    first = [rows([[0.0]] * 4, [0, 1, 2, 3])]
    parts = [beside(first, [rows([[1.0]], [k])]) for k in (3, 1, 2)]
    for order in ([0, 1, 2], [2, 1, 0]):
        together = parts[0].empty()
        for k in order:
            together.add_state(parts[k].state())
        assert together.difference == OutputDifference("b", 3, 0, 1.0, 1)


def test_nan_and_infinity_are_values():
    inf, nan = float("inf"), float("nan")
    first = [rows([[nan, 1.0], [inf, 1.0], [1.0, 1.0]], [0, 1, 2])]
    assert beside(first, [rows([[nan, 1.0], [inf, 1.0]], [0, 1])]).difference == OutputDifference("b", 2, 2)
    found = beside(first, [rows([[nan, 1.0], [inf, 1.0], [nan, 1.0]], [0, 1, 2])])
    assert found.difference == OutputDifference("b", 3, 2, inf, 2)
    again = found.empty()
    again.add_state(found.state())
    assert again.difference == found.difference


def test_what_does_not_fit_into_memory_is_said():
    first = [rows([[1.0]], [0]), rows([[2.0]], [1])]
    found = beside(first, [rows([[1.0], [2.0]], [0, 1])], most_bytes=4).difference
    assert (found.samples, found.equal) == (1, 1)
    assert str(found).endswith("Not all were compared: of the first variant 1024 MiB of outputs are kept.")


def test_outputs_of_other_shapes_are_not_compared():
    found = beside([rows([[1.0, 2.0]], [0])], [rows([[1.0]], [0])]).difference
    assert str(found) == (
        "Outputs of b were not compared: their shapes differ: (1,) a sample, and (2,) of the first variant."
    )


def test_names_of_folders():
    assert [file_name(name) for name in ("a:b c", "../..", "net.pt2", "int4:g64")] == [
        "a-b-c",
        "variant",
        "net.pt2",
        "int4-g64",
    ]
