from __future__ import annotations

import copy
import gc
import pickle
import re
import tempfile
import weakref
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CapacityError, DtypeError, ShapeError
from assay.native.library import in_torch
from assay.tally.base import BatchLayout, TensorLayout
from assay.tally.stores import huge_pages, sample_store
from assay.tally.stores.huge_pages import HUGE_PAGE, empty_bytes
from assay.tally.stores.row_store import RowStore
from assay.tally.stores.sample_store import ANY, SampleStore, canonical, common_dtype
from thinning import one_of_each

CPU = torch.device("cpu")


def store(**budgets):
    return SampleStore({"x": TensorLayout(torch.float32, ()), "y": TensorLayout(torch.int8, (2,))}, **budgets)


def rows(start, stop):
    x = torch.arange(start, stop, dtype=torch.float32)
    return {"x": x, "y": torch.stack([x, -x], 1).to(torch.int8)}


def filled(count, step=7, **budgets):
    made = store(**budgets)
    for start in range(0, count, step):
        made.append(**rows(start, min(count, start + step)))
    return made


def assert_holds(made, count):
    assert made.rows == count
    for name, value in rows(0, count).items():
        assert torch.equal(made.column(name), value)
        assert made.column(name).dtype == value.dtype


@pytest.mark.parametrize("step", [1, 7, 300, 5000])
def test_rows_come_back_in_the_order_in_which_they_came(step):
    made = filled(3000, step)
    assert_holds(made, 3000)
    assert made.nbytes == 3000 * 6
    assert made.nbytes <= sum(made.allocated.values()) <= 3 * made.nbytes


def test_an_empty_store_has_columns_of_no_rows():
    made = store()
    made.append(**rows(0, 0))
    assert (made.rows, made.nbytes, made._blocks) == (0, 0, [])
    assert made.column("y").shape == (0, 2)
    assert made.column("y").dtype == torch.int8


def test_the_callers_memory_is_copied_and_its_graph_is_not_kept():
    x = torch.ones(3, requires_grad=True)
    product = x * 2
    made = SampleStore({"x": TensorLayout(torch.float32, ())})
    made.append(x=product)
    alive = weakref.ref(product)
    with torch.no_grad():
        product.zero_()
    del product
    gc.collect()
    assert alive() is None
    assert made.column("x").tolist() == [2, 2, 2]
    assert not made.column("x").requires_grad


def test_append_makes_few_calls_and_no_synchronisation(count_ops):
    made = filled(512, 512)
    made.append(**rows(0, 1))
    batch = rows(0, 32)
    with count_ops() as counts:
        made.append(**batch)
    assert counts.calls == 0
    strided = {name: each.repeat_interleave(2, 0)[::2] for name, each in batch.items()}
    with count_ops() as counts:
        made.append(**strided)
    assert (counts.syncs, counts.copies) == ([], [])
    assert counts.calls - counts.ops["promote_types"] == counts.ops["copy_"] == 2


@given(st.lists(st.integers(0, 700), max_size=8))
def test_blocks_at_most_double_what_is_kept(sizes):
    made = store()
    for size in sizes:
        made.append(**rows(0, size))
    assert made.rows == sum(sizes)
    assert sum(made.allocated.values()) <= 3 * made.nbytes + 256 * 6


def test_wider_data_widens_the_column_without_losing_a_value():
    made = SampleStore({"x": TensorLayout(ANY, ())})
    for values in (torch.tensor([True]), torch.tensor([2**40]), torch.tensor([0.1], dtype=torch.bfloat16)):
        made.append(x=values)
    assert made.column("x").dtype == torch.float64
    assert made.column("x").tolist() == [1, 2**40, float(torch.tensor(0.1, dtype=torch.bfloat16))]


DTYPES = [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64]


@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_the_common_dtype_does_not_depend_on_the_order(a, b, c):
    assert common_dtype(a, b) == common_dtype(b, a)
    assert common_dtype(common_dtype(a, b), c) == common_dtype(a, common_dtype(b, c))
    assert common_dtype(a, a) == a


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_the_common_dtype_holds_the_extremes_of_both(a, b):
    both = common_dtype(a, b)
    for dtype in (a, b):
        if dtype == torch.bool or (dtype == torch.int64 and both.is_floating_point):
            continue
        info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        for value in (info.min, info.max):
            assert torch.tensor(value, dtype=dtype).to(both).item() == torch.tensor(value, dtype=dtype).item()


