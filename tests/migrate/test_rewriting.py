"""What is changed in a file, what is left as it is, and what is said about it."""

from __future__ import annotations

import math

import pytest
import torch
import torchmetrics

from assay.errors import ShapeError
from assay.migrate import Note, rewrite


def after(code: str, **known: int) -> str:
    return rewrite(code, known).after


def todo(code: str, **known: int) -> list[Note]:
    return [note for note in rewrite(code, known).notes if note.kind == "todo"]


def run(code: str, **names):
    exec(compile(code, "program", "exec"), names)
    return names


PREDS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.35, 0.25, 0.4], [0.6, 0.3, 0.1]])
TARGET = torch.tensor([0, 1, 1, 0])


def test_a_loop_becomes_a_meter_with_comments_as_they_were():
    code = """\
import torch
from torchmetrics.classification import MulticlassAccuracy as Acc, MulticlassF1Score  # measure


def evaluate(batches):
    acc = Acc(
        3,  # cats, dogs, others
        validate_args=False,
        ignore_index=-1,  # unlabelled
    )
    for preds, target in batches:
        acc.update(preds, target)  # count
    return acc.compute().item()
"""
    assert (
        after(code)
        == """\
import torch
from assay import Meter
from assay.metrics import Accuracy
from torchmetrics.classification import MulticlassF1Score  # measure


def evaluate(batches):
    acc = Meter(Accuracy(
        num_classes=3,  # cats, dogs, others
        ignore_index=-1, average="macro",  # unlabelled
    ))
    for preds, target in batches:
        acc.update(preds, target)  # count
    return acc.sync().compute()["Accuracy"].item()
"""
    )
    batches = [(PREDS[:2], TARGET[:2]), (PREDS[2:], TARGET[2:])]
    old, new = (run(each)["evaluate"](batches) for each in (code, after(code)))
    assert math.isclose(old, new, rel_tol=1e-6)
    assert todo(code) == []


def test_other_uses_get_an_adapter_that_is_a_metric_of_torchmetrics():
    code = 'import torchmetrics\nm = torchmetrics.Accuracy(task="multiclass", num_classes=3).to("cpu")\nv = m(p, t)\n'
    new = after(code)
    assert new == (
        "from assay.integrations import as_torchmetric\nfrom assay.metrics import Accuracy\n"
        'm = as_torchmetric(Accuracy(num_classes=3)).to("cpu")\nv = m(p, t)\n'
    )
    names = run(new, p=PREDS, t=TARGET)
    assert isinstance(names["m"], torchmetrics.Metric)
    assert names["v"].item() == run(code, p=PREDS, t=TARGET)["v"].item() == 0.75


@pytest.mark.parametrize(
    "use",
    ["n = m", "m(p, t)", "x = m.update(p, t)", "m.update(p, t, 1)", "m.update(*b)", "m.tp", "m = None", "global m"],
)
def test_a_meter_is_made_only_where_all_uses_are_plain(use):
    head = "from torchmetrics.classification import BinaryAccuracy\ndef f(p, t, b):\n    "
    use_lines = f"{use}\n    m = BinaryAccuracy()" if use == "global m" else f"m = BinaryAccuracy()\n    {use}"
    assert "as_torchmetric(Accuracy())" in after(f"{head}{use_lines}\n    m.update(p, t)\n")
    assert "Meter(Accuracy())" in after(f"{head}m = BinaryAccuracy()\n    m.update(p, target=t)\n    m.reset()\n")


def test_a_collection_becomes_a_meter_with_its_names():
    code = """\
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassRecall
m = MetricCollection(
    {
        "acc": MulticlassAccuracy(num_classes=3, average="micro"),  # share
        "recall": MulticlassRecall(num_classes=3),
    },
)
m.update(p, t)
v = m.compute()
"""
    new = after(code)
    assert "from torchmetrics" not in new
    assert '    acc=Accuracy(num_classes=3, average="micro"),  # share\n' in new
    values = run(new, p=PREDS, t=TARGET)["v"]
    assert {name: float(value) for name, value in values.items()} == pytest.approx(
        {name: float(value) for name, value in run(code, p=PREDS, t=TARGET)["v"].items()}
    )


