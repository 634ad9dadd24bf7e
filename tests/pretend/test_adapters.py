"""Devices that an adapter brings to torch, pretended: what programs do with `torch.npu` after `import torch_npu`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from assay.devices.capabilities import fact_file
from assay.devices.kinds import KINDS, PRETENDED
from assay.errors import ConfigError
from assay.pretend import pretend
from assay.pretend.errors import PretendError
from thinning import one_of_each

COMMON = ("moves", "clashes", "module", "imports")
OWN = {"npu": ("gaps_of_npu", "falls_back", "evaluates"), "mlu": ("falls_back",), "musa": ("refuses_what_it_lacks",)}
OWN |= {"hpu": ("quietly_on_the_cpu",)}
ADAPTERS = [name for name in PRETENDED if KINDS[name].adapter]


def in_a_process(kind: str, engine: str, names: tuple[str, ...]) -> str:
    file = Path(__file__).with_name("adapter_cases.py")
    command = [sys.executable, "-W", "ignore", str(file), kind, engine, ",".join(names)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


def cases(kind: str, engine: str) -> tuple[str, ...]:
    return (*OWN[kind], *COMMON, "autocast" if engine == "native" else "autocast_refused", "closed")


@one_of_each()
def test_ascend_from_moving_to_closing(engine: str):
    assert in_a_process("npu", engine, cases("npu", engine)) == "done"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in ADAPTERS if name != "npu"])
def test_other_adapters_from_moving_to_closing(kind: str, engine: str):
    assert in_a_process(kind, engine, cases(kind, engine)) == "done"


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build of torch has no torch.distributed")
@one_of_each()
def test_hccl_exchanges_what_it_can_and_refuses_dtypes_that_it_cannot_add_up(engine: str, tmp_path):
    file = Path(__file__).with_name("adapter_cases.py")
    command = [sys.executable, "-W", "ignore", str(file), "ranks", engine, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    for rank in range(2):
        assert (tmp_path / f"{rank}.json").exists(), done.stderr
        assert json.loads((tmp_path / f"{rank}.json").read_text("utf-8")) == {
            "backend": "hccl",
            "float32": [3.0, 3.0],
            "int64": [3, 3],
            "float64": "RuntimeError: HCCL allreduce: Unsupported data type at::kDouble",
            "uint8": "RuntimeError: HCCL allreduce: Unsupported data type at::kByte",
            "host": "RuntimeError: No backend type associated with device type cpu",
            "band": "RuntimeError: Cannot use ReduceOp.BAND with HCCL",
            "two dtypes": "RuntimeError: hccl reduce: the ranks give tensors of different dtypes or sizes: "
            "rank 0 float32 × 1, rank 1 int64 × 1",
            "gathered": [0.0, 1.0],
            "objects": ["rank 0", "rank 1"],
            "mixed": [2.0],
            "ddp": [1.5, 1.5],
            "refused": [*["c10d::allreduce"] * 4, "c10d::reduce"],
        }


def test_every_kind_that_can_be_pretended_has_what_its_adapter_brings():
    assert set(ADAPTERS) == set(OWN)
    for name in ADAPTERS:
        facts = fact_file(name)
        assert facts["adapter"]["source"]
        assert KINDS[name].adapter in facts["adapter"]["modules"]
        assert not set(facts["adapter"].get("does_nothing", ())) & set(facts["adapter"]["refused"])
        assert {torch.float16, torch.bfloat16} <= {getattr(torch, each) for each in facts["adapter"]["autocast"]}
        assert facts["collectives"]["source"]
        assert all(isinstance(getattr(torch, each), torch.dtype) for each in facts["collectives"]["reduced"])


def test_xla_is_known_and_not_pretended():
    expected = r"device: got 'xla', expected one of cuda, mps, xpu, npu, mlu, musa, hpu,"
    with pytest.raises(ConfigError, match=expected), pretend("xla"):
        pass


def test_a_real_adapter_is_not_shadowed(monkeypatch):
    monkeypatch.setattr(torch, "hpu", object(), raising=False)
    with pytest.raises(PretendError, match=r"pretend\('hpu'\): got .* that has .*hpu itself"), pretend("hpu"):
        pass
