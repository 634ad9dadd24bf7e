"""Recounts: flushes of a pretended device that the CPU counts once more, of the execution that counts."""

from __future__ import annotations

import random

import pytest
import torch
from benchmarks.proof.faults import KINDS, FaultyOperator

from assay.errors import ConfigError, DeviceFaultError
from assay.meter import Meter
from assay.meter.checks import recounts
from assay.meter.counting.row_stage import RowStage
from assay.metrics import AUROC, Accuracy, LogLoss, Max, MeanSquaredError, SpearmanCorrCoef
from assay.pretend import pretend
from assay.tally.term_log import TermTolerance, difference
from laws import bits

FAULTS = {kind.name: kind for kind in KINDS}
ON_MPS = torch.device("mps:0")


@pytest.fixture(scope="module", autouse=True)
def mps():
    with pretend("mps"):
        yield ON_MPS


def scores(count=400, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, classes, generator=generator), torch.randint(0, classes, (count,), generator=generator)


def batches(*columns, rows=20):
    """Views of tensors on the device, most of which do not begin where their memory does."""
    moved = [each.to("mps") for each in columns]
    return [[each[start : start + rows] for each in moved] for start in range(0, len(moved[0]), rows)]


def counted(meter, of):
    for batch in of:
        meter.update(*batch)
    return meter


def test_the_first_flush_of_each_layout_is_counted_once_more(mps):
    preds, target = scores()
    meter = counted(Meter(Accuracy(num_classes=4)), batches(preds, target))
    meter.compute()
    assert meter.counts.recounted() == (20, 20)
    counted(meter, batches(preds, target))  # the layout is known: only one in a thousand
    counted(meter, batches(preds.double().float(), target.int(), rows=100))
    meter.compute()
    assert meter.counts.recounted().batches == 44
    assert meter.counts.recounted().recounted >= 24


@pytest.mark.parametrize(
    "metrics",
    [
        {"acc": Accuracy(num_classes=4), "auroc": AUROC(num_classes=4)},
        {"auroc": AUROC(num_classes=4, logits=True, exact=False), "loss": LogLoss(num_classes=4, logits=True)},
        {"auroc": AUROC(num_classes=4, exact_up_to=1000)},
    ],
)
def test_what_is_counted_apart_and_added_has_the_same_bits(metrics, mps):
    preds, target = scores(800)
    of = batches(preds, target)
    meters = [counted(Meter(recount=how, stage_bytes=1 << 10, **metrics), of) for how in ("all", "off", "sampled")]
    expected = bits(counted(Meter(**metrics), [[each.to("cpu") for each in batch] for batch in of]).states())
    assert [bits(meter.states()) for meter in meters] == [expected] * 3
    assert [meter.counts.recounted().recounted == 40 for meter in meters] == [True, False, False]


@pytest.mark.parametrize("kind", ["argmax is wrong", "a scatter misplaces one"])
def test_a_fault_each_time_is_found_at_the_first_batch_and_named(kind, mps):
    of = batches(*scores())
    meter = Meter(Accuracy(num_classes=4), fingerprints=False)
    with FaultyOperator(FAULTS[kind], "mps", None, seed=0) as faulty:
        counted(meter, of)
        with pytest.raises(DeviceFaultError, match=r"Confusion of device mps:0.*batches 1 to 20.*on the CPU"):
            meter.compute()
    assert faulty.fired
    with pytest.raises(DeviceFaultError):  # also where the device works again
        meter.state_dict()


def test_without_recounts_such_a_fault_is_not_found(mps):
    meter = Meter(Accuracy(num_classes=4), recount="off")
    with FaultyOperator(FAULTS["argmax is wrong"], "mps", None, seed=0):
        counted(meter, batches(*scores())).compute()


def test_the_rows_are_kept_beside_the_stage(mps):
    """A copy into the stage that is torn is another one than that which is kept."""
    meter = Meter(MeanSquaredError())
    with FaultyOperator(FAULTS["a copy on the device is torn"], "mps", 3, seed=0) as faulty:
        counted(meter, batches(torch.rand(400), torch.rand(400)))
    assert faulty.fired
    with pytest.raises(DeviceFaultError, match="counts of the CPU"):
        meter.compute()


