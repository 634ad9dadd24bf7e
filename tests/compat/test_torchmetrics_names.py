"""Every name of TorchMetrics, wherever it is imported from."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
from importlib import import_module

import jiwer
import pytest
import torch
import torchmetrics as original
from assay.compat.torchmetrics.functional import match_error_rate, retrieval_reciprocal_rank

from assay.compat import torchmetrics
from assay.compat.drop_ins import drop_ins
from assay.compat.torchmetrics import MatchErrorRate, RetrievalMRR

DROP_INS = drop_ins("torchmetrics")


def names_in(package: str):
    """The public classes and functions of the families of a package, by family and name."""
    for family in [each.name for each in pkgutil.iter_modules(import_module(package).__path__) if each.ispkg]:
        module = import_module(f"{package}.{family}")
        for name in getattr(module, "__all__", ()):
            if callable(getattr(module, name)):
                yield family, name


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")  # of the metrics that stay those of the library
@pytest.mark.parametrize("package", ["torchmetrics", "torchmetrics.functional"])
def test_a_name_at_the_root_is_that_of_its_family(package):
    there, here = import_module(package), import_module(f"assay.compat.{package}")
    found = 0
    for family, name in names_in(package):
        of_family = getattr(getattr(here, family), name)
        declared = DROP_INS.get(name)
        counted = declared is not None and (declared.assay or declared.tasks)
        if counted:
            assert of_family is not getattr(getattr(there, family), name), name
        if hasattr(there, name):
            found += 1
            if name in ("PeakSignalNoiseRatio", "peak_signal_noise_ratio"):  # with other defaults at the root
                continue
            stays = of_family is getattr(getattr(there, family), name)
            assert getattr(here, name) is (getattr(there, name) if stays else of_family), name
    assert found > 90


def test_a_name_at_the_root_has_the_defaults_of_the_root():
    images = torch.rand(2, 1, 4, 4), torch.rand(2, 1, 4, 4)
    kind = torchmetrics.PeakSignalNoiseRatio
    assert issubclass(kind, torchmetrics.image.PeakSignalNoiseRatio)
    assert pickle.loads(pickle.dumps(kind)) is kind is torchmetrics.PeakSignalNoiseRatio
    found = kind()(*images), torchmetrics.functional.peak_signal_noise_ratio(*images)
    for each in found:
        torch.testing.assert_close(each, original.image.PeakSignalNoiseRatio(data_range=3.0)(*images))
    with pytest.raises(TypeError):
        torchmetrics.image.PeakSignalNoiseRatio()


def test_a_function_is_no_submodule_of_its_name():
    for name in ("accuracy", "auroc"):
        import_module(f"assay.compat.torchmetrics.functional.classification.{name}")
        found = getattr(torchmetrics.functional.classification, name)
        assert found is getattr(torchmetrics.functional, name)


def test_names_at_the_root_give_assays_values(recwarn):
    scores, relevant = torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([1, 0, 0])
    assert RetrievalMRR()(scores, relevant, indexes=torch.zeros(3, dtype=torch.long)) == 1
    assert retrieval_reciprocal_rank(scores, relevant) == 1
    text, reference = "x a b c d", "a b c d e"
    expected = torch.tensor(jiwer.process_words(reference, text).mer)
    assert expected != original.text.MatchErrorRate()([text], [reference])
    torch.testing.assert_close(MatchErrorRate()([text], [reference]), expected)
    torch.testing.assert_close(match_error_rate([text], [reference]), expected)
    assert not recwarn.list
    assert issubclass(original.RetrievalMRR, original.retrieval.RetrievalMRR)  # the deprecated copy of the root
    assert torchmetrics.RetrievalMRR is torchmetrics.retrieval.RetrievalMRR


@pytest.mark.parametrize("name", ["Accuracy", "MeanSquaredError", "MeanMetric", "AUROC"])
def test_a_class_has_the_signature_of_torchmetrics_and_a_subclass_its_own(name):
    own, there = getattr(torchmetrics, name), getattr(import_module("torchmetrics"), name)
    assert list(inspect.signature(own).parameters) == list(inspect.signature(there).parameters)

    class Squared(torchmetrics.MeanSquaredError):
        def __init__(self, root: bool) -> None:
            super().__init__(squared=not root)

    assert list(inspect.signature(Squared).parameters) == ["root"]
