"""What a real device refuses is refused by a pretend one, with PyTorch's text; what it allows is allowed.

The texts are those of libtorch 2.13 (strings in its libraries) and of the sources named beside them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.torch_version import TorchVersion

from assay.devices.operators.support import lacks
from assay.pretend import pretend

DETERMINISTIC = "does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms"


def mixed(first: object, second: object) -> str:
    """The text of TensorIterator (aten/src/ATen/TensorIterator.cpp)."""
    both = f"but found at least two devices, {first} and {second}!"
    return f"^Expected all tensors to be on the same device, {both}"


def different(argument: str, at: object, others: object, method: str) -> str:
    """The text of the check that torchgen writes (aten/src/ATen/core/adaption.cpp)."""
    return (
        f"^Expected all tensors to be on the same device, but got {argument} is on {at}, different from other tensors "
        rf"on {others} \(when checking argument in method wrapper_CUDA_{method}\)"
    )


@pytest.mark.parametrize("operator", [torch.add, torch.mul, torch.lt, torch.atan2, torch.maximum, torch.pow])
def test_elementwise_operators_refuse_operands_of_two_devices(there, operator):
    x, y = torch.ones(2, device=there.device), torch.ones(2)
    for operands in ((x, y), (y, x)):
        with pytest.raises(RuntimeError, match=mixed(there.device, "cpu")):
            operator(*operands)


def test_writes_in_place_refuse_operands_of_two_devices(there):
    x, y = torch.ones(2, device=there.device), torch.ones(2)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x += y
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        y += x
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.lerp(x, x, y)


def test_two_devices_of_a_kind_do_not_mix(cuda):
    x, y = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    with pytest.raises(RuntimeError, match=mixed("cuda:0", "cuda:1")):
        x + y
    with pytest.raises(RuntimeError, match=mixed("cuda:1", "cuda:0")):
        y + x
    with pytest.raises(RuntimeError, match=mixed("cuda:0", "cuda:1")):
        x + torch.tensor(1.0, device="cuda:1")  # only a CPU tensor without dimensions may mix


def test_cpu_tensors_without_dimensions_mix(there):
    x, two = torch.ones(2, device=there.device), torch.tensor(2.0)
    for result in (x + two, two + x, x.clone().mul_(two), torch.maximum(x, two), torch.where(x > 0, two, x)):
        assert result.device == there.device
    assert (x + two).tolist() == [3, 3]
    assert (torch.ones(2, dtype=torch.int32, device=there.device) + torch.tensor(0.5)).dtype == torch.float32


def test_a_tensor_of_the_device_without_dimensions_does_not_mix_with_the_cpu(there):
    with pytest.raises(RuntimeError, match=mixed(there.device, "cpu")):
        torch.ones(2) + torch.tensor(2.0, device=there.device)


def test_numbers_of_python_mix(there):
    x = torch.ones(2, device=there.device)
    assert (2 * x + 1 - 1).tolist() == [2, 2]
    assert (x + np.float32(2)).device == there.device


CUDA_CHECKS = {
    "mm": (lambda x, y: torch.mm(x, y), ("mat2", "cpu", "cuda:1", "mm")),
    "bmm": (lambda x, y: torch.bmm(x[None], y[None]), ("mat2", "cpu", "cuda:1", "bmm")),
    "cat": (lambda x, y: torch.cat([x, y]), ("tensors", "cpu", "cuda:1", "cat")),
    "linear": (lambda x, y: F.linear(x, y, y[0]), ("mat1", "cuda:1", "cpu", "addmm")),
    "embedding": (lambda x, y: F.embedding(x.long(), y), ("index", "cuda:1", "cpu", "_index_select")),
    "gather": (lambda x, y: x.gather(0, y.long()), ("index", "cpu", "cuda:1", "gather")),
    "scatter_add": (lambda x, y: x.scatter_add(0, y.long(), x), ("index", "cpu", "cuda:1", "scatter_add")),
    "cross_entropy": (lambda x, y: F.cross_entropy(x, y[0].long()), ("target", "cpu", "cuda:1", "nll_loss_forward")),
}


@pytest.mark.parametrize("name", CUDA_CHECKS)
def test_other_operators_of_cuda_name_the_operand(cuda, name: str):
    call, expected = CUDA_CHECKS[name]
    with pytest.raises(RuntimeError, match=different(*expected)):
        call(torch.ones(2, 2, device="cuda:1"), torch.ones(2, 2))


@pytest.mark.parametrize("name", [name for name in CUDA_CHECKS if name != "cat"])
def test_other_operators_of_mps_miss_the_storage(mps, name: str):
    # torchgen writes no device check for MPS: the kernel finds an operand without a Metal buffer
    # (aten/src/ATen/native/mps/OperationsUtils.mm), or checks it itself with at::checkAllSameGPU-like texts.
    texts = "Placeholder storage has not been allocated on MPS device!|on cpu but expected on mps|same device"
    with pytest.raises(RuntimeError, match=texts):
        CUDA_CHECKS[name][0](torch.ones(2, 2, device="mps"), torch.ones(2, 2))


@pytest.mark.parametrize("name", CUDA_CHECKS)
def test_other_operators_of_xpu_name_the_operand(xpu, name: str):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        CUDA_CHECKS[name][0](torch.ones(2, 2, device="xpu"), torch.ones(2, 2))


def test_a_convolution_names_the_types(there):
    # aten/src/ATen/native/Convolution.cpp, check_input_same_type_as_parameters
    types = {"cuda": "torch.cuda.FloatTensor", "mps": "MPSFloatType", "xpu": "XPUFloatType"}
    types = {"cuda": "torch.cuda.FloatTensor", "mps": "MPSFloatType", "xpu": "XPUFloatType"}
    text = rf"Input type \({types[there.type]}\) and weight type \(torch.FloatTensor\) should be the same"
    with pytest.raises(RuntimeError, match=text):
        F.conv2d(torch.ones(1, 1, 3, 3, device=there.device), torch.ones(1, 1, 2, 2))


def test_an_index_of_a_third_place_is_refused(there):
    # aten/src/ATen/native/TensorAdvancedIndexing.cpp
    text = "indices should be either on cpu or on the same device as the indexed tensor"
    index = torch.tensor([0], device=there.device)
    with pytest.raises(RuntimeError, match=rf"{text} \(cpu\)"):
        torch.ones(2)[index]


def test_an_index_of_another_gpu_is_refused(cuda):
    text = r"indices should be either on cpu or on the same device as the indexed tensor \(cuda:0\)"
    with pytest.raises(RuntimeError, match=text):
        torch.ones(2, device="cuda:0")[torch.tensor([0], device="cuda:1")]


def test_a_mask_of_another_device_is_refused(there):
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2).masked_fill(torch.tensor([True, False], device=there.device), 0.0)


def test_a_refusal_leaves_everything_usable(there):
    x = torch.ones(2, device=there.device)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(2)
    assert (x + 1).tolist() == [2, 2]


NO_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32"
)
FLOAT64 = {
    "factory": lambda: torch.zeros(2, dtype=torch.float64, device="mps"),
    "tensor": lambda: torch.tensor([0.5], dtype=torch.float64, device="mps"),
    "to": lambda: torch.zeros(2, dtype=torch.float64).to("mps"),
    "to dtype": lambda: torch.zeros(2, device="mps").to(torch.float64),
    "double": lambda: torch.zeros(2, device="mps").double(),
    "array": lambda: torch.as_tensor(np.zeros(2), device="mps"),
    "module": lambda: torch.nn.Linear(2, 2).double().to("mps"),
    "sum": lambda: torch.zeros(2, device="mps").sum(dtype=torch.float64),
}


@pytest.mark.parametrize("name", FLOAT64)
def test_mps_has_no_float64(mps, name: str):
    with pytest.raises(TypeError, match=NO_FLOAT64):
        FLOAT64[name]()
    assert [event.kind for event in mps.recorder.of("dtype")] == ["dtype"]


def test_mps_takes_what_is_float32_in_time(mps):
    assert torch.as_tensor(np.zeros(2), dtype=torch.float32, device="mps").dtype == torch.float32
    assert torch.zeros(2, dtype=torch.float64).to("mps", torch.float32).dtype == torch.float32


def test_mps_lacks_operators(mps):
    with pytest.raises(NotImplementedError, match="aten::linalg_eig' is not currently implemented for") as raised:
        torch.linalg.eig(torch.eye(2, device="mps"))
    assert "environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1`" in str(raised.value)
    refused = mps.recorder.of("operator")
    assert [event.operator.split(".")[0] for event in refused] == ["aten::linalg_eig"]
    assert all(event.where.file == __file__ for event in refused)


def test_mps_falls_back_where_it_is_asked_to(engine: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    with pretend("mps", engine=engine) as mps:
        with pytest.warns(UserWarning, match="not currently supported on the MPS backend and will fall back to run on"):
            values, _ = torch.linalg.eig(torch.diag(torch.tensor([3.0, 1.0], device="mps")))
        assert (values.device, values.tolist()) == (torch.device("mps:0"), [3, 1])
        assert [event.operator.split(".")[0] for event in mps.recorder.of("fallback")] == ["aten::linalg_eig"]


NOT_DETERMINISTIC = {  # the docstring of torch.use_deterministic_algorithms
    "histc": lambda: torch.histc(torch.rand(4, device="cuda")),
    "bincount": lambda: torch.bincount(torch.tensor([1], device="cuda"), torch.tensor([0.5], device="cuda")),
    "median": lambda: torch.rand(3, device="cuda").median(0),
    "put_": lambda: torch.zeros(3, device="cuda").put_(
        torch.tensor([1], device="cuda"), torch.ones(1, device="cuda"), accumulate=True
    ),
    "nll_loss2d": lambda: F.nll_loss(
        torch.zeros(1, 2, 2, 2, device="cuda"), torch.zeros(1, 2, 2, dtype=torch.int64, device="cuda")
    ),
    "adaptive_avg_pool2d backward": lambda: (
        F.adaptive_avg_pool2d(torch.rand(1, 1, 5, 5, device="cuda", requires_grad=True), 2).sum().backward()
    ),
    "interpolate backward": lambda: (
        F.interpolate(torch.rand(1, 1, 4, 4, device="cuda", requires_grad=True), scale_factor=2, mode="bicubic")
        .sum()
        .backward()
    ),
    "max_unpool": lambda: F.max_unpool1d(
        torch.ones(1, 1, 1, device="cuda"), torch.zeros(1, 1, 1, dtype=torch.int64, device="cuda"), 2
    ),
    "ctc_loss backward": lambda: F.ctc_loss(
        torch.rand(4, 1, 3, device="cuda", requires_grad=True).log_softmax(-1),
        torch.tensor([[1, 2]], device="cuda"),
        torch.tensor([4]),
        torch.tensor([2]),
    ).backward(),
}
STILL_FINE = {
    "cumsum": lambda: torch.rand(4, device="cuda").cumsum(0),  # it raised before 2.6, pytorch/pytorch#136224
    "scatter_add": lambda: torch.zeros(3, device="cuda").scatter_add_(
        0, torch.tensor([1], device="cuda"), torch.ones(1, device="cuda")
    ),
    "index_add": lambda: torch.zeros(3, device="cuda").index_add_(
        0, torch.tensor([1], device="cuda"), torch.ones(1, device="cuda")
    ),
    "sum": lambda: torch.ones(3, device="cuda").sum(),
    "sort": lambda: torch.rand(3, device="cuda").sort(),
    "bincount": lambda: torch.bincount(torch.tensor([1], device="cuda")),
}


@pytest.fixture
def deterministic():
    """Deterministic algorithms are asked for."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", NOT_DETERMINISTIC)