def test_views_that_are_read_from_the_beginning_of_their_memory_are_found(mps):
    meter = Meter(MeanSquaredError())
    with FaultyOperator(FAULTS["views are read from the beginning of their memory"], "mps", None, seed=0) as faulty:
        counted(meter, batches(torch.rand(400), torch.rand(400)))
    assert faulty.fired
    with pytest.raises(DeviceFaultError, match="counts of the CPU"):
        meter.compute()


@pytest.mark.parametrize("metric", [Accuracy(num_classes=4), LogLoss(num_classes=4), SpearmanCorrCoef(), Max()])
@pytest.mark.parametrize("recount", ["sampled", "all"])
def test_an_update_does_not_wait_for_the_device(metric, recount, mps, count_ops):
    preds, target = scores()
    columns = (preds, target) if "num_classes" in repr(metric) else (preds[:, 0], preds[:, 1])
    of = batches(*columns[: 1 if isinstance(metric, Max) else 2])
    meter = Meter(metric, recount=recount, stage_bytes=1 << 9)
    with count_ops() as counts:
        counted(meter, of)
    assert counts.syncs == []
    meter.compute()
    assert meter.counts.recounted().recounted >= (20 if recount == "all" else 1)


def test_on_the_cpu_nothing_is_kept_and_no_operator_added(count_ops):
    found = []
    for recount in ("all", "off"):
        meter = Meter(Accuracy(num_classes=4), recount=recount)
        preds, target = scores()
        with count_ops() as counts:
            for _ in range(3):
                meter.update(preds, target)
            meter.compute()
        found.append(counts.calls)
        assert meter.counts.recounted() == (0, 0)
    assert found[0] == found[1]


def test_sampled_flushes_are_drawn_by_their_own_generator(mps, monkeypatch):
    monkeypatch.setattr(recounts, "RATE", 0.5)
    states = random.getstate(), torch.get_rng_state()
    meter = counted(Meter(Accuracy(num_classes=4), stage_bytes=1 << 8), batches(*scores(4000), rows=40))
    meter.compute()
    assert 10 < meter.counts.recounted().recounted < 90
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])


def test_a_fault_in_some_flushes_is_found_with_the_probability_that_the_page_says(monkeypatch):
    monkeypatch.setattr(recounts, "RATE", 0.05)
    batch = Meter(Accuracy(num_classes=4)).arguments(*scores(2), None, {})
    found = 0
    for seed in range(2000):
        drawing = recounts.Recounts("sampled", _random=random.Random(seed))
        drawing.expect("a layout")
        drawn = [bool(drawing.of_batch(batch)) for _ in range(20)]
        assert drawn[0]
        found += any(drawn[k] for k in (3, 7, 19))
    expected, spread = 2000 * (1 - 0.95**3), (2000 * 0.95**3 * (1 - 0.95**3)) ** 0.5
    assert abs(found - expected) < 4 * spread


