"""4-bit weights on an Apple GPU under torch 2.4, which lacks the operator that packs them: planned, then run.

TorchChat called that operator and stopped (pytorch/torchchat#719). No environment variable is needed here, and no Apple
GPU: the device is pretended.

python examples/quantize_where_an_operator_is_missing.py
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

from assay.pretend import pretend
from assay.quantize import plan

EXAMPLE = Path(__file__).parent / "regressions" / "operator_that_was_missing.py"
TOLERANCE = 1e-5  # of the largest output: float32 sums in another order

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512), nn.GELU(), nn.Linear(512, 10)).eval()
inputs = torch.randn(64, 512)

made = plan(model, "int4", device="mps", release="2.4")
made.show()
assert "torch 2.4 has no kernel of _convert_weight_to_int4pack for mps; it is not needed" in " ".join(made.notes)

made.apply(model)
with torch.no_grad(), pretend("mps", release="2.4"):
    on_the_cpu = model(inputs)
    on_the_device = model.to("mps")(inputs.to("mps"))
    assert on_the_device.device.type == "mps"
    apart = (on_the_device.cpu() - on_the_cpu).abs().max() / on_the_cpu.abs().max()
assert apart <= TOLERANCE
print(f"\nOn mps and on the CPU {len(inputs)} samples differ by {float(apart):.1e} of the largest output.\n")

print("A direct call of the operator instead, under the audit's eyes:\n", flush=True)
command = [sys.executable, "-m", "assay", "audit", f"{EXAMPLE}:quantize", "--device", "mps"]
done = subprocess.run(command, env=os.environ | {"ASSAY_PRETEND_TORCH": "2.4"}, check=False)
assert done.returncode == 1, "it has one finding"
