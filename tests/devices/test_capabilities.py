from __future__ import annotations

import datetime
import subprocess
import sys
import tomllib
from importlib.resources import files

import pytest
import torch

from assay.devices import Fact, facts, supports
from assay.devices.capabilities import FEATURES, kind
from assay.devices.kinds import BACKENDS, DEVICES, KINDS
from assay.errors import ConfigError


@pytest.mark.parametrize("device", DEVICES)
def test_facts_are_well_formed(device):
    data = tomllib.loads(files("assay.devices").joinpath("known", f"{device}.toml").read_text("utf-8"))
    assert data["device"]["type"] == device
    assert isinstance(data["device"]["checked"], datetime.date)
    assert set(data["facts"]) <= set(FEATURES)
    assert list(data["facts"]) == [feature for feature in FEATURES if feature in data["facts"]]
    for name, fact in data["facts"].items():
        assert fact["supported"] in (True, False, "partial"), name


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_missing_or_partial_has_a_reason_and_a_source(device):
    for fact in facts(device):
        if fact.supported in (False, "partial"):
            assert fact.why, fact
            assert fact.source, fact


def test_the_index_does_not_matter_and_devices_may_be_objects():
    assert supports("cuda:3", "float64") is supports("cuda", "float64")
    assert supports(torch.device("mps", 0), "float64").supported is False


@pytest.mark.parametrize("device", ["privateuseone", "meta", "mtia", "no such thing"])
def test_nothing_is_claimed_about_unknown_devices(device):
    fact = supports(device, "int64_scatter")
    assert fact.supported is None
    assert fact.why == "not known"
    assert kind(device) is None
    assert str(fact) == f"int64_scatter on {device}: not known"


def test_facts_come_in_the_order_of_the_features():
    assert [fact.feature for fact in facts("mps")] == list(FEATURES)


def test_an_unknown_feature_is_an_error_that_lists_the_known():
    with pytest.raises(ConfigError, match=r"feature: got 'float65', expected one of float64, .* Check the spelling\."):
        supports("cpu", "float65")


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (Fact("cpu", "frexp", True), "frexp on cpu: yes"),
        (Fact("mps", "frexp", False, why="no kernel"), "frexp on mps: no: no kernel"),
        (Fact("xpu", "frexp", "partial", "2.6", "some"), "frexp on xpu: partly (since torch 2.6): some"),
    ],
)
def test_a_fact_reads_as_a_line(fact, line):
    assert str(fact) == line


def test_looking_up_imports_no_torch():
    code = "import sys; from assay.devices import supports; supports('mps', 'float64'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_only_what_was_run_is_called_tested():
    assert [device for device in DEVICES if kind(device).tested] == ["cpu"]


@pytest.mark.parametrize("feature", ["float64", "float16", "bfloat16", "complex64", "complex128"])
def test_the_facts_about_dtypes_hold_on_the_cpu(feature):
    assert supports("cpu", feature).supported is True
    one = torch.ones(3, dtype=getattr(torch, feature))
    assert (one + one).sum().item() == 6


def test_frexp_has_no_kernel_for_apple_gpus_until_2_14():
    torchgen = pytest.importorskip("torchgen")
    yaml = files(torchgen).joinpath("packaged/ATen/native/native_functions.yaml").read_text("utf-8")
    entry = yaml.partition("- func: frexp.Tensor_out")[2].partition("- func:")[0]
    assert "CPU, CUDA" in entry
    assert ("MPS" in entry) is (tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15))


def test_numbers_and_keys_of_kinds_are_those_of_torch():
    for kind_of in KINDS.values():
        assert int(getattr(torch._C._autograd.DeviceType, kind_of.key)) == kind_of.number
        assert torch._C._dispatch_key_parse(kind_of.key) == getattr(torch._C.DispatchKey, kind_of.key)
    assert BACKENDS["hccl"] == ("npu", "hpu")