@pytest.mark.parametrize(
    "held",
    ["[A(num_classes=3), R(num_classes=3)]", "A(num_classes=3), R(num_classes=3)", '{"a b": A(num_classes=3)}'],
)
@pytest.mark.parametrize("more", ["", ', prefix="val_"', ", compute_groups=False"])
def test_collections_keep_the_names_of_their_values(held, more):
    code = (
        "from torchmetrics import MetricCollection\n"
        "from torchmetrics.classification import MulticlassAccuracy as A, MulticlassRecall as R\n"
        f"m = MetricCollection({held}{more})\nm.update(p, t)\nv = m.compute()\n"
    )
    assert todo(code) == []
    values, wanted = (run(each, p=PREDS, t=TARGET)["v"] for each in (after(code), code))
    assert {name: float(value) for name, value in values.items()} == pytest.approx(
        {name: float(value) for name, value in wanted.items()}
    )


def test_running_losses_and_best_values_are_changed_and_nothing_is_left_to_do():
    code = """\
import torch
from torchmetrics import MaxMetric, MeanMetric, MinMetric, SumMetric

kinds = MaxMetric(), MinMetric(), SumMetric(nan_strategy="ignore")
loss = MeanMetric()
for value in (0.5, torch.tensor(2.0), torch.tensor([1.0, float("nan")])):
    steps = [kind(value) for kind in kinds]
    loss(value)
values = [kind.compute().item() for kind in kinds], loss.compute().item()
"""
    assert not todo(code)
    changed = after(code)
    assert "torchmetrics" not in changed.replace("as_torchmetric", "")
    with pytest.warns(match="NaN"):
        here = run(changed)
    with pytest.warns(UserWarning, match="nan"):
        there = run(code)
    assert here["values"] == there["values"]
    assert [float(each) for each in here["steps"]] == [float(each) for each in there["steps"]]


def test_weights_of_a_mean_are_refused_and_not_lost_after_the_change():
    code = """\
from torchmetrics import MeanMetric

mean = MeanMetric()
mean.update(values, weights)
"""
    (note,) = (each for each in rewrite(code).notes if each.kind == "check")
    assert "weights=weight" in note.reason
    with pytest.raises(ShapeError, match="weights="):
        run(after(code), values=torch.tensor([1.0, 2.0]), weights=torch.tensor([1.0, 3.0]))


@pytest.mark.parametrize("update", ["update(value=0.5)", "update(0.5, weight=2)", "forward(value=0.5)"])
def test_numbers_that_are_given_by_name_stay(update):
    code = f"from torchmetrics import MeanMetric\n\nmean = MeanMetric()\nmean.{update}\n"
    assert after(code) == code
    (note,) = todo(code)
    assert "by name" in note.reason


def test_a_collection_stays_whole_where_one_metric_is_not_sure():
    code = (
        "from torchmetrics import KendallRankCorrCoef, MetricCollection, PeakSignalNoiseRatio\n"
        "from torchmetrics.classification import BinaryAccuracy\n"
        'm = MetricCollection({"a": BinaryAccuracy(), "b": PeakSignalNoiseRatio()})\n'
        'n = MetricCollection({"a": KendallRankCorrCoef(t_test=True)})\n'
        "o = MetricCollection(made)\n"
    )
    assert after(code) == code
    assert [note.reason for note in todo(code)] == [
        "TorchMetrics MetricCollection: it has metrics that stay as they are",
        "TorchMetrics MetricCollection: KendallRankCorrCoef: t_test=True has no counterpart, and without it the value "
        "is another",
        "TorchMetrics MetricCollection: its metrics are not written out",
    ]


def test_what_the_reader_has_written_is_kept():
    code = (
        "import torchmetrics\n\n\nclass Mine(torchmetrics.Metric):\n    pass\n\n\n"
        "class Own(torchmetrics.classification.BinaryAccuracy):\n    pass\n\n\n"
        'm = torchmetrics.MetricCollection({"a": Mine(), "b": torchmetrics.classification.BinaryRecall()})\n'
    )
    assert after(code) == code
    assert not todo(code)


