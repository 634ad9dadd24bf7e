"""The Python engine, where it does by itself what torch's C code does for other tensors."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from assay.pretend import pretend
from assay.pretend.errors import PretendError
from assay.pretend.python_engine.patches import FIRST
from assay.pretend.python_engine.tensor import PretendArray, PretendTensor
from assay.pretend.session import PretendDevice
from thinning import every_third

CUDA1 = torch.device("cuda", 1)
MASK_23 = torch.tensor([[True, False, True], [True, True, False]])
MASK_34 = torch.tensor([[True] * 4, [False] * 4, [True, False, True, False]])
Move = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture
def gpus() -> Iterator[PretendDevice]:
    with pretend("cuda", count=2, engine="python") as machine:
        yield machine


# Indexing -------------------------------------------------------------------------------------------------------------

INDICES: dict[str, Callable[[Move], Any]] = {
    "0": lambda d: 0,
    "-1": lambda d: -1,
    "out of range": lambda d: 5,
    "all": lambda d: slice(None),
    "slice": lambda d: slice(1, None),
    "slice from the end": lambda d: slice(-2, -1),
    "slice with step": lambda d: slice(None, None, 2),
    "slice past the end": lambda d: slice(5, 9),
    "negative step": lambda d: slice(None, None, -1),
    "step 0": lambda d: slice(None, None, 0),
    "slice of tensors": lambda d: slice(d(torch.tensor(0)), d(torch.tensor(2))),
    "None": lambda d: None,
    "ellipsis": lambda d: ...,
    "two ellipses": lambda d: (..., ...),
    "True": lambda d: True,
    "False": lambda d: False,
    "True, 0": lambda d: (True, 0),
    "nothing": lambda d: (),
    "pair": lambda d: (0, 1),
    "ellipsis, 0": lambda d: (..., 0),
    "None, 0, None": lambda d: (None, 0, None),
    "too many": lambda d: (0, 0, 0, 0),
    "list": lambda d: [0, 1],
    "empty list": lambda d: [],
    "list of bools": lambda d: [True, False],
    "two lists": lambda d: ([0, 1], [1, 2]),
    "list of lists": lambda d: [[0, 1], [1, 2]],
    "list with a slice": lambda d: [slice(0, 1), 0],
    "0, list": lambda d: (0, [1, 2]),
    "list, ellipsis, list": lambda d: ([0], ..., [1]),
    "range": lambda d: range(2),
    "number of NumPy": lambda d: np.int64(1),
    "bool of NumPy": lambda d: np.bool_(True),
    "array": lambda d: np.array([0, 1]),
    "array of bools": lambda d: np.array([True, False]),
    "tensor without dimensions": lambda d: d(torch.tensor(1)),
    "bool without dimensions": lambda d: d(torch.tensor(True)),
    "byte without dimensions": lambda d: d(torch.tensor(0, dtype=torch.uint8)),
    "tensor": lambda d: d(torch.tensor([1, 0])),
    "tensor of int32": lambda d: d(torch.tensor([1, 0], dtype=torch.int32)),
    "tensor on the CPU": lambda d: torch.tensor([0, 1]),
    "empty tensor": lambda d: d(torch.tensor([], dtype=torch.int64)),
    "tensor of floats": lambda d: d(torch.tensor([0.5])),
    "two tensors": lambda d: (d(torch.tensor([0, 1])), slice(None), d(torch.tensor([1, 2]))),
    "tensor of two dimensions": lambda d: (slice(None), d(torch.tensor([[0, 1], [1, 2]]))),
    "mask": lambda d: d(MASK_23),
    "mask on the CPU": lambda d: MASK_23,
    "mask, slice": lambda d: (d(MASK_23), slice(0, 1)),
    "mask, 1": lambda d: (d(MASK_23), 1),
    "mask, list": lambda d: (d(MASK_23), [0] * 4),
    "None, mask, slice": lambda d: (None, d(MASK_23), slice(1, 2)),
    "slice, mask": lambda d: (slice(None), d(MASK_34)),
    "ellipsis, mask": lambda d: (..., d(MASK_34)),
    "float": lambda d: 1.0,
    "set": lambda d: {1},
}
SHAPES = {"3 dimensions": torch.arange(24.0).reshape(2, 3, 4), "1": torch.arange(5.0), "0": torch.tensor(3.0)}
VALUES: dict[str, Callable[[Move], Any]] = {
    "number": lambda d: 5,
    "tensor without dimensions": lambda d: d(torch.tensor(7.0)),
    "number on the CPU": lambda d: torch.tensor(7.0),
    "one value": lambda d: d(torch.ones(1)),
    "leading ones": lambda d: d(torch.ones(1, 1, 1, 4)),
    "four values": lambda d: d(torch.arange(4.0)),
}


def outcome(run: Callable[[], Any]) -> Any:
    """The value, or the type and the text of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a list for a tuple of indices, which torch deprecates
        try:
            return run()
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_index_gives_what_it_gives_on_the_cpu(gpus: PretendDevice, shape: str):
    x = SHAPES[shape]
    for index, make in INDICES.items():
        expected = outcome(lambda: x[make(lambda t: t)])  # noqa: B023
        got = outcome(lambda: x.to(CUDA1)[make(lambda t: t.to(CUDA1))])  # noqa: B023
        if isinstance(expected, tuple):
            assert got == expected, index
            continue
        assert got.device == CUDA1, index
        assert torch.equal(got.cpu(), expected), index
        assert got.stride() == expected.stride(), index


