"""`measure`: what quantization cost: outputs, quality, size and speed, before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from assay.devices.assign import assign
from assay.devices.modules import locations
from assay.devices.placement import move
from assay.errors import ConfigError, describe
from assay.evaluation import evaluate
from assay.evaluation.data.batch import Reader
from assay.evaluation.model.forward import autocast_dtype, ready
from assay.language import ByteTokenizer, CausalModel, Tokenizer, Windows
from assay.language.scoring import sentence_of, table_of
from assay.metrics.base import Metric
from assay.quantize.analysis import output_report
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.indexed_batches import BATCH, indexed_batches
from assay.quantize.analysis.output_comparison import check_pair, compare_outputs, prepare
from assay.quantize.analysis.speed import nbytes, paces
from assay.report import Report, Section, Table, Value, compare

BEFORE, AFTER = "before", "after"
Metrics = Metric | Mapping[str, Metric] | Sequence[Metric]


def measure(
    before: Callable[..., Any],
    after: Callable[..., Any],
    data: Any,
    metrics: Metrics | None = None,
    *,
    data_spec: DataSpec | None = None,
    confidence_level: float = 0.95,
    seed: int = 0,
    worst: int = 10,
    speed: Sequence[int] = (1, 8),
    title: str = "After quantization",
) -> Report:
    """What quantization cost: how far the outputs moved, quality by your metrics, size, and speed.

    Both models run on the same batches. The KL divergence of the outputs comes first: it tells schemes apart where
    perplexity or accuracy, which go up as well as down, are noise. It is measured in one pass of the project's loop,
    which proves that every sample was counted once. Intervals are over samples (windows of a text), and those of
    differences are paired.

    Args:
        before: the model as it was.
        after: the quantized one; another object, as both are needed.
        data: a loader, a data set with indices, batches that can be iterated over again; or a text or token ids for
            language models, which are cut into windows as `assay.language.perplexity` does.
        metrics: further metrics, one, several, or several by name; each is evaluated on both models.
        data_spec: how data are read and outputs compared; logits of classes in the last dimension by default.
        confidence_level: of the intervals.
        seed: where the random numbers of sign flips start.
        worst: how many of the worst samples to list.
        speed: sizes of batches to time, medians of several rounds; none for no timing.
        title: of the report.

    Returns:
        The report, with the sections "Outputs" (whose samples a later report can be compared with), "Quality" where
        there are metrics, "Size", "Speed" and "How it was measured".

    Raises:
        ConfigError: the same model twice, models in two places, data that cannot be read twice.
        ShapeError: outputs that cannot be compared.
        InvalidValuesError: outputs that are NaN, or targets that are no class.

    Example:
        >>> before, after = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
        >>> _ = after.load_state_dict({name: value.half().float() for name, value in before.state_dict().items()})
        >>> data = torch.utils.data.TensorDataset(torch.randn(20, 4), torch.arange(20) % 3)
        >>> report = measure(before, after, data, data_spec=DataSpec(device="cpu"), speed=())
        >>> [section.name for section in report.sections], report.sections[0].values[0].value < 1e-5
        (['Outputs', 'Size', 'How it was measured'], True)

    Source: KL divergence as the measure of quantization: llama.cpp, tools/perplexity/README.md.
    """
    check_pair(before, after)
    before, data, data_spec = prepare(before, data, data_spec or DataSpec())
    windows = data if isinstance(data, Windows) else None
    after = after if windows is None else CausalModel(after)
    comparisons, loop = compare_outputs(before, {AFTER: after}, data, data_spec, title)
    sample_text = beginning(windows, data_spec.tokenizer) if windows is not None else None
    first = output_report.section(
        comparisons[AFTER], name="Outputs", confidence_level=confidence_level, worst=worst, sample_text=sample_text
    )
    tables = loop.sections[0].tables
    if windows is not None:
        first, tables = replace(first, note=sentence_of(windows)), (table_of(windows), *tables)
    sections = [first]
    if metrics is not None:
        sections.append(_quality(before, after, data, metrics, data_spec, confidence_level, seed))
    sections.append(_size(before, after))
    if speed:
        sections.append(_speed(before, after, data, data_spec, speed))
    return replace(loop, title=title, sections=(*sections, Section("How it was measured", (), tables)))


def beginning(windows: Windows, tokenizer: Tokenizer | None) -> Callable[[int], str]:
    """What tells how a window begins, by its number."""
    tokenizer = tokenizer or ByteTokenizer()

    def sample_text(number: int) -> str:
        begin, known = windows.span(number)
        ids = windows.tokens.ids[known + bool(known) : begin + windows.window + 1][:48].tolist()
        try:
            return " ".join(tokenizer.decode(ids).split())[:40]
        except ConfigError:  # tokens of another tokenizer
            return f"token {known:,}"

    return sample_text


def _quality(
    before: Any, after: Any, data: Any, metrics: Metrics, data_spec: DataSpec, confidence_level: float, seed: int
) -> Section:
    """The user's metrics of both models, and their differences."""

    def run(model: Any) -> Report:
        names = ("device", "inputs", "target", "preds", "precision", "progress")
        options = {name: getattr(data_spec, name) for name in names}
        return evaluate(model, data, metrics, batch_size=data_spec.batch_size or 64, title="Quality", **options)

    comparison = compare(run(before), run(after), names=(BEFORE, AFTER), confidence_level=confidence_level, seed=seed)
    if not comparison.deltas:
        expected = "a metric that is one number"
        raise ConfigError(describe("metrics", "none that can be compared", expected, "Add one such as Accuracy"))
    rows = [
        (each.metric, each.baseline, each.value, each.difference, each.lower, each.upper, each.p, each.verdict)
        for each in comparison.deltas
    ]
    heads = ("metric", BEFORE, AFTER, "difference", "lower", "upper", "p", "verdict")
    methods = {each.metric: each.method or each.note for each in comparison.deltas}
    note = "; ".join(f"{name}: {method}" for name, method in methods.items() if method)
    values = [
        Value(f"{each.metric} {name}", number, higher_is_better=each.higher_is_better)
        for each in comparison.deltas
        for name, number in ((BEFORE, each.baseline), (AFTER, each.value))
    ]
    return Section("Quality", tuple(values), (Table("Before and after", heads, tuple(rows), note=note),))


