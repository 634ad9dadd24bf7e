"""The meter itself: what it adds up, and what it says of arguments that cannot be."""

from __future__ import annotations

import torch

from assay import Meter
from assay.metrics import F1Score

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