def test_functions_become_metrics_that_are_called():
    code = (
        "import torchmetrics.functional as F\nfrom torchmetrics import functional\n"
        'a = F.accuracy(p, t, task="multiclass", num_classes=3)\n'
        "b = functional.classification.multiclass_recall(target=t, preds=p, num_classes=3)\n"
        "c = F.minkowski_distance(x, targets=y, p=3)\n"
    )
    new = after(code)
    assert new == (
        "from assay.metrics import Accuracy, MinkowskiDistance, Recall\n"
        "a = Accuracy(num_classes=3)(p, t)\nb = Recall(num_classes=3)(target=t, preds=p)\n"
        "c = MinkowskiDistance(p=3)(x, target=y)\n"
    )
    given = {"p": PREDS, "t": TARGET, "x": torch.tensor([1.0, 5.0]), "y": torch.tensor([2.0, 1.0])}
    old, made = run(code, **given), run(new, **given)
    assert all(math.isclose(old[name], made[name], rel_tol=1e-6) for name in "abc")


READ = (
    *("print(V)", "x = V.item()", "x = float(V)", "x = f'{V:.2f}'", "x = '%.2f' % V", "self.log('a', V)"),
    *("log({'a': 100 * V})", "x = V > 0.5", "v = V\n    best = v\n    print(best.item())", "x = V.cpu().numpy()"),
    *("assert V == 1", "logger.info('%s', V.detach())", "V"),
)
USED = (
    *("return V", "x = loss + V", "x = torch.stack([loss, V])", "self.log('a', V, sync_dist=True)", "x.append(V)"),
    *("v = V\n    print(v)\n    return {'a': v}", "self.x = V", "x += V", "self.log('a', V, **how)", "x = V.to(d)"),
    *("global v\n    v = V", "x, y = V, 1", "x = V[0] - loss"),
)


@pytest.mark.parametrize(("use", "is_read"), [(use, use in READ) for use in (*READ, *USED)])
def test_values_that_code_computes_with_stay_where_the_batch_is(use, is_read):
    head = "from torchmetrics.classification import MulticlassAccuracy\n"
    loop = "def f(self, p, t, x):\n    m = MulticlassAccuracy(3)\n    m.update(p, t)\n    "
    around = "Meter" if is_read else "as_torchmetric"
    use = use.replace("log({", "wandb.log({")
    assert f"m = {around}(Accuracy(" in after(head + loop + use.replace("V", "m.compute()"))
    if use.startswith("x = f'"):
        return  # a call in an f-string stays
    head = "from torchmetrics.functional import r2_score\ndef f(self, p, t, x):\n    "
    made = "R2Score()(p, t)" if is_read else "as_torchmetric(R2Score())(p, t)"
    assert use.replace("V", made) in after(head + use.replace("V", "r2_score(p, t)"))


@pytest.mark.parametrize(
    ("use", "is_read"),
    [
        ("for name, v in V.items():\n        print(name, v)", True),
        ("x = [float(v) for v in V.values()]", True),
        ("x = print({name: v for name, v in V.items()})", True),
        ("x = V['a'].item()", True),
        ("self.log_dict(V)", True),
        ("return V", False),
        ("x = {name: v for name, v in V.items()}\n    return x", False),
        ("x = V.keys()", False),
    ],
)
def test_a_collection_becomes_a_meter_where_its_values_are_only_read(use, is_read):
    head = "from torchmetrics import MetricCollection, R2Score\ndef f(self, p, t):\n    "
    code = (
        f"{head}m = MetricCollection({{'a': R2Score()}})\n    m.update(p, t)\n    {use.replace('V', 'm.compute()')}\n"
    )
    assert ("Meter(a=R2Score())" if is_read else "as_torchmetrics({'a': R2Score()})") in after(code)


@pytest.mark.devices("mps")
def test_changed_code_goes_on_with_values_on_the_device(device, pretended):
    code = (
        "import torch\nfrom torchmetrics.classification import MulticlassAccuracy\n"
        "from torchmetrics.functional import accuracy\ndef f(p, t):\n"
        "    m = MulticlassAccuracy(3, average='micro')\n    m.update(p, t)\n"
        "    of_batch = accuracy(p, t, task='multiclass', num_classes=3)\n"
        "    loss = torch.zeros((), device=p.device)\n    return torch.stack([loss, of_batch, m.compute()]).sum()\n"
    )
    assert run(after(code))["f"](PREDS.to(device), TARGET.to(device)).item() == 1.5


