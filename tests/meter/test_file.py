from __future__ import annotations

import copy
import json
import os
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from assay.errors import ConfigError, NoDataWarning, StateError
from assay.meter import Meter
from assay.meter import file as meter_file
from assay.meter.file import ABOUT, MeterDescription
from assay.metrics.aggregation.quantile import Quantile
from assay.metrics.aggregation.values import Max, Mean
from assay.metrics.classification.ranking import AUROC
from assay.metrics.classification.rates import Accuracy
from assay.metrics.regression.errors import MeanSquaredError
from assay.metrics.regression.rank_correlation import SpearmanCorrCoef
from laws import bits
from tally_laws import TALLY_CASES
from thinning import every

MIXED = {"mse": MeanSquaredError(), "rho": SpearmanCorrCoef(), "q": Quantile((0.1, 0.9)), "max": Max(), "mean": Mean()}


def mixed(count=20, seed=0, weighted=False):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(count, generator=generator), torch.randn(count, generator=generator)
    meter = Meter(weighted=weighted, **MIXED)
    meter.update(x, y, weights=torch.randint(1, 5, (count,), generator=generator) if weighted else None)
    return meter


def through_state_dict(meter, tmp_path):
    copied = meter.fresh()
    copied.load_state_dict(meter.state_dict())
    return copied


def through_a_checkpoint(meter, tmp_path):
    torch.save({"model": torch.zeros(2), "meter": meter.state_dict()}, tmp_path / "checkpoint.pt")
    copied = meter.fresh()
    copied.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["meter"])
    return copied


WAYS = {
    "file": lambda meter, tmp_path: Meter.from_file(meter.to_file(tmp_path / "counts.safetensors")),
    "state_dict": through_state_dict,
    "checkpoint": through_a_checkpoint,
    "pickle": lambda meter, tmp_path: pickle.loads(pickle.dumps(meter)),
    "deepcopy": lambda meter, tmp_path: copy.deepcopy(meter),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bits_come_back_and_counting_goes_on(tmp_path, way, weighted):
    meter = mixed(weighted=weighted)
    copied = WAYS[way](meter, tmp_path)
    assert copied.metrics == meter.metrics
    assert bits(copied) == bits(meter)
    more = mixed(5, 1, weighted)
    assert bits(copied + more) == bits(meter + more)
    assert copied.rows == 20


@pytest.mark.parametrize("way", WAYS)
def test_a_meter_without_data_comes_back(tmp_path, way):
    copied = WAYS[way](Meter(rho=SpearmanCorrCoef(), mse=MeanSquaredError()), tmp_path)
    with pytest.warns(NoDataWarning):
        assert copied.compute()["rho"].isnan()


@every(TALLY_CASES)
def test_every_tally_comes_back_from_a_file_that_describes_its_metrics(tmp_path, case):
    meter = case.counted(case.data(3, 17))
    copied = Meter.from_file(meter.to_file(tmp_path / "counts.safetensors"), known=case.with_functions)
    assert copied.metrics == meter.metrics
    assert bits(copied) == bits(meter)


@pytest.mark.parametrize("limit", [0, 5, 1000])
def test_late_tables_come_back(tmp_path, limit):
    meter = Meter(auroc=AUROC(exact_up_to=limit))
    meter.update(torch.rand(20), torch.arange(20) % 2)
    for way in WAYS.values():
        assert bits(way(meter, tmp_path)) == bits(meter)


def test_the_file_is_safetensors_and_readable_without_assay(tmp_path):
    path = mixed().to_file(tmp_path / "deep" / "er" / "counts.safetensors")
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["assay.meter"])
    assert about["schema"] == 1
    assert about["rows"] == 20
    assert about["metrics"]["q"] == {
        "class": "Quantile",
        "fields": {"num_outputs": 1, "q": [0.1, 0.9], "interpolation": "linear"},
    }
    assert os.listdir(path.parent) == [path.name]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = mixed().to_file(tmp_path / "counts.safetensors")
    old = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        mixed(3).to_file(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [path.name]


@pytest.fixture
def path(tmp_path):
    return mixed().to_file(tmp_path / "counts.safetensors")


def refused(path, message):
    with pytest.raises(StateError, match=message) as raised:
        Meter.from_file(path)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.99])
