"""Kernels in Triton compile to machine code of NVIDIA GPUs, which needs no GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

COMPILE = """
import torch
from importlib import import_module
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from assay.tally import triton_check
from assay.tally.base import Batch
from assay.triton_kernels import labels, launch, scores, sums

TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int8: "i8"}

def type_of(argument):
    if isinstance(argument, tuple):
        return tuple(map(type_of, argument))
    return "*" + TYPES[argument.dtype] if isinstance(argument, torch.Tensor) else "i32"

def compile_it(name, grid, *arguments, **constants):
    module, function = name.split(".")
    kernel = getattr(import_module(f"assay.triton_kernels.programs.{module}"), function)
    names = kernel.arg_names
    signature = dict(zip(names, map(type_of, arguments))) | dict.fromkeys(constants, "constexpr")
    source = ASTSource(kernel, signature, {(names.index(each),): value for each, value in constants.items()})
    for capability in map(int, CAPABILITIES):
        asm = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=launch._OPTIONS).asm
        assert asm["cubin"]
        assert ".ftz" not in asm["ptx"], "denormals would be 0"
        print(name, capability)
    return False

for module in (labels, scores, sums):
    module.launch = lambda *arguments, **constants: compile_it(*arguments, **constants)
for tally, batch in triton_check._cases().values():
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(batch.preds, batch.target, triton=True))
sums.carry([torch.zeros(2, 3, 71, dtype=torch.int64), torch.zeros(1, 3, 108, dtype=torch.int64)])
"""


@pytest.mark.slow
def test_they_compile_for_ampere_and_hopper(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    code = COMPILE.replace("CAPABILITIES", "(80, 90)")
    command = [sys.executable, "-W", "error", "-c", code]
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled = set(done.stdout.split("\n")[:-1])
    names = ("sums.add_products", "sums.carry", "labels.count_labels", "scores.count_scores")
    assert compiled == {f"{name} {capability}" for name in names for capability in (80, 90)}