def test_torcheval_has_no_adapter_so_that_a_note_says_where_values_are():
    code = "from torcheval.metrics import MulticlassAccuracy\ndef f(p, t):\n    m = MulticlassAccuracy(num_classes=3)\n"
    (note,) = rewrite(f"{code}    m.update(p, t)\n    return m.compute()\n").notes
    assert (note.kind, note.line) == ("check", 3)
    assert "float64 on the CPU" in note.reason
    assert not rewrite(f"{code}    m.update(p, t)\n    print(m.compute())\n").notes


@pytest.mark.parametrize(
    ("arguments", "stays"),
    [
        ("n, average=None, ignore_index=0", True),
        ("5, average='none', ignore_index=3", True),
        ("5, average=None, ignore_index=5", False),
        ("n, average=None, ignore_index=255", False),
        ("5, average=None, ignore_index=-1", False),
        ("5, ignore_index=0", False),
    ],
)
def test_a_change_that_is_certain_to_give_nan_is_not_made(arguments, stays):
    code = f"from torchmetrics.classification import MulticlassRecall\nm = MulticlassRecall({arguments})\n"
    assert (after(code) == code) is stays
    assert [("NaN in assay" in note.reason, note.write) for note in todo(code)] == [(True, "")] * stays


def test_a_class_of_ones_own_is_kept_and_nothing_is_left_to_do():
    for library, name in (
        ("torchmetrics", "Metric"),
        ("ignite.metrics", "EpochMetric"),
        ("torcheval.metrics", "Metric"),
    ):
        code = f"from {library} import {name}\nclass Own({name}):\n    pass\n"
        (note,) = rewrite(code).notes
        assert (note.kind, after(code)) == ("kept", code)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("[MulticlassAccuracy(num_classes=3), MulticlassF1Score(num_classes=3)]", "kept"),
        ('{"accuracy": MulticlassAccuracy(num_classes=3)}', "kept"),
        ("[MulticlassAccuracy(num_classes=3), mine()]", "todo"),
        ("[]", "todo"),
        ("made()", "todo"),
    ],
)
def test_a_collection_of_a_variable_counts_what_is_written_there(written, kind):
    code = (
        "from torchmetrics import MetricCollection\n"
        "from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score\n"
        f"metrics = {written}\n"
        "collection = MetricCollection(metrics)\n"
    )
    found = rewrite(code)
    assert [note.kind for note in found.notes if "MetricCollection" in note.reason] == [kind]
    assert "MetricCollection(metrics)" in found.after
    twice = rewrite(code.replace("collection =", "metrics = other()\ncollection ="))
    assert [note.kind for note in twice.notes if "MetricCollection" in note.reason] == ["todo"]


@pytest.mark.parametrize("use", ["IoU(cm)", "mIoU(cm, ignore_index=0)", "DiceCoefficient(cm=cm)"])
def test_what_ignite_wants_of_its_own_classes_stays(use):
    name = use.partition("(")[0]
    code = f"from ignite.metrics import ConfusionMatrix, {name}\ncm = ConfusionMatrix(num_classes=3)\nm = {use}\n"
    assert after(code) == code
    assert f"it is an argument of {name}, which stays" in todo(code)[0].reason
    run(code)
    free = code.replace(use, "cm.diag()")
    assert "cm = as_ignite(ConfusionMatrix(num_classes=3))" in after(free)