def test_a_file_that_was_cut_short_is_refused(path, kept):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    refused(path, r"got no whole safetensors file \(.*\), expected a file that Meter.to_file wrote. Write it again")


@pytest.mark.parametrize("place", [0.6, 0.8, 0.999])
def test_a_changed_byte_is_refused(path, place):
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 1
    path.write_bytes(data)
    refused(path, "got bytes that were changed, expected those of its checksum. Copy the file again, or count again")


def test_a_changed_description_is_refused(path):
    data = path.read_bytes()
    assert data.count(b'\\"rows\\": 20') == 1
    path.write_bytes(data.replace(b'\\"rows\\": 20', b'\\"rows\\": 21'))
    refused(path, "got bytes that were changed")


def test_a_foreign_file_is_refused(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors", {"format": "pt"})
    refused(tmp_path / "model.safetensors", "got a safetensors file of something else, expected the counts of a meter")
    (tmp_path / "text").write_text("not at all")
    refused(tmp_path / "text", "got no whole safetensors file")


def test_a_file_that_is_not_there_raises_as_any_other(tmp_path):
    with pytest.raises(FileNotFoundError):
        Meter.from_file(tmp_path / "nothing")


def test_a_folder_is_refused(tmp_path):
    refused(tmp_path, "got a folder, expected a file that Meter.to_file wrote. Pass a file in it")


def rewritten(path, change):
    """The file with another description and a checksum that belongs to it."""
    description, tensors = meter_file.read(path)
    said = json.loads(description.to_json())
    change(said, tensors)
    about = json.dumps(said)
    save_file(tensors, path, {"assay.meter": about, "sha256": meter_file.checksum(about, tensors)})
    return path


def deep(levels, around):
    """A value inside of so many others."""
    value = {"class": "Mean", "fields": {}}
    for _ in range(levels):
        value = around(value)
    return value


def AROUND(each):  # noqa: N802 - used as a value
    return {"class": "Arithmetic", "fields": {"operator": "neg", "operands": [each]}}


def IN_A_LIST(each):  # noqa: N802 - used as a value
    return [each]


def outputs_of(metric, outputs):
    return {"class": "PerOutput", "fields": {"metric": metric, "outputs": outputs}}


BINS = {"class": "CalibrationError", "fields": {"n_bins": 10**9}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said, t: said.update(schema=2), "got a state of schema 2, expected schema 1. Read it with the version"),
        (lambda said, t: said.pop("schema"), r"got a description that cannot be read \('schema'\)"),
        (lambda said, t: said.pop("rows"), "got a description that cannot be read"),
        (lambda said, t: said.update(rows="many"), "a field of another type"),
        (
            lambda said, t: said["metrics"]["q"].update({"class": "Wish"}),
            "got the metric 'Wish', expected one that assay",
        ),
        (lambda said, t: said["metrics"]["q"].pop("class"), "expected a metric that can be"),
        (lambda said, t: said["metrics"]["q"]["fields"].update(q=7), r"q: got 7.0, expected a number in \[0, 1\]"),
        (lambda said, t: said["metrics"]["q"]["fields"].update(colour="red"), "unexpected keyword argument 'colour'"),
        (lambda said, t: said["metrics"].clear(), "got no metric, expected one or more"),
        (lambda said, t: said.update(rows=-5), "out of range"),
        (
            lambda said, t: said["metrics"].update(weighted=said["metrics"]["q"]),
            "a metric named weighted, as an option",
        ),
        (lambda said, t: said["metrics"].update(self=said["metrics"]["q"]), "a metric named self, as an option"),
        (lambda said, t: said["metrics"].update(q=deep(300, AROUND)), "nested too deeply"),
        (
            lambda said, t: said["metrics"]["q"]["fields"].update(q=deep(900, IN_A_LIST)),
            "what no meter holds|that can be",
        ),
        (lambda said, t: said["metrics"].update(q=outputs_of(said["metrics"]["q"], 10**8)), "outputs: got 100,000,000"),
        (lambda said, t: said["metrics"].update(q=BINS), "n_bins: got 1,000,000,000"),
        (lambda said, t: t.pop("4.samples.target"), "4.samples: got no target, expected every column of its samples"),
        (lambda said, t: t.pop("0.count"), r"0.count: got nothing, expected torch.int64 of shape \(1,\)"),
        (
            lambda said, t: t.update({"0.count": torch.zeros(2)}),
            r"0.count: got torch.float32 of shape \(2,\), expected",
        ),
        (lambda said, t: t.update(more=torch.zeros(2)), "got also more, expected the fields of its metrics only"),
        (lambda said, t: t.update({"4.samples.target": torch.zeros(3)}), r"4.samples: got .*expected shape \(20,\)"),
    ],
)
def test_files_that_say_what_cannot_be_are_refused(path, change, message):
    refused(rewritten(path, change), message)