def test_cuda_raises_where_it_has_no_deterministic_form(cuda, deterministic, name: str):
    with pytest.raises(RuntimeError, match=DETERMINISTIC):
        NOT_DETERMINISTIC[name]()
    assert len(cuda.recorder.of("deterministic")) == 1


@pytest.mark.parametrize("name", NOT_DETERMINISTIC)
def test_cuda_notes_what_is_not_deterministic_where_nobody_asked(cuda, name: str):
    NOT_DETERMINISTIC[name]()
    assert len(cuda.recorder.of("nondeterministic")) >= 1


@pytest.mark.parametrize("name", STILL_FINE)
def test_cuda_runs_what_has_a_deterministic_form(cuda, deterministic, name: str):
    STILL_FINE[name]()
    assert cuda.recorder.of("deterministic") == []


def test_warn_only_warns(cuda):
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
            assert torch.ones(3, device="cuda").median(0).values.item() == 1
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_device_that_is_not_there_is_refused(indexed):
    texts = {"cuda": "CUDA error: invalid device ordinal", "xpu": "device index is out of range"}
    text = texts[indexed.type]
    with pytest.raises(RuntimeError, match=text):
        torch.zeros(2, device=f"{indexed.type}:7")
    with pytest.raises(RuntimeError, match=text):
        torch.zeros(2).to(f"{indexed.type}:7")
    with pytest.raises(RuntimeError, match=text):
        torch.get_device_module(indexed.type).set_device(7)
    assert torch.zeros(2, device=indexed.device).device == indexed.device