def test_ignite_metrics_become_as_ignite_with_their_transform():
    code = (
        "from ignite.engine import Engine\nfrom ignite.metrics import Accuracy, Precision\n"
        'engine = Engine(lambda engine, batch: {"p": batch[0], "t": batch[1]})\n'
        'Accuracy(device="cpu", output_transform=lambda o: (o["p"], o["t"])).attach(engine, "acc")\n'
        'Precision(lambda o: (o["p"], o["t"]), average=True).attach(engine, "precision")\n'
        "v = engine.run(b).metrics\n"
    )
    assert after(code) == code
    assert [note.write for note in todo(code)] == [
        'as_ignite(Accuracy(num_classes=...), lambda o: (o["p"], o["t"]))',
        'as_ignite(Precision(average="macro", num_classes=...), lambda o: (o["p"], o["t"]))',
    ]
    new = after(code, num_classes=2)
    assert 'as_ignite(Accuracy(num_classes=2), lambda o: (o["p"], o["t"])).attach(engine, "acc")' in new
    assert "from ignite.metrics" not in new
    batches = [(PREDS[:, :2], TARGET), (PREDS[:2, :2], TARGET[:2])]
    assert run(new, b=batches)["v"] == pytest.approx(run(code, b=batches)["v"])


def test_several_outputs_are_asked_for_and_not_guessed():
    code = "from ignite.metrics import MeanSquaredError\nm = MeanSquaredError()\n"
    assert "num_outputs is not written here" in todo(code)[0].reason
    assert "as_ignite(MeanSquaredError())" in after(code, num_outputs=1)
    assert after(code, num_outputs=2) == code
    assert todo(code, num_outputs=2)[0].reason.endswith("it sums over outputs, and assay takes their mean")


def test_torcheval_becomes_a_meter_or_a_note():
    head = "from torcheval.metrics import MulticlassAccuracy\n"
    plain = f'{head}m = MulticlassAccuracy(k=2, num_classes=3, device="cpu")\nm.update(p, t)\nv = m.compute()\n'
    assert 'm = Meter(Accuracy(top_k=2, num_classes=3))\nm.update(p, t)\nv = m.compute()["Accuracy"]' in after(plain)
    assert float(run(after(plain), p=PREDS, t=TARGET)["v"]) == float(run(plain, p=PREDS, t=TARGET)["v"])
    other = f"{head}from torcheval.metrics.toolkit import sync_and_compute\nm = MulticlassAccuracy(num_classes=3)\n"
    other += "m.update(p, t)\nv = sync_and_compute(m)\n"
    assert after(other) == other
    assert todo(other)[0].write == "Meter(Accuracy(num_classes=3))"


def test_arguments_that_have_no_counterpart_leave_the_call_as_it_is():
    code = "from torchmetrics import KendallRankCorrCoef\nm = KendallRankCorrCoef(variant='a', t_test=True)\n"
    assert after(code) == code
    note = todo(code)[0]
    assert note.line == 2
    assert all(part in note.reason for part in ("TorchMetrics KendallRankCorrCoef", "variant='a'", "t_test=True"))
    assert note.write == ""  # without them it would be another number


@pytest.mark.parametrize(
    ("call", "lost"),
    [
        ("F1Score('binary', zero_division=ZERO)", "zero_division=ZERO"),
        ("RetrievalAUROC(top_k=3)", "top_k=3"),
        ("R2Score(multioutput=MODE)", "multioutput=MODE"),
        ("KendallRankCorrCoef(variant='a')", "variant='a'"),
        ("CosineSimilarity(reduction='none')", "reduction='none'"),
        ("SpearmanCorrCoef(dist_sync_on_step=True)", "dist_sync_on_step=True"),
        ("Accuracy(**options)", "its arguments are not written out"),
        ("Accuracy(kind)", "task is not written out"),
    ],
)
@pytest.mark.parametrize("around", ["m = {}\n", "m = MetricCollection([{}, MeanSquaredError()])\n"])
def test_no_argument_is_lost_in_what_is_advised(call, lost, around):
    names = f"{call.partition('(')[0]}, MeanSquaredError, MetricCollection"
    code = f"from torchmetrics import {names}\n{around.format(call)}"
    assert after(code) == code
    (note,) = todo(code)
    assert lost in note.reason
    assert note.write == ""


def test_arguments_whose_value_is_that_of_assay_are_dropped_and_others_passed_on():
    code = "from torchmetrics import F1Score\nm = F1Score('binary', validate_args=False, zero_division=1)\n"
    assert "as_torchmetric(F1Score(zero_division=1))" in after(code)
    code = "from torchmetrics import AUROC\nm = AUROC('binary', thresholds=100, max_fpr=0.1)\n"
    assert "as_torchmetric(AUROC(thresholds=100, max_fpr=0.1))" in after(code)


