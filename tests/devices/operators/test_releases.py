"""Older releases of torch: what a device lacked then is refused, with the text of that time."""

from __future__ import annotations

import pytest
import torch

from assay.devices.operators.releases import as_of
from assay.devices.operators.rules import rules
from assay.errors import ConfigError
from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

PACK = "aten::_convert_weight_to_int4pack"


@pytest.mark.parametrize(
    ("device", "release", "available"),
    [
        ("mps", "2.3", False),
        ("mps", "2.4.1", False),
        ("mps", "2.5", True),
        ("mps", "2.13.0", True),
        ("cuda", "2.4", True),
    ],
)
def test_the_int4_packing_came_to_mps_in_2_5(device, release, available):
    assert as_of(rules(device), release).operator(PACK).available is available


@pytest.mark.parametrize(
    ("operator", "release", "available"),
    [
        ("linalg_lu_solve", "2.9", False),  # kornia's list of failures on a Mac with torch 2.9.1 has it
        ("linalg_lu_solve", "2.13", True),
        ("linalg_lu_factor_ex", "2.9", True),
        ("linalg_lu_factor_ex", "2.6", False),
        ("grid_sampler_3d_backward", "2.9", False),
        ("col2im", "2.6", True),  # torch ran it on the CPU then
    ],
)
def test_kernels_of_mps_came_with_releases(operator, release, available):
    if rules("mps").operator(f"aten::{operator}").available:
        assert as_of(rules("mps"), release).operator(f"aten::{operator}").available is available


def test_the_installed_release_lacks_nothing_that_its_list_has():
    installed = as_of(rules("mps"), ".".join(torch.__version__.split(".")[:2]))
    assert installed.lacked & rules("mps").kernels == set()


def test_other_operators_are_as_they_are():
    assert as_of(rules("mps"), "2.4").operator("aten::mm") == rules("mps").operator("aten::mm")


@pytest.mark.parametrize(("release", "issue"), [("2.4", "issues/77764."), ("2.6", "issues/141287 ")])
def test_the_text_is_of_its_time(release, issue):
    text = as_of(rules("mps"), release).missing(PACK)
    assert text.startswith(f"The operator '{PACK}' is not currently implemented for the MPS device.")
    assert issue in text


def test_what_is_no_release_is_refused():
    with pytest.raises(ConfigError) as caught:
        as_of(rules("mps"), "two")
    assert str(caught.value).startswith("release: got 'two', expected a release of torch, such as \"2.4\"")


@pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")
@pytest.mark.parametrize("by_variable", [False, True])
def test_the_operator_is_refused_under_an_older_release(monkeypatch, by_variable):
    if by_variable:
        monkeypatch.setenv("ASSAY_PRETEND_TORCH", "2.4")
    with pretend("mps", engine="native", release=None if by_variable else "2.4") as mps:
        weight = torch.zeros(32, 64, dtype=torch.int32, device=mps.device)
        with pytest.raises(NotImplementedError, match=f"The operator '{PACK}' is not currently implemented"):
            torch.ops.aten._convert_weight_to_int4pack(weight, 2)
        assert [event.operator for event in mps.events if event.kind == "operator"] == [PACK]