@dataclass(frozen=True)
class Own(MeanSquaredError):  # noqa: N818 - not an exception
    """A metric that assay does not bring."""


def test_a_table_without_its_partner_is_refused(tmp_path):
    whole = Meter(auc=AUROC(exact_up_to=5))
    whole.update(torch.rand(9), torch.arange(9) % 2)
    path = rewritten(whole.to_file(tmp_path / "auc"), lambda said, tensors: tensors.pop("0.unclear"))
    refused(path, "histogram without unclear, expected both or neither")


@pytest.mark.parametrize("name", ["weighted", "self", "strict", "stage_bytes"])
def test_a_metric_has_no_name_of_an_option(name):
    with pytest.raises(ConfigError, match=f"a metric named {name}"):
        Meter(f"{name}=accuracy")


def test_own_metrics_come_back_when_they_are_told(tmp_path):
    meter = Meter(own=Own())
    meter.update(torch.ones(3), torch.zeros(3))
    path = meter.to_file(tmp_path / "counts.safetensors")
    refused(path, "got the metric 'Own', expected one that assay brings. Pass it in known=")
    assert bits(Meter.from_file(path, known=[Own])) == bits(meter)


def test_nothing_of_a_file_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "counts.safetensors").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path / "counts.safetensors", "got no whole safetensors file")
    assert not (tmp_path / "sprung").exists()
    assert "pickle" not in Path(meter_file.__file__).read_text("utf-8").replace("never pickle", "")


def test_a_state_of_other_metrics_is_refused_and_changes_nothing():
    meter = Meter(acc=Accuracy(num_classes=3))
    meter.update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    before = bits(meter)
    other = Meter(acc=Accuracy(num_classes=4))
    with pytest.raises(
        StateError, match=r"state_dict: got counts for .*'num_classes': 4.*, expected for .*'num_classes': 3"
    ):
        meter.load_state_dict(other.state_dict())
    with pytest.raises(StateError, match=r"state_dict: got counts for .*, weighted, expected for"):
        meter.load_state_dict(Meter(acc=Accuracy(num_classes=3), weighted=True).state_dict())
    with pytest.raises(StateError, match=r"state_dict: got no bytes under 'about', expected what"):
        meter.load_state_dict({})
    with pytest.raises(StateError, match="state_dict: got a description that cannot be read"):
        meter.load_state_dict({ABOUT: torch.zeros(3, dtype=torch.uint8)})
    broken = meter.state_dict()
    broken["0.counts"] = broken["0.counts"][:, 1:]
    with pytest.raises(StateError, match=r"state_dict, 0.counts: got torch.int64 of shape \(1, 5, 5\), expected"):
        meter.load_state_dict(broken)
    assert bits(meter) == before


def test_a_loaded_state_replaces_what_was_counted_and_shares_no_memory():
    state, meter = mixed().state_dict(), mixed(7, 3)
    meter.load_state_dict(state)
    for tensor in state.values():
        tensor.zero_()
    assert bits(meter) == bits(mixed())


def test_a_state_dict_is_a_copy():
    meter = mixed()
    before = bits(meter)
    for tensor in meter.state_dict().values():
        tensor.zero_()
    assert bits(meter) == before


def test_the_description_goes_through_json():
    description = MeterDescription.of(MIXED, False, 5)
    again = MeterDescription.from_json(description.to_json(), "here")
    assert again.made((), "here") == MIXED
    assert re.fullmatch(r'\{"schema": 1, .*\}', description.to_json())
