"""The meter itself: what it adds up, and what it says of arguments that cannot be."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from assay import Meter
from assay.errors import (
    ConfigError,
    DeviceError,
    DtypeError,
    InputError,
    InvalidValuesError,
    InvalidValuesWarning,
    NoDataWarning,
    RoundingWarning,
    ShapeError,
    StateError,
)
from assay.metrics import (
    AUROC,
    Accuracy,
    CalibrationError,
    CosineSimilarity,
    ExactMatch,
    F1Score,
    FrechetDistance,
    KLDivergence,
    LogCoshError,
    LogLoss,
    Max,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    MinkowskiDistance,
    PerOutput,
    Perplexity,
    Quantile,
    R2Score,
    RetrievalPrecisionRecallCurve,
    SacreBLEUScore,
    Sum,
)
from assay.metrics.classification.ratio import Ratio
from assay.metrics.classification.ratio_metric import RatioMetric
from assay.metrics.per_sample import per_sample_values
from assay.native.library import MISSING, library
from assay.tally.sums.sums import Sums

LABELS = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2])


def test_meters_that_list_their_metrics_in_another_order_add_up_metric_by_metric(tmp_path):
    every, some = F1Score(num_classes=3), F1Score(num_classes=3, ignore_index=1)  # tallies of one shape
    one, other = Meter(every=every, some=some), Meter(some=some, every=every)
    for meter in (one, other):
        meter.update(*LABELS)
    expected = (one + one).compute()
    assert expected["every"] != expected["some"]
    for total in (one + other, other + one):
        assert total.compute() == expected
    other.load_state_dict(one.state_dict())
    assert other.compute() == one.compute()
    assert list(Meter.from_file(other.to_file(tmp_path / "meter")).compute()) == ["some", "every"]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: CalibrationError(n_bins=10**9), "n_bins"),
        (lambda: MeanSquaredError(num_outputs=10**9), "num_outputs"),
        (lambda: AUROC(num_classes=10**9), "num_classes"),
        (lambda: F1Score(num_labels=10**9), "num_labels"),
        (lambda: FrechetDistance(num_features=10**9), "num_features"),
        (lambda: SacreBLEUScore(n_gram=10**9), "n_gram"),
        (lambda: RetrievalPrecisionRecallCurve(by_row=True, max_k=10**9), "max_k"),
        (lambda: PerOutput(MeanSquaredError(), 10**8), "outputs"),
    ],
)
def test_a_size_that_is_a_mistake_is_refused_by_its_argument(make, name):
    with pytest.raises(ConfigError, match=f"^{name}: got 1.*0,000,000, expected at most"):
        make()


def test_states_that_the_machine_has_no_memory_for_are_refused(monkeypatch):
    monkeypatch.setattr("assay.meter.counting.tally_plan.host_bytes", lambda: 10**9)
    with pytest.raises(ConfigError, match=r"states of 5 GiB for CalibrationError\(n_bins=10000000\), expected at most"):
        Meter(CalibrationError(n_bins=10**7))


@pytest.mark.parametrize("value", [torch.tensor([1e-40]), torch.tensor([1e-310] * 3, dtype=torch.float64)])
def test_subnormal_numbers_count_where_torch_takes_them_for_0(value, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    named = {"sum": Sum(), "max": Max(), "mean": Mean()}
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor cannot")
    try:
        meter = Meter(**named)
        meter.update(value)
        found = [meter.compute(), meter.forward(value), {name: each(value) for name, each in named.items()}]
        again = Meter(**named).merge(meter)
        is_still_flushed = float(value.double()[0] * 0.5) == 0 or value.dtype == torch.float32
    finally:
        torch.set_flush_denormal(False)
    assert is_still_flushed
    expected = Meter(**named).forward(value)
    assert found == [expected] * 3
    assert expected["max"] == value[0].double()
    assert expected["max"] > 0
    assert again.compute()["mean"] == expected["mean"]


def test_several_threads_that_may_take_subnormal_numbers_for_0_warn(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor cannot")
    try:
        with pytest.warns(RoundingWarning, match="set_flush_denormal"):
            Mean()(torch.ones(2))
    finally:
        torch.set_flush_denormal(False)


class Column:
    """What converts itself to an array, as a Series of pandas does."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __iter__(self):
        return iter(self.values)


