"""What migrate leaves to the reader works with another import, which its notes have."""

from __future__ import annotations

import pytest
import torch
import torchmetrics

from assay.migrate.rewriting import rewrite

VARIABLES = """import torchmetrics as tm
from torchmetrics import Accuracy as Acc, MetricCollection
from torchmetrics.classification import MulticlassF1Score

task = "multiclass"
acc = Acc(task=task, num_classes=3)
options = dict(task="multiclass", num_classes=3, average="macro")
metrics = MetricCollection({"acc": acc, "f1": MulticlassF1Score(3), "p": tm.Precision(**options)})
"""


def imports(text):
    return {note.write for note in rewrite(text).notes if note.kind == "import"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torchmetrics\ntorchmetrics.Accuracy(task=t)", "from assay.compat import torchmetrics"),
        ("import torchmetrics as tm\ntm.Accuracy(task=t)", "from assay.compat import torchmetrics as tm"),
        ("from torchmetrics import *\nAccuracy(task=t)", "from assay.compat.torchmetrics import *"),
        ("from torchmetrics import Recall as R\nR(task=t)", "from assay.compat.torchmetrics import Recall as R"),
        (
            "import torchmetrics.text as texts\ntexts.ROUGEScore()",
            "import assay.compat.torchmetrics.text as texts",
        ),
        ("from ignite.metrics import Accuracy\nAccuracy()", "from assay.compat.ignite.metrics import Accuracy"),
    ],
)
def test_each_kind_of_import(before, after):
    assert imports(before) == {after}


def test_nothing_is_said_where_nothing_is_left():
    assert not imports('from torchmetrics import Accuracy\nAccuracy(task="multiclass", num_classes=3)\n')
    assert not imports("from ignite.engine import Engine\nfrom torcheval.metrics import MulticlassAccuracy\n")


def test_a_script_of_variables_gives_the_same_values_with_these_imports():
    found = [note for note in rewrite(VARIABLES).notes if note.kind == "import"]
    lines = VARIABLES.splitlines()
    for note in found:
        lines[note.line - 1] = note.write
    assert [note.line for note in found] == [1, 2, 3]
    ours, there = {}, {}
    exec("\n".join(lines), ours)
    exec(VARIABLES, there)
    batch = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2, 2, 1])
    torch.testing.assert_close(ours["metrics"](*batch), there["metrics"](*batch))
    assert isinstance(there["acc"], torchmetrics.Metric)
    assert type(ours["acc"]).__module__.startswith("assay.compat")
