"""A report in TensorBoard's files, read back by TensorBoard."""

from __future__ import annotations

import math
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

from assay.errors import ConfigError
from assay.integrations import log_to_tensorboard
from integrations import tracked

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_scalars_and_text_by_step(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in (3, 4):
            log_to_tensorboard(tracked.report(), writer, step, prefix="val/")
    found = EventAccumulator(str(tmp_path)).Reload()
    events = found.Scalars("val/accuracy")
    assert [(event.step, event.value) for event in events] == [(3, 0.9375), (4, 0.9375)]
    assert found.Scalars("val/accuracy_lower")[0].value == pytest.approx(0.9)
    assert math.isnan(found.Scalars("val/undefined")[0].value)
    text = found.Tensors("val/report/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| cat" in text
    assert "accuracy" in text


def test_a_writer_that_is_none():
    with pytest.raises(ConfigError, match="writer: got str, expected a SummaryWriter"):
        log_to_tensorboard(tracked.report(), "runs")
