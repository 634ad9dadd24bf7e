"""Code before and after, run side by side: every name of the tables that is changed gives the same value."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch

import assay.metrics
from assay.migrate import rewrite
from migrate.test_table import ENTRIES, theirs
from thinning import every_third

N, K = 64, 4
GENERATOR = torch.Generator().manual_seed(3)


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=GENERATOR)


def labels(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=GENERATOR)


BATCHES = {
    "binary": (rand(N), labels(2, N)),
    "multiclass": (rand(N, K).softmax(1), labels(K, N)),
    "multilabel": (rand(N, K), labels(2, N, K)),
    "numbers": (rand(N) + 0.1, rand(N) + 0.1),
    "rows": (rand(N, K).softmax(1), rand(N, K).softmax(1)),
    "tokens": (rand(N, 5, 7), labels(7, N, 5)),
    "classes": (labels(K, N), labels(K, N)),
    "alone": (rand(N),),
    "ensembles": (rand(N, K), rand(N)),
    "queries": (rand(N), labels(2, N), labels(5, N)),
    "strings": (["the cat sat here", "a b c", "yes it is so"], ["the cat sat there", "a b d c", "yes it is so"]),
    "references": (["the cat sat on a mat", "yes it is so"], [["the cat sat on the mat", "a cat"], ["yes it was so"]]),
}
ALIKE = {"vectors": "rows", "distributions": "rows"}
EXTRA = {"beta": "2.0", "threshold": "0.5", "p": "3"} | {
    f"min_{each}": "0.5" for each in ("precision", "recall", "sensitivity", "specificity")
}


def kind_of(name: str, entry) -> str:
    if entry.assay in ("Mean", "Sum", "Max", "Min"):
        return "alone"
    if entry.assay in assay.metrics.__all__ and (inputs := getattr(assay.metrics, entry.assay).inputs) in BATCHES:
        return str(inputs)
    if entry.assay == "Perplexity":
        return "tokens"
    if entry.assay in assay.metrics.__all__ and (inputs := getattr(assay.metrics, entry.assay).inputs) in ALIKE:
        return ALIKE[inputs]
    labels_only = name == "ignite" and entry.assay in ("CohenKappa", "MatthewsCorrCoef")
    if labels_only or getattr(assay.metrics, entry.assay).inputs == "clusters":
        return "classes"
    if entry.needs == "num_classes" or (name == "ignite" and entry.assay == "ConfusionMatrix"):
        return "multiclass"
    if entry.needs == "num_labels":
        return "multilabel"
    return "binary" if entry.name.lower().startswith("binary") else "numbers"


def code_of(name: str, entry, kind: str) -> str:
    """A small program that measures one batch with one name, its arguments as short as they may be."""
    given = []
    for each in entry.takes:
        rule = entry.rules.get(each.name, "")
        if rule == "data" or (each.default is not None and each.name != entry.needs):
            continue
        given.append(f"{each.name}={EXTRA.get(each.name, K)}")
    called = theirs(name, entry.name)
    home = f"from {called.__module__} import {entry.name}\n"
    given += ["k=2"] if entry.name in ("TopKCategoricalAccuracy", "TopKMultilabelAccuracy") else []
    if entry.function:
        batch = "preds" if kind == "alone" else "preds, target"
        return f"{home}value = {entry.name}({', '.join([batch, *given])})\n"
    if name == "ignite":
        given.append("output_transform=lambda output: output")
        update = "metric.update((preds, target))"
    else:
        update = {"alone": "metric.update(preds)", "queries": "metric.update(preds, target, indexes=indexes)"}.get(
            kind, "metric.update(preds, target)"
        )
    return f"{home}metric = {entry.name}({', '.join(given)})\n{update}\nvalue = metric.compute()\n"


def ran(code: str, kind: str):
    return ran_with(code, BATCHES[kind])


def ran_with(code: str, batch: tuple[torch.Tensor, ...]):
    names = dict(zip(("preds", "target", "indexes"), batch, strict=False))
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, "program", "exec"), names)
    finally:
        logging.disable(logging.NOTSET)
    return names["value"]


def close(ours, other) -> None:
    if isinstance(other, tuple | list):
        assert len(ours) == len(other)
        for one, two in zip(ours, other, strict=True):
            close(one, two)
        return
    one, two = torch.as_tensor(ours, dtype=torch.float64), torch.as_tensor(other, dtype=torch.float64)
    assert one.shape == two.shape
    torch.testing.assert_close(one, two, rtol=2e-5, atol=2e-6, equal_nan=True)


SURE = [(name, entry) for name, entry in ENTRIES if not entry.unsure and not entry.tasks]
KNOWN = {"num_classes": K, "num_labels": K, "num_outputs": 1}


@every_third
@pytest.mark.parametrize(("name", "entry"), SURE, ids=[f"{name}-{entry.name}" for name, entry in SURE])
def test_the_value_is_the_same(name, entry):
    kind = kind_of(name, entry)
    code = code_of(name, entry, kind)
    found = rewrite(code, KNOWN)
    assert [note for note in found.notes if note.kind == "todo"] == []
    assert f"import {entry.assay}" in found.after
    assert f"from {name}" not in found.after
    if name == "ignite":
        code = code.replace("metric.update", "metric.reset()\nmetric.update")
    close(ran(found.after, kind), ran(code, kind))
    assert rewrite(found.after, KNOWN).after == found.after


TASKS = [(entry, task) for _, entry in ENTRIES for task in entry.tasks if not entry.unsure]


@pytest.mark.parametrize(("entry", "task"), TASKS, ids=[f"{entry.name}-{task}" for entry, task in TASKS])
def test_the_value_of_a_task_is_the_same(entry, task):
    kind = next(each for each in ("binary", "multiclass", "multilabel") if task.lower().startswith(each))
    chosen = next(each for name, each in ENTRIES if name == "torchmetrics" and each.name == task)
    given = [f"{each.name}={EXTRA[each.name]}" for each in chosen.takes if each.name in EXTRA and each.default is None]
    given += [] if kind == "binary" else [f"{chosen.needs}={K}"]
    home = f"from {theirs('torchmetrics', entry.name).__module__} import {entry.name}\n"
    batch = ["preds", "target"] if entry.function else []
    arguments = [*batch, f"task={kind!r}", *given]
    call = f"{entry.name}({', '.join(arguments)})"
    code = (
        f"{home}value = {call}\n"
        if entry.function
        else f"{home}m = {call}\nm.update(preds, target)\nvalue = m.compute()\n"
    )
    found = rewrite(code)
    if chosen.unsure:
        assert found.after == code
        assert [note.kind for note in found.notes if note.kind != "import"] == ["todo"]
        return
    assert [note for note in found.notes if note.kind == "todo"] == []
    close(ran(found.after, kind), ran(code, kind))
