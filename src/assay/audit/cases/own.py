"""assay's own metrics with inputs, so that ``assay audit assay`` holds them to what is asked of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from assay.audit.cases.case import Case
from assay.audit.tensor_trees import mapped
from assay.devices import policy
from assay.meter import Meter
from assay.metrics import Metric
from assay.metrics.samples import Draw, draw_columns, draw_for, examples, public_metrics

ROWS, BATCHES = 24, 3


def cases() -> Iterator[Case]:
    """A case for each example of each metric of assay."""
    for kind in public_metrics().values():
        yield from map(_case, examples(kind))


def _case(metric: Metric) -> Case:
    draw, generator = draw_for(metric), torch.Generator().manual_seed(0)
    values = {field.name: getattr(metric, field.name) for field in fields(metric) if field.init and field.repr}  # type: ignore[arg-type]
    defaults = {field.name: field.default for field in fields(metric)}  # type: ignore[arg-type]
    arguments = ", ".join(f"{key}={value!r}" for key, value in values.items() if value != defaults[key])
    return Case(
        f"assay.metrics.{type(metric).__name__}" + (f"({arguments})" if arguments else ""),
        lambda: Meter(value=metric, stage_bytes=0),  # the tallies run in each update, and not in compute
        tuple(_batch(metric, draw, generator) for _ in range(BATCHES)),
        update=lambda meter, batch: meter.update(*batch[:-1], **batch[-1]),
        move=_prepare,
        states=_states,
        computes_on_cpu=True,
    )


def _batch(metric: Metric, draw: Draw, generator: torch.Generator) -> tuple[Any, ...]:
    """The arguments of an update, with the named columns last; what is encoded on the CPU is given there."""
    arguments = draw(generator, ROWS)
    if any(encoder.on_cpu for encoder in metric.encoders):
        arguments = mapped(arguments, Tensor.numpy)
    return *arguments, draw_columns(metric, generator, ROWS)


def _states(meter: Meter) -> dict[str, Any]:
    """What was counted on devices; rows that an encoder makes on the CPU are counted there, wherever the caller is."""
    if any(encoder.on_cpu for metric in meter.metrics.values() for encoder in metric.encoders):
        return {}
    return {str(device): states for device, states in meter.device_states().items()}


def _prepare(meter: Meter, device: Any) -> Meter:
    """A meter counts where its batches are; what a device can do is found out at its first use, which is here."""
    policy(device)
    return meter