def test_columns_that_do_not_fit_raise():
    made = filled(5)
    good = rows(0, 3)
    with pytest.raises(ShapeError, match=r"append: got columns \['x'\], expected columns \['x', 'y'\]. Give"):
        made.append(x=good["x"])
    with pytest.raises(ShapeError, match=r"y: got shape \(2, 2\), expected shape \(3, 2\)"):
        made.append(x=good["x"], y=good["y"][:2])
    with pytest.raises(ShapeError, match="y: got rows on meta, expected rows on cpu"):
        made.append(x=good["x"], y=good["y"].to("meta"))
    with pytest.raises(DtypeError, match=r"samples: got torch.complex64, expected real numbers"):
        made.append(x=good["x"].to(torch.complex64), y=good["y"])
    with pytest.raises(ShapeError, match="extend: got columns"):
        made.extend(SampleStore({"x": TensorLayout(ANY, ())}))
    assert_holds(made, 5)


def test_beyond_the_host_budget_rows_move_to_a_mapped_file():
    made = filled(2000, 50, host_budget=4096)
    assert made.allocated["disk"] > 2000 * 6 - 8192
    assert made.allocated["host"] <= 8192
    assert_holds(made, 2000)
    assert_holds(pickle.loads(pickle.dumps(made)), 2000)


def test_the_temporary_file_leaves_no_name_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = filled(2000, 50, host_budget=4096)
    assert made.allocated["disk"] > 0
    assert list(tmp_path.iterdir()) == []
    assert_holds(made, 2000)


def test_a_full_disk_says_so_and_loses_nothing(monkeypatch):
    made = filled(600, 50, host_budget=8192)
    before = made.rows

    def full(file, tensor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample_store, "_write", full)
    while made.nbytes + 300 <= 8192:
        made.append(**rows(before, before + 50))
        before += 50
    with pytest.raises(CapacityError, match=r"samples: got no room for .* MiB in .* \(No space left on device\)"):
        made.append(**rows(before, before + 50))
    assert_holds(made, before)
    monkeypatch.undo()
    made.append(**rows(before, before + 50))
    assert_holds(made, before + 50)


def test_a_directory_that_is_not_there_is_a_capacity_error(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(Path("/nowhere")))
    with pytest.raises(CapacityError, match=re.escape("/nowhere")):
        filled(5000, 50, host_budget=4096)


@pytest.fixture
def far(monkeypatch):
    """The CPU in the part of an accelerator, so that rows have a device and a host."""
    monkeypatch.setattr(sample_store, "_place", lambda device: "device")
    moved = []
    real = sample_store.to_host
    monkeypatch.setattr(sample_store, "to_host", lambda tensor: moved.append(tensor.nbytes) or real(tensor).clone())
    return moved


def test_rows_stay_on_the_device_until_its_budget_is_passed(far):
    made = filled(600, 50, device_budget=1 << 20)
    assert far == []
    assert made.allocated["host"] == 0
    small = filled(2000, 50, device_budget=4096, host_budget=1 << 20)
    assert sum(far) > 0
    assert small.allocated["device"] <= 2 * 4096
    assert small.allocated["host"] > 0
    assert_holds(small, 2000)


def test_rows_go_from_the_device_over_the_host_to_disk(far):
    made = filled(3000, 50, device_budget=2048, host_budget=4096)
    assert all(size > 0 for size in made.allocated.values())
    assert_holds(made, 3000)


@pytest.mark.parametrize("step", [7, 50, 300])
def test_rows_for_which_room_was_made_move_nothing(step, monkeypatch):
    made = filled(500, 50, host_budget=4096)
    made.reserve(CPU, 3000)
    monkeypatch.setattr(sample_store, "_on_disk", lambda blocks: 1 / 0)
    for start in range(500, 1000, step):
        made.append(**rows(start, min(1000, start + step)))
    assert_holds(made, 1000)


def test_a_copy_goes_its_own_way():
    made = filled(300)
    other = made.copy()
    made.append(**rows(300, 400))
    other.append(**rows(300, 310))
    assert_holds(made, 400)
    assert_holds(other, 310)