FROZEN = np.array([0, 2, 1, 1])
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    "target", [[0, 2, 1, 1], (0, 2, 1, 1), FROZEN, np.array([1, 1, 2, 0])[::-1], FROZEN.astype(">i4"), Column(FROZEN)]
)
def test_numbers_that_are_no_tensors_count_as_tensors_do(target):
    preds, weights = np.eye(3)[[0, 1, 1, 2]], [1, 2, 3, 4.5]
    meter, expected = (Meter(f1=F1Score(num_classes=3), weighted=True) for _ in range(2))
    for _ in range(3):
        meter.update(preds, target, weights=weights)
        expected.update(torch.from_numpy(preds), torch.tensor([0, 2, 1, 1]), weights=torch.tensor(weights).double())
    assert meter.compute() == expected.compute()
    (right,) = per_sample_values(Accuracy(num_classes=3), preds, target).terms.values()
    assert right.tolist() == [True, False, True, False]


def test_an_array_may_be_written_into_after_an_update():
    meter, values = Meter(mean=Mean()), np.ones(3)
    for _ in range(2):
        meter.update(values)
        values += 1
    meter.update(4.0)
    assert float(meter.compute()["mean"]) == 13 / 7
    assert float(Mean()([0.1])) == 0.1  # floats of Python are float64


ROWS = torch.rand(4, 3)
SPARSE, META = ROWS.to_sparse(), ROWS.to("meta")
NESTED = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
COMPLEX, LONG = torch.ones(4, dtype=torch.complex64), torch.ones(4, 3, dtype=torch.uint64)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((None, LABELS[1]), ShapeError, "preds: got nothing, expected a tensor. Pass preds as a tensor, an array or"),
        (
            (ROWS, [[0], [1, 2]]),
            ShapeError,
            "target: got list with parts of several lengths, expected one shape. Pad",
        ),
        ((ROWS, list(LABELS[1])), ShapeError, "target: got list, expected a tensor. Pass torch.stack(target)"),
        ((ROWS, LABELS[1], [None] * 4), InputError, "weights: got 4 missing values in list, expected a value each."),
        ((ROWS, LABELS[1], 1.0), ShapeError, "weights: got 1 sample, expected as many as preds has, 4."),
        ((ROWS, LABELS[1], COMPLEX), DtypeError, "weights: got torch.complex64, expected real numbers."),
        ((NESTED, LABELS[1]), ShapeError, "preds: got a nested tensor, expected one shape."),
        ((META, LABELS[1]), DeviceError, "preds: got a tensor on meta, without values, expected one that has values."),
        ((LONG, LABELS[1]), DtypeError, "preds: got torch.uint64, expected a dtype that torch can compare and add."),
    ],
)
@pytest.mark.parametrize("counted_before", [False, True])
def test_what_is_no_tensor_of_numbers_is_refused_in_every_update(given, error, message, counted_before):
    weighted = len(given) == 3
    meter = Meter(f1=F1Score(num_classes=3), weighted=weighted)
    if counted_before:
        meter.update(ROWS, LABELS[1], weights=torch.ones(4) if weighted else None)
        before = meter.compute()
    with pytest.raises(error, match="^" + re.escape(message)):
        meter.update(*given[:2], weights=given[2] if weighted else None)
    assert meter.rows == 4 * counted_before
    if counted_before:
        assert meter.compute() == before


def test_a_sparse_tensor_is_refused():
    message = r"^preds: got a tensor of layout torch.sparse_coo, expected a dense one. Pass preds.to_dense\(\)."
    with pytest.raises(ShapeError, match=message):
        F1Score(num_classes=3)(SPARSE, LABELS[1])


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32])
@pytest.mark.parametrize("metric", [MeanAbsoluteError(), MeanSquaredError(), LogCoshError(), F1Score(num_classes=3)])
def test_the_dtypes_that_torch_has_few_operators_for_read_as_their_values(metric, dtype):
    narrow = [side.to(dtype) for side in LABELS]
    weights = torch.tensor([1, 2, 0, 3])
    assert metric(*narrow) == metric(*LABELS)
    assert metric(narrow[0], LABELS[1], weights=weights.to(dtype)) == metric(*LABELS, weights=weights)