def test_the_kinds_that_are_not_pretended_are_not_there(there):
    for kind in ("cuda", "mps", "xpu"):
        if there.type != kind:
            with pytest.raises((AssertionError, RuntimeError), match=rf"(?i){kind}"):
                torch.zeros(2, device=kind)
            assert not torch.get_device_module(kind).is_available()
    assert torch.backends.mps.is_available() == (there.type == "mps")


def test_a_refusal_is_noted_with_its_text_and_line(there):
    x = torch.ones(2, device=there.device)
    with pytest.raises(RuntimeError, match="same device") as refused:
        x + torch.ones(2)
    (event,) = there.recorder.of("devices")
    assert event.operator == "aten::add.Tensor"
    assert event.device == str(there.device)
    assert event.where is not None
    assert event.where.file == __file__
    assert str(refused.value).startswith(event.why.split("\n")[0])


@pytest.mark.parametrize(
    ("kind", "weight", "bias", "text"),
    [
        (
            "cuda",
            1,
            0,
            "got weight is on cuda:1, different from other tensors on cuda:0 .*wrapper_CUDA__cudnn_convolution",
        ),
        ("xpu", 1, 0, "got weight is on xpu:1, different from other tensors on xpu:0 .*XPU__convolution_overrideable"),
        ("cuda", 0, 1, "found at least two devices, cuda:0 and cuda:1!"),
    ],
)
def test_a_convolution_over_two_devices_of_a_kind_names_the_devices(engine, kind, weight, bias, text):
    # their types are the same: the wrapper of the kernel refuses them, or the addition of the bias
    with pretend(f"{kind}:1", engine=engine):
        layer = torch.nn.Conv2d(1, 1, 2)
        layer.weight.data, layer.bias.data = layer.weight.to(f"{kind}:{weight}"), layer.bias.to(f"{kind}:{bias}")
        with pytest.raises(RuntimeError, match=text):
            F.conv2d(torch.ones(1, 1, 3, 3, device=f"{kind}:0"), layer.weight, layer.bias)


def test_complex_matrices_are_not_factored_on_mps(engine):
    calls = {
        torch.linalg.lu_factor: "linalg.lu_factor.*: MPS doesn't support complex types",
        torch.linalg.det: "linalg.lu_factor.*: MPS doesn't support complex types",
        torch.linalg.inv: "linalg_inv: not supported for complex types yet!",
        torch.linalg.qr: "MPS currently supports float32 only",
        torch.linalg.cholesky: "float32 only",
        lambda x: torch.linalg.solve(x, x): "MPS only supports floats",
        lambda x: torch.linalg.solve_triangular(x, x, upper=True): "Only float is supported!",
    }
    if lacks("mps", "linalg_lu_factor_ex"):
        pytest.skip("this release of torch has no LU factors on mps")
    if TorchVersion(torch.__version__) >= (2, 15):
        pytest.skip("this release of torch factors complex matrices on mps")
    with pretend("mps", engine=engine):
        for call, text in calls.items():
            call(torch.eye(3, device="mps"))
            with pytest.raises((RuntimeError, NotImplementedError), match=text):
                call(torch.eye(3, device="mps", dtype=torch.complex64))