@pytest.mark.parametrize("multioutput", ["uniform_average", "raw_values", "variance_weighted"])
@pytest.mark.parametrize("name", ["R2Score", "ExplainedVariance"])
def test_every_way_to_reduce_outputs(multioutput, name):
    code = (
        f"from torchmetrics import {name}\nm = {name}(multioutput={multioutput!r})\nm.update(p, t)\nv = m.compute()\n"
    )
    assert todo(code) == []
    (note,) = rewrite(code).notes
    assert "num_outputs=K" in note.reason
    made = torch.Generator().manual_seed(0)
    one, several = (tuple(torch.rand(16, *k, generator=made) for _ in "pt") for k in ((), (3,)))
    for known, (p, t) in (({}, one), ({"num_outputs": 3}, several)):
        old, new = run(code, p=p, t=t)["v"], run(after(code, **known), p=p, t=t)["v"]
        torch.testing.assert_close(new.float(), old, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="num_outputs"):
        run(after(code), p=several[0], t=several[1])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("Accuracy(**options)", "its arguments are not written out"),
        ("Accuracy(*options)", "its arguments are not written out"),
        ("Accuracy(task=kind, num_classes=3)", "task is not written out"),
        ("Accuracy(task='multiclass')", "num_classes is not written here"),
        ("Accuracy('binary', 0.5, None, None, 'micro', 'global', 1, None, True, 3)", "10 arguments by position"),
        ("Accuracy('binary', speed=3)", "speed is no argument that is known"),
        ("functools.partial(Accuracy, task='binary')", "used in another way than by calling it"),
        ("MinMaxMetric(Accuracy('binary'))", "it is an argument of MinMaxMetric, which stays"),
    ],
)
def test_what_is_not_sure_is_a_note(call, reason):
    code = f"import functools\nfrom torchmetrics import Accuracy, MinMaxMetric\nm = {call}\n"
    assert after(code) == code
    assert reason in todo(code)[0].reason
    assert todo(code)[0].line == 3


def test_a_variable_that_a_wrapper_takes_stays():
    code = "from torchmetrics import Accuracy, MinMaxMetric\na = Accuracy('binary')\nm = MinMaxMetric(a)\n"
    assert after(code) == code


@pytest.mark.parametrize(
    "code",
    [
        "from torchmetrics.functional import accuracy\ndef f(p, t):\n    accuracy = accuracy(p, t, task='binary')\n",
        "try:\n    from torchmetrics import R2Score\nexcept ImportError:\n    R2Score = None\nm = R2Score()\n",
        "from torchmetrics import *\nm = Accuracy('binary')\n",
        "from other import Accuracy\nm = Accuracy('binary')\n",
        "from .torchmetrics import Accuracy\nm = Accuracy('binary')\n",
        "# torchmetrics.Accuracy('binary')\nx = 'torchmetrics.Accuracy()'\n",
    ],
)
def test_names_that_may_be_something_else_stay(code):
    assert after(code) == code


def test_names_that_are_taken_get_others():
    code = "from torchmetrics import Accuracy\nMeter = 3\nm = Accuracy('binary')\nm.update(p, t)\nk = Accuracy\n"
    new = after(code)
    assert "from assay import Meter as AssayMeter\nfrom assay.metrics import Accuracy as AssayAccuracy\n" in new
    assert "m = AssayMeter(AssayAccuracy())\n" in new
    assert "k = Accuracy\n" in new


def test_imports_stay_where_they_are_needed_or_not_on_a_line_of_their_own():
    code = (
        '"""Doc."""\nfrom __future__ import annotations\nimport os; import torchmetrics\nm = torchmetrics.R2Score()\n'
    )
    assert after(code) == (
        '"""Doc."""\nfrom __future__ import annotations\nfrom assay.integrations import as_torchmetric\n'
        "from assay.metrics import R2Score\nimport os; import torchmetrics\nm = as_torchmetric(R2Score())\n"
    )
    shown = "from torchmetrics import R2Score\n__all__ = ['R2Score']\nm = R2Score()\n"
    assert "from torchmetrics import R2Score\n" in after(shown)
    inside = "def f():\n    from torchmetrics import R2Score\n    return R2Score()\n"
    assert "    from torchmetrics import R2Score\n" in after(inside)
    run(after(inside))["f"]()


