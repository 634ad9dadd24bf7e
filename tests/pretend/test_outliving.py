"""What outlives its pretend device, tensors, modules, streams and threads, raises or works, and never ends the process.

Each case runs in a process of its own: an abort or a signal there is an exit code here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

BEFORE = """
import copy, io, pickle, threading, time, torch
from torch import nn
from assay.pretend import pretend

KIND, ENGINE = {kind!r}, {engine!r}

def tried(use):
    try:
        print("gave", use())
    except Exception as error:
        print("raised", type(error).__name__, error)

with pretend(KIND, engine=ENGINE) as device:
    x = torch.ones(2, 3, device=device.device)
    leaf = torch.ones(3, device=device.device, requires_grad=True)
    module = nn.Linear(3, 2).to(device.device)
    used = torch.ones(3, device=device.device, requires_grad=True)
    loss = (used * 2).sum()
    optimizer = torch.optim.SGD([used], 0.1)
    sparse = torch.eye(2).to_sparse().to(device.device)
    pinned = torch.ones(3).pin_memory() if KIND != "mps" else torch.ones(3)
    generator = torch.Generator(device=KIND)
"""
RAISES = {
    "add to a leaf": "tried(lambda: leaf + 1)",
    "index a leaf": "tried(lambda: leaf[0])",
    "view a leaf": "tried(lambda: leaf.view(3, 1))",
    "join leaves": "tried(lambda: torch.cat([leaf, torch.ones(3, requires_grad=True)]))",
    "call a module": "tried(lambda: module(x))",
    "call a module functionally": "tried(lambda: torch.func.functional_call(module, module.state_dict(), x))",
    "vmap": "tried(lambda: torch.vmap(lambda row: row * 2)(leaf))",
    "cast a module": "tried(module.double)",
    "backward": "tried(loss.backward)",
    "gradient": "tried(lambda: torch.autograd.grad(loss, used))",
    "use in a thread": "t = threading.Thread(target=lambda: tried(lambda: leaf * 2)); t.start(); t.join()",
    "backward in a thread": "t = threading.Thread(target=lambda: tried(loss.backward)); t.start(); t.join()",
    "a factory": "tried(lambda: torch.zeros(2, device=KIND))",
    "a copy to it": "tried(lambda: x.copy_(torch.ones(2, 3)))",
    "numpy": "tried(x.numpy)",
    "a stream": "tried(lambda: torch.Stream(KIND))",
    "its generator": "tried(lambda: torch.rand(2, device=KIND, generator=generator))",
}
"""What nothing can do without the device: an error, which is Python's or torch's or assay's, and no abort."""
WORKS = {
    "cpu of a leaf": ("tried(leaf.cpu)", "gave tensor([1., 1., 1.]"),
    "cpu of a sparse tensor": ("tried(lambda: sparse.cpu().to_dense())", "gave tensor([[1., 0."),
    "cpu of a module": ("tried(lambda: module.cpu()(torch.ones(1, 3)).shape)", "gave torch.Size([1, 2])"),
    "copy into host memory": ("tried(lambda: torch.zeros(3).copy_(leaf).sum().item())", "gave 3.0"),
    "load a state": ("tried(lambda: nn.Linear(3, 2).load_state_dict(module.state_dict()))", "gave <All keys"),
    "zero_grad": ("tried(optimizer.zero_grad)", "gave None"),
    "is_pinned": ("tried(pinned.is_pinned)", "gave"),
    "throw away": ("del leaf, used, loss, module, x, optimizer, sparse, pinned, generator; print('gave')", "gave"),
    "the same device again": (
        "with pretend(KIND, engine=ENGINE):\n    loss.backward(); tried(lambda: (leaf + used.grad).tolist())",
        "gave [3.0, 3.0, 3.0]",
    ),
}
"""What needs no device."""
EITHER = {
    "another device": "other = 'mps' if KIND != 'mps' else 'cuda'\n"
    "with pretend(other, engine=ENGINE):\n    tried(lambda: leaf * 2)",
    "print": "tried(lambda: repr(leaf)); tried(lambda: repr(sparse)); tried(lambda: repr(module))",
    "pickle": "tried(lambda: len(pickle.dumps(leaf)) > 0); tried(lambda: torch.save(module, io.BytesIO()))",
    "deepcopy": "tried(lambda: copy.deepcopy(leaf).shape); tried(lambda: copy.deepcopy(module))",
    "set a gradient": "tried(lambda: setattr(leaf, 'grad', leaf.detach()))",
    "set its data": "tried(lambda: setattr(leaf, 'data', torch.ones(3)))",
    "hooks": "tried(lambda: leaf.register_hook(print)); tried(lambda: leaf.register_post_accumulate_grad_hook(print))",
    "storage": "tried(lambda: leaf.untyped_storage().resize_(1000)); tried(lambda: leaf.untyped_storage().tolist())",
    "generator": "tried(lambda: generator.manual_seed(3)); tried(lambda: generator.get_state())",
    "clip": "used.grad = used.detach(); tried(lambda: nn.utils.clip_grad_norm_([used], 1.0)); tried(optimizer.step)",
    "threads that still compute": """
stop = False
def work(where):
    a = torch.ones(32, 32, device=where, requires_grad=True)
    while not stop:
        try:
            (a @ a).sum().backward(); a.detach().cpu(); torch.rand(10, device=where)
        except Exception as error:
            pass
for _ in range(3):
    stop = False
    with pretend(KIND, engine=ENGINE) as device:
        threads = [threading.Thread(target=work, args=(device.device,)) for _ in range(3)]
        for thread in threads: thread.start()
        time.sleep(0.1)
    time.sleep(0.05)
    with pretend("mps" if KIND != "mps" else "xpu", engine=ENGINE):
        time.sleep(0.05)
    stop = True
    for thread in threads: thread.join()
print("gave")
""",
    "a thread that is never joined": """
def work(where):
    a = torch.ones(32, 32, device=where, requires_grad=True)
    while True:
        try: (a @ a).sum().backward()
        except Exception: pass
with pretend(KIND, engine=ENGINE) as device:
    threading.Thread(target=work, args=(device.device,), daemon=True).start()
    time.sleep(0.1)
print("gave")
""",
}
"""What may raise or work, and differs between engines; only the process must go on."""


