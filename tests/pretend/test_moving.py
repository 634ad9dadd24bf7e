"""Copies between the CPU and pretend devices, views, writes in place, and indices."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from assay.pretend import pretend


def on_host(count: int = 6) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32).reshape(2, -1)


def test_every_form_of_to_moves(there):
    x, to = on_host(), there.device
    other = torch.zeros(1, dtype=torch.int64, device=to)
    for moved in (x.to(to), x.to(str(to)), x.to(device=to), x.to(to, torch.float32), x.to(to, non_blocking=True)):
        assert moved.device == to
        assert torch.equal(moved.cpu(), x)
    assert (x.to(other).device, x.to(other).dtype) == (to, torch.int64)
    assert x.to(to, torch.int32).dtype == torch.int32
    assert x.to(to, memory_format=torch.preserve_format).device == to


def test_to_where_it_is_gives_the_same_tensor(there):
    x = on_host().to(there.device)
    assert x.to(there.device) is x
    assert x.to(there.device, copy=True) is not x
    assert x.to(torch.float32) is x


def test_the_method_named_like_the_device_moves_to_the_current_one(indexed):
    x = on_host()
    moved = getattr(x, indexed.type)()
    assert moved.device == torch.device(indexed.type, 0)
    assert getattr(x, indexed.type)(indexed.device).device == indexed.device
    assert torch.equal(moved.cpu(), x)


def test_cpu_brings_the_values_back(there):
    x = on_host()
    back = x.to(there.device).mul(2).cpu()
    assert back.device.type == "cpu"
    assert torch.equal(back, x * 2)
    assert np.array_equal(back.numpy(), x.numpy() * 2)


def test_a_copy_does_not_share_memory(there):
    x = on_host()
    moved = x.to(there.device)
    moved.add_(1)
    assert torch.equal(x, on_host())
    back = moved.cpu()
    back.zero_()
    assert torch.equal(moved.cpu(), on_host() + 1)


def test_strides_are_kept_by_a_copy(there):
    x = on_host().t()
    assert x.to(there.device).stride() == x.stride()
    image = torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)
    assert image.to(there.device).is_contiguous(memory_format=torch.channels_last)


def test_copy_writes_across_devices(there):
    x, target = on_host(), torch.zeros(2, 3, device=there.device)
    assert target.copy_(x) is target
    assert torch.equal(target.cpu(), x)
    back = torch.zeros(2, 3)
    back.copy_(target * 2, non_blocking=True)
    assert torch.equal(back, x * 2)
    target.copy_(torch.tensor([1, 2, 3]))  # another dtype, and it broadcasts
    assert target.cpu().tolist() == [[1, 2, 3], [1, 2, 3]]


def test_copies_between_devices_of_a_kind_are_allowed(cuda):
    x = on_host().to("cuda:1")
    assert torch.equal(x.to("cuda:0").cpu(), x.cpu())
    target = torch.zeros(2, 3, device="cuda:0")
    assert torch.equal(target.copy_(x).cpu(), x.cpu())


def test_numpy_of_a_tensor_there_is_refused(there):
    text = rf"can't convert {there.device} device type tensor to numpy. Use Tensor.cpu\(\) to copy the tensor to host"
    x = torch.zeros(2, device=there.device)
    with pytest.raises(TypeError, match=text):
        x.numpy()
    with pytest.raises(TypeError, match=text):
        np.asarray(x)


def test_pinned_memory_is_pinned(indexed):
    x = on_host()
    pinned = x.pin_memory()
    assert (x.is_pinned(), pinned.is_pinned(), pinned.device.type) == (False, True, "cpu")
    assert torch.equal(pinned, x)
    assert torch.equal(pinned.to(indexed.device, non_blocking=True).cpu(), x)


def test_a_mac_refuses_to_pin_memory(mps):
    with pytest.raises(RuntimeError, match='on device "cpu" to a storage on different device "mps:0"'):
        on_host().pin_memory()
    assert [event.operator for event in mps.recorder.of("operator")] == ["aten::_pin_memory"]


def test_a_factory_pins_memory(there):
    assert torch.zeros(2, pin_memory=True).is_pinned()


def test_a_tensor_there_cannot_be_pinned(there):
    with pytest.raises(RuntimeError, match="cannot pin"):
        torch.zeros(2, device=there.device).pin_memory()


def test_a_module_moves_and_its_parameters_stay_the_same_objects(there):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    parameters = list(model.parameters())
    assert model.to(there.device) is model
    assert all(one is other for one, other in zip(parameters, model.parameters(), strict=True))
    assert {value.device for value in model.state_dict().values()} == {there.device}
    assert {value.device.type for value in model.cpu().state_dict().values()} == {"cpu"}


def test_a_module_moves_by_the_method_named_like_the_device(indexed):
    model = getattr(nn.Linear(3, 4), indexed.type)()
    assert model.weight.device == torch.device(indexed.type, 0)
    model = getattr(nn.Linear(3, 4), indexed.type)(indexed.device)
    assert model.weight.device == indexed.device


def test_a_buffer_moves_and_a_plain_attribute_does_not(there):
    model = nn.Module()
    model.register_buffer("counted", torch.zeros(2))
    model.plain = torch.zeros(2)
    model.to(there.device)
    assert (model.counted.device, model.plain.device.type) == (there.device, "cpu")


def test_a_state_dict_loads_from_and_to_either_side(there):
    theirs, ours = nn.Linear(3, 2).to(there.device), nn.Linear(3, 2)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.device.type == "cpu"
    assert torch.equal(ours.weight, theirs.weight.cpu())
    theirs.load_state_dict({name: value.cpu() * 2 for name, value in theirs.state_dict().items()})
    assert theirs.weight.device == there.device
    assert torch.equal(ours.weight * 2, theirs.weight.cpu())


def saved(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_a_saved_tensor_comes_back_where_it_was(there):
    x = on_host().to(there.device)
    back = torch.load(saved(x))
    assert back.device == there.device
    assert torch.equal(back.cpu(), x.cpu())


def test_map_location_decides_where_a_saved_tensor_goes(there):
    x, at = on_host().to(there.device), str(there.device)
    tag = "mps" if there.type == "mps" else at  # torch/serialization.py writes the index of the others only
    for location in ("cpu", torch.device("cpu"), {tag: "cpu"}, lambda storage, tag: storage):
        back = torch.load(saved(x), map_location=location)
        assert back.device.type == "cpu"
        assert torch.equal(back, x.cpu())
    for location in (at, there.device, {"cpu": at}):
        back = torch.load(saved(on_host()), map_location=location)
        assert back.device == there.device
        assert torch.equal(back.cpu(), on_host())


def test_map_location_moves_between_devices(cuda):
    x = on_host().to("cuda:1")
    assert torch.load(saved(x), map_location={"cuda:1": "cuda:0"}).device == torch.device("cuda:0")
    assert torch.load(saved(x), map_location="cuda").device == torch.device("cuda:0")


def test_a_file_of_a_device_that_is_not_there_says_so(engine: str):
    with pretend("cuda", count=2, engine=engine):
        file = saved(on_host().to("cuda:1"))
    with pretend("cuda", count=1, engine=engine):
        text = r"Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count\(\) is 1"
        with pytest.raises(RuntimeError, match=text):
            torch.load(file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False"):
        torch.load(file)
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu"), on_host())


def test_pickle_and_deepcopy_keep_the_device(there):
    x = on_host().to(there.device)
    model = nn.Linear(2, 2).to(there.device)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert again.device == there.device
        assert torch.equal(again.cpu(), x.cpu())
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert same.weight.device == there.device
        assert torch.equal(same.weight.cpu(), model.weight.cpu())


def test_views_share_memory_and_writes_in_place_are_seen_through_them(there):
    x = torch.zeros(4, 4, device=there.device)
    x[1].add_(1)
    x[:, 2].fill_(5)
    x.view(-1)[0] = 9
    x.t()[3].mul_(0).sub_(2)
    x.diagonal().zero_()
    y = torch.zeros(4, 4)
    y[1].add_(1)
    y[:, 2].fill_(5)
    y.view(-1)[0] = 9
    y.t()[3].mul_(0).sub_(2)
    y.diagonal().zero_()
    assert torch.equal(x.cpu(), y)
    assert x[1].data_ptr() == x.data_ptr() + 16
    assert x.view(2, 8)._base is x


def test_every_kind_of_view_stays_there(there):
    x = on_host(12).to(there.device)
    views = (
        x[0], x[:, 1:], x.t(), x.view(-1), x.reshape(3, 4), x.unsqueeze(0), x.expand(2, 2, 6), x.permute(1, 0),
        x.narrow(1, 0, 2), x.split(3, 1)[1], x.chunk(2)[0], x.unbind()[1], x.as_strided((2, 2), (1, 2)),
        x.view(torch.int32), x.detach(), x.unfold(1, 2, 1), x.flatten(), x.squeeze(), x.movedim(0, 1),
    )  # fmt: skip
    assert {view.device for view in views} == {there.device}
    assert x.t().stride() == (1, 6)


def test_out_is_written_and_resized(there):
    a, b = on_host().to(there.device), torch.ones(2, 3, device=there.device)
    out = torch.empty(2, 3, device=there.device)
    assert torch.add(a, b, out=out) is out
    assert torch.equal(out.cpu(), on_host() + 1)
    empty = torch.empty(0, device=there.device)
    torch.mul(a, 2, out=empty)
    assert torch.equal(empty.cpu(), on_host() * 2)
    values, indices = torch.empty(0, device=there.device), torch.empty(0, dtype=torch.int64, device=there.device)
    torch.max(a, dim=1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2, 5], [2, 2])


def test_resize_keeps_the_values_and_grows(there):
    x = on_host().to(there.device)
    x.resize_(3, 2)
    assert torch.equal(x.cpu(), on_host().reshape(3, 2))
    x.resize_(10, 10).zero_()
    assert (x.shape, x.device) == ((10, 10), there.device)


def test_set_and_data_point_to_other_memory(there):
    x, y = torch.zeros(2, device=there.device), torch.ones(3, device=there.device)
    x.set_(y)
    assert x.tolist() == [1, 1, 1]
    z = torch.zeros(2, device=there.device)
    z.data = torch.full((2,), 4.0, device=there.device)
    assert z.tolist() == [4, 4]


def test_indices_on_the_host_and_on_the_device_read_the_same(there):
    x, rows = on_host(12).to(there.device), torch.tensor([1, 0, 1])
    expected = on_host(12)[rows]
    for index in (rows, rows.to(there.device), [1, 0, 1], rows.numpy()):
        assert torch.equal(x[index].cpu(), expected)
        assert x[index].device == there.device
    mask = on_host(12) > 3
    assert torch.equal(x[mask].cpu(), on_host(12)[mask])
    assert torch.equal(x[mask.to(there.device)].cpu(), on_host(12)[mask])
    assert torch.equal(x[..., None, 1:3].cpu(), on_host(12)[..., None, 1:3])
    assert x[torch.tensor(1)].tolist() == on_host(12)[1].tolist()


def test_writes_by_index_from_either_side(there):
    x, y = on_host(12).to(there.device), on_host(12)
    rows = torch.tensor([1, 0])
    for target, rows_ in ((x, rows.to(there.device)), (y, rows)):
        target[rows_] = target[rows_] * 2
        target[target > 8] = 0
        target[0, 1] = 7
        target[:, 2] = torch.tensor(3.0)
        target[1, 3:5] = torch.tensor([8.0, 9.0]).to(target.device)
        target[rows_, rows_] = torch.tensor(6.0)
    assert torch.equal(x.cpu(), y)
    x[0] = torch.zeros(6)  # setitem is a copy_, which may cross devices
    assert x[0].tolist() == [0] * 6
    host = on_host(12)
    host[0] = torch.ones(6, device=there.device)
    assert host[0].tolist() == [1] * 6


def test_operators_on_indices(there):
    x, index = on_host(12).to(there.device), torch.tensor([[0, 1], [2, 3]])
    there_index = index.to(there.device)
    y = on_host(12)
    assert torch.equal(x.gather(1, there_index).cpu(), y.gather(1, index))
    assert torch.equal(x.index_select(0, there_index[0]).cpu(), y.index_select(0, index[0]))
    assert torch.equal(x.scatter_add(1, there_index, x).cpu(), y.scatter_add(1, index, y))
    assert torch.equal(x.index_add(0, there_index[0], x).cpu(), y.index_add(0, index[0], y))
    mask = x > 4
    assert torch.equal(x.masked_fill(mask, -1).cpu(), y.masked_fill(y > 4, -1))
    assert torch.equal(torch.where(mask, x, 0).cpu(), torch.where(y > 4, y, 0))
    assert torch.equal(torch.nn.functional.one_hot(there_index).cpu(), torch.nn.functional.one_hot(index))


def test_the_current_device_is_that_of_the_thread(cuda):
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
    assert torch.zeros(1).cuda().device == torch.device("cuda:1")
    assert nn.Linear(1, 1).cuda().weight.device == torch.device("cuda:1")
    assert torch.zeros(1).to("cuda").device == torch.device("cuda:1")
    torch.cuda.set_device(0)
    with torch.cuda.device(1):
        assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
        assert torch.zeros(1, device="cuda:0").device == torch.device("cuda:0")
    with torch.accelerator.device_index(1):
        assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
    assert torch.zeros(1, device="cuda").device == torch.device("cuda:0")


def test_a_tensor_of_another_device_decides_where_its_results_are(cuda):
    x = torch.ones(2, device="cuda:1")
    assert (x + 1).device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0
    assert x.to("cuda").device == torch.device("cuda:0")  # .to("cuda") means the current device
    assert x.cuda().device == torch.device("cuda:0")
    with torch.cuda.device_of(x):
        assert torch.cuda.current_device() == 1


def test_dlpack_of_a_tensor_there_is_refused(there):
    from assay.pretend.errors import PretendError

    with pytest.raises(PretendError, match="DLPack"):
        torch.from_dlpack(torch.zeros(2, device=there.device))
    with pytest.raises(PretendError, match="DLPack"):
        torch.utils.dlpack.to_dlpack(torch.zeros(2, device=there.device))
    assert torch.from_dlpack(torch.ones(2)).tolist() == [1, 1]
