"""A finding about a state points to the line that makes it, however deep in other metrics it is kept."""

from __future__ import annotations

import inspect

import pytest
import torch

from assay.audit.running.exercise import _state_frames


class Counter:
    def __init__(self):
        self.total = torch.zeros(())
        self.rows = {"seen": torch.zeros(())}

    def update(self, values):
        self.total = self.total + len(values)

    def compute(self):
        return self.total


class Group:
    def __init__(self):
        self.metrics = {1: Counter(), "two": Counter()}
        self.inner = Counter()

    def update(self, values):
        for metric in self.metrics.values():
            metric.update(values)

    def compute(self):
        return 0


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("inner.total", "self.total = torch.zeros(())"),
        ("metrics.1.total", "self.total = torch.zeros(())"),
        ("metrics.two.total", "self.total = torch.zeros(())"),
        ("inner.rows.seen", 'self.rows = {"seen": torch.zeros(())}'),
    ],
)
def test_the_line_is_where_the_inner_metric_makes_its_state(path, line):
    (frame,) = _state_frames(path, Group())
    source = inspect.getsource(inspect.getmodule(Counter)).splitlines()
    assert source[frame.line - 1].strip() == line
