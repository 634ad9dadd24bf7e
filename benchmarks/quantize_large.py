"""What planning, applying and GPTQ cost on a language model of 100 million parameters: seconds and peak memory.

Each step runs in a process of its own, which reports the processor time of the step and the most memory that the
process held during it, above what it held before.

python -m benchmarks.quantize_large [plan|nearest|gptq|export ...]
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from assay.quantize import calibrate, export, plan

SIZES = {
    "hidden_size": 640,
    "intermediate_size": 1728,
    "num_hidden_layers": 16,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "vocab_size": 16_000,
}
TOKENS, WINDOW = 8192, 512
SCHEME = "int4:g32:sym"


def model() -> Any:
    import transformers

    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).to(torch.bfloat16).eval()


def of_plan(net: Any) -> None:
    plan(net, SCHEME, device="cpu")


def of_nearest(net: Any) -> None:
    plan(net, SCHEME, device="cpu").apply(net)


def of_gptq(net: Any) -> None:
    ids = torch.randint(SIZES["vocab_size"], (TOKENS,), generator=torch.Generator().manual_seed(1))
    planned = plan(net, SCHEME, device="cpu", method="gptq")
    data = calibrate(net, ids, [layer.name for layer in planned.quantized], window=WINDOW)
    planned.apply(net, calibration=data)


def of_export(net: Any) -> None:
    plan(net, SCHEME, device="cpu").apply(net)
    with tempfile.TemporaryDirectory() as folder:
        export(net, f"{folder}/out", "compressed-tensors")


STEPS: dict[str, Callable[[Any], None]] = {"plan": of_plan, "nearest": of_nearest, "gptq": of_gptq, "export": of_export}


def held(what: str) -> int:
    """Bytes that this process holds (``VmRSS``), or held at most since :func:`forget_peak` (``VmHWM``)."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(what))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def run(step: str) -> None:
    torch.set_num_threads(1)
    net = model()
    count = sum(parameter.numel() for parameter in net.parameters())
    gc.collect()
    forget_peak()
    before, start, wall = held("VmRSS"), time.process_time(), time.monotonic()
    STEPS[step](net)
    seconds, waited = time.process_time() - start, time.monotonic() - wall
    more = (held("VmHWM") - before) / 1e6
    print(
        f"{step:8} {count / 1e6:.0f} M parameters: {seconds:.1f} s of one core ({waited:.1f} s), +{more:,.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2])
    else:
        for name in sys.argv[1:] or STEPS:
            subprocess.run([sys.executable, "-m", "benchmarks.quantize_large", "--one", name], check=True)
