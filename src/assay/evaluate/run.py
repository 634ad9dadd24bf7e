"""`evaluate`: a model, data and metrics become a report."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch

from assay.devices.assign import Assigned, assign
from assay.devices.names import name_of
from assay.errors import ConfigError, describe
from assay.evaluate.account import Account, Lists, Proof
from assay.evaluate.batch import Reader, Selector
from assay.evaluate.checkpoint import Checkpoints, fingerprint
from assay.evaluate.forward import Forward, locations, ready
from assay.evaluate.loop import Loop
from assay.evaluate.progress import Progress
from assay.evaluate.ranks import TIMEOUT_S, Ranks, local_rank, process_group
from assay.evaluate.source import Source, source
from assay.evaluate.values import section
from assay.meter import Meter
from assay.meter.file import Description
from assay.metrics.base import Metric
from assay.report import Report, Table

ON_ERROR = ("raise", "skip")


@dataclass(frozen=True)
class Options:
    """How an evaluation is run; the arguments of `evaluate`."""

    device: str | torch.device = "auto"
    inputs: Selector = None
    target: Selector = None
    preds: Selector = None
    weights: Selector = None
    ids: Selector = None
    precision: str | None = None
    compile: bool | Mapping[str, Any] = False
    batch_size: int = 64
    num_workers: int = 0
    shards: bool | None = None
    resume: str | os.PathLike[str] | None = None
    checkpoint_s: float = 30.0
    on_error: str = "raise"
    progress: bool | None = None
    seed: int = 0
    title: str = "Evaluation"
    rank_timeout_s: float = TIMEOUT_S


def evaluate(
    model: Callable[..., Any],
    data: Any,
    metrics: Metric | Meter | Mapping[str, Metric] | Sequence[Metric],
    *,
    device: str | torch.device = "auto",
    inputs: Selector = None,
    target: Selector = None,
    preds: Selector = None,
    weights: Selector = None,
    ids: Selector = None,
    precision: str | None = None,
    compile: bool | Mapping[str, Any] = False,
    batch_size: int = 64,
    num_workers: int = 0,
    shards: bool | None = None,
    resume: str | os.PathLike[str] | None = None,
    checkpoint_s: float = 30.0,
    on_error: str = "raise",
    progress: bool | None = None,
    seed: int = 0,
    title: str = "Evaluation",
    rank_timeout_s: float = TIMEOUT_S,
) -> Report:
    """Measure a model on data: every sample once, on any device and any number of processes.

    The model runs in evaluation mode and in `torch.inference_mode`, and gets back the mode of each of its modules and
    its device, whatever happens. Random numbers of the process stay as they were.

    Args:
        model: a module, or any function.
        data: a `DataLoader`, a data set with indices, or batches to iterate over.
        metrics: one, several, several by name, or a meter, which stays as it is.
        device: where to run; "auto": where the model is unless on the CPU, else the first accelerator, else the CPU.
        inputs: how a batch becomes what the model takes: a name, a position, several of them, or a function. Not needed
            for pairs `(x, y)`, tuples of inputs and a target, and batches with names of which one is that of a target.
        target: how a batch becomes the target.
        preds: how the model's outputs become predictions; not needed for tensors and outputs with `logits`.
        weights: how a batch becomes weights of the samples; None for none.
        ids: how a batch becomes the ids of its samples. Samples of a data set with indices are known by those, and ids
            name them in messages. Of a stream, a sample whose id was there before is not counted again.
        precision: "bfloat16" or "float16" for autocast; None for that of the model.
        compile: pass the model through `torch.compile`, with these options.
        batch_size: of a data set that comes without a loader.
        num_workers: processes that load such a data set.
        shards: with several processes: every one has samples of its own (True), all have the same data (False), or
            find out (None).
        resume: a folder for checkpoints. What is there is gone on from, with the bits of a run without interruption.
        checkpoint_s: seconds between checkpoints.
        on_error: "raise", or "skip" to leave out batches that fail; the report says which.
        progress: draw a bar; None: where the error stream is a terminal.
        seed: of random numbers of the host, such as those of a sampler that shuffles.
        title: of the report.
        rank_timeout_s: seconds after which a process that says nothing is taken for dead.

    Returns:
        The report, the same on all processes: values, the proof that every sample was counted once, and what was
        decided and why.

    Raises:
        ConfigError: an option, the data or a batch cannot be understood; shows what was found.
        BatchError: a batch failed; names its samples.
        RankError: another process failed or is gone.
        StateError: a checkpoint cannot be gone on from.

    Example:
        >>> from assay import Accuracy, evaluate
        >>> x = torch.eye(3)
        >>> data = torch.utils.data.TensorDataset(x, torch.tensor([0, 1, 1]))
        >>> report = evaluate(torch.nn.Identity(), data, Accuracy(num_classes=3), device="cpu")
        >>> round(report.sections[0].values[0].value, 4), report.sections[0].tables[0].rows[:2]
        (0.6667, (('expected', 3), ('seen', 3)))
    """
    options = Options(
        device,
        inputs,
        target,
        preds,
        weights,
        ids,
        precision,
        compile,
        batch_size,
        num_workers,
        shards,
        resume,
        checkpoint_s,
        on_error,
        progress,
        seed,
        title,
        rank_timeout_s,
    )
    _check(options)
    with process_group(), Ranks(rank_timeout_s) as ranks, _seeded(seed):
        return _evaluate(model, data, metrics, options, ranks)


def _check(options: Options) -> None:
    if options.on_error not in ON_ERROR:
        raise ConfigError(describe("on_error", repr(options.on_error), " or ".join(ON_ERROR), "Correct it"))
    if not isinstance(options.batch_size, int) or options.batch_size < 1:
        raise ConfigError(describe("batch_size", repr(options.batch_size), "a whole number above 0", "Correct it"))


def _evaluate(model: Callable[..., Any], data: Any, metrics: Any, options: Options, ranks: Ranks) -> Report:
    start = time.perf_counter()

    def prepared() -> tuple[Meter, Reader, Assigned, Forward]:
        reader = _reader(model, options)
        assigned = assign(options.device, locations(model), None if ranks.alone else local_rank())
        meter = _meter(metrics, reader.weighted)
        runs = torch.compile(model, **_compile(options)) if options.compile else model
        return meter, reader, assigned, Forward(runs, reader, assigned, options.precision)

    made: list[tuple[Meter, Reader, Assigned, Forward]] = []
    ranks.gather(lambda: made.append(prepared()))
    alike = ranks.alone or len(set(ranks.gather(lambda: fingerprint(model)))) == 1
    meter, reader, assigned, forward = made[0]
    seen = source(
        data,
        ranks,
        batch_size=options.batch_size,
        num_workers=options.num_workers,
        pin=assigned.pin.value,
        shards=options.shards,
    )
    account = _account(seen, reader)
    identity = _identity(model, meter, seen, options, ranks)
    checkpoints = Checkpoints(options.resume, identity, ranks, options.checkpoint_s)
    done, position = checkpoints.restore(meter, account)
    loop = Loop(forward, reader, meter, account, checkpoints, ranks, options.on_error, position=position)
    left = _left(seen, done, position)
    total = len(left) if not isinstance(left, int) else seen.total
    with ready(model, assigned.device.value), Progress(meter, total, options.progress, ranks.own, ranks.count) as bar:
        try:
            loop.run(seen.batches(left), bar.watcher)
        except BaseException:
            with suppress(Exception):  # the first error is the one to be told
                loop.save()
            raise
        loop.save()
    ranks.meet()
    return _reported(loop, seen, assigned, options, start, alike)


def _account(seen: Source, reader: Reader) -> Account:
    if seen.shares is None:
        return Account(None, keyed=reader.has_ids)
    return Account(seen.shares.expected, seen.shares.repeated)


def _left(seen: Source, done: Any, position: int) -> Lists | int:
    """What is still to be counted: batches without the samples that were, or the place in the stream."""
    if seen.shares is None:
        return position
    if done is None:
        return seen.shares.lists
    left = [batch[~done[batch]] for batch in seen.shares.lists]
    return [batch for batch in left if len(batch)]


def _reported(loop: Loop, seen: Source, assigned: Assigned, options: Options, start: float, alike: bool) -> Report:
    ranks = loop.ranks
    told = ranks.gather(lambda: (str(assigned.device.value), loop.failures, str(loop.limit), _rounded(loop.forward)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total = loop.meter.sync()
        found = total.compute()
    proof = loop.account.proof(ranks, total.rows)
    duration = loop.checkpoints.before_s + time.perf_counter() - start
    for each in caught:
        warnings.warn(each.message, stacklevel=4)
    failures = [failure for _, of_rank, _, _ in told for failure in of_rank]
    notes = [str(each.message) for each in caught] + _notes(proof, seen, failures)
    if not alike:
        notes.append("The model has other values on other processes: they measured different models, or parts of one.")
    decisions = _decisions(loop, seen, assigned, options, told)
    run = [
        ("samples", f"{total.rows:,}"),
        ("processes", f"{ranks.count}"),
        ("seed", f"{options.seed}"),
        ("samples a second", f"{total.rows / max(duration, 1e-9):,.0f}"),
    ]
    if options.resume is not None:
        run.append(("samples from checkpoints", f"{loop.checkpoints.resumed_rows:,}"))
    tables = [proof.table(), decisions, Table("Run", ("what", "value"), tuple(run))]
    if failures:
        tables.append(Table("Batches left out", ("error", "samples"), tuple(failures)))
    kinds = {name: type(metric).__name__ for name, metric in total.metrics.items()}
    measured = section(options.title, found, kinds, total.rows, tables)
    devices = ", ".join(dict.fromkeys(f"{device} ({name_of(torch.device(device))})" for device, *_ in told[:1]))
    return Report(options.title, (measured,), device=devices, notes=tuple(notes), duration_s=duration)


def _notes(proof: Proof, seen: Source, failures: list[tuple[str, str]]) -> list[str]:
    known = proof.expected is not None or proof.twice is not None
    notes = [f"Every sample once: {proof}." if known else f"Samples are known by {proof.by}: {proof}."]
    if seen.unused:
        notes.append(f"The loader gives {seen.unused:,} samples of the data set to nobody (a sampler, or drop_last).")
    if failures:
        notes.append(f"{len(failures)} batches failed and were left out: {proof.skipped:,} samples.")
    if not proof.whole and not failures:
        notes.append("Not every sample was counted exactly once.")
    return notes


def _decisions(loop: Loop, seen: Source, assigned: Assigned, options: Options, told: list[Any]) -> Table:
    rows: list[tuple[str, str, str]] = [
        ("device", str(assigned.device.value), assigned.device.reason),
        ("pinned memory", _yes(assigned.pin.value), assigned.pin.reason),
        ("non-blocking copies", _yes(assigned.non_blocking.value), assigned.non_blocking.reason),
        ("precision", options.precision or "the model's", "asked for" if options.precision else "none was asked for"),
        ("data", seen.how, "" if seen.shares is None else seen.shares.how),
    ]
    memory = list(dict.fromkeys(each[2] for each in told))
    rows.append(("memory", "; ".join(memory), "learnt when memory runs out"))
    rows += list(dict.fromkeys(decision for each in told for decision in each[3]))
    return Table("Decisions", ("what", "choice", "why"), tuple(rows))


def _rounded(forward: Forward) -> list[tuple[str, str, str]]:
    lacks = f"{forward.device} has no such dtype"
    found = [("inputs", f"{dtype} was rounded to a narrower dtype", lacks) for dtype in forward.narrowed]
    do = "a cast in the data set would keep them on the device"
    return found + [
        ("target", f"{dtype} meets the predictions on the host", f"{lacks}; {do}") for dtype in forward.on_host
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _reader(model: Callable[..., Any], options: Options) -> Reader:
    return Reader(
        model,
        inputs=options.inputs,
        target=options.target,
        weights=options.weights,
        ids=options.ids,
        preds=options.preds,
    )


def _meter(metrics: Any, weighted: bool) -> Meter:
    """A meter that has counted nothing."""
    if isinstance(metrics, Meter):
        return metrics.fresh()
    if isinstance(metrics, Metric):
        return Meter(metrics, weighted=weighted)
    if isinstance(metrics, Mapping):
        return Meter(weighted=weighted, **metrics)
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        return Meter(*metrics, weighted=weighted)
    raise ConfigError(describe("metrics", type(metrics).__name__, "a metric, several, or a meter", "Pass Accuracy()"))


def _compile(options: Options) -> dict[str, Any]:
    return dict(options.compile) if isinstance(options.compile, Mapping) else {}


def _identity(model: Any, meter: Meter, seen: Source, options: Options, ranks: Ranks) -> dict[str, Any]:
    """What must be the same when an evaluation goes on."""
    if options.resume is None:
        return {}
    metrics = json.loads(Description.of(meter.metrics, meter.weighted, 0).to_json())
    data: Any = f"a stream on {ranks.count} ranks"
    if seen.shares is not None:
        data = [len(seen.shares.expected), hashlib.sha256(seen.shares.expected.tobytes()).hexdigest()]
    return {"metrics": metrics, "data": data, "model": fingerprint(model), "precision": options.precision}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random numbers of the host from a seed, and afterwards those that would have come."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
