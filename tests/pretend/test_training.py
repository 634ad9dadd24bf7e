"""Autograd, modules, optimizers, loaders and transforms work on a pretend device, with the CPU's values."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from inspect import getsource

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, dataloader

from thinning import every_third, one_of_each

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def close(here: torch.Tensor, on_cpu: torch.Tensor) -> None:
    """Equal to the CPU, up to the last bits of other kernels for the same thing (fused cells, other memory formats)."""
    torch.testing.assert_close(here.detach().cpu(), on_cpu.detach(), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_the_cpu(there):
    def gradient(device: torch.device | str) -> torch.Tensor:
        x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
        ((x.sin() * x).sum() + x.prod() + x[:, 1].exp().mean()).backward()
        assert x.grad is not None
        assert x.grad.device.type == torch.device(device).type
        return x.grad

    assert torch.equal(gradient(there.device).cpu(), gradient("cpu"))


def test_gradients_flow_across_devices(there):
    x = torch.ones(3, requires_grad=True)
    moved = x.to(there.device) * 2
    moved.cpu().mul(3).sum().backward()
    assert x.grad is not None
    assert (x.grad.device.type, x.grad.tolist()) == ("cpu", [6, 6, 6])


def test_gradients_flow_between_two_gpus(cuda):
    x = torch.ones(3, device="cuda:0", requires_grad=True)
    (x.to("cuda:1") * 2).to("cuda:0").sum().backward()
    assert x.grad is not None
    assert (x.grad.device, x.grad.tolist()) == (torch.device("cuda:0"), [2, 2, 2])


def test_a_gradient_of_another_device_is_refused(there):
    x = torch.ones(3, device=there.device, requires_grad=True)
    with pytest.raises(RuntimeError, match="device"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"expected device|same device"):
        (x * 2).backward(torch.ones(3))


def test_second_derivatives(there):
    x = torch.tensor([2.0], device=there.device, requires_grad=True)
    (first,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.tolist(), second.tolist()) == ([12], [12])


def test_backward_in_another_thread(there):
    x = torch.ones(3, device=there.device, requires_grad=True)
    loss = (x * 2).sum()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loss.backward()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failed == []
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]


def test_hooks_and_own_functions(there):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            assert x.device == gradient.device == there.device
            return gradient * 2

    seen = []
    x = torch.ones(3, device=there.device, requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient.device))
    Double.apply(x).sum().backward()
    assert seen == [there.device]
    assert x.grad.tolist() == [2, 2, 2]


def test_checkpoints_compute_again(there):
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(3, device=there.device, requires_grad=True)
    checkpoint(lambda x: F.dropout(x, 0.5).exp(), x, use_reentrant=False).sum().backward()
    assert x.grad.device == there.device


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.GELU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.embed, self.encode = nn.Embedding(11, 8), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(self.embed(x)).mean(1))


class Recurs(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.cells, self.head = kind(4, 5, num_layers=2, batch_first=True, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0][:, -1])


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "convolutional": (convolutional, lambda: torch.rand(5, 1, 8, 8)),
    "transformer": (Attends, lambda: torch.randint(0, 11, (5, 6))),
    "lstm": (lambda: Recurs(nn.LSTM), lambda: torch.rand(5, 6, 4)),
    "gru": (lambda: Recurs(nn.GRU), lambda: torch.rand(5, 6, 4)),
    "rnn": (lambda: Recurs(nn.RNN), lambda: torch.rand(5, 6, 4)),
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "adam without loops": lambda parameters: torch.optim.Adam(parameters, lr=0.01, foreach=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01),
}


@every_third
@pytest.mark.parametrize("name", MODELS)
def test_a_model_trains_as_on_the_cpu(there, name: str):
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    ours, x, y = make(), inputs(), torch.randint(0, 3, (5,))
    theirs = copy.deepcopy(ours).to(there.device)
    for model, inputs_, target in ((ours, x, y), (theirs, x.to(there.device), y.to(there.device))):
        F.cross_entropy(model(inputs_), target).backward()
    for one, other in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert one.grad is not None
        assert one.grad.device == there.device
        close(one.grad, other.grad)
    close(theirs(x.to(there.device)), ours(x))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_steps_as_on_the_cpu(there, name: str):
    torch.manual_seed(0)
    ours = nn.Linear(3, 2)
    theirs = copy.deepcopy(ours).to(there.device)
    x = torch.rand(4, 3)
    for model in (ours, theirs):
        optimizer = OPTIMIZERS[name](model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(x.to(model.weight.device)).square().mean().backward()
            optimizer.step()
    close(theirs.weight, ours.weight)
    assert theirs.weight.device == there.device


def test_an_optimizers_state_is_loaded_to_the_device_of_its_parameters(there):
    model = nn.Linear(3, 2).to(there.device)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.rand(1, 3, device=there.device)).sum().backward()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    again = torch.optim.AdamW(model.parameters())
    again.load_state_dict(state)
    assert again.state[model.weight]["exp_avg"].device == there.device


def test_clipping_gradients(there):
    model = nn.Linear(3, 2).to(there.device)
    model(torch.ones(1, 3, device=there.device)).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    assert norm.device == there.device


def test_ctc_loss_takes_lengths_from_the_cpu(cuda):
    torch.manual_seed(0)
    x, target = torch.rand(6, 2, 4), torch.tensor([[1, 2], [3, 1]])
    lengths, target_lengths = torch.tensor([6, 5]), torch.tensor([2, 2])
    ours, theirs = x.clone().requires_grad_(), x.to(cuda.device).requires_grad_()
    for values, at in ((ours, "cpu"), (theirs, cuda.device)):
        F.ctc_loss(values.log_softmax(-1), target.to(at), lengths, target_lengths).backward()
    close(theirs.grad, ours.grad)


PINS_FOR_CUDA_ALONE = "accelerator" not in getsource(dataloader)  # torch 2.6


@pytest.mark.skipif(PINS_FOR_CUDA_ALONE, reason="loaders of this release pin for CUDA alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_its_batches(indexed, workers: int):
    data = TensorDataset(torch.arange(8.0), torch.arange(8))
    batches = list(DataLoader(data, batch_size=4, num_workers=workers, pin_memory=True))
    assert [x.tolist() for x, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert all(x.is_pinned() and y.is_pinned() for x, y in batches)
    moved = [x.to(indexed.device, non_blocking=True) for x, _ in batches]
    assert {x.device for x in moved} == {indexed.device}


@pytest.mark.skipif(PINS_FOR_CUDA_ALONE, reason="loaders of this release pin for CUDA alone")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_does_not_pin_for_mps(mps, workers: int):
    # torch/utils/data/dataloader.py
    data = TensorDataset(torch.arange(8.0))
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but not supported on MPS now"):
        batches = list(DataLoader(data, batch_size=4, num_workers=workers, pin_memory=True))
    assert [x.is_pinned() for (x,) in batches] == [False, False]
    assert [x.to("mps").tolist() for (x,) in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_loader_of_tensors_there_without_workers(there):
    data = TensorDataset(torch.arange(8.0, device=there.device))
    assert [x.device for (x,) in DataLoader(data, batch_size=4)] == [there.device] * 2


def test_autocast_lowers_what_it_should(there):
    model, x = nn.Linear(3, 2).to(there.device), torch.rand(4, 3, device=there.device)
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast(there.type, dtype=dtype):
            low = model(x)
            assert low.dtype == dtype
            assert (low.softmax(1).dtype, F.mse_loss(low, low).dtype) == (torch.float32, torch.float32)
    assert model(x).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(x).dtype == torch.float32


def test_a_scaler_scales_and_steps(there):
    model = nn.Linear(3, 2).to(there.device)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler(there.type, init_scale=16.0)
    before = model.weight.detach().clone()
    with torch.autocast(there.type, dtype=torch.float16):
        loss = model(torch.ones(4, 3, device=there.device)).float().sum()
    scaler.scale(loss).backward()
    if there.type == "mps" and "mps" not in getsource(torch.amp.GradScaler.unscale_):  # torch 2.6
        with pytest.raises(TypeError, match="float64"):
            scaler.step(optimizer)
        return
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight)


def test_transforms_of_functions(there):
    x = torch.arange(6.0, device=there.device).reshape(2, 3)
    assert torch.vmap(lambda row: row.sum())(x).tolist() == [3, 12]
    assert torch.func.grad(lambda x: (x**2).sum())(x).tolist() == (x * 2).tolist()
    assert torch.vmap(torch.func.grad(lambda row: row.sin().sum()))(x).device == there.device
    jacobian = torch.func.jacrev(lambda row: row**2)(x[0])
    assert torch.equal(jacobian.cpu(), torch.diag(torch.tensor([0.0, 2.0, 4.0])))
    _, tangent = torch.func.jvp(lambda x: x**2, (x,), (torch.ones_like(x),))
    assert torch.equal(tangent.cpu(), x.cpu() * 2)


def test_scripted_and_traced_functions(there):
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + torch.zeros(x.size(0), device=x.device)

    x = torch.ones(2, device=there.device)
    scripted, traced = torch.jit.script(shifted), torch.jit.trace(shifted, x)
    for function in (scripted, traced):
        assert function(x).tolist() == [2, 2]
        assert function(x).device == there.device


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@one_of_each()
def test_compiled_functions(there, backend: str, fullgraph: bool):
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).to(there.device)
    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]
    compiled = torch.compile(model, backend=backend, fullgraph=fullgraph)
    x = torch.rand(2, 3, device=there.device)
    assert torch.equal(compiled(x).cpu(), model(x).cpu())
    compiled(x).sum().backward()
    assert model[0].weight.grad.device == there.device
    assert graphs["unique_graphs"] == before + 1
    torch._dynamo.reset()


@pytest.mark.exhaustive
def test_compiled_functions_whose_graph_breaks_where_the_host_waits(there):
    torch._dynamo.reset()
    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]

    def grown(x):
        doubled = x * 2
        if doubled.sum().item() > 0:
            return doubled[doubled > 1] + 1
        return doubled

    compiled = torch.compile(grown, backend="eager")
    for _ in range(2):
        assert compiled(torch.arange(3.0, device=there.device)).tolist() == [3.0, 5.0]
    assert {event.kind for event in there.events} >= {"sync"}
    assert before < graphs["unique_graphs"] <= before + 4  # of this function's parts, and of nothing else
    torch._dynamo.reset()


def test_compiled_functions_refuse_two_devices(there):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, y: x + y, backend="eager")
    with pytest.raises(Exception, match="device"):
        compiled(torch.ones(2, device=there.device), torch.ones(2))
    torch._dynamo.reset()


def test_sparse_tensors(there):
    indices = torch.tensor([[0, 1], [1, 0]], device=there.device)
    values = torch.tensor([2.0, 3.0], device=there.device)
    sparse = torch.sparse_coo_tensor(indices, values, (2, 2), check_invariants=True)
    assert sparse.device == there.device
    assert torch.equal(sparse.to_dense().cpu(), torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    assert torch.equal(sparse.cpu().to_dense(), sparse.to_dense().cpu())
    assert torch.eye(2).to_sparse().to(there.device).coalesce().values().device == there.device


def test_sparse_matrices_multiply(cuda):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    sparse = dense.to("cuda:1").to_sparse()
    assert torch.equal(torch.sparse.mm(sparse, dense.to("cuda:1")).cpu(), dense @ dense)


def test_fourier_transforms(there):
    x = torch.arange(8.0)
    here = torch.fft.rfft(x.to(there.device))
    assert (here.device, here.dtype) == (there.device, torch.complex64)
    close(here, torch.fft.rfft(x))
    close(torch.fft.irfft(here), x)
    close(torch.fft.fft2(x.view(2, 4).to(there.device)), torch.fft.fft2(x.view(2, 4)))


def test_linear_algebra_where_the_device_has_it(cuda):
    torch.manual_seed(0)
    x = torch.rand(3, 3) + torch.eye(3) * 3
    close(torch.linalg.inv(x.to("cuda:1")), torch.linalg.inv(x))
    close(torch.linalg.svdvals(x.to("cuda:1")), torch.linalg.svdvals(x))
    close(torch.linalg.eigvalsh((x + x.T).to("cuda:1")), torch.linalg.eigvalsh(x + x.T))


def test_attention(there):
    torch.manual_seed(0)
    q = torch.rand(2, 3, 4, 8)
    here = F.scaled_dot_product_attention(*[q.to(there.device)] * 3, is_causal=True)
    close(here, F.scaled_dot_product_attention(q, q, q, is_causal=True))


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.enable_grad])
def test_attention_with_a_boolean_mask(there, mode):
    """In inference mode torch's own choice of a kernel is asked: a CPU build has none for xpu, and failed."""
    q, mask = torch.rand(2, 3, 4, 8), torch.ones(4, 4, dtype=torch.bool).tril()
    with mode():
        here = F.scaled_dot_product_attention(*[q.to(there.device)] * 3, attn_mask=mask.to(there.device))
        close(here, F.scaled_dot_product_attention(q, q, q, attn_mask=mask))