def test_extend_puts_rows_behind():
    made, more = filled(300), store()
    more.append(**rows(300, 450))
    made.extend(more)
    more.append(**rows(0, 5))
    made.append(**rows(450, 460))
    assert_holds(made, 460)
    assert [block.used == block.capacity for block in made._blocks] == [True] * (len(made._blocks) - 1) + [False]
    twice = filled(3)
    twice.extend(twice)
    assert twice.column("x").tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_duplicates_are_equal(duplicate):
    assert_holds(duplicate(filled(300)), 300)
    assert duplicate(store()).rows == 0


def bits(made):
    return [(made.column(name).dtype, made.column(name).numpy().tobytes()) for name in made.columns]


@given(st.lists(st.floats(width=32), max_size=30), st.randoms(), st.integers(1, 30))
def test_the_canonical_order_does_not_depend_on_how_rows_came(values, random, step):
    pairs = [(a, b) for a, b in zip(values, reversed(values), strict=True)]
    shuffled = random.sample(pairs, len(pairs))
    made = []
    for order, size in ((pairs, 100), (shuffled, step)):
        into = SampleStore({"a": TensorLayout(ANY, ()), "b": TensorLayout(ANY, ())})
        for start in range(0, len(order), size):
            a, b = (torch.tensor(column) for column in zip(*order[start : start + size], strict=True))
            into.append(a=a, b=b)
        made.append(bits(canonical(into)))
    assert made[0] == made[1]


def test_rows_that_come_later_are_put_in_the_canonical_order_too():
    columns = {"a": TensorLayout(torch.float32, (2,))}
    first, more = torch.rand(20, 2), torch.rand(7, 2)
    sorted_rows, whole = SampleStore(columns), SampleStore(columns)
    sorted_rows.append(a=first)
    sorted_rows = canonical(sorted_rows)
    assert canonical(sorted_rows) is sorted_rows  # sorted once
    grown, extended, before = sorted_rows.copy(), sorted_rows.copy(), SampleStore(columns)
    grown.append(a=more)
    before.append(a=more)
    extended.extend(before)
    before.extend(sorted_rows)
    whole.append(a=torch.cat([first, more]))
    for each in (grown, extended, before):
        assert canonical(each).column("a").tolist() == canonical(whole).column("a").tolist()


def test_the_canonical_order_keeps_rows_together():
    made = filled(100)
    made.append(**rows(0, 50))
    done = canonical(made)
    x, y = done.column("x"), done.column("y")
    assert torch.equal(torch.stack([x, -x], 1).to(torch.int8), y)
    assert sorted(x.tolist()) == sorted([*range(100), *range(50)])


@pytest.mark.parametrize(
    "dtypes", [(torch.float32, torch.int8), (torch.int16, torch.float64), (torch.bool, torch.int64)]
)
def test_the_canonical_order_is_that_without_compiled_code(dtypes: tuple[torch.dtype, ...]) -> None:
    made = SampleStore({name: TensorLayout(dtype, (2,)) for name, dtype in zip("ab", dtypes, strict=True)})
    drawn = [torch.randint(-2, 3, (300, 2)).to(dtype) for dtype in dtypes]
    made.append(a=drawn[0], b=drawn[1])
    with in_torch():
        expected = bits(canonical(made))
    assert bits(canonical(made)) == expected


def write_rows(coming):
    """What writes successive rows of `coming` into columns."""

    def write(columns, row, start, count):
        for name, column in columns.items():
            assert column.is_contiguous()
            column[row : row + count] = coming[name][start : start + count]

    return write


@pytest.mark.parametrize("step", [1, 7, 300, 5000])
def test_rows_that_a_function_writes_are_those_that_are_appended(step):
    made = store()
    for start in range(0, 3000, step):
        if start // step % 3:
            made.append(**rows(start, min(3000, start + step)))
        else:
            made.append_by(min(3000, start + step) - start, write_rows(rows(start, min(3000, start + step))))
    made.append_by(0, write_rows({}))
    assert_holds(made, 3000)