@pytest.mark.parametrize(
    ("metric", "arguments"),
    [
        (F1Score(num_classes=3), (ROWS, LABELS[1])),
        (ExactMatch(num_classes=3), (ROWS, LABELS[1])),
        (AUROC(num_classes=3), (ROWS, LABELS[1])),
        (LogLoss(num_classes=3), (ROWS, LABELS[1])),
        (CalibrationError(num_classes=3), (ROWS, LABELS[1])),
        (KLDivergence(), (ROWS, ROWS.flip(0))),
        (Perplexity(), (ROWS, LABELS[1])),
        (CosineSimilarity(), (ROWS, ROWS.flip(0))),
        (MeanSquaredError(), (ROWS, ROWS.flip(0))),
        (Quantile(0.5), (ROWS,)),
    ],
)
def test_a_mask_is_a_weight_of_0_or_1(metric, arguments):
    mask = torch.tensor([True, False, True, True])
    kept = metric(*(argument[mask] for argument in arguments))
    torch.testing.assert_close(metric(*arguments, weights=mask), kept, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("metric", [Mean(), Max(), Quantile(0.5)])
def test_a_target_that_nothing_reads_is_refused(metric):
    name = type(metric).__name__
    message = f"target: got a tensor, expected none, which {name} would not read. Leave it out; weights are passed by"
    with pytest.raises(ShapeError, match=message):
        metric(torch.ones(3), torch.ones(3))
    Meter(metric, MeanSquaredError()).update(torch.ones(3), torch.ones(3))  # somebody reads it


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage_bytes": -1}, "stage_bytes: got -1, expected an integer of 0 or more. Give a number of bytes"),
        ({"stage_bytes": 1.5}, "stage_bytes: got 1.5, expected an integer of 0 or more."),
        ({"stage_bytes": None}, "stage_bytes: got None, expected an integer of 0 or more."),
        ({"weighted": 1}, "weighted: got 1, expected True or False. Give a bool."),
        ({"strict": Mean()}, r"strict: got Mean\(.*\), expected True or False. A metric cannot be named strict"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Meter(mean=Mean(), **options)


def test_what_is_no_metric_or_no_meter_is_refused():
    with pytest.raises(ConfigError, match=r"mean: got the class Mean, expected a metric. Pass Mean\(\)"):
        Meter(mean=Mean)
    with pytest.raises(StateError, match=r"merge: got int, expected a meter. Pass meters of equal metrics."):
        Meter(Mean()).merge(3)


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda state: None, "no bytes under 'about'"),
        (lambda state: {}, "no bytes under 'about'"),
        (lambda state: state | {"about": state["about"].float()}, "no bytes under 'about'"),
        (lambda state: state | {"about": state["about"][None]}, "no bytes under 'about'"),
        (lambda state: state | {"about": "Mean"}, "no tensor under about"),
        (lambda state: state | {"0.count": 3}, "no tensor under 0.count"),
    ],
)
def test_what_is_no_state_dict_is_refused(change, got):
    meter = Meter(Mean())
    meter.update(torch.ones(3))
    message = f"state_dict: got {got}, expected what Meter.state_dict gave. Pass that of a meter, unchanged."
    with pytest.raises(StateError, match=re.escape(message)):
        meter.load_state_dict(change(meter.state_dict()))
    assert meter.rows == 3


WEIGHTED = [
    (F1Score(num_classes=3), (ROWS, LABELS[1])),
    (F1Score(num_classes=200), LABELS),
    (ExactMatch(num_classes=3), (ROWS, LABELS[1])),
    (AUROC(num_classes=3), (ROWS, LABELS[1])),
    (LogLoss(num_classes=3), (ROWS, LABELS[1])),
    (KLDivergence(), (ROWS, ROWS.flip(0))),
    (Perplexity(), (ROWS, LABELS[1])),
    (CosineSimilarity(), (ROWS, ROWS.flip(0))),
    (MeanSquaredError(), (ROWS[:, 0], ROWS[:, 1])),
    (MinkowskiDistance(3), (ROWS[:, 0], ROWS[:, 1])),
    (Mean(), (ROWS[:, 0],)),
    (Quantile(0.5), (ROWS[:, 0],)),
]


@pytest.mark.parametrize(("metric", "arguments"), WEIGHTED)
@pytest.mark.parametrize("weights", [[1, -1, 2, -3], [1.0, -0.5, math.nan, 2.0], [math.inf, -math.inf, 1.0, 1.0]])
def test_weights_that_stand_for_no_number_of_samples_are_counted(metric, arguments, weights):
    with pytest.raises(InvalidValuesError, match="got 2 of the weights are negative, infinite or NaN, expected none"):
        metric(*arguments, weights=torch.tensor(weights))


@pytest.mark.parametrize(("metric", "arguments"), WEIGHTED)
def test_weights_that_are_all_0_leave_no_data(metric, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoDataWarning)
        value = metric(*arguments, weights=torch.zeros(4))
    assert value.isnan()


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_a_constant_without_weight_explains_nothing():
    assert R2Score()(torch.ones(3), torch.ones(3), weights=torch.zeros(3)).isnan()