REFUSED_BY_PYTHON_ENGINE = {"copy into host memory", "load a state"}
"""What needs no device, and raises by name on the Python engine: `.cpu()` comes first there."""
FEW = {"add to a leaf", "call a module", "backward in a thread", "cpu of a leaf", "throw away"}


def outcomes(kind: str, engine: str, names: Collection[str] | None = None) -> dict[str, tuple[int, str]]:
    """The exit code and the output of each case."""
    before = BEFORE.format(kind=kind, engine=engine)
    cases = RAISES | {name: code for name, (code, _) in WORKS.items()} | EITHER
    given = json.dumps({name: before + code for name, code in cases.items() if names is None or name in names})
    script = str(Path(__file__).with_name("forked.py"))
    done = subprocess.run([sys.executable, script], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.exhaustive  # it starts processes
def test_what_outlives_its_device_raises_and_goes_back_to_the_host(engine: str):
    check(outcomes("cuda", engine, FEW), engine)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_nothing_that_outlives_its_device_ends_the_process(kind: str, engine: str):
    check(outcomes(kind, engine), engine)


def check(seen: dict[str, tuple[int, str]], engine: str) -> None:
    refused = REFUSED_BY_PYTHON_ENGINE if engine == "python" else set()
    expected = dict.fromkeys((*RAISES, *refused), "raised")
    expected |= {name: start for name, (_, start) in WORKS.items() if name not in refused}
    assert {name: text for name, (code, text) in seen.items() if code} == {}
    wrong = {name: seen[name][1] for name in seen if not seen[name][1].startswith(expected.get(name, ""))}
    assert wrong == {}