@every_third
@pytest.mark.parametrize("value", VALUES)
def test_writing_by_an_index_does_what_it_does_on_the_cpu(gpus: PretendDevice, value: str):
    def written(index: str, x: torch.Tensor, move: Move) -> torch.Tensor:
        x[INDICES[index](move)] = VALUES[value](move)
        return x

    for index, x in itertools.product(INDICES, SHAPES.values()):
        expected = outcome(lambda: written(index, x.clone(), lambda t: t))  # noqa: B023
        got = outcome(lambda: written(index, x.to(CUDA1), lambda t: t.to(CUDA1)))  # noqa: B023
        assert got == expected if isinstance(expected, tuple) else torch.equal(got.cpu(), expected), index


def test_a_view_by_an_index_shares_its_memory(gpus: PretendDevice):
    x = torch.zeros(2, 3, device=CUDA1)
    x[1][0:2].fill_(4)
    x[0, 2] += 1
    assert x.tolist() == [[0, 0, 1], [4, 4, 0]]


def test_text_cannot_be_written(gpus: PretendDevice):
    with pytest.raises(TypeError, match=r"can't assign a str to a torch.cuda.FloatTensor"):
        torch.zeros(2, device=CUDA1)[0] = "q"


def test_a_warning_says_that_a_list_is_no_tuple(gpus: PretendDevice):
    with pytest.warns(UserWarning, match=r"use x\[tuple\(seq\)\] instead of x\[seq\]"):
        torch.zeros(2, 3, device=CUDA1)[[[0, 1], [1, 2]]]


# Tensors --------------------------------------------------------------------------------------------------------------


def test_tensors_without_dimensions_are_no_sequences(gpus: PretendDevice):
    a, b = torch.tensor(1.5, device=CUDA1), torch.tensor(2.5, device=CUDA1)
    gpus.events.clear()
    assert torch.tensor([a, b]).tolist() == [1.5, 2.5]
    assert [event.operator for event in gpus.syncs] == ["aten::_local_scalar_dense"] * 2
    assert (a[None].shape, a[...].item()) == ((1,), 1.5)
    a[...] = 4.0
    assert a.item() == 4.0


def test_a_tensor_changes_its_class_with_its_dimensions(gpus: PretendDevice):
    x = torch.tensor(1.0, device=CUDA1)
    assert type(x) is PretendTensor
    assert type(x.unsqueeze_(0)) is PretendArray
    assert (x.shape, x[0].item()) == ((1,), 1.0)
    assert type(x.squeeze_(0)) is PretendTensor


def test_a_tensor_has_the_shape_that_an_operator_gave_it_in_place(gpus: PretendDevice):
    x, out = torch.arange(6, device=CUDA1), torch.empty(0, dtype=torch.int64, device=CUDA1)
    torch.add(x, 1, out=out)
    assert (out.shape, out.tolist()) == ((6,), [1, 2, 3, 4, 5, 6])
    assert x.resize_(2, 3).shape == (2, 3)
    assert (x.t_().shape, x.stride(), x.tolist()) == ((3, 2), (1, 3), [[0, 3], [1, 4], [2, 5]])