def _size(before: Any, after: Any) -> Section:
    first, second = nbytes(before), nbytes(after)
    ratio = Value("size ratio", second / first if first else float("nan"), higher_is_better=False)
    rows = ((BEFORE, first, first / 2**20), (AFTER, second, second / 2**20))
    note = "Parameters and buffers; what is shared counts once."
    return Section("Size", (ratio,), (Table("Size", ("model", "bytes", "MiB"), rows, note=note),))


def _speed(before: Any, after: Any, data: Any, data_spec: DataSpec, sizes: Sequence[int]) -> Section:
    device = assign(data_spec.device, locations(before)).device.value
    dtype = autocast_dtype(data_spec.precision, device)
    reader = Reader(before, inputs=data_spec.inputs, target=data_spec.target, preds=data_spec.preds)
    if any(not isinstance(size, int) or size < 1 for size in sizes):
        raise ConfigError(describe("speed", repr(tuple(sizes)), "sizes of batches, 1 or more", "Pass speed=(1, 32)"))
    batch = next(iter(indexed_batches(data, max(sizes))))[BATCH]

    def running(model: Any) -> Callable[[Any], Any]:
        def run(batch: Any) -> Any:
            (args, options), _, _ = reader.read(batch)
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                return model(*move(args, device), **move(options, device))

        return run

    models = {BEFORE: running(before), AFTER: running(after)}
    kinds = {"": batch}
    if isinstance(data, Windows):
        one = {name: part[:, :1] for name, part in batch.items()}
        kinds = {"one token each": one, f"{data.window:,} tokens each": batch}
    rows: list[tuple[str | int | float, ...]] = []
    with ready(before, device), ready(after, device):
        for kind, size in product(kinds, sizes):
            a, b = paces(models, kinds[kind], size, device).values()
            rows.append((*([kind] if kind else []), size, a * 1e3, b * 1e3, a / b, size / a, size / b))
    heads = ("samples", "ms before", "ms after", "times as fast", "samples/s before", "samples/s after")
    table = Table("One batch", ("of", *heads) if len(kinds) > 1 else heads, tuple(rows), note="Medians of rounds.")
    return Section("Speed", (), (table,), note=f"On {device} with {torch.get_num_threads()} threads on the CPU.")
