"""A run resumes only with the same data, model, functions and options; what cannot be told from others is named."""

from __future__ import annotations

import functools
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from assay import Accuracy, evaluate
from assay.errors import ConfigError, StateError
from assay.evaluation import BatchError
from assay.evaluation.model.exported_models import as_model
from assay.evaluation.resume.stable_digest import NoDigestError, stable_digest
from thinning import every_third, one_of_each

SCALE = 2
X = torch.eye(3).repeat(20, 1)
Y = torch.arange(60) % 3
METRIC = Accuracy(num_classes=3)


def helper(x):
    return x * SCALE


class Net(nn.Module):
    TEMPERATURE = 1.0

    def __init__(self, shift=0, activation=None):
        super().__init__()
        self.shift, self.activation = shift, activation
        self.tags = {"a", "b", "c", "d"}

    def forward(self, x):
        return helper(x).roll(self.shift, 1)


class Rows(Dataset):
    def __init__(self, y=Y, x=X):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return self.x[k], self.y[k]


def accuracy(folder, net=None, data=None, **more):
    data = TensorDataset(X, Y) if data is None else data
    report = evaluate(net or Net(), data, METRIC, device="cpu", resume=folder, checkpoint_every=0.0, **more)
    return report.sections[0].values[0].value


def hooked(net, hook):
    net.register_forward_hook(hook)
    return net


def changed_weight():
    net = nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 3))
    nn.init.zeros_(net[0].weight)
    with torch.no_grad():
        net[0].weight[1, 7] = 1.0
    return net


def in_one_row(k):
    y = Y.clone()
    y[k] = (y[k] + 1) % 3
    return y


CHANGES = {
    "all labels": ({"data": TensorDataset(X, (Y + 1) % 3)}, "data"),
    "one label": ({"data": TensorDataset(X, in_one_row(31))}, "data"),
    "inputs": ({"data": TensorDataset(-X, Y)}, "data"),
    "another class of data": ({"data": Rows(in_one_row(59))}, "data"),
    "target=": ({"target": lambda batch: (batch[1] + 1) % 3}, "target"),
    "target= by position": ({"target": 1}, "target"),
    "inputs=": ({"inputs": lambda batch: -batch[0]}, "inputs"),
    "preds=": ({"preds": lambda outputs: -outputs}, "preds"),
    "weights=": ({"weights": lambda batch: batch[1] + 1.0}, "metrics"),
    "an attribute": ({"net": Net(shift=1)}, "model"),
    "a callable attribute": ({"net": Net(activation=torch.relu)}, "model"),
    "a hook": ({"net": hooked(Net(), lambda module, args, out: -out)}, "model"),
    "another class": ({"net": nn.Identity()}, "model"),
    "a function": ({"net": helper}, "model"),
    "compile": ({"compile": True}, "compile"),
}


@every_third
@pytest.mark.parametrize("change", CHANGES)
def test_a_finished_run_is_not_the_result_of_another(tmp_path, change):
    assert accuracy(tmp_path) == 1.0
    more, what = CHANGES[change]
    with pytest.raises(StateError, match=f"checkpoint of other .*{what}"):
        accuracy(tmp_path, **more)
    assert accuracy(tmp_path) == 1.0


IN_MEMORY = {
    "list": lambda y: DataLoader(list(zip(X, y.tolist(), strict=True)), batch_size=7),
    "tuple": lambda y: DataLoader(tuple(zip(X, y.tolist(), strict=True)), batch_size=7),
    "subset": lambda y: Subset(TensorDataset(X, y), range(len(y))),
    "concatenation": lambda y: ConcatDataset([TensorDataset(X[:5], y[:5]), list(zip(X[5:], y[5:], strict=True))]),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
@one_of_each()
def test_of_data_in_memory_every_sample_counts(tmp_path, kind):
    assert accuracy(tmp_path, data=IN_MEMORY[kind](Y)) == 1.0
    for k in range(len(Y)):
        with pytest.raises(StateError, match=r"checkpoint of other .*data"):
            accuracy(tmp_path, data=IN_MEMORY[kind](in_one_row(k)))
    assert accuracy(tmp_path, data=IN_MEMORY[kind](Y)) == 1.0


def test_a_subset_of_other_samples_is_other_data(tmp_path):
    data, half = Rows(), len(Y) // 2
    accuracy(tmp_path, data=Subset(data, range(half)))
    with pytest.raises(StateError, match=r"checkpoint of other .*data"):
        accuracy(tmp_path, data=Subset(data, [*range(half - 1), half]))


def test_functions_are_told_apart_by_their_code_and_what_they_close_over(tmp_path):
    def scaled(factor):
        return lambda outputs: outputs * factor

    accuracy(tmp_path, preds=scaled(2))
    accuracy(tmp_path, preds=scaled(2))
    with pytest.raises(StateError, match="preds"):
        accuracy(tmp_path, preds=scaled(-2))


def test_what_a_hook_counts_in_its_own_attributes_is_no_part_of_a_run(tmp_path):
    def counting(module, inputs):
        counting.batches += 1
        if counting.batches == 3:
            raise KeyboardInterrupt

    counting.batches = 0
    net = Net()
    net.register_forward_pre_hook(counting)
    with pytest.raises(KeyboardInterrupt):
        accuracy(tmp_path, net, batch_size=10)
    assert accuracy(tmp_path, net, batch_size=10) == 1.0
    assert counting.batches < 3 + 60 // 10  # it resumed


def test_a_constant_and_a_function_of_the_module_belong_to_what_uses_them(monkeypatch):
    before = stable_digest(Net(), "model")
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "SCALE", 3)
        assert stable_digest(Net(), "model") != before
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "helper", lambda x: x - SCALE)
        assert stable_digest(Net(), "model") != before
    with monkeypatch.context() as patched:
        patched.setattr(Net, "TEMPERATURE", 2.0)
        assert stable_digest(Net(), "model") != before
    assert stable_digest(Net(), "model") == before