@pytest.mark.parametrize("step", [(recounts.KeptRows, "of"), (RowStage, "add")], ids=["kept", "staged"])
def test_an_update_that_fails_is_no_reason_to_accuse_the_device(step, mps, monkeypatch):
    meter, of = Meter(MeanSquaredError()), batches(torch.rand(60), torch.rand(60))
    meter.update(*of[0])
    monkeypatch.setattr(*step, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        meter.update(*of[1])
    monkeypatch.undo()
    meter.update(*of[2])
    expected = counted(Meter(MeanSquaredError()), [[each.to("cpu") for each in of[k]] for k in (0, 2)])
    assert bits(meter.states()) == bits(expected.states())


def test_memory_is_bounded(mps, monkeypatch):
    monkeypatch.setattr(recounts, "KEPT_BYTES", 1 << 12)
    of = batches(*scores(4000), rows=40)
    meter = counted(Meter(Accuracy(num_classes=4), recount="all"), of)
    assert meter.counts.recounted() == (100, 100)  # "all" counts at once what there is no memory for
    sampled = counted(Meter(Accuracy(num_classes=4)), of)
    assert len(sampled.counts.of(ON_MPS).recounts.waiting) == 1
    assert 0 < sampled.counts.recounted().recounted < 10


def test_of_a_batch_that_is_too_large_the_first_rows_are_counted_once_more(mps, monkeypatch):
    monkeypatch.setattr(recounts, "KEPT_BYTES", 1 << 12)
    large = [each.to("mps") for each in scores(100_000)]
    expected = bits(counted(Meter(Accuracy(num_classes=4)), [scores(100_000)]).states())
    meter = counted(Meter(Accuracy(num_classes=4)), [large])
    (waiting,) = meter.counts.of(ON_MPS).recounts.waiting
    assert 100 < len(waiting.rows[0]) < 200
    assert bits(meter.states()) == expected


def test_rows_are_those_of_the_update_although_the_caller_writes_into_them(mps):
    preds, target = (each.to("mps") for each in scores())
    meter = Meter(Accuracy(num_classes=4))
    meter.update(preds, target)
    preds.zero_()
    target.zero_()
    expected = Meter(Accuracy(num_classes=4))
    expected.update(*scores())
    assert bits(meter.states()) == bits(expected.states())


def test_a_step_is_recounted_too(mps):
    meter = Meter(Accuracy(num_classes=4))
    (first, *_) = batches(*scores())
    with FaultyOperator(FAULTS["argmax is wrong"], "mps", None, seed=0), pytest.raises(DeviceFaultError, match="step"):
        meter.forward(*first)
    assert meter.forward(*first)["Accuracy"] >= 0
    assert meter.rows == 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"recount": "some"}, "'sampled' or 'all' or 'off'"),
        ({"recount": True}, "sampled"),
        ({"recount": Accuracy(num_classes=2)}, "an option"),
        ({"recount": "all", "stage_bytes": 0}, "a stage"),
        ({"fingerprints": "no"}, "True or False"),
    ],
)
def test_invalid_options_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        Meter(Accuracy(num_classes=4), **options)


def test_a_fresh_meter_has_the_same_options():
    meter = Meter(Accuracy(num_classes=4), recount="all", fingerprints=False)
    assert meter.fresh().options == meter.options
    assert (meter.fresh(stage_bytes=0).options.recount, meter.fresh(recount="off").options.recount) == ("off", "off")


def test_terms_are_equal_within_their_rounding():
    one = torch.tensor([1.0, -2.0, torch.nan, torch.inf, 0.0])
    near = TermTolerance(2.0**-14)
    assert difference(one, one * (1 + 1e-6), near) == ""
    assert difference(one, one * (1 + 1e-6)) != ""
    for place, value in ((0, 1.1), (0, torch.nan), (2, 1.0), (3, 3.0), (4, -0.1)):
        other = one.clone()
        other[place] = value
        assert difference(one, other, near)
    assert difference(one, one.double(), TermTolerance(1.0)) != ""
    assert difference(torch.tensor([True]), torch.tensor([False]), TermTolerance(0.5))
    counts = torch.tensor([[1 << 50, 3], [1 << 49, 2]])  # a column of fractions in fixed point, and one of counts
    assert not difference(counts, counts + torch.tensor([5, 0]), near)
    assert difference(counts, counts + torch.tensor([0, 1]), near)


def test_how_large_inputs_are_decides_how_far_off_terms_may_be():
    terms, inputs = (torch.tensor([1e-4]), torch.tensor([1.3e-4])), [torch.tensor([1e3])]
    assert not difference(*terms, TermTolerance(2.0**-14, is_of_inputs=True, inputs=inputs))
    assert not difference(*terms, TermTolerance(2.0**-14, inputs=inputs))  # as of 1
    assert difference(*terms, TermTolerance(2.0**-14, inputs=[torch.tensor([1e-3])]))
    log_of_subnormal = torch.tensor([-torch.inf]), torch.tensor([-92.0])
    assert difference(*log_of_subnormal, TermTolerance(2.0**-14))
    assert not difference(
        *log_of_subnormal, TermTolerance(2.0**-14, inputs=[torch.tensor([1e-40])])
    )  # 0 on some devices


def test_a_summary_says_what_recounts_are_worth():
    text = str(recounts.RecountSummary(12, 10_000))
    assert text.startswith("12 of 10,000 batches were recounted on the CPU: the same bits.")
    assert "11 %" in text