@pytest.mark.parametrize(
    ("metric", "preds", "target"),
    [
        (LogLoss(), torch.tensor([0.0, 0.5]), torch.tensor([1, 1])),
        (KLDivergence(), torch.tensor([[0.5, 0.5]] * 2), torch.tensor([[1.0, 0.0], [0.25, 0.75]])),
    ],
)
def test_an_infinite_loss_of_weight_0_does_not_count(metric, preds, target):
    assert metric(preds, target).isinf()
    assert metric(preds, target, weights=torch.tensor([0.0, 1.0])) == metric(preds[1:], target[1:])


@pytest.mark.parametrize(
    ("read", "category", "name"),
    [
        (lambda: Meter(empty=Mean()).compute(), NoDataWarning, "empty"),
        (lambda: Mean()(torch.tensor([math.nan])), InvalidValuesWarning, "Mean"),
        (lambda: AUROC()(torch.rand(3), torch.zeros(3, dtype=torch.int64)), NoDataWarning, "AUROC"),
    ],
)
def test_warnings_name_the_metric_and_the_line_that_called(read, category, name):
    with pytest.warns(category, match=f"^{name}: got ") as caught:
        read()
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, read.__code__.co_firstlineno)


def test_some_metrics_are_read_alone():
    meter = Meter(f1=F1Score(), auroc=AUROC())
    meter.update(torch.tensor([0.2, 0.7, 0.9]), torch.tensor([0, 1, 1]))
    assert meter.compute(only=["f1"]) == {"f1": meter.compute()["f1"]}
    with pytest.raises(ConfigError, match="compute: got acc, expected some of f1, auroc"):
        meter.compute(only=["acc", "f1"])


def test_an_empty_meter_like_another_may_have_other_metrics_and_stage_otherwise():
    meter = Meter(loss=Mean(), weighted=True, strict=True, stage_bytes=64)
    meter.update(torch.ones(3), weights=torch.ones(3))
    for empty, metrics, stage_bytes in (
        (meter.fresh(), {"loss": Mean()}, 64),
        (meter.fresh(stage_bytes=0), {"loss": Mean()}, 0),
        (meter.fresh({"high": Max()}), {"high": Max()}, 64),
    ):
        assert (empty.rows, empty.metrics, empty.stage_bytes) == (0, metrics, stage_bytes)
        assert empty.weighted
        assert empty.strict


def test_tallies_and_states_are_those_of_the_samples(count_ops):
    meter, other = Meter(acc=Accuracy(num_classes=3), f1=F1Score(num_classes=3)), Meter(acc=Accuracy(num_classes=3))
    labels = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 1])
    for each in (meter, other):
        each.update(*labels)
    assert meter.tallies == other.tallies
    assert len(meter.tallies) == 1
    ((state,), (expected,)) = meter.states(), other.states()
    assert {name: value.tolist() for name, value in state.items()} == {n: v.tolist() for n, v in expected.items()}
    assert list(meter.device_states()) == [torch.device("cpu")]
    assert meter.fresh().merge(meter).device_states() == {}


def test_meters_of_equal_metrics_share_a_plan_and_no_counts():
    first, second = Meter(acc=Accuracy(num_classes=3)), Meter(acc=Accuracy(num_classes=3))
    assert first.tallies[0] is second.tallies[0]
    first.update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert (first.rows, second.rows) == (2, 0)


def test_a_metric_without_a_hash_is_counted_too():
    @dataclass(frozen=True)
    class Listed(RatioMetric):
        ratio = Ratio("tp", "tp + fn")
        names: list = field(default_factory=list)

    meter = Meter(recall=Listed(num_classes=3, average="micro", names=["a", "b", "c"]))
    meter.update(torch.tensor([0, 1]), torch.tensor([0, 2]))
    assert meter.compute()["recall"] == 0.5


def test_forward_gives_the_value_of_the_batch_and_counts_it():
    generator = torch.Generator().manual_seed(0)
    metrics = {"auroc": AUROC(exact=True), "mse": MeanSquaredError(), "loss": LogLoss()}
    stepped, whole = Meter(**metrics), Meter(**metrics)
    for k, rows in enumerate((50, 50, 70, 30)):
        preds, target = torch.rand(rows, generator=generator), torch.randint(0, 2, (rows,), generator=generator)
        alone = Meter(**metrics)
        for meter in (alone, whole):
            meter.update(preds, target)
        with torch.inference_mode(k == 1):
            assert stepped.forward(preds, target) == alone.compute()
        assert stepped.rows == whole.rows
        assert stepped.compute() == whole.compute()
    stepped.update(preds, target)
    whole.update(preds, target)
    assert stepped.state_dict().keys() == whole.state_dict().keys()
    assert all(torch.equal(a, whole.state_dict()[name]) for name, a in stepped.state_dict().items())
    stepped.reset()
    assert stepped.forward(preds, target) == {name: metric(preds, target) for name, metric in metrics.items()}