def test_code_of_installed_packages_counts_by_its_name(monkeypatch):
    """That of assay, too: its version is compared apart, and its bytecode differs between releases of Python."""
    before = stable_digest({"a": Accuracy()}, "metrics"), stable_digest(nn.Linear, "class")
    monkeypatch.setattr(Accuracy, "compute", lambda self, state: 0)
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x)
    assert (stable_digest({"a": Accuracy()}, "metrics"), stable_digest(nn.Linear, "class")) == before


def test_every_weight_counts():
    torch.manual_seed(0)
    one = changed_weight()
    other = changed_weight()
    other.load_state_dict(one.state_dict())
    assert stable_digest(one, "model") == stable_digest(other.train(), "model")
    with torch.no_grad():
        other[0].weight[299, 298] += 1e-3
    assert stable_digest(one, "model") != stable_digest(other, "model")


@pytest.mark.parametrize("more", [{"batch_size": 7}, {"on_error": "skip"}, {"title": "other"}, {"n_resamples": 29}])
def test_how_samples_are_batched_and_shown_is_no_part_of_a_run(tmp_path, more):
    accuracy(tmp_path)
    assert accuracy(tmp_path, **more) == 1.0


def test_a_loader_with_workers_or_another_order_is_the_same_data(tmp_path):
    accuracy(tmp_path, data=Rows())
    assert accuracy(tmp_path, data=DataLoader(Rows(), batch_size=9, shuffle=True, num_workers=1)) == 1.0


def test_a_data_set_says_itself_what_it_holds(tmp_path):
    data = Rows()
    data.content_digest = "first"
    accuracy(tmp_path, data=data)
    data.content_digest = "second"
    with pytest.raises(StateError, match="other data"):
        accuracy(tmp_path, data=data)


def test_what_has_no_digest_is_named_and_may_have_a_name(tmp_path):
    locked = Net(activation=threading.Lock())
    with pytest.raises(ConfigError, match=r"model\.activation, a _thread\.lock .*run_id="):
        accuracy(tmp_path, net=locked)
    assert accuracy(tmp_path, net=locked, run_id="one") == 1.0
    assert accuracy(tmp_path, net=Net(activation=threading.Lock()), run_id="one") == 1.0
    with pytest.raises(StateError, match="other model"):
        accuracy(tmp_path, net=locked, run_id="two")
    with pytest.raises(StateError, match="other model"):  # the rest of it still counts
        accuracy(tmp_path, net=Net(1, activation=threading.Lock()), run_id="one")
    lock = threading.Lock()
    with pytest.raises(ConfigError, match=r"preds: lock"):
        accuracy(tmp_path / "other", preds=lambda outputs: (lock, outputs)[1])


@pytest.mark.parametrize("run_id", ["", 3])
def test_a_name_of_a_run_is_a_string(tmp_path, run_id):
    with pytest.raises(ConfigError, match="run_id"):
        accuracy(tmp_path, run_id=run_id)


class Noisy(Rows):
    def __getitem__(self, k):
        return self.x[k] * random.uniform(1, 2), self.y[k]


def test_samples_that_are_random_are_named(tmp_path):
    state = random.getstate()
    with pytest.raises(ConfigError, match=r"data: sample 0, which has other values each time.*run_id="):
        accuracy(tmp_path, data=Noisy())
    assert random.getstate() == state
    assert accuracy(tmp_path, data=Noisy(), run_id="noisy") == 1.0
    assert accuracy(tmp_path, data=Noisy(), run_id="noisy") == 1.0


class Broken(Rows):
    def __getitem__(self, k):
        if k == 59:
            raise OSError("a damaged file")
        return super().__getitem__(k)


def test_a_sample_may_be_corrected_before_the_run_resumes(tmp_path):
    with pytest.raises(BatchError, match="a damaged file"):
        accuracy(tmp_path, data=Broken(), batch_size=20)
    assert accuracy(tmp_path, data=Rows(), batch_size=20) == 1.0


