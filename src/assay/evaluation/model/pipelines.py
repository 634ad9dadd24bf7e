"""Models in the stages of `torch.distributed.pipelining`: each process has some layers, the last one the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from assay.errors import ConfigError, describe
from assay.evaluation.model.fixed_rows import in_parts, rows_of
from assay.evaluation.processes.reachable import modules_of

_KNOWS_SHAPES = (
    *("_stage_initialized", "_stage_forward_initialized", "_stage_backward_initialized"),
    *("_stages_initialized", "_stages_forward_initialized", "_stages_backward_initialized"),
)
"""Where schedules of different releases of torch note that their stages know the shapes of what they receive."""
_LOSS = "_loss_fn"


class PipelineModel(nn.Module):
    """A schedule of a pipeline as a module that all its processes call with the same batch.

    Stages keep the shapes of the first microbatch, and give stale rows for others without an error. So every batch has
    the same number of rows here: missing ones are copies of the last row, whose outputs are dropped. Where inputs have
    other shapes in other dimensions, such as more tokens, stages find out the shapes again.

    Args:
        schedule: such as `ScheduleGPipe`.

    Attributes:
        parts: the layers of this process.
        group: the processes of the pipeline.
        has_outputs: whether this process has the last stage; the others return None.
        rows: how many rows a call has; 0 before the first.

    Raises:
        ConfigError: the schedule is not one of a release that is known.
    """

    def __init__(self, schedule: Any) -> None:
        super().__init__()
        stages = getattr(schedule, "_stages", None) or [getattr(schedule, "_stage", None)]
        count = getattr(schedule, "_n_microbatches", None)
        known = hasattr(schedule, "eval") and any(hasattr(schedule, name) for name in _KNOWS_SHAPES)  # 2.6 has no eval
        if None in stages or not isinstance(count, int) or not known:
            got = f"{type(schedule).__qualname__} without eval, stages or the number of microbatches"
            do = "Use torch 2.13, or pass a function that calls it, with mesh= and a dimension pp"
            raise ConfigError(describe("model", got, "a schedule of torch.distributed.pipelining", do))
        self.group = stages[0].group or dist.group.WORLD
        places = [stage.stage_index for stage in stages]
        if len({place % dist.get_world_size(self.group) for place in places}) > 1:  # torch's own `eval` fails for them
            got = f"{type(schedule).__qualname__}, with stages {', '.join(map(str, places))} on one process"
            do = "Evaluate with ScheduleInterleaved1F1B, whose process k of n has the stages k, k + n, ..."
            raise ConfigError(describe("model", got, "a schedule that torch runs without gradients", do))
        self.parts = nn.ModuleList(stage.submod for stage in stages)
        self.has_outputs = any(stage.is_last for stage in stages)
        self.rows = 0
        self._shapes: list[tuple[Any, torch.Size]] | None = None
        self._schedule, self._microbatches = schedule, count
        self._takes_inputs = any(stage.is_first for stage in stages)

    def expect(self, rows: int) -> None:
        """Let each call have so many rows, or a few more: a multiple of the microbatches."""
        self.rows = -(-max(rows, 1) // self._microbatches) * self._microbatches

    def forget_shapes(self) -> None:
        """Let a call have any number of rows, and the stages find out anew in which shapes they receive."""
        self.rows = 0
        self._forget_shapes()

    def _forget_shapes(self) -> None:
        for name in _KNOWS_SHAPES:
            if hasattr(self._schedule, name):
                setattr(self._schedule, name, False)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inputs = (args, kwargs)
        rows = rows_of(inputs, "Give the first stage a tensor with a row for each sample")
        if not self.rows:
            self.expect(rows)
        shapes = [(each.dtype, each.shape[1:]) for each in tree_leaves(inputs) if isinstance(each, Tensor)]
        if shapes != self._shapes:
            self._forget_shapes()
        self._shapes = shapes
        return in_parts(self._run, inputs, rows, self.rows, self.rows)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        with _without_loss(self._schedule):
            try:
                return self._schedule.eval(*args, **kwargs) if self._takes_inputs else self._schedule.eval()
            except RuntimeError as error:  # torch says in which stage, and not what was raised there
                raise error.__cause__ or error from None


@contextmanager
def _without_loss(schedule: Any) -> Iterator[None]:
    """A schedule that computes no loss, for which it has no target; torch asks `eval` for one, too."""
    loss = getattr(schedule, _LOSS, None)
    setattr(schedule, _LOSS, None)
    try:
        yield
    finally:
        setattr(schedule, _LOSS, loss)


def as_pipeline(model: Any) -> Any:
    """A schedule as a module; any other model unchanged."""
    is_schedule = any(base.__name__ == "_PipelineSchedule" for base in type(model).__mro__)
    return PipelineModel(model) if is_schedule else model


@contextmanager
def own_shapes(model: Any, rows: int = 0) -> Iterator[None]:
    """Inside, the pipelines in a model have batches of so many rows; before and after it, of any other.

    Args:
        model: any model.
        rows: of the largest batch; 0 where that is not known.
    """
    pipelines = [each for each in modules_of(model) if isinstance(each, PipelineModel)]
    for each in pipelines:
        each.forget_shapes()
        if rows:
            each.expect(rows)
    try:
        yield
    finally:
        for each in pipelines:
            each.forget_shapes()
