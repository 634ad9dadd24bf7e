"""`evaluate`: a model, data and metrics become a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from assay.devices.assign import DeviceAssignment, assign
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.loop_inputs import Inputs, open_inputs
from assay.evaluation.arguments.options import EvaluateOptions, Metrics, takes_options
from assay.evaluation.arguments.preparation import meter_of, sample_observers
from assay.evaluation.data.batch import Reader, Selector, parse_shown
from assay.evaluation.data.coverage import CoverageTracker, Lists
from assay.evaluation.data.data_source import DataSource, Trail, open_source
from assay.evaluation.errors import BatchError
from assay.evaluation.loop.equal_steps import one_by_one, up_to
from assay.evaluation.loop.loop import Loop
from assay.evaluation.loop.progress import EvaluationProgress
from assay.evaluation.model.data_parallel import broadcast_buffers, buffers_of_rank_0
from assay.evaluation.model.decision_traces import EvaluatedModel
from assay.evaluation.model.forward import Forward, homes, ready
from assay.evaluation.model.pipelines import own_shapes
from assay.evaluation.model.prediction_sample import PredictionSample
from assay.evaluation.model.repredictions import Repredictions, note_of_repredictions, repredictions
from assay.evaluation.observe.clusters import ClustersByIndex, is_selector
from assay.evaluation.observe.observers import Observer, Observers
from assay.evaluation.observe.slices import SliceSpec
from assay.evaluation.processes.companions import Companions, check_outputs
from assay.evaluation.processes.join import Hello, companions_of, connected, grad_mode_of, hello, join
from assay.evaluation.processes.ranks import Ranks, local_rank, process_group
from assay.evaluation.results.diagnostics import Diagnostics, choose_diagnostics
from assay.evaluation.results.early_end import EarlyEnd, in_random_order
from assay.evaluation.results.final_report import FinishedEvaluation, build_report
from assay.evaluation.results.provenance import file_digests, origin_of
from assay.evaluation.resume.checkpoint import Checkpoints
from assay.evaluation.resume.identity import Identity
from assay.evaluation.resume.termination import Termination, saves_on_sigterm
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.report import Report
from assay.report.origin import ReportOrigin

_MOST_SPARE = 64
TRAIL_BYTES = 1 << 15
"""Of a tensor in a stream, at its beginning and at its end, that tell streams apart."""


@takes_options(EvaluateOptions)
def evaluate(
    model: Callable[..., Any],
    data: Any,
    metrics: Metrics,
    **options: Any,
) -> Report:
    """Measure a model on data: every sample once, on any device and any number of processes.

    The model runs in evaluation mode and in `torch.inference_mode`, and gets back the mode of each of its modules and
    its device, also after an error. Random numbers of the process stay as they were.

    Args:
        model: a module, an exported program, TorchScript, any function, or an estimator as scikit-learn has them.
            Metrics of labels and numbers are given what it has in `predict`, those of scores what it has in
            `predict_proba`, or in `decision_function` with `logits=True`; see docs/evaluate.md.
        data: a `DataLoader`, a data set with indices (also one of Hugging Face), or batches to iterate over. In memory:
            an array, a tuple of arrays or tensors `(x, y)`, arrays by name, or a frame of pandas or Polars whose
            columns `target` and others name. A list is always one of batches. In a file: its path, or a folder of
            images, as `assay evaluate --data` takes them (docs/evaluate.md); or what `assay.data.open_path` gives.
        metrics: one, several, several by name, or a meter, which is not changed; or as the command line writes them,
            "accuracy,f1:average=macro": then of `num_classes`, or as many classes as an estimator or `classes` has.
        device: where to run; "auto": where the model is unless on the CPU, else the first accelerator, else the CPU.
        inputs: how a batch becomes what the model takes: a name, a position, several of them, or a function. Not needed
            for pairs `(x, y)`, tuples of inputs and a target, and batches with names of which one is that of a target.
            Of a file, the columns that the model gets by their names.
        features: of a file or a frame, the columns that become one float tensor; `p*` stands for all that begin with p.
            By default these are all columns that have no other use.
        target: how a batch becomes the target.
        preds: how the model's outputs become predictions; not needed for tensors and outputs with `logits`.
        weights: how a batch becomes weights of the samples; None for none.
        ids: how a batch becomes the ids of its samples. In a data set with indices those identify samples, and ids
            name them in messages and reports. Of a stream, a sample whose id was there before is not counted again.
        cluster: how a batch becomes the clusters of its samples, integers or strings: samples of one cluster, such as
            the questions on a passage or the frames of a video, may depend on each other. Intervals, and the tests of
            `compare` and `gate`, respect that. Of data with indices also an array, one a sample.
        columns: by name, how a batch becomes the named columns that metrics take, such as `indexes` of retrieval; by
            default the part of the batch with that name.
        slices: what to measure parts of the samples by: names of parts of a batch that have a value for every sample,
            or selectors (a name, a position, a function) by name; a tuple of names for several of them crossed. As
            text: "sex,sex*age". Of arrays `(x, y)` also an array by name, with one value a sample. Where samples have
            lists of values, each value is a slice of all samples that have it.
        by: parts of a batch of many values, such as users, shops or queries, up to a million each: the report has a
            table with a row for each value, of the metrics that are means over samples, and how much they differ
            beyond chance.
        min_slice_size: slices of fewer samples are shown, but never named as the worst.
        confidence_level: of intervals; None for no intervals.
        n_resamples: how often the bootstrap draws, where no closed-form interval is standard.
        keep_samples: keep the per-sample values of the metrics, so that reports can be compared sample by sample.
        max_kept_samples: keep them of at most this many samples. Those of more than 2,000,000 are written to temporary
            files while they are counted, and saved in an Arrow file beside the report, which takes pyarrow.
        diagnostics: show what the metrics allow: confusion matrix, curves, reliability, a table of classes, residuals.
        show: what the report shows of the worst queries of a ranking metric and of their documents, such as their
            text: names of parts of a batch, or selectors by name. It is read from the data set once more.
        classes: names of the classes or labels, for the report.
        num_classes: the number of classes of metrics that are written as text.
        precision: "bfloat16" or "float16" for autocast; None for that of the model.
        compile: pass the model through `torch.compile`, with these options.
        batch_size: of a data set that comes without a loader; None where an `IterableDataset` gives batches, such as a
            WebDataset after `batched` or a Hugging Face stream after `batch`.
        num_workers: processes that load such a data set.
        sharded: with several processes: every one has samples of its own (True), all have the same data (False), or
            find out (None).
        mesh: with a model that is shared among processes (tensor parallel, fully sharded) whose parameters do not say
            it: what the dimensions of its mesh are, such as `{"x": "fsdp", "y": "tp"}`, a `DeviceMesh` whose dimensions
            have names, or their sizes, as `{"dp": 2, "tp": 4}` or "dp=2,tp=4"; see docs/evaluate.md.
        data_group: the same, as the process group whose members have different samples.
        resume: a folder for checkpoints. The evaluation resumes from what is there, with the bits of a run without
            interruption; a checkpoint of other data, another model, functions, options or metrics is refused.
        run_id: with `resume`, a name for what cannot be distinguished from others by its values: an object with a
            lock, or samples with other values each time. Give it another name whenever that changes.
        checkpoint_every: how often to write a checkpoint, in seconds.
        on_error: "raise", or "skip" to leave out batches that fail; the report says which.
        progress: draw a bar; None: where the error stream is a terminal.
        seed: of random numbers on the CPU, such as those of a sampler that shuffles.
        title: of the report.
        rank_timeout_s: seconds after which a process that says nothing is taken for dead.
        stop_when: end as soon as rules are decided, by intervals that hold at any number of looks: rules as `gate`
            takes them, such as `{"min": {"accuracy": 0.9}}`, or `assay.report.StopWhen` with a baseline. The samples
            of a data set with indices are read in random order, on one process; whole clusters where `cluster` is an
            array.
        recount: which batches of a device the CPU counts once more: "sampled", "all" or "off"; None for what the meter
            has, else "sampled". The report says how many they were; see docs/proof.md.
        verify: predict this many random samples again, by a copy of the model on the CPU and in other batches; a note
            says how far predictions are apart, what that is worth in accuracy, and which decisions differ, from which
            operator on.
        verify_dtype: of that copy: "float32" or "float64".

    Returns:
        The report, the same on all processes: values with intervals, slices, what each sample contributed, details,
        the proof that every sample was counted once, and what was decided and why.

    Raises:
        ConfigError: an option, the data or a batch is invalid, or processes have different models; shows
            what was found.
        BatchError: a batch failed; names its samples.
        RankError: another process failed or is gone.
        StateError: the evaluation cannot resume from a checkpoint.

    Example:
        >>> from assay import Accuracy, evaluate
        >>> x = torch.eye(3)
        >>> data = torch.utils.data.TensorDataset(x, torch.tensor([0, 1, 1]))
        >>> report = evaluate(torch.nn.Identity(), data, Accuracy(num_classes=3), device="cpu")
        >>> value = report.sections[0].values[0]
        >>> round(value.value, 4), round(value.lower, 4), round(value.upper, 4), value.note
        (0.6667, 0.2077, 0.9385, "Wilson's interval; fewer than 5 of one kind: it may hold the true value less often")
        >>> report.notes[0]
        'Every sample once: 3 expected, 3 counted, 0 duplicated, 0 missed.'
    """
    return evaluate_with_options(model, data, metrics, EvaluateOptions(**options))


def evaluate_with_options(
    model: Callable[..., Any],
    data: Any,
    metrics: Any,
    options: EvaluateOptions,
    more: Mapping[str, Observer] | None = None,
) -> Report:
    """`evaluate` with its options as one value.

    Args:
        model: see there.
        data: see there.
        metrics: see there.
        options: all the rest.
        more: by name, what else is to follow the samples; of several processes each keeps its own part.
    """
    ends_whole = saves_on_sigterm(options.resume is not None)
    with ends_whole as termination, process_group(), Ranks(options.rank_timeout_s) as ranks, _seeded(options.seed):
        start = time.perf_counter()
        prepared: list[_Preparation] = []

        def prepare() -> Hello | None:
            prepared.append(_prepare(open_inputs(model, data, metrics, options), ranks))
            inner = prepared[0].inputs.model
            return hello(inner, options.mesh, options.data_group, ranks, buffers_of_rank_0(model))

        everyone = [each for each in ranks.gather(prepare) if each is not None]
        companions = _join(prepared[0], everyone, ranks) if everyone else None
        broadcast_buffers(model)
        return _evaluate(prepared[0], ranks, more or {}, start, termination, companions)


@dataclass(frozen=True)
class _Preparation:
    """What is known before the data are looked at."""

    inputs: Inputs
    metrics: dict[str, Metric]
    diagnostics: Diagnostics
    meter: Meter
    slices: SliceSpec
    reader: Reader
    assigned: DeviceAssignment
    forward: Forward


def _evaluate(
    preparation: _Preparation,
    ranks: Ranks,
    more: Mapping[str, Observer],
    start: float,
    termination: Termination,
    companions: Companions | None,
) -> Report:
    model, data, options = preparation.inputs.model, preparation.inputs.data, preparation.inputs.options
    meter, assigned = preparation.meter, preparation.assigned
    identity = Identity(options.run_id)
    trail = None
    if options.resume is not None and options.run_id is None:
        trail = Trail(lambda batch: identity.digest(batch, "data", tensor_bytes=TRAIL_BYTES))
    source = open_source(
        data,
        ranks,
        batch_size=options.batch_size,
        num_workers=options.num_workers,
        pin=assigned.pin.value,
        sharded=options.sharded,
        trail=trail,
        has_ids=preparation.reader.has_ids,
    )
    clusters = ClustersByIndex.of(options.cluster, None if source.shares is None else len(source.shares.expected))
    if options.stop_when is not None:
        _check_alone(ranks)
        source = in_random_order(source, options.seed, None if clusters is None else clusters.numbers)
    if source.shares is None:
        coverage = CoverageTracker(None, keyed=preparation.reader.has_ids)
    else:
        coverage = CoverageTracker(source.shares.expected, source.shares.repeated)
    has_ids = source.shares is not None or preparation.reader.has_ids
    expected = int(source.shares.expected.sum()) if source.shares is not None else 0 if has_ids else None
    like = meter.fresh(preparation.metrics, recount="off")
    own = sample_observers(like, preparation.slices, options, expected, ranks.alone, in_files=True)
    observers = Observers(preparation.reader, {**own, **more}, clusters=clusters, meter=meter)
    early = EarlyEnd.of(options, preparation.metrics, observers, own.get("samples"), coverage, clusters)
    run = {} if options.resume is None else identity.of(model, meter, source, options, ranks)
    checkpoints = Checkpoints(
        options.resume, run, ranks, options.checkpoint_every, trail if source.shares is None else None
    )
    counted, position = checkpoints.restore(meter, observers, coverage)
    loop = Loop(
        preparation.forward,
        preparation.reader,
        meter,
        observers,
        coverage,
        checkpoints,
        ranks,
        options.on_error,
        position=position,
        termination=termination,
        companions=companions,
        grad_mode=grad_mode_of(ranks),
        spare=lambda: _spare(source),
        is_decided=None if early is None else early.is_decided,
    )
    remaining = _remaining(source, counted, position)
    total = len(remaining) if not isinstance(remaining, int) else source.total
    progress = EvaluationProgress(meter, total, options.progress, ranks.own, ranks.place.count, preparation.metrics)
    units = source.batches(remaining)
    most, rows = (0, 0) if companions is None or isinstance(remaining, int) else _most(remaining, ranks)
    with ready(model, assigned.device.value), own_shapes(model, rows), connected(companions, ranks), progress as bar:
        if companions is not None and isinstance(remaining, int):
            units = one_by_one(units, companions.most, companions.borrowed)
        elif companions is not None and not isinstance(remaining, int):
            units = up_to(units, len(remaining), most)
        try:
            loop.run(units, bar.watcher)
        except BaseException:
            with suppress(Exception):  # the first error is the one to raise
                loop.save()
            raise
        loop.save()
    if early is not None:
        early.end()
    ranks.note(loop.position, "reporting")
    ranks.meet()
    if companions is not None:
        check_outputs(ranks.gather(companions.outputs))

    def origin() -> ReportOrigin:
        return origin_of("evaluate", options, file_digests(preparation.inputs.file), model)

    report = build_report(
        FinishedEvaluation(loop, preparation.metrics, preparation.diagnostics, source, assigned, options, start, origin)
    )
    report = report if early is None else early.reported(report)
    notes = (*report.notes, *preparation.inputs.notes, *_repredicted(preparation, ranks, report))
    return replace(report, notes=notes)


def _repredicted(preparation: _Preparation, ranks: Ranks, report: Report) -> tuple[str, ...]:
    """What predictions that are made again on the CPU say; nothing where they were not asked for."""
    sample, inputs = preparation.forward.sample, preparation.inputs
    if sample is None:
        return ()
    options, values = inputs.options, report.sections[0].values if report.sections else ()
    forward = Forward(inputs.model, preparation.reader, preparation.assigned, options.precision)  # not compiled
    at = preparation.assigned.device.value
    evaluated = EvaluatedModel(inputs.model, forward.outputs_of, lambda: ready(inputs.model, at))

    def again() -> Repredictions:
        if ranks.place.communicates or len(ranks.place.members) > 1:
            return Repredictions(failure="processes share the model")
        preds = preparation.reader.preds
        return repredictions(sample, inputs.model, preds, options.verify_dtype, evaluated, ranks.on_this_machine)

    return (note_of_repredictions(ranks.gather(again), options.verify_dtype, values),)


def _check_alone(ranks: Ranks) -> None:
    if not ranks.alone:
        do = "Run on one process, or leave stop_when out"
        raise ConfigError(describe("stop_when", f"{ranks.count} processes", "one, which sees all samples", do))


def _prepare(inputs: Inputs, ranks: Ranks) -> _Preparation:
    model, metrics, options = inputs.model, inputs.metrics, inputs.options
    slices = options.slice_spec
    meter_of_metrics = meter_of(metrics, options.weights is not None)
    columns: dict[str, Selector] = {name: name for name in meter_of_metrics.columns}
    reader = Reader(
        model,
        inputs=options.inputs,
        target=options.target,
        weights=options.weights,
        ids=options.ids,
        preds=options.preds,
        slices=slices.selectors,
        cluster=options.cluster if is_selector(options.cluster) else None,
        columns=columns | dict(options.columns or {}),
        shown=parse_shown(options.show),
        raw=meter_of_metrics.takes_raw,
    )
    assigned = assign(options.device, homes(model), None if ranks.alone else local_rank())
    diagnostics = choose_diagnostics(
        meter_of_metrics.metrics, meter_of_metrics.weighted, options.classes, options.diagnostics
    )
    recount = options.recount or meter_of_metrics.options.recount
    meter = meter_of_metrics.fresh({**meter_of_metrics.metrics, **diagnostics.metrics}, recount=recount)
    forward = Forward(_compiled(model, options), reader, assigned, options.precision)
    if options.verify:
        own = options.verify // ranks.count + (ranks.own < options.verify % ranks.count)
        forward.sample = PredictionSample(own, options.seed, ranks.own)
    return _Preparation(inputs, meter_of_metrics.metrics, diagnostics, meter, slices, reader, assigned, forward)


def _join(preparation: _Preparation, everyone: Sequence[Hello], ranks: Ranks) -> Companions | None:
    """Take this process's place among the others; the processes that it shares the model with, where there are some."""
    options, forward = preparation.inputs.options, preparation.forward
    join(everyone, ranks)
    companions = companions_of(preparation.inputs.model, options.mesh, options.data_group, ranks)
    forward.guarded = companions is None
    if companions is not None:
        forward.outputs.members = ranks.place.members
        forward.outputs.classes = preparation.meter.plan.label_classes
    return companions