def test_tensors_of_the_cpu_are_left_alone(gpus: PretendDevice):
    x = torch.ones(3)
    assert type(x + x[0]) is torch.Tensor
    assert type(x.to(torch.float64)) is torch.Tensor
    assert x.to("cpu") is x
    assert x.inner(x).item() == 3
    assert gpus.events == []


def test_every_thread_makes_and_uses_them(gpus: PretendDevice):
    found: list[Any] = []

    def work() -> None:
        x = torch.tensor([1.0, 2.0], device="cuda:1")
        found.append((x + torch.ones(2, device=x.device)).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[2, 3]]


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_everything_is_put_back(kind: str):
    owners = (torch, torch.Tensor, torch.autograd, torch.autograd.Function, torch._utils, torch.optim.Optimizer)
    before = [dict(vars(owner)) for owner in owners]
    packages = list(torch.serialization._package_registry)
    with pretend(kind, engine="python"):
        assert torch.serialization._package_registry[0][0] == FIRST
        assert torch.compile is not before[0]["compile"]
    assert [dict(vars(owner)) for owner in owners] == before
    assert torch.serialization._package_registry == packages
    assert PretendTensor.runner is None
    with pytest.raises((AssertionError, RuntimeError)):
        torch.zeros(2, device=kind)


@torch.inference_mode()
def test_operators_are_taken_apart_in_inference_mode_as_outside_of_it(gpus: PretendDevice):
    x = torch.arange(8.0, device=CUDA1)
    assert (x.is_inference(), x.diff(dim=-1).tolist(), x.narrow(0, 1, 2).tolist()) == (True, [1.0] * 7, [1, 2])
    assert x.to("cuda").device == torch.device("cuda:0")
    assert x.to(torch.ones(2)).device.type == "cpu"
    with pytest.raises(RuntimeError, match="mat2 is on cpu, different from other tensors on cuda:1"):
        x.view(2, 4) @ torch.ones(4, 2)


# Gradients ------------------------------------------------------------------------------------------------------------


def test_torch_itself_never_follows_gradients_of_the_outer_tensor(gpus: PretendDevice):
    # It would ask for a guard of the device, and end the process where there is none (AccumulateGrad.cpp).
    x = torch.ones(3, device=CUDA1, requires_grad=True)
    assert x.requires_grad
    assert not torch._C.TensorBase.requires_grad.__get__(x)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    assert (x.grad.device, x.grad.tolist()) == (CUDA1, [2, 2, 2])
    x.grad = None
    assert x.grad is None


def test_backward_is_held_against_the_rules(gpus: PretendDevice):
    x = torch.rand(1, 1, 4, 4, device=CUDA1, requires_grad=True)
    gpus.events.clear()
    torch.nn.functional.adaptive_avg_pool2d(x, 2).sum().backward()
    (event,) = gpus.recorder.of("nondeterministic")
    assert (event.operator, event.device) == ("aten::_adaptive_avg_pool2d_backward", "cuda:1")


def test_a_hook_sees_the_gradient_on_the_device(gpus: PretendDevice):
    seen: list[torch.device] = []
    x = torch.ones(2, device=CUDA1, requires_grad=True)
    y = x * 3
    y.register_hook(lambda gradient: (seen.append(gradient.device), gradient * 10)[1])
    y.sum().backward()
    assert (seen, x.grad.tolist()) == ([CUDA1], [30, 30])