def test_a_table_that_a_step_in_inference_mode_opened_is_added_to_afterwards():
    meter, target = Meter(auroc=AUROC(exact_up_to=10)), torch.tensor([0, 1] * 8)
    meter.forward(torch.rand(4), target[:4])
    with torch.inference_mode():
        meter.forward(torch.rand(16), target)
    meter.forward(torch.rand(16), target)
    assert meter.rows == 36


def test_a_step_has_neither_buffers_nor_states_of_its_own():
    meter, pair = Meter(mse=MeanSquaredError()), torch.tensor([1.0, 2.0])
    meter.forward(pair, pair)
    assert not meter.device_states()
    meter.update(pair, pair)
    assert [states[0]["count"].item() for states in meter.device_states().values()] == [2]
    assert meter.rows == 4


def test_forward_that_raises_counts_nothing():
    meter = Meter(acc=Accuracy(num_classes=3))
    meter.forward(torch.tensor([0, 1]), torch.tensor([0, 2]))
    for wrong, error in (((torch.tensor([0]), torch.tensor([7])), InvalidValuesError), ((torch.zeros(2),), ShapeError)):
        with pytest.raises(error):
            meter.forward(*wrong)
        assert meter.rows == 2
    assert meter.forward(torch.tensor([1, 1]), torch.tensor([1, 1]))["acc"] == 1
    assert meter.compute()["acc"] == 0.75


def test_one_small_batch_is_staged_in_its_own_size_and_more_of_them_in_a_full_stage():
    meter, batch = Meter(mean=Mean(), stage_bytes=4000), torch.arange(100.0)
    meter.update(batch)
    assert staged_rows(meter) == 100
    assert meter.compute()["mean"] == 49.5
    meter.update(batch[:60])
    assert staged_rows(meter) == 100, "the stage was read, and has room again"
    meter.update(batch[60:] + 1)
    assert staged_rows(meter) == 100
    meter.update(batch[:1] - 1)
    assert staged_rows(meter) == 1000
    assert (meter.rows, meter.compute()["mean"]) == (201, (2 * 4950 + 40 - 1) / 201)


def staged_rows(meter):
    """For how many rows there is room."""
    (buffer,) = meter.counts.current._stage._buffers
    return len(buffer)


def test_many_plain_values_are_counted_in_one_go(monkeypatch):
    calls = []
    monkeypatch.setattr(Sums, "add", lambda tally, state, batch: calls.append(len(batch.preds)))
    Meter(mean=Mean()).update(torch.zeros(1 << 22))
    assert calls == [1 << 22]


@pytest.mark.skipif(library() is None, reason=MISSING)
@pytest.mark.parametrize(("rows", "at_once"), [(1 << 15, False), (1 << 16, True)])
def test_batches_that_compiled_code_counts_sooner_than_they_are_copied_are_not_staged(rows, at_once, monkeypatch):
    counted, add = [], Sums.add

    def noted(tally, state, batch):
        counted.append(len(batch.preds))
        add(tally, state, batch)

    monkeypatch.setattr(Sums, "add", noted)
    meter = Meter(mse=MeanSquaredError())
    meter.update(torch.rand(rows), torch.rand(rows))
    assert counted == [rows] * at_once
    meter.update(torch.rand(3), torch.rand(3))
    meter.compute()
    assert sum(counted) == rows + 3


def test_some_metrics_of_a_meter_have_the_counts_of_a_meter_of_their_own():
    generator = torch.Generator().manual_seed(4)
    metrics = {
        "mse": MeanSquaredError(num_outputs=2),
        "mae": MeanAbsoluteError(num_outputs=2),
        "log_cosh": LogCoshError(num_outputs=2),
    }
    meter, alone, pair = Meter(**metrics), Meter(only_mse=metrics["mse"]), Meter(mae=metrics["mae"], mse=metrics["mse"])
    batches = [tuple(torch.rand(2, 9, 2, generator=generator)) for _ in range(3)]
    for each in (meter, alone, pair):
        for batch in batches[:2]:
            each.update(*batch)
    for part, expected in ((meter.only(only_mse="mse"), alone), (meter.only("mse", "mae"), pair)):
        found, wanted = part.state_dict(), expected.state_dict()
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted if name != "about")
        part.update(*batches[2])  # which is not counted in the meter itself
        assert (part.rows, meter.rows) == (27, 18)
    with pytest.raises(ConfigError, match=r"only: got r2, expected some of mse, mae, log_cosh"):
        meter.only("r2")
    with pytest.raises(ConfigError, match="only: got no name"):
        meter.only()
