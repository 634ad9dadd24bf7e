from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.distributed as dist
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay.meter.meter
import assay.meter.processes.sync
from assay.devices.collective import device_of
from assay.errors import DeviceFaultError, StateError, SyncError
from assay.meter import Meter
from assay.metrics.aggregation.quantile import Quantile
from assay.metrics.aggregation.values import Max, Mean, Min
from assay.metrics.classification.confusion import ConfusionMatrix
from assay.metrics.classification.ranking import AUROC
from assay.metrics.classification.rates import Accuracy, F1Score, JaccardIndex
from assay.metrics.regression.errors import MeanSquaredError
from assay.metrics.regression.explained_variance import R2Score
from assay.metrics.regression.rank_correlation import KendallRankCorrCoef, SpearmanCorrCoef
from laws import bits
from ranks import Group, processes
from tally_laws import TALLY_CASES
from thinning import draws, every

FIRST = assay.meter.processes.sync.FIRST_WORDS


@pytest.fixture
def group(monkeypatch):
    """Makes threads of this test the ranks of a group."""

    def make(size):
        made = Group(size)
        monkeypatch.setattr(assay.meter.processes.sync, "dist", made)
        monkeypatch.setattr(assay.meter.meter, "dist", made)
        monkeypatch.setattr(assay.meter.processes.sync, "collective_device", lambda group: torch.device("cpu"))
        return made

    return make


def regression(**more):
    return Meter(mse=MeanSquaredError(), r2=R2Score(), high=Max(), low=Min(), mean=Mean(), **more)


def pairs(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, generator=generator), torch.randn(count, generator=generator)


def counted(meter, *tensors):
    meter.update(*tensors)
    return meter


@pytest.mark.parametrize("cuts", [[0, 40], [0, 17, 40], [0, 0, 25, 40], [0, 1, 2, 40, 40]], ids=str)
def test_every_rank_gets_what_one_meter_would_have_counted(group, cuts):
    x, y = pairs(40)
    ranks = group(len(cuts) - 1)
    meters = [regression(rho=SpearmanCorrCoef()) for _ in cuts[1:]]
    for meter, (start, stop) in zip(meters, pairwise(cuts), strict=True):
        meter.update(x[start:stop], y[start:stop])
    totals = ranks.run(lambda rank: meters[rank].sync())
    whole = bits(counted(regression(rho=SpearmanCorrCoef()), x, y))
    assert [bits(total) for total in totals] == [whole] * ranks.size
    assert [total.rows for total in totals] == [40] * ranks.size
    assert [meter.rows for meter in meters] == [b - a for a, b in pairwise(cuts)]


@every(TALLY_CASES)
def test_every_tally_can_be_synced(group, case):
    data = case.data(7, 23)
    ranks = group(3)
    meters = [case.counted(data.rows(slice(0, 6))), case.meter(), case.counted(data.rows(slice(6, None)))]
    totals = ranks.run(lambda rank: meters[rank].sync())
    assert [bits(total) for total in totals] == [bits(case.counted(data))] * 3
    assert len(ranks.sizes) <= 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=len(draws(15)))
@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=5), limit=st.sampled_from([0, 3, 10, 1000]))
def test_late_tables_arrive_where_they_are_missing(group, counts, limit):
    """AUROC keeps samples up to a limit and bins them beyond it; ranks may be on either side."""
    generator = torch.Generator().manual_seed(sum(counts))
    data = [(torch.rand(n, generator=generator), torch.randint(2, (n,), generator=generator)) for n in counts]
    ranks = group(len(counts))
    meters = [counted(Meter(auroc=AUROC(exact_up_to=limit)), *pair) for pair in data]
    totals = ranks.run(lambda rank: meters[rank].sync())
    whole = Meter(auroc=AUROC(exact_up_to=limit))
    for pair in data:
        whole.update(*pair)
    assert [bits(total) for total in totals] == [bits(whole)] * len(counts)
    assert len(ranks.sizes) <= 2


