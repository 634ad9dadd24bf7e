"""Conservation laws: sound states keep all of them, and states that no device can have counted break one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from assay.errors import DeviceFaultError
from assay.meter import Meter
from assay.meter.checks.law_checks import check_laws, of_batch
from assay.metrics import FrechetDistance, Max, MaximumAbsoluteError, SpearmanCorrCoef
from assay.metrics.aggregation.values import Mean, Variance
from assay.metrics.classification.confusion import ConfusionMatrix
from assay.metrics.classification.rates import Accuracy
from assay.metrics.regression.errors import MeanSquaredError
from assay.pretend import pretend
from assay.tally.conservation import NO_ROWS, HostCount
from laws import bits, feed
from tally_laws import TALLY_CASES
from thinning import every

every_case = every(TALLY_CASES)
A = torch.arange(8.0)
BAD = (math.nan, math.inf, -math.inf, -1, 2.5, 99, 1e30, 1e-42, 0)


@pytest.fixture(scope="module")
def mps():
    with pretend("mps"):
        yield torch.device("mps")


def spoiled(data, seed):
    """Samples of which some values are such that no metric takes."""
    generator = torch.Generator().manual_seed(seed)

    def change(tensor):
        changed = tensor.clone().flatten()
        for place in torch.randint(0, max(1, len(changed)), (3,), generator=generator).tolist()[: len(changed)]:
            bad = BAD[int(torch.randint(0, len(BAD), (), generator=generator))]
            is_held = changed.dtype.is_floating_point or (
                changed.dtype == torch.int64 and bad == bad and abs(bad) < 100
            )
            if is_held:
                changed[place] = bad
        return changed.view(tensor.shape)

    return data.map(change)


def host_count(meter, data):
    """What the host counts of a batch."""
    return of_batch(meter.checked(meter.arguments(data.preds, data.target, data.weights, data.columns)))


@every_case
def test_sound_states_keep_all_laws(case):
    for seed, rows in ((0, 0), (1, 1), (2, 40)):
        for data in [case.data(seed, rows)] + [
            spoiled(case.data(seed, rows), seed + k) for k in range(0 if case.raw else 4)
        ]:
            parts = [data.rows(slice(0, rows // 3)), data.rows(slice(rows // 3, None))]
            meter = feed(case.meter(), *parts)
            given = sum((host_count(meter, part) for part in parts), NO_ROWS)
            (of_device,) = meter.device_states().values()
            for states in (of_device, meter.states()):
                check_laws(meter.tallies, states, given, "the CPU")
                check_laws(meter.tallies, states, HostCount(given.rows), "the CPU")


def test_every_tally_declares_laws():
    assert not {case.tally for case in TALLY_CASES if not case.tally.declares_laws}


@every([case for case in TALLY_CASES if not case.raw])
def test_sound_states_of_a_device_have_the_fingerprints_of_their_batches(case, mps):
    for seed, rows in ((0, 0), (1, 1), (2, 40)):
        for data in (case.data(seed, rows), *(spoiled(case.data(seed, rows), seed + k) for k in range(3))):
            parts = [data.rows(slice(0, rows // 3)), data.rows(slice(rows // 3, None))]
            expected = bits(feed(case.meter(), *parts * 2).states())
            for stage_bytes in (0, 1 << 21):
                meter = feed(case.meter(stage_bytes), *(part.map(lambda tensor: tensor.to(mps)) for part in parts * 2))
                assert bits(meter.states()) == expected


# --- states that no device can have counted ------------------------------------------------------------------------


def labels(count=40, classes=4):
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(0, classes, (count,), generator=generator) for _ in range(2)]


def fault_of(meter, field, change):
    """The error of reading a meter after a field of the state on its device was changed."""
    (states,) = meter.device_states().values()
    change(states[0][field])
    with pytest.raises(DeviceFaultError) as caught:
        meter.compute()
    return caught.value


def test_counts_that_were_lost_are_refused_by_name(mps):
    meter = Meter(acc=Accuracy(num_classes=4))
    meter.update(*(each.to(mps) for each in labels()))
    error = fault_of(meter, "counts", lambda counts: counts.sub_(1).clamp_(min=0))
    assert (error.where, error.tally) == ("device mps:0", meter.tallies[0])
    assert all(part in str(error) for part in ("Confusion", "mps:0", "40", "on the CPU"))
    assert meter.device_states()  # which still can be looked at
    for read in (meter.states, meter.state_dict, lambda: Meter(acc=Accuracy(num_classes=4)).merge(meter)):
        with pytest.raises(DeviceFaultError):
            read()


def test_a_sum_of_squares_below_that_of_the_sum_is_refused(mps):
    meter = Meter(value=Variance())
    meter.update(torch.arange(1.0, 9).to(mps))
    assert "squares" in str(fault_of(meter, "sums2", lambda sums: sums.zero_()))


@pytest.mark.parametrize(
    ("metric", "field", "change", "said"),
    [
        (SpearmanCorrCoef(), "samples", lambda store: store.blocks()[0]["preds"][3].add_(1), "checksum"),
        (SpearmanCorrCoef(), "samples", lambda store: store.blocks()[0]["target"][:2].copy_(A[:2].flip(0)), "checksum"),
        (Max(), "extremes", lambda keys: keys[0].sub_(1), "largest"),
        (Max(), "count", lambda count: count.sub_(1), "places"),
        (MaximumAbsoluteError(), "errors", lambda keys: keys[0].sub_(1), "largest"),
    ],
)
def test_samples_and_extremes_that_a_device_changes_are_refused(metric, field, change, said, mps):
    meter = Meter(metric)
    meter.update(*(each.to(mps) for each in (A, A.flip(0))[: 1 if isinstance(metric, Max) else 2]))
    assert said in str(fault_of(meter, field, change))
    unchecked = Meter(metric, fingerprints=False, recount="off")
    unchecked.update(*(each.to(mps) for each in (A, A.flip(0))[: 1 if isinstance(metric, Max) else 2]))
    (states,) = unchecked.device_states().values()
    change(states[0][field])
    unchecked.compute()


@pytest.mark.parametrize("field", ["sums", "products", "count", "rounded"])
def test_moments_of_features_that_a_device_changes_are_refused(field, mps):
    generator = torch.Generator().manual_seed(0)
    features, target = torch.rand(40, 3, generator=generator), torch.randint(0, 2, (40,), generator=generator)
    meter = Meter(distance=FrechetDistance(num_features=3, feature_range=1.0))
    for k in range(0, 40, 8):
        meter.update(features[k : k + 8].to(mps), target[k : k + 8].to(mps))
        meter.states()

    def move_one(table):
        table.view(-1)[1] += 1
        table.view(-1)[0] -= int(field != "rounded")  # of which there are none

    assert "fingerprint" in str(fault_of(meter, field, move_one))


def test_what_the_cpu_counts_is_not_checked_at_a_read():
    meter = Meter(mean=Mean())
    meter.update(torch.ones(3))
    (states,) = meter.device_states().values()
    states[0]["count"] += 1
    assert float(meter.compute()["mean"]) == 0.75


def test_a_step_on_a_device_is_checked(mps, monkeypatch):
    meter = Meter(matrix=ConfusionMatrix(num_classes=4))
    monkeypatch.setattr(type(meter.tallies[0]), "add", lambda tally, state, batch: None)
    with pytest.raises(DeviceFaultError, match="add up to the targets"):
        meter.forward(*(each.to(mps) for each in labels()))


def test_loaded_counts_are_checked():
    meter = Meter(matrix=ConfusionMatrix(num_classes=4))
    meter.update(*labels())
    saved = meter.state_dict()
    saved["0.counts"][0, 1, 1] = -1
    with pytest.raises(DeviceFaultError, match=r"state_dict.*negative"):
        meter.load_state_dict(saved)
    assert meter.rows == 40


@pytest.mark.parametrize("shapes", [[(4, 3), (4, 3)], [(4, 3), (5, 3)], [(4, 3), (4, 2)], [(2,), (0,), (3, 1, 2)]])
@pytest.mark.parametrize("stage_bytes", [0, 1 << 21])
def test_elements_are_counted_over_changes_of_shape(mps, shapes, stage_bytes):
    """Of batches that were not staged elements are unknown where rows changed: graphs may have counted some of them."""
    meter = Meter(matrix=ConfusionMatrix(num_classes=2), stage_bytes=stage_bytes)
    for shape in shapes * 2:
        target = torch.ones(shape, dtype=torch.int64, device=mps)
        meter.update(target, target)
        assert int(meter.compute()["matrix"].sum()) > 0


def test_parts_of_samples_that_several_processes_count_have_fingerprints_too(mps):
    """As of scores whose positions lie on several processes: this one counts more labels than samples."""
    labels = torch.tensor([0, 2, 1, 2], device=mps)
    meter = Meter(confusion=ConfusionMatrix(num_classes=3))
    batch = meter.checked(meter.arguments(labels, labels, None, {}))
    meter.counts.add_each([(tally, batch) for tally in meter.plan.tallies], 1)
    assert meter.compute()["confusion"].diagonal().tolist() == [1, 1, 2]
    meter.counts.of(mps).flushed()[0]["counts"].view(-1)[:2] = 1
    with pytest.raises(DeviceFaultError, match=r"law|places|targets"):
        meter.compute()


@pytest.mark.parametrize(
    ("metric", "data", "without", "operators"),
    [
        (MeanSquaredError(), lambda: (torch.rand(65536), torch.rand(65536)), 116, 169),
        (Accuracy(num_classes=10), lambda: (torch.rand(4096, 10), torch.randint(10, (4096,))), 11, 21),
    ],
)
def test_a_fingerprint_adds_the_operators_that_the_page_says_and_waits_for_none(
    metric, data, without, operators, mps, count_ops
):
    page = (Path(__file__).parents[2] / "docs/proof.md").read_text("utf-8")
    assert f"{operators} operators instead of {without}" in page or f"{operators} instead of {without}" in page
    batch, found = [each.to(mps) for each in data()], []
    for fingerprints in (True, False):
        meter = Meter(metric=metric, stage_bytes=0, fingerprints=fingerprints)
        meter.update(*batch)
        with count_ops() as counts:
            meter.update(*batch)
        assert counts.syncs == []
        found.append(counts.calls)
    assert found == [operators, without]
