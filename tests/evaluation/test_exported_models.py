from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion
from torch.utils.data import TensorDataset

from assay import Accuracy, evaluate
from assay.errors import DtypeError, ShapeError
from assay.evaluation.model.exported_models import ExportedModel, as_model
from assay.pretend import pretend

DIM = torch.export.Dim


class Net(nn.Module):
    """Has a device written into it, a sum over the batch beside its logits, and an optional second input."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)

    def forward(self, x, mask=None):
        logits = self.linear(x) + torch.arange(3, device=x.device)
        if mask is not None:
            logits = logits * mask[:, None]
        return {"logits": logits, "total": logits.sum()}


def exported(rows=8, dim=None, masked=False):
    example = (torch.ones(rows, 4), torch.ones(rows)) if masked else (torch.ones(rows, 4),)
    shapes = None if dim is None else tuple({0: dim} for _ in example)
    return torch.export.export(Net().eval(), example, dynamic_shapes=shapes)


@pytest.mark.parametrize(
    ("dim", "least", "most"),
    [
        (None, 8, 8),
        (DIM.AUTO, 1, None),
        (DIM("b"), 1, None),
        (DIM("b", min=4, max=10), 4, 10),
        (DIM("b", min=2), 1, None),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_any_number_of_rows_gives_the_model_s_own_outputs(dim, least, most, masked):
    if masked and (least, most) == (1, None) and dim != DIM.AUTO and TorchVersion(torch.__version__) < (2, 7):
        pytest.skip("torch 2.6 exports no dimension that two inputs share without a largest size")
    program = ExportedModel(exported(dim=dim, masked=masked))
    assert (program.least, program.most) == (least, most)
    net = Net().eval()
    for rows in (1, 2, 3, 7, 8, 9, 16, 21):
        given = (torch.randn(rows, 4), torch.rand(rows)) if masked else (torch.randn(rows, 4),)
        found = program(*given)
        torch.testing.assert_close(found["logits"], net(*given)["logits"])
        if least <= rows and (most is None or rows <= most):
            torch.testing.assert_close(found["total"], net(*given)["total"])
        else:  # a sum over copies of rows would be a wrong number
            assert found["total"] is None


def test_every_sample_is_counted_once_whatever_the_program_demands():
    x, y = torch.randn(37, 4), torch.randint(3, (37,))
    expected = Accuracy(num_classes=3)(Net().eval()(x)["logits"].detach(), y)
    for batch_size in (5, 8, 64):
        report = evaluate(
            ExportedModel(exported()), TensorDataset(x, y), Accuracy(num_classes=3), device="cpu", batch_size=batch_size
        )
        assert report.sections[0].values[0].value == float(expected)
        assert "37 expected, 37 counted, 0 duplicated, 0 missed" in report.notes[0]


def test_a_program_goes_to_a_device_with_what_is_written_into_it():
    x, y = torch.randn(11, 4), torch.randint(3, (11,))
    expected = Accuracy(num_classes=3)(Net().eval()(x)["logits"].detach(), y)
    with pretend("cuda:1"):
        program = ExportedModel(exported())
        report = evaluate(program, TensorDataset(x, y), Accuracy(num_classes=3), device="cuda:1")
        assert {str(each.device) for each in program.parameters()} == {"cpu"}  # it came back
    assert report.device.startswith("cuda:1")
    assert report.sections[0].values[0].value == float(expected)


def test_a_program_keeps_its_mode_and_its_dtype():
    program = ExportedModel(exported())
    assert program.train() is program
    assert program.eval().training is False
    with pytest.raises(DtypeError, match=r"an exported program: got to\(torch.bfloat16\), expected a device"):
        program.to(torch.bfloat16)


def test_inputs_without_rows_are_told():
    with pytest.raises(ShapeError, match=r"inputs of the program: got .*, expected a tensor with rows"):
        ExportedModel(exported())("text")


def test_other_models_stay_as_they_are():
    net = Net()
    assert as_model(net) is net
    assert isinstance(as_model(exported()), ExportedModel)


def test_evaluate_takes_a_program_as_torch_made_it():
    x, y = torch.randn(9, 4), torch.randint(3, (9,))
    metric = Accuracy(num_classes=3)
    report = evaluate(exported(), TensorDataset(x, y), metric, device="cpu")
    assert report.sections[0].values[0].value == float(metric(Net().eval()(x)["logits"].detach(), y))