def test_a_gradient_is_that_of_the_same_device(gpus: PretendDevice):
    x = torch.ones(2, device=CUDA1, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:1 but got cpu"):
        (x * 2).backward(torch.ones(2))
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device type 'cpu'"):
        x.grad = torch.ones(2)


def test_bags_of_embeddings_are_trained(gpus: PretendDevice):
    layer = torch.nn.EmbeddingBag(5, 2, padding_idx=-1).to(CUDA1)
    indices, offsets = torch.tensor([0, 1, 4], device=CUDA1), torch.tensor([0], device=CUDA1)
    layer(indices, offsets).sum().backward()
    assert layer.weight.grad.tolist() == [[0.5, 0.5], [0.5, 0.5], [0, 0], [0, 0], [0, 0]]
    with torch.no_grad():
        assert torch.equal(layer(indices, offsets).cpu(), layer.weight[:2].mean(0, keepdim=True).cpu())
    with pytest.raises(RuntimeError, match="indices is on cpu, different from other tensors on cuda:1"):
        layer(indices.cpu(), offsets.cpu())


def test_packed_sequences_keep_their_sizes_on_the_host(gpus: PretendDevice):
    x = torch.rand(3, 2, 4, device=CUDA1)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 1]))
    assert (packed.data.device, packed.batch_sizes.device) == (CUDA1, torch.device("cpu"))
    output, _ = torch.nn.LSTM(4, 3).to(CUDA1)(packed)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(output)
    assert (padded.device, padded.shape, lengths.tolist()) == (CUDA1, (3, 2, 3), [3, 1])
    with pytest.raises(
        RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:1 Long"
    ):
        torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 1], device=CUDA1))


# What is refused ------------------------------------------------------------------------------------------------------

REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "torch.compile": lambda x: torch.compile(lambda a: a + 1),
    "torch.func.grad and its kin": lambda x: torch.func.grad(torch.sum)(x),
    "forward-mode differentiation (torch.func.jvp)": lambda x: torch.func.jvp(torch.sin, (x,), (x,)),
    "a lazy module's parameter": lambda x: torch.nn.LazyLinear(3).to(x.device),
    "the storage of a tensor": lambda x: x.untyped_storage(),
    "DLPack": lambda x: torch.from_dlpack(x),
    "a tensor of layout torch.sparse_csr": lambda x: x.view(2, 2).to_sparse_csr(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_do_is_refused_with_the_way_out(gpus: PretendDevice, what: str):
    x = torch.ones(4, device=CUDA1)
    with pytest.raises(
        PretendError, match=r'Use pretend\(..., engine="native"\), which needs a C\+\+ compiler'
    ) as error:
        REFUSED[what](x)
    assert what in str(error.value)


def test_a_tensor_of_a_closed_device_can_only_go_to_the_cpu():
    with pretend("cuda:1", engine="python") as gpu:
        x = torch.ones(2, device=gpu.device)
    assert (x.cpu().tolist(), repr(x)) == ([1, 1], "tensor([1., 1.], device='cuda:1')")
    with pytest.raises(PretendError, match=r"it is only inside `with pretend\(...\)`. Call .cpu\(\) on it"):
        x + 1


# torch's own operators ------------------------------------------------------------------------------------------------

ELSEWHERE = {  # the device has no kernel, so it is refused as on a real one; or the data base names C functions
    "histogram", "histogramdd", "tensor_split", "__getitem__", "nonzero", "sparse.sampled_addmm", "sparse.mm",
    "to_sparse", "empty_like", "new_empty", "new_empty_strided",
    "as_strided",  # samples that are views, moved without what they are views of
    "linspace", "logspace", "to",  # samples that name the CPU as the device
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_operators_give_the_cpus_values(gpus: PretendDevice):
    from torch.testing._internal.common_methods_invocations import op_db

    wrong = set()
    for op in op_db:
        elsewhere = op.name in ELSEWHERE or op.name.startswith("jiterator")  # compiled at run time, for CUDA only
        if torch.float32 in op.dtypes and not elsewhere and not _agrees(op):
            wrong.add(op.name)
    assert wrong == set()


def _agrees(op: Any) -> bool:
    from torch.utils._pytree import tree_leaves, tree_map_only

    samples = op.sample_inputs("cpu", torch.float32)
    for _, sample in zip(range(2), samples, strict=False):
        there = tree_map_only(torch.Tensor, lambda t: t.to(CUDA1), (sample.input, sample.args, sample.kwargs))
        if not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(there)):
            return True  # a factory
        torch.manual_seed(0)
        try:
            expected = tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
        except RuntimeError:  # not in this build of torch
            return True
        torch.manual_seed(0)
        got = tree_leaves(op(there[0], *there[1], **there[2]))
        for one, other in zip(got, expected, strict=True):
            if isinstance(other, torch.Tensor):
                if one.device != CUDA1 or one.shape != other.shape:
                    return False
                torch.testing.assert_close(one.cpu(), other, equal_nan=True)
    return True