def _most(own: Lists, ranks: Ranks) -> tuple[int, int]:
    """The largest number of batches, and of their rows, of the processes whose forwards communicate with this one's."""
    everyone = ranks.gather(lambda: (len(own), max(map(len, own), default=0)))
    batches, rows = zip(*(everyone[rank] for rank in ranks.place.step), strict=True)
    return max(batches), max(rows)


def _spare(source: DataSource) -> Any:
    """A batch of one sample of the data set, for a process that could load none of its own."""
    indices = [] if source.shares is None else np.flatnonzero(source.shares.expected)[:_MOST_SPARE].tolist()
    for index in indices:
        for unit in source.read([index]):
            if unit.error is None:
                return unit.data
    got = "no sample that this process can load, while others call the model"
    do = "Give each process a batch, or fewer processes"
    raise BatchError(describe("data", got, "one sample or more on each process that shares the model", do))


def _remaining(source: DataSource, counted: Any, position: int) -> Lists | int:
    """What is still to be counted: batches without the samples that were, or the place in the stream."""
    if source.shares is None:
        return position
    if counted is None:
        return source.shares.lists
    remaining = [batch[~counted[batch]] for batch in source.shares.lists]
    return [batch for batch in remaining if len(batch)]


def _compiled(model: Any, options: EvaluateOptions) -> Any:
    if not options.compile:
        return model
    try:
        return torch.compile(model, **(options.compile if isinstance(options.compile, Mapping) else {}))
    except Exception as error:
        do = "Pass True, or options of torch.compile"
        raise ConfigError(
            describe("compile", f"{type(error).__name__}: {error}", "what torch.compile takes", do)
        ) from error


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random numbers on the CPU from a seed, and afterwards those that would have come."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
