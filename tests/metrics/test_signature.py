"""Signatures: one line says all of a metric, and the metric follows from the line."""

import pytest

from assay import F1Score
from assay.errors import ConfigError
from assay.metrics.samples import examples, public_metrics
from assay.metrics.signature import parse_signature, signature
from thinning import every_third


@every_third
@pytest.mark.parametrize("kind", public_metrics().values(), ids=lambda kind: kind.__name__)
def test_a_signature_has_no_sign_that_separates_and_gives_the_metric_back(kind):
    for metric in examples(kind):
        text = signature(metric, 898)
        assert not set(text) & set(' \n\t"'), text
        if "fn=" in text:
            with pytest.raises(ConfigError, match="Pass the metric itself"):
                parse_signature(text)
        else:
            assert parse_signature(text) == metric, text


def test_a_signature_names_every_option_the_samples_the_weights_and_the_version_last():
    line = signature(F1Score(num_classes=10, average="weighted"), 7, weighted=True)
    assert line.startswith("f1|average:weighted|classes:10|logits:no|")
    assert line.split("|")[-3:-1] == ["n:7", "weighted:yes"]
    assert line.split("|")[-1].startswith("assay:")


@pytest.mark.parametrize(
    "text", ["f1", "f1|n:3|assay:1|weighted:no", "nothing|n:3|weighted:no|assay:1", "f1|x:1|n:3|weighted:no|assay:1"]
)
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(ConfigError, match="signature"):
        parse_signature(text)
