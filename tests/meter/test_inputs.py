"""What an update may be given: tensors of unusual kinds give the right number, or an error that names the argument."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import warnings

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from assay.errors import ConfigError, DeviceError, DtypeError, ShapeError, StateError
from assay.meter import Meter
from assay.meter.counting.tally_plan import TallyPlan
from assay.metrics.aggregation.values import Sum
from assay.metrics.classification.probabilities import CalibrationError, LogLoss
from assay.metrics.classification.ranking import AUROC
from assay.metrics.classification.rates import Accuracy
from assay.metrics.per_sample import per_sample_values
from assay.metrics.regression.errors import LogCoshError, MeanAbsoluteError, MeanSquaredError
from assay.metrics.regression.explained_variance import R2Score
from assay.metrics.regression.rank_correlation import SpearmanCorrCoef
from assay.metrics.text.perplexity import Perplexity
from assay.wrappers import Bootstrap, Multitask
from laws import bits
from thinning import every_third

ROWS = 12
STAGES = pytest.mark.parametrize("stage_bytes", [0, 256, 1 << 21])
ARGUMENTS = pytest.mark.parametrize("argument", ["preds", "target", "weights"])


def meter_of(stage_bytes: int = 1 << 21) -> Meter:
    metrics = {"mse": MeanSquaredError(), "mae": MeanAbsoluteError(), "cosh": LogCoshError(), "rho": SpearmanCorrCoef()}
    return Meter(weighted=True, stage_bytes=stage_bytes, **metrics)


def meter_of_sums() -> Meter:
    return Meter(weighted=True, stage_bytes=0, mse=MeanSquaredError(), mae=MeanAbsoluteError())


def batch(seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randint(1, 9, (ROWS,), generator=generator).float() for name in ("preds", "target", "weights")}


def update(meter: Meter, given: dict[str, Tensor]) -> Meter:
    meter.update(given["preds"], given["target"], weights=given["weights"])
    return meter


class Named(Tensor):
    """A subclass that leaves operators to torch."""


def negative(x: Tensor) -> Tensor:
    found = torch.complex(x, -x).conj().imag
    assert found.is_neg()
    return found


def zeros(x: Tensor) -> Tensor:
    found: Tensor = torch._efficientzerotensor(len(x))  # type: ignore[attr-defined]
    return found


READABLE = {
    "the negative bit": negative,
    "the negative bit of a slice": lambda x: negative(x.repeat_interleave(2))[::2],
    "a tensor of zeros without memory": zeros,
    "expanded": lambda x: torch.tensor(3.0).expand(len(x)),
    "overlapping": lambda x: torch.arange(9.0).as_strided((len(x),), (0,), 5),
    "strided": lambda x: x.repeat_interleave(2)[::2],
    "a parameter": torch.nn.Parameter,
    "a subclass": lambda x: x.as_subclass(Named),
    "inside inference mode": torch.inference_mode()(lambda x: x + 0),
    "shared": lambda x: x.clone().share_memory_(),
}


@every_third
@STAGES
@ARGUMENTS
@pytest.mark.parametrize("kind", READABLE)
def test_tensors_of_unusual_kinds_are_counted_as_what_they_hold(kind, argument, stage_bytes):
    unusual = READABLE[kind](batch(1)[argument])
    meter, plain = update(meter_of(stage_bytes), batch()), update(meter_of(), batch())
    for given in (unusual, batch(2)[argument], unusual):
        update(meter, batch(1) | {argument: given})
        held = (given.detach() + torch.zeros(ROWS)).as_subclass(Tensor)
        update(plain, batch(1) | {argument: held})
    assert bits(meter) == bits(plain)


def test_a_large_batch_with_the_negative_bit_keeps_its_sign():
    values = torch.rand(300_000, generator=torch.Generator().manual_seed(0))
    assert Sum()(negative(values)).equal(Sum()(values))
    assert MeanSquaredError()(negative(values), values).item() == 0
    found = per_sample_values(MeanAbsoluteError(), negative(values), torch.zeros_like(values))
    assert found is not None
    assert found.terms["absolute error"].equal(values)


@pytest.mark.exhaustive
def test_a_compiled_update_keeps_the_sign():
    given = batch()
    meter, plain = update(meter_of_sums(), given), update(meter_of_sums(), given)
    step = torch.compile(lambda x, y, w: meter.update(x, y, weights=w), fullgraph=True, backend="eager")
    step(*map(negative, given.values()))
    assert bits(meter) == bits(update(plain, given))


def test_wrappers_take_the_negative_bit():
    x, y = batch()["preds"], batch()["target"]
    for make in (
        lambda: Multitask(one=Meter(mse=MeanSquaredError())),
        lambda: Bootstrap(Meter(mse=MeanSquaredError())),
    ):
        lazy, plain = make(), make()
        if isinstance(lazy, Multitask):
            lazy.update({"one": negative(x)}, {"one": negative(y)})
            plain.update({"one": x}, {"one": y})
        else:
            lazy.update(negative(x), negative(y))
            plain.update(x, y)
        assert bits(lazy.compute()) == bits(plain.compute())


def test_arrays_and_files_that_tensors_are_views_of(tmp_path):
    import numpy as np

    array = np.arange(24, dtype=np.float32)
    array.tofile(tmp_path / "values")
    mapped = torch.from_file(str(tmp_path / "values"), shared=False, size=24)
    assert Sum()(torch.from_numpy(array[::2])).item() == array[::2].sum()
    assert Sum()(mapped).item() == array.sum()


def freed(x: Tensor) -> Tensor:
    found = torch.cat([x, x])[ROWS:]
    found.untyped_storage().resize_(0)
    return found


def cut(x: Tensor) -> Tensor:
    found = x.clone()
    found.untyped_storage().resize_(4)
    return found


def fake(x: Tensor) -> Tensor:
    with FakeTensorMode():
        return torch.empty(len(x))


def masked(x: Tensor) -> Tensor:
    return torch.masked.masked_tensor(x, x > 3)


def nested(x: Tensor, layout: torch.layout) -> Tensor:
    return torch.nested.nested_tensor([x[:3], x[3:]], layout=layout)


REFUSED = {
    "sparse": (lambda x: x.to_sparse(), ShapeError, "to_dense"),
    "compressed": (lambda x: x.view(3, 4).to_sparse_csr(), ShapeError, "to_dense"),
    "of MKL-DNN": (lambda x: x.to_mkldnn(), ShapeError, "to_dense"),
    "nested": (lambda x: nested(x, torch.strided), ShapeError, "nested"),
    "jagged": (lambda x: nested(x, torch.jagged), ShapeError, "nested"),
    "masked": (masked, ShapeError, "MaskedTensor"),
    "fake": (fake, ShapeError, "FakeTensor"),
    "freed": (freed, DeviceError, "storage was freed"),
    "cut": (cut, DeviceError, "storage was freed"),
    "meta": (lambda x: x.to("meta"), DeviceError, "meta"),
    "uninitialized": (lambda x: torch.nn.UninitializedParameter(), DeviceError, "UninitializedParameter"),
    "complex": (lambda x: torch.complex(x, x).conj(), DtypeError, "complex64"),
    "quantized": (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), DtypeError, "dequantize"),
    "bits": (lambda x: torch.empty(ROWS, dtype=torch.bits8), DtypeError, "bits8"),
    "4 bits": (lambda x: torch.empty(ROWS, dtype=torch.uint4), DtypeError, "uint4"),
    "uint64": (lambda x: x.to(torch.uint64), DtypeError, "uint64"),
}


@every_third
@STAGES
@ARGUMENTS
@pytest.mark.parametrize("kind", REFUSED)
def test_tensors_that_cannot_be_read_are_refused_and_the_meter_is_as_it_was(kind, argument, stage_bytes):
    make, error, text = REFUSED[kind]
    meter = update(meter_of(stage_bytes), batch())
    before = bits(meter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of kinds that are in beta or on their way out
        unreadable = make(batch(1)[argument])
    with pytest.raises(error, match=text) as caught:
        update(meter, batch(1) | {argument: unreadable})
    assert str(caught.value).startswith(f"{argument}: got ")
    assert bits(meter) == before
    assert bits(update(meter, batch(2))) == bits(update(update(meter_of(), batch()), batch(2)))


@pytest.mark.parametrize("known", [False, True])
def test_a_storage_that_was_cut_is_refused(known):
    meter = Meter(sum=Sum())
    if known:
        meter.update(torch.ones(ROWS))
    with pytest.raises(DeviceError, match="preds: got a tensor whose storage was freed"):
        meter.update(cut(torch.ones(ROWS)))


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.grad])
def test_an_update_inside_of_a_transform_is_refused(transform):
    meter = Meter(sum=Sum())
    meter.update(torch.ones(ROWS))

    def inside(x):
        with pytest.raises(ShapeError, match="preds: got a tensor without storage"):
            meter.update(x)
        return x.sum()

    transform(inside)(torch.ones(2, ROWS) if transform is torch.func.vmap else torch.ones(ROWS))
    assert meter.rows == ROWS


# --- threads -------------------------------------------------------------------------------------------------------


@pytest.fixture
def busy_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*works) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_share_a_meter_count_each_batch_once_or_are_told(busy_switching):
    meter, counted = Meter(sum=Sum()), [0, 0, 0]

    def work(k: int):
        def run() -> None:
            values = torch.full((5 + k,), float(k + 1))
            for step in range(300):
                try:
                    meter.update(values)
                except StateError:
                    continue
                counted[k] += 1
                if step % 50 == 0:
                    try:
                        meter.compute()
                    except StateError:
                        continue

        return run

    in_threads(*map(work, range(3)))
    assert meter.rows == sum(n * (5 + k) for k, n in enumerate(counted))
    assert meter.compute()["sum"].item() == sum(n * (5 + k) * (k + 1) for k, n in enumerate(counted))


CALLS = {
    "update": lambda meter: meter.update(torch.ones(3)),
    "compute": lambda meter: meter.compute(),
    "reset": lambda meter: meter.reset(),
    "merge": lambda meter: meter.merge(meter.fresh()),
    "merge into another": lambda meter: meter.fresh().merge(meter),
    "state_dict": lambda meter: meter.state_dict(),
    "load_state_dict": lambda meter: meter.load_state_dict(meter.fresh().state_dict()),
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "Multitask": lambda meter: Multitask(one=meter).update({"one": torch.ones(3)}),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_while_another_one_is_at_work_is_refused_and_changes_nothing(call):
    class Slow(Tensor):
        """Makes another call while it is being copied."""

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is Tensor.copy_:
                with pytest.raises(StateError, match="meter: got a call while another one was at work"):
                    CALLS[call](meter)
                refused.append(call)
            return super().__torch_function__(func, types, args, kwargs or {})

    meter, refused = Meter(sum=Sum()), []
    meter.update(torch.ones(2))
    meter.update(torch.ones(2).as_subclass(Slow))
    assert refused == [call]
    assert meter.compute()["sum"].item() == 4
    CALLS[call](meter)  # afterwards there is nothing in the way


def test_threads_may_use_a_meter_one_after_the_other_and_a_failed_update_is_over():
    meter = Meter(sum=Sum())
    for _ in range(3):
        in_threads(lambda: meter.update(torch.ones(2)))
    with pytest.raises(ShapeError):
        meter.update({})
    assert copy.deepcopy(meter).compute()["sum"].item() == 6
    assert pickle.loads(pickle.dumps(meter)).compute()["sum"].item() == 6


# --- one output ----------------------------------------------------------------------------------------------------

ONE_OUTPUT = [MeanSquaredError(), R2Score(), SpearmanCorrCoef(), Accuracy(), AUROC(), LogLoss(), CalibrationError()]


def one_output(metric):
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.rand(20, generator=generator), torch.randint(0, 2, (20,), generator=generator)
    return preds, target if type(metric).__name__ in (
        "Accuracy",
        "AUROC",
        "LogLoss",
        "CalibrationError",
    ) else target / 2


@pytest.mark.parametrize("metric", ONE_OUTPUT, ids=lambda metric: type(metric).__name__)
def test_one_output_of_a_network_is_taken_as_one_value_a_sample(metric):
    preds, target = one_output(metric)
    meter, plain = Meter(metric, weighted=True), Meter(metric, weighted=True)
    weights = torch.arange(20)
    for x, y, w in (
        (preds[:, None], target, weights),
        (preds, target[:, None], weights[:, None]),
        (preds, target, weights),
    ):
        meter.update(x, y, weights=w)
        plain.update(preds, target, weights=weights)
    assert bits(meter) == bits(plain)
    assert bits(metric(preds[:, None], target)) == bits(metric(preds, target))
    wide, flat = per_sample_values(metric, preds[:, None], target), per_sample_values(metric, preds, target)
    assert (wide is None) == (flat is None)
    assert wide is None or flat is None or bits(dict(wide.terms)) == bits(dict(flat.terms))


def test_nothing_else_is_reshaped():
    with pytest.raises(ShapeError, match="Give target the shape of preds"):
        MeanSquaredError()(torch.zeros(4, 3), torch.zeros(4))
    with pytest.raises(ShapeError):
        MeanSquaredError()(torch.zeros(1, 4), torch.zeros(1))
    with pytest.raises(ShapeError, match="squeeze"):
        R2Score(num_outputs=2)(torch.zeros(4, 1), torch.zeros(4))
    with pytest.raises(ShapeError, match=r"Pass preds\.squeeze\(1\)"):
        Accuracy()(torch.zeros(4, 1, 5, 5), torch.zeros(4, 5, 5, dtype=torch.int64))
    assert Perplexity()(torch.zeros(4, 1), torch.zeros(4, dtype=torch.int64)).item() == 1  # one word in the vocabulary


@pytest.mark.parametrize("metric", [Accuracy(num_classes=3), AUROC(num_classes=3), LogLoss(num_classes=3)], ids=repr)
def test_one_hot_targets_are_refused_with_the_way_out(metric):
    preds, target = torch.rand(5, 3), torch.eye(3)[[0, 1, 2, 1, 0]]
    with pytest.raises(DtypeError, match=r"target: got torch\.float32, of shape \(N, 3\).*target\.argmax\(1\)"):
        metric(preds, target)
    with pytest.raises(ShapeError, match=r"target\.argmax\(1\)"):
        metric(preds, target.long())


def test_an_error_of_several_metrics_says_which_and_how_to_write_them():
    meter = Meter("accuracy:num_classes=3,f1:zero_division=1", "recall", "mse")
    with pytest.raises(ShapeError) as error:
        meter.update(torch.rand(4, 3), torch.zeros(4).long())
    message = str(error.value)
    assert message.startswith("f1, recall: preds: got shape (N, 3)")
    assert "F1Score(num_classes=3, zero_division=1.0), as a string f1:num_classes=3,zero_division=1.0" in message
    assert "Recall(num_classes=3), as a string recall:num_classes=3" in message
    assert meter.rows == 0


def test_an_error_about_the_number_of_classes_names_the_number_that_fits():
    for metric in (Accuracy(num_classes=10), AUROC(num_classes=2)):
        with pytest.raises(ShapeError, match=rf"Write {type(metric).__name__}\(num_classes=3\), as a string"):
            metric(torch.rand(4, 3), torch.zeros(4).long())
    with pytest.raises(ShapeError, match=r"Leave num_classes out for two classes.* Write Accuracy\(\), as a string"):
        Accuracy(num_classes=3)(torch.rand(4), torch.zeros(4).long())


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Accuracy, r"metrics: got the class Accuracy, expected a metric. Pass Accuracy\(\)"),
        (3, "metrics: got int, expected a metric. Pass an instance"),
        (None, "metrics: got nothing, expected a metric"),
        (
            lambda preds, target: preds == target,
            r"metrics: got function, expected a metric. Pass PerSample\(function\)",
        ),
    ],
)
def test_what_is_no_metric_is_refused_with_what_to_pass(metric, message):
    with pytest.raises(ConfigError, match=message):
        Meter(metric)
    with pytest.raises(ConfigError, match=message.replace("metrics:", "metrics: name:")):
        Meter(name=metric)


def test_a_layout_is_looked_through_once_for_all_meters_of_equal_metrics(monkeypatch):
    looked = []
    real = TallyPlan._looked_through

    def noted(plan, batch, strict):
        looked.append(batch.preds.shape)
        return real(plan, batch, strict)

    monkeypatch.setattr(TallyPlan, "_looked_through", noted)
    preds, target = torch.rand(5, 7), torch.randint(7, (5,))
    metric = Accuracy(num_classes=7, average="macro", only_classes=(0, 3))  # of which no other test has a plan
    for _ in range(3):
        Meter(a=metric).update(preds, target)
    assert looked == [(5, 7)]
    Meter(a=metric).update(preds[:4], target[:4])
    Meter(a=metric).update(preds[:4], target[:4].int())
    assert looked == [(5, 7), (4, 7), (4, 7)]
    for _ in range(2):
        with pytest.raises(ShapeError, match="as many as preds has, 5"):
            Meter(a=metric).update(preds, target[:4])


def test_a_tensor_whose_storage_was_freed_is_refused_by_each_new_meter():
    def values():
        return torch.rand(8)[::2]

    Meter(mse=MeanSquaredError()).update(values(), values())
    freed = values()
    freed.untyped_storage().resize_(16)  # bytes: as many as four numbers take, which end beyond it
    with pytest.raises(DeviceError, match="storage was freed"):
        Meter(mse=MeanSquaredError()).update(freed, values())