def test_ends_of_lines_and_letters_of_all_kinds_stay():
    code = "from torchmetrics import R2Score\r\n"
    code += "µ = 'é𝛼'; m = R2Score(adjusted=0)  # ü\r\n\x0c\r\nprint('𝛼', R2Score())\r\n"
    assert after(code) == (
        "from assay.integrations import as_torchmetric\r\nfrom assay.metrics import R2Score\r\n"
        "µ = 'é𝛼'; m = as_torchmetric(R2Score(adjusted=0))  # ü\r\n\x0c\r\n"
        "print('𝛼', as_torchmetric(R2Score()))\r\n"
    )


def test_brackets_around_arguments_stay_outside_of_names():
    code = "from torchmetrics.classification import MulticlassAccuracy\nm = MulticlassAccuracy((n), 1, ('micro'),)\n"
    assert "Accuracy(num_classes=(n), top_k=1, average=('micro'),)" in after(code)


def test_the_same_remark_is_made_once():
    code = "from torchmetrics import Accuracy\n" + "a = [Accuracy('binary'),\n     Accuracy('binary')]\n"
    (note,) = rewrite(code).notes
    assert note.kind == "check"
    assert note.reason.startswith("TorchMetrics BinaryAccuracy: if scores are logits, write logits=True")
    assert note.reason.endswith("(also line 3)")


def test_a_logit_is_refused_and_not_misread_after_the_change():
    code = "from torchmetrics.classification import BinaryAccuracy\nm = BinaryAccuracy()\n"
    code += "m.update(p, t)\nv = m.compute()\n"
    with pytest.raises(ValueError, match=r"scores of any size are for logits=True"):
        run(after(code), p=torch.tensor([-1.0, 3.0]), t=torch.tensor([0, 1]))


def test_what_is_no_python_is_an_error():
    with pytest.raises(SyntaxError):
        rewrite("def f(:\n")


@pytest.mark.parametrize(
    "line",
    [
        'v = f"acc {m.compute():.3f}"',
        "v = f'acc {m.compute():.3f} {m.compute().item():.2f}'",
        'v = ("é" f"a {m.compute():.2f}"\n     f\'b {1} {m.compute():.3f}\')',
        'v = f"""a\n{m.compute():.3f}\n"""',
        "v = rf'{m.compute():.4f}' + f\"{f'{m.compute():.1f}'}\"",
    ],
)
def test_values_in_f_strings_are_changed_only_where_their_place_is_certain(line):
    code = "from torchmetrics.classification import MulticlassAccuracy\nm = MulticlassAccuracy(num_classes=3)\n"
    code += f"m.update(p, t)\n{line}\n"
    assert "import Accuracy" in after(code)
    assert todo(code) == []
    old, new = (run(each, p=PREDS, t=TARGET)["v"] for each in (code, after(code)))
    assert new == old


def test_a_call_in_an_f_string_is_a_note():
    code = "from torchmetrics.functional import r2_score\nprint(f'{r2_score(x, y)}')\n"
    assert after(code) == code
    assert todo(code)[0].reason == "TorchMetrics r2_score: it is inside of an f-string"


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("name", ["MulticlassF1Score", "MulticlassExactMatch"])
def test_a_value_for_each_sample_becomes_their_mean_with_a_note(name, quote):
    code = (
        f"from torchmetrics.classification import {name}\n"
        f"m = {name}(3, multidim_average={quote}samplewise{quote})\nm.update(p, t)\nv = m.compute()\n"
    )
    (note,) = rewrite(code).notes
    assert (note.kind, note.line) == ("check", 2)
    assert "the mean over samples of the values that TorchMetrics returns" in note.reason
    preds, target = torch.tensor([[0, 1, 2], [1, 1, 0]]), torch.tensor([[0, 1, 2], [2, 1, 2]])
    value, wanted = (run(each, p=preds, t=target)["v"] for each in (after(code), code))
    assert float(value) == pytest.approx(wanted.mean().item())
    assert not rewrite(code.replace("samplewise", "global")).notes