def test_an_lstm_with_projections_has_no_kernel_on_mps(mps):
    here = nn.LSTM(3, 4, proj_size=2).to("mps")
    for mode in (torch.enable_grad, torch.inference_mode):
        with mode(), pytest.raises(RuntimeError, match="LSTM with projections is not currently supported with MPS"):
            here(torch.rand(5, 2, 3, device="mps"))
        with mode():
            assert nn.LSTM(3, 4).to("mps")(torch.rand(5, 2, 3, device="mps"))[0].shape == (5, 2, 4)


def test_data_parallel_gives_the_values_of_one_device(cuda):
    torch.manual_seed(0)
    here = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    there = copy.deepcopy(here).to("cuda:0")
    x = torch.rand(5, 3)
    result = nn.DataParallel(there)(x.to("cuda:0"))
    assert str(result.device) == "cuda:0"
    close(result, here(x))
    result.sum().backward()
    here(x).sum().backward()
    for one, other in zip(there.parameters(), here.parameters(), strict=True):
        assert str(one.grad.device) == "cuda:0"
        close(one.grad, other.grad)


def test_parts_of_a_tensor_go_to_devices_and_come_back(cuda):
    from torch.nn.parallel import comm

    x = torch.arange(10.0, device="cuda:0")
    for sizes in (None, [3, 7]):
        parts = comm.scatter(x, [0, 1], sizes)
        assert [str(part.device) for part in parts] == ["cuda:0", "cuda:1"]
        assert [len(part) for part in parts] == (sizes or [5, 5])
        assert comm.gather(parts).tolist() == x.tolist()
        assert str(comm.gather(parts, destination="cpu").device) == "cpu"
    copies = comm.broadcast(x, [0, 1])
    assert [(str(copy.device), copy.tolist()) for copy in copies] == [("cuda:0", x.tolist()), ("cuda:1", x.tolist())]
    assert comm.reduce_add(copies).tolist() == (2 * x).tolist()
    out = [torch.empty(4, device="cuda:0"), torch.empty(6, device="cuda:1")]
    comm.scatter(x, out=out)
    assert comm.gather(out, out=torch.empty(10, device="cuda:1")).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"devices\[0\]: 1"):
        comm.broadcast_coalesced([x], [1, 0])
