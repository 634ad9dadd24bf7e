"""Tensors come to be on a pretend device by every route, hold the CPU's values, and say where they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from thinning import every_third

FACTORIES = {
    "empty": lambda **at: torch.empty(2, 3, **at),
    "zeros": lambda **at: torch.zeros(2, 3, **at),
    "ones": lambda **at: torch.ones(2, 3, **at),
    "full": lambda **at: torch.full((2, 3), 7.5, **at),
    "arange": lambda **at: torch.arange(1, 9, 2, **at),
    "arange of floats": lambda **at: torch.arange(0.5, 3.0, 0.5, **at),
    "linspace": lambda **at: torch.linspace(0, 1, 5, **at),
    "logspace": lambda **at: torch.logspace(0, 1, 5, **at),
    "eye": lambda **at: torch.eye(3, 4, **at),
    "rand": lambda **at: torch.rand(2, 3, **at),
    "randn": lambda **at: torch.randn(2, 3, **at),
    "randint": lambda **at: torch.randint(0, 9, (2, 3), **at),
    "randperm": lambda **at: torch.randperm(9, **at),
    "normal": lambda **at: torch.normal(0.0, 1.0, (2, 3), **at),
    "tril_indices": lambda **at: torch.tril_indices(3, 3, **at),
    "triu_indices": lambda **at: torch.triu_indices(3, 3, **at),
    "empty_strided": lambda **at: torch.empty_strided((2, 3), (1, 2), **at),
    "empty_permuted": lambda **at: torch.empty_permuted((2, 3), (1, 0), **at),
    "scalar_tensor": lambda **at: torch.scalar_tensor(2.5, **at),
    "hann_window": lambda **at: torch.hann_window(8, **at),
    "hamming_window": lambda **at: torch.hamming_window(8, **at),
    "blackman_window": lambda **at: torch.blackman_window(8, **at),
    "bartlett_window": lambda **at: torch.bartlett_window(8, **at),
    "kaiser_window": lambda **at: torch.kaiser_window(8, **at),
    "fftfreq": lambda **at: torch.fft.fftfreq(8, **at),
    "rfftfreq": lambda **at: torch.fft.rfftfreq(8, **at),
    "tensor": lambda **at: torch.tensor([[1.5, 2.0], [3.0, 4.0]], **at),
    "tensor of ints": lambda **at: torch.tensor([1, 2, 3], **at),
    "tensor of bools": lambda **at: torch.tensor([True, False], **at),
    "tensor of nothing": lambda **at: torch.tensor([], **at),
    "tensor without dimensions": lambda **at: torch.tensor(3.5, **at),
    "as_tensor": lambda **at: torch.as_tensor([1.5, 2.5], **at),
    "as_tensor of an array": lambda **at: torch.as_tensor(np.arange(3, dtype=np.float32), **at),
    "asarray": lambda **at: torch.asarray([1.5, 2.5], **at),
    "asarray of an array": lambda **at: torch.asarray(np.arange(3, dtype=np.float32), **at),
}
RANDOM = {"empty", "rand", "randn", "randint", "randperm", "normal", "empty_strided", "empty_permuted"}
MPS_LACKS = {
    "logspace": "not currently implemented for the MPS device",  # native_functions.yaml: logspace.out has CPU, CUDA
    "kaiser_window": "DispatchStub",  # no kernel registered for mps: aten/src/ATen/native/mps
}


def same(here: torch.Tensor, on_cpu: torch.Tensor) -> None:
    """The bits are those of the CPU."""
    assert here.dtype == on_cpu.dtype
    assert here.shape == on_cpu.shape
    assert here.stride() == on_cpu.stride()
    assert torch.equal(here.cpu(), on_cpu)


@every_third
@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_with_device_makes_it_there(there, name: str):
    make = FACTORIES[name]
    if there.type == "mps" and name in MPS_LACKS:
        with pytest.raises(RuntimeError, match=MPS_LACKS[name]):
            make(device=there.device)
        return
    made, on_cpu = make(device=there.device), make(device="cpu")
    assert made.device == there.device
    if name in RANDOM:
        assert (made.shape, made.dtype, made.stride()) == (on_cpu.shape, on_cpu.dtype, on_cpu.stride())
    else:
        same(made, on_cpu)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
def test_a_factory_like_another_tensor_stays_with_it(there, name: str):
    like = torch.zeros(2, 3, device=there.device)
    made = getattr(torch, name)(like)
    assert (made.device, made.shape) == (there.device, (2, 3))
    assert getattr(torch, name)(like, device="cpu").device.type == "cpu"
    assert getattr(torch, name)(torch.zeros(2), device=there.device).device == there.device


def test_full_like_and_randint_like_stay_with_the_tensor(there):
    like = torch.zeros(2, 3, device=there.device)
    same(torch.full_like(like, 2.0), torch.full((2, 3), 2.0))
    assert torch.randint_like(like, 0, 9).device == there.device


def test_new_tensors_of_a_tensor_stay_with_it(there):
    one = torch.zeros(2, device=there.device)
    for made in (one.new_zeros(3), one.new_ones(3), one.new_empty(3), one.new_full((3,), 2.0), one.new_tensor([1.0])):
        assert made.device == there.device
    assert one.new_zeros(3, device="cpu").device.type == "cpu"
    same(one.new_tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))


def test_a_tensor_says_where_it_is(there):
    one = torch.zeros(2, device=there.device)
    assert (one.is_cuda, one.is_mps, one.is_xpu) == tuple(there.type == kind for kind in ("cuda", "mps", "xpu"))
    assert not one.is_cpu
    assert one.get_device() == there.device.index
    assert str(there.device) in repr(one)
    assert f"device='{there.device}'" in repr(one)


def test_a_type_has_the_name_of_the_device(there):
    name = {"cuda": "torch.cuda.FloatTensor", "mps": "torch.mps.FloatTensor", "xpu": "torch.xpu.FloatTensor"}
    assert torch.zeros(2, device=there.device).type() == name[there.type]


def test_tensors_are_plain_tensors(there):
    one = torch.zeros(2, device=there.device)
    assert isinstance(one, torch.Tensor)
    assert there.engine == "python" or type(one) is torch.Tensor


def test_a_factory_without_device_makes_it_on_the_cpu(there):
    assert torch.zeros(2).device.type == "cpu"
    assert torch.tensor([1.0]).device.type == "cpu"
    assert torch.arange(3).device.type == "cpu"


def test_a_device_without_index_is_the_current_one(there):
    assert torch.zeros(2, device=there.type).device == torch.device(there.type, 0)


def test_a_number_is_an_index_of_the_accelerator(cuda):
    assert torch.zeros(2, device=1).device == torch.device("cuda:1")
    assert torch.zeros(2).to(0).device == torch.device("cuda:0")


def test_a_device_as_a_context_is_where_factories_make_theirs(there):
    with torch.device(there.device):
        assert torch.zeros(2).device == there.device
        assert torch.tensor([1.0, 2.0]).device == there.device
        assert torch.as_tensor([1.0, 2.0]).device == there.device
        assert torch.rand(2).device == there.device
        assert torch.zeros(2, device="cpu").device.type == "cpu"
        assert torch.nn.Linear(2, 2).weight.device == there.device
    assert torch.zeros(2).device.type == "cpu"


def test_the_default_device_is_where_factories_make_theirs(there):
    torch.set_default_device(there.device)
    try:
        assert torch.zeros(2).device == there.device
        assert torch.get_default_device() == there.device
    finally:
        torch.set_default_device(None)
        vars(torch._GLOBAL_DEVICE_CONTEXT).pop("device_context", None)  # torch 2.6 asks None for its device
    assert torch.zeros(2).device.type == "cpu"


def test_other_dtypes_hold_the_values_of_the_cpu(there):
    for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.bool):
        same(torch.tensor([0, 1, 1], dtype=dtype, device=there.device), torch.tensor([0, 1, 1], dtype=dtype))
    same(torch.tensor([1 + 2j], device=there.device), torch.tensor([1 + 2j]))


def test_float64_where_the_device_has_it(indexed):
    same(torch.tensor([0.1], dtype=torch.float64, device=indexed.device), torch.tensor([0.1], dtype=torch.float64))


def test_a_seed_gives_the_same_numbers_again(there):
    def draw() -> torch.Tensor:
        return torch.rand(4, device=there.device).cpu()

    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)


def test_the_seed_of_the_device_leaves_the_cpu_alone(there):
    module = torch.get_device_module(there.type)
    torch.manual_seed(1)
    expected = torch.rand(4)
    torch.manual_seed(1)
    module.manual_seed(7)
    torch.rand(4, device=there.type)
    assert torch.equal(torch.rand(4), expected)


def test_the_random_state_of_the_device_can_be_kept_and_put_back(there):
    module = torch.get_device_module(there.type)
    state = module.get_rng_state()
    first = torch.rand(4, device=there.type).cpu()
    module.set_rng_state(state)
    assert torch.equal(torch.rand(4, device=there.type).cpu(), first)


def test_a_generator_of_the_device_draws_its_own_numbers(there):
    generator = torch.Generator(device=there.device).manual_seed(5)
    assert generator.device.type == there.type
    first = torch.rand(3, generator=generator, device=there.device)
    generator.manual_seed(5)
    assert torch.equal(torch.rand(3, generator=generator, device=there.device).cpu(), first.cpu())


def test_a_generator_of_another_device_is_refused(there):
    text = f"Expected a '{there.type}' device type for generator but found 'cpu'"
    with pytest.raises(RuntimeError, match=text):
        torch.rand(3, generator=torch.Generator(), device=there.device)


def test_dropout_draws_from_the_seed(there):
    ones = torch.ones(64, device=there.device)
    torch.manual_seed(2)
    first = torch.nn.functional.dropout(ones, 0.5)
    torch.manual_seed(2)
    assert torch.equal(torch.nn.functional.dropout(ones, 0.5).cpu(), first.cpu())
    assert 0 < int((first == 0).sum()) < 64


def test_each_device_has_its_own_seed(cuda):
    torch.cuda.manual_seed_all(4)
    first = torch.rand(4, device="cuda:0").cpu()
    torch.rand(9, device="cuda:0")
    assert torch.equal(torch.rand(4, device="cuda:1").cpu(), first)


def test_tensors_are_made_while_a_mode_of_torch_is_open(there):
    ones = torch.ones(2, 3, device=there.device)
    with FlopCounterMode(display=False) as flops:
        made = [
            ones.new_zeros(2),
            torch.zeros_like(ones),
            ones.clone(),
            torch.arange(3, device=there.device),
            ones @ ones.T,
        ]
    assert [each.device for each in made] == [there.device] * 5
    assert made[-1].cpu().tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert flops.get_total_flops() == 2 * 2 * 3 * 2