class Stream(IterableDataset):
    def __init__(self, y=Y):
        self.y = y

    def __iter__(self):
        return iter(zip(X, self.y, strict=False))


class Stops:
    def __call__(self, x):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return x

    def __init__(self, left=99):
        self.left = left

    def __reduce__(self):
        return Stops, ()


def test_a_stream_resumes_only_behind_the_same_batches(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        accuracy(tmp_path, Stops(4), Stream(), batch_size=10)
    for other in (Stream(in_one_row(39)), Stream(Y[:30])):
        for _ in range(2):  # a refusal changes nothing in the folder
            with pytest.raises(StateError, match="data: got a stream"):
                accuracy(tmp_path, Stops(), other, batch_size=10)
    rest = Stops()
    assert accuracy(tmp_path, rest, Stream(in_one_row(40)), batch_size=10) == pytest.approx(59 / 60)
    assert rest.left == 97
    with pytest.raises(StateError, match="data: got a stream"):
        accuracy(tmp_path, Stops(), Stream(), batch_size=10)


class Fails(Stops):
    def __call__(self, x):
        if self.left == 4:
            self.left = 0
            raise ZeroDivisionError("by design")
        return super().__call__(x)


def test_batches_of_a_stream_that_were_left_out_are_not_forgotten(tmp_path):
    data = [(X[k : k + 10], Y[k : k + 10]) for k in range(0, 60, 10)]
    how = {"device": "cpu", "resume": tmp_path, "on_error": "skip"}
    with pytest.raises(KeyboardInterrupt):
        evaluate(Fails(6), data, METRIC, **how)
    report = evaluate(Fails(), data, METRIC, **how)
    tables = {table.name: table for table in report.sections[0].tables}
    assert dict(tables["Every sample once"].rows)["counted"] == 50
    assert dict(tables["Every sample once"].rows)["skipped"] == 10
    assert tables["Batches left out"].rows == (("ZeroDivisionError: by design", "number 2 of the stream"),)


VALUES = """
import functools, re, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, torch, transformers
from torch import nn
import test_identity as t
from assay.evaluation.model.exported_models import as_model
from assay.evaluation.resume.stable_digest import stable_digest
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
net = t.hooked(t.Net(activation=functools.partial(t.helper, x=re.compile("a"))), lambda *parts: None)
values = [layer, net, t.Net.forward, net.forward, {"b", "a", 1, None}, np.arange(3.0), object(), t.METRIC]
values += [transformers.GenerationConfig.from_model_config(transformers.LlamaConfig())]  # holds a hash of a string
values += [torch.jit.script(nn.Linear(4, 3)), as_model(torch.export.export(nn.Linear(4, 3), (torch.ones(2, 4),)))]
print([stable_digest(value, "value") for value in values])
"""


@pytest.mark.exhaustive  # it starts processes
def test_digests_are_the_same_in_every_process():
    found = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-W", "ignore", "-c", VALUES, os.fspath(Path(__file__).parent)]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


class Itself:
    def __init__(self):
        self.me = [self]


def test_digests_of_kinds_of_values():
    values = [
        None, 0, False, 0.0, "0", b"0", "\ud800", [], (), {}, set(), [None], torch.zeros(0), torch.zeros(1),
        torch.zeros(1, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.int32), torch.zeros(1, 1), np.zeros(1),
        np.array(["a"], object), np.float32(0), helper, functools.partial(helper, 1), Net, Net.forward, Net().forward,
        len, [].append, torch.nn.functional.relu, Itself(), slice(1), range(2), torch.float32, Path("a"),
        torch.tensor([1j]), torch.tensor([1j]).conj(), torch.eye(2).to_sparse(), as_model(nn.Identity()),
    ]  # fmt: skip
    digests = [stable_digest(value, "value") for value in values]
    assert len(set(digests)) == len(values)
    assert digests == [stable_digest(value, "other") for value in values]


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(4, 3, 2, bidirectional=True),
        lambda: nn.TransformerEncoderLayer(4, 2, 8),
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.EmbeddingBag(4, 2)),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)),
        lambda: torch.fx.symbolic_trace(nn.Linear(4, 3)),
    ],
)
def test_modules_of_torch(make):
    def made(seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return stable_digest(make(), "model")

    assert made(0) == made(0) != made(1)


def test_a_part_of_a_tensor():
    one, other = torch.zeros(1000), torch.zeros(1000)
    other[500] = 1
    assert stable_digest(one, "x", tensor_bytes=64) == stable_digest(other, "x", tensor_bytes=64)
    other[-1] = 1
    assert stable_digest(one, "x", tensor_bytes=64) != stable_digest(other, "x", tensor_bytes=64)


def test_the_place_of_what_has_no_digest():
    with pytest.raises(NoDigestError, match=r"^x\['a'\]\[1\], a builtins\.generator"):
        stable_digest({"a": [1, (k for k in ())]}, "x")
    with pytest.raises(NoDigestError, match="a tensor whose values cannot be read"):
        stable_digest(torch.zeros(2, device="meta"), "x")