@pytest.mark.parametrize("rows", [(30, 30), (40, 20), (60, 0), (0, 0)])
def test_samples_travel_once_where_ranks_have_about_as_many(group, rows):
    x, y = pairs(sum(rows))
    ranks = group(2)
    parts = [(x[: rows[0]], y[: rows[0]]), (x[rows[0] :], y[rows[0] :])]
    meters = [counted(Meter(rho=SpearmanCorrCoef()), *part) for part in parts]
    totals = ranks.run(lambda rank: meters[rank].sync())
    assert [bits(total) for total in totals] == [bits(counted(meters[0].fresh(), x, y))] * 2
    words = {n: sum(-(-n * column.element_size() // 8) for column in (x, y)) for n in rows}
    gathered = 2 * max(words.values()) <= 2 * sum(words[n] for n in rows) and rows[1]
    sent = [max(words.values())] if gathered else [sum(words.values())] if any(rows) else []
    assert ranks.sizes[1:] == [size + 1 for size in sent]  # and a checksum


def test_samples_of_several_dtypes_meet(group):
    ranks = group(2)
    given_ = [torch.tensor([3, 2**40]), torch.tensor([0.1, 7.5], dtype=torch.float16)]
    meters = [counted(Meter(q=Quantile(1.0), p=Quantile(0.0)), x) for x in given_]
    totals = ranks.run(lambda rank: meters[rank].sync())
    whole = counted(meters[0].fresh(), given_[0])
    whole.update(given_[1])
    assert [bits(total) for total in totals] == [bits(whole)] * 2


def test_a_synced_meter_goes_on(group):
    x, y = pairs(30)
    ranks = group(2)
    meters = [counted(regression(), x[:10], y[:10]), counted(regression(), x[10:20], y[10:20])]
    total = ranks.run(lambda rank: meters[rank].sync())[0]
    total.update(x[20:], y[20:])
    assert bits(total) == bits(counted(regression(), x, y))
    again = ranks.run(lambda rank: meters[rank].sync())
    assert bits(again[0]) == bits(again[1]) == bits(counted(regression(), x[:20], y[:20]))


TWENTY = {
    f"m{k}": metric
    for k, metric in enumerate(
        [
            *(Accuracy(num_classes=10, average=average) for average in ("micro", "macro", "weighted", None)),
            *(F1Score(num_classes=10, average=average) for average in ("micro", "macro", "weighted", None)),
            *(JaccardIndex(num_classes=10, average=average) for average in ("micro", "macro", "weighted", None)),
            *(Accuracy(num_classes=10, top_k=k) for k in range(2, 9)),
            ConfusionMatrix(num_classes=10),
        ]
    )
}


def test_fixed_size_counts_take_one_collective(group):
    ranks = group(2)
    data = [(torch.randn(50, 10), torch.randint(10, (50,))) for _ in range(2)]
    meters = [counted(Meter(**TWENTY), *pair) for pair in data]
    totals = ranks.run(lambda rank: meters[rank].sync())
    assert ranks.sizes == [FIRST + 2 * assay.meter.processes.sync.RANK_WORDS + 1]  # and a checksum
    assert bits(totals[0]) == bits(meters[0] + meters[1])


def test_large_counts_samples_and_late_tables_share_a_second_collective(group):
    ranks = group(2)
    large = {"matrix": ConfusionMatrix(num_classes=300)}
    labels = [torch.randint(300, (2, 60)) for _ in range(2)]
    meters = [counted(Meter(**large), *pair) for pair in labels]
    totals = ranks.run(lambda rank: meters[rank].sync())
    assert len(ranks.sizes) == 2
    assert bits(totals[0]) == bits(totals[1]) == bits(meters[0] + meters[1])
    ranks.sizes.clear()
    both = [
        counted(Meter(**large, rho=SpearmanCorrCoef(), tau=KendallRankCorrCoef(), q=Quantile(0.5)), *pair)
        for pair in labels
    ]
    totals = ranks.run(lambda rank: both[rank].sync())
    assert len(ranks.sizes) == 2
    assert bits(totals[0]) == bits(totals[1]) == bits(both[0] + both[1])


def test_more_fields_than_the_first_collective_can_tell_take_a_third(group, monkeypatch):
    monkeypatch.setattr(assay.meter.processes.sync, "FIRST_WORDS", 0)
    monkeypatch.setattr(assay.meter.processes.sync, "RANK_WORDS", 5)
    ranks = group(3)
    meters = [counted(regression(rho=SpearmanCorrCoef()), *pairs(5, rank)) for rank in range(3)]
    totals = ranks.run(lambda rank: meters[rank].sync())
    assert bits(totals[2]) == bits(meters[0] + meters[1] + meters[2])
    assert len(ranks.sizes) == 3


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather"])
@pytest.mark.parametrize("fault", [lambda words: words[-3].add_(1), lambda words: words.copy_(words.roll(1))])
def test_what_a_collective_gives_is_what_the_ranks_have_sent(group, monkeypatch, collective, fault):
    """A word is wrong, or words are misplaced."""
    ranks = group(2)
    exchange = getattr(ranks, collective)

    def faulty(into, *args, **kwargs):
        exchange(into, *args, **kwargs)
        for words in [into] if collective == "all_reduce" else into:
            fault(words)

    monkeypatch.setattr(ranks, collective, faulty)
    meters = [counted(Meter(rho=SpearmanCorrCoef()), *pairs(20, rank)) for rank in range(2)]
    for error in ranks.run(lambda rank: meters[rank].sync()):
        assert isinstance(error, DeviceFaultError)
        assert all(part in str(error) for part in ("sync", "checksum", "to_file"))
    assert meters[0].rows == 20


def test_ranks_with_other_metrics_all_raise_and_say_what_differs(group):
    ranks = group(3)
    meters = [Meter(mse=MeanSquaredError()), Meter(mse=MeanSquaredError(squared=False)), Meter(mse=MeanSquaredError())]
    raised = ranks.run(lambda rank: meters[rank].sync())
    assert {type(error) for error in raised} == {SyncError}
    assert len({str(error) for error in raised}) == 1
    assert str(raised[0]) == (
        "sync: got Meter(mse=MeanSquaredError()) on ranks 0, 2 and "
        "Meter(mse=MeanSquaredError(squared=False)) on rank 1, expected equal metrics on all ranks. "
        "Make the same meter on all ranks."
    )


def test_a_weighted_meter_is_another_one(group):
    ranks = group(2)
    meters = [Meter(mse=MeanSquaredError()), Meter(mse=MeanSquaredError(), weighted=True)]
    raised = ranks.run(lambda rank: meters[rank].sync())
    assert ["weighted=True) on rank 1" in str(error) for error in raised] == [True, True]


def test_a_rank_that_fails_before_the_exchange_makes_all_raise_and_none_wait(group, monkeypatch):
    ranks = group(3)
    meters = [counted(regression(), *pairs(5, rank)) for rank in range(3)]
    before = [bits(meter) for meter in meters]
    with monkeypatch.context() as patch:
        patch.setattr(meters[1].counts, "canonical", lambda: 1 / 0)
        raised = ranks.run(lambda rank: meters[rank].sync())
    assert {type(error) for error in raised} == {SyncError}
    assert "got a failure on rank 1, expected states of all ranks. See the error of that rank" in str(raised[0])
    assert "got a failure on rank 1 (ZeroDivisionError: division by zero)" in str(raised[1])
    assert isinstance(raised[1].__cause__, ZeroDivisionError)
    assert [bits(meter) for meter in meters] == before


def test_a_collective_that_fails_raises_and_leaves_the_meter_usable(group):
    ranks = group(2)
    meters = [counted(regression(), *pairs(5, rank)) for rank in range(2)]
    before = [bits(meter) for meter in meters]
    ranks.fails = True
    raised = ranks.run(lambda rank: meters[rank].sync())
    for error in raised:
        with pytest.raises(
            SyncError, match=r"sync: got RuntimeError: Connection closed by peer, expected a collective"
        ):
            raise error
    assert [bits(meter) for meter in meters] == before
    ranks.fails = False
    assert ranks.run(lambda rank: meters[rank].sync().rows) == [10, 10]


def test_a_rank_outside_of_the_group_raises(group, monkeypatch):
    outside = group(1)
    monkeypatch.setattr(outside, "get_rank", lambda group=None: -1)
    with pytest.raises(SyncError, match="sync: got a group without this rank"):
        regression().sync()


def test_without_a_process_group_it_is_a_copy():
    assert not dist.is_initialized()
    meter = counted(regression(), *pairs(5))
    total = meter.sync()
    assert bits(total) == bits(meter)
    total.update(*pairs(3))
    assert (total.rows, meter.rows) == (8, 5)


@pytest.mark.parametrize("config", ["cpu:gloo", "cpu:gloo,cuda:nccl", "cuda:gloo,cpu:gloo"])
def test_a_backend_for_the_host_is_used_there(config):
    assert device_of(config) == torch.device("cpu")


def test_another_backend_is_used_on_its_device(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 3)
    assert device_of("cuda:nccl") == torch.device("cuda", 3)
    assert device_of("xpu:xccl") == torch.device("xpu", 3)


def on_gloo(rank, size):
    """What one process of a real group sees."""
    calls = []
    for name in ("all_reduce", "all_gather"):
        real = getattr(dist, name)
        setattr(dist, name, lambda *given, real=real, **more: calls.append(1) or real(*given, **more))
    x, y = pairs(60)
    cuts = [*[0, 20, 20, 50][:size], 60]  # rank 1 of several has nothing, unless it is the last
    mine = slice(cuts[rank], cuts[rank + 1])
    meter = counted(regression(rho=SpearmanCorrCoef()), x[mine], y[mine])
    total = meter.sync()
    seen = {"equal": bits(total) == bits(counted(regression(rho=SpearmanCorrCoef()), x, y)), "with_samples": len(calls)}
    calls.clear()
    seen["rows"] = [counted(regression(), x[mine], y[mine]).sync().rows, meter.rows]
    seen["fixed"] = len(calls)
    other = regression() if rank or size == 1 else Meter(mse=MeanSquaredError())
    seen["differs"] = said(other.sync)
    broken = regression()
    if rank == size - 1:
        broken.counts.canonical = lambda: 1 / 0
    seen["fails"] = said(broken.sync)
    seen["again"] = bits(meter.sync()) == bits(total)
    return seen


def said(act):
    try:
        act()
    except (SyncError, StateError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("size", [1, 2, 4])
def test_processes_of_a_gloo_group(tmp_path, size):
    seen = processes(on_gloo, size, tmp_path)
    assert [s["equal"] for s in seen] == [True] * size
    assert [(s["with_samples"], s["fixed"]) for s in seen] == [(2, 1)] * size
    assert [s["rows"][0] for s in seen] == [60] * size
    assert sum(s["rows"][1] for s in seen) == 60
    assert all(("expected equal metrics" in s["differs"]) if size > 1 else s["differs"] is None for s in seen)
    assert all(f"a failure on rank {size - 1}" in s["fails"] for s in seen)
    assert all(s["again"] for s in seen)