def test_a_function_writes_no_narrow_rows_into_wide_blocks():
    made = store()
    made.append(**{**rows(0, 5), "x": torch.arange(5, dtype=torch.float64)})
    made.append_by(5, write_rows({name: value[5:] for name, value in rows(0, 10).items()}))
    made.append(**{**rows(10, 12), "x": torch.arange(10, 12, dtype=torch.float64)})
    assert made.column("x").tolist() == list(range(12))
    assert made.column("x").dtype == torch.float64


def test_what_a_function_writes_keeps_the_budget_of_host_memory():
    made = store(host_budget=8192)
    for start in range(0, 3000, 100):
        made.append_by(100, write_rows(rows(start, start + 100)))
    assert_holds(made, 3000)
    assert made.allocated["disk"] > 0


def test_large_blocks_lie_in_huge_pages_and_their_columns_are_aligned(monkeypatch):
    sizes = []
    monkeypatch.setattr(sample_store, "empty_bytes", lambda count: sizes.append(count) or empty_bytes(count))
    columns = {"x": (torch.int8, ()), "y": (torch.float64, (3,)), "z": (torch.int64, ())}
    made = SampleStore({name: TensorLayout(*each) for name, each in columns.items()})
    total = 0
    for count in (10, 20_001, 99_999, 200_000):
        index = torch.arange(total, total + count)
        made.append(x=index.to(torch.int8), y=index.double()[:, None].expand(-1, 3), z=index)
        total += count
    assert sizes
    assert all(size % HUGE_PAGE == 0 for size in sizes)
    assert all(tensor.data_ptr() % 64 == 0 for block in made._blocks for tensor in block.tensors.values())
    index = torch.arange(total)
    assert torch.equal(made.column("z"), index)
    assert torch.equal(made.column("x"), index.to(torch.int8))
    assert torch.equal(made.column("y"), index.double()[:, None].expand(-1, 3))


@pytest.mark.parametrize("count", [0, 1, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE])
@pytest.mark.parametrize("kind", ["as it is", "no advice", "no huge pages"])
@one_of_each(lambda count, **_: count)
def test_bytes_can_be_written_wherever_they_lie(count, kind, monkeypatch):
    if kind == "no advice":  # as on macOS and Windows
        monkeypatch.setattr(huge_pages, "_ADVICE", None)
    elif kind == "no huge pages":  # as in a kernel that is built without them: EINVAL
        monkeypatch.setattr(huge_pages, "_ADVICE", 10_000)
    room = empty_bytes(count)
    assert room.shape == (count,)
    assert room.dtype == torch.uint8
    if kind == "as it is" and huge_pages._ADVICE is not None and count >= HUGE_PAGE:
        assert room.data_ptr() % HUGE_PAGE == 0
    room.fill_(7)
    gc.collect()
    assert int(room.sum()) == 7 * count


def test_memory_that_cannot_be_mapped_is_asked_of_torch(monkeypatch):
    def refuse(*_, **__):
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(huge_pages.mmap, "mmap", refuse)
    assert huge_pages.empty_bytes(huge_pages.HUGE_PAGE).shape == (huge_pages.HUGE_PAGE,)


@pytest.mark.parametrize("target", [None, TensorLayout(torch.float32, (3,))])
def test_rows_have_the_shape_that_the_store_was_made_for(target):
    preds = TensorLayout(torch.float32, (2,))
    RowStore((2,), (2,)).check(BatchLayout(preds, preds, None))
    with pytest.raises(ShapeError, match=r"target: got (nothing|shape \(N, 3\))"):
        RowStore((2,), (2,)).check(BatchLayout(preds, target, None))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("batches", [1, 3])
def test_nan_are_counted_in_all_dtypes_and_blocks(dtype, batches):
    made = SampleStore({"x": TensorLayout(ANY, ())})
    for k in range(batches):
        made.append(x=torch.tensor([1.0, torch.nan, torch.inf, torch.nan], dtype=dtype if k != 1 else torch.float32))
    made.append(x=torch.tensor([3, 4]))
    assert made.count_nan("x") == 2 * batches


def test_a_column_of_one_block_is_a_copy_whose_rows_lie_one_after_the_other():
    values = torch.arange(6.0).view(3, 2)
    made = SampleStore({"x": TensorLayout(torch.float32, (2,))}).replaced({"x": values.T.contiguous().T})
    column = made.column("x")
    assert column.is_contiguous()
    column.zero_()
    assert torch.equal(made.column("x"), values)
