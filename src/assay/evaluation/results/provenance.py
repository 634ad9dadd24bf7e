"""What a report keeps so that anyone can make its values again: canonical counts, digests, and what made it."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from assay._remote import without_password
from assay.devices.placement import can_read
from assay.errors import StateError, describe
from assay.evaluation.arguments.options import ReportOptions
from assay.meter import Meter
from assay.meter.file import MeterDescription, as_file_error, checksum, counts_in, from_sparse, saved, sparse
from assay.metrics.base import Metric
from assay.report.origin import ReportOrigin, SectionCounts
from assay.report.revision import revision

MOST_PACKED = 1 << 16
"""Bytes of compressed counts that a report holds."""
MOST_RAW = 1 << 22
"""Bytes of counts that are compressed at all."""
MOST_STORED_ROWS = 2_000_000
"""Samples of metrics that keep every one, which are put in order and digested."""
MOST_DIGESTED = 1 << 26
"""Bytes of a model, or of a file of data, that are digested: SHA-256 takes some 50 ms for them."""
_NO_OPTIONS = ("progress", "resume", "data_group", "rank_timeout_s", "checkpoint_every", "run_id")


def counts_of(total: Meter, metrics: Mapping[str, Metric], options: ReportOptions) -> SectionCounts | None:
    """The counts of metrics in a meter; None where too many samples are stored to put them in order once more."""
    if not metrics:
        return None
    part = total.fresh(dict(metrics))
    if part.counts.keeps_samples and total.rows > MOST_STORED_ROWS:
        return None
    states, rows = total.counts.canonical()
    of_part = zip(part.tallies, total.plan.states_of(part.tallies, states), strict=True)
    canonical = [tally.canonicalize(state, rows) for tally, state in of_part]
    description, tensors = saved(part.plan, canonical, rows)
    tensors = sparse(tensors)
    packed = b""
    if sum(each.numel() * each.element_size() for each in tensors.values()) <= MOST_RAW:
        packed = _compressed(safetensors.torch.save({name: each.contiguous() for name, each in tensors.items()}))
    return SectionCounts(
        {name: json.dumps(fields) for name, fields in description.metrics.items()},
        description.weighted,
        description.rows,
        checksum(description.to_json(), tensors),
        base64.b64encode(packed).decode(),
        *((0, 0) if options.confidence_level is None else (options.n_resamples, options.seed)),
    )


def _compressed(raw: bytes) -> bytes:
    """Bytes compressed by zlib; empty where that takes more than `MOST_PACKED`, which is known before all are."""
    compressor, packed = zlib.compressobj(6), bytearray()
    for start in range(0, len(raw), MOST_PACKED):
        packed += compressor.compress(raw[start : start + MOST_PACKED])
        if len(packed) > MOST_PACKED:
            return b""
    packed += compressor.flush()
    return bytes(packed) if len(packed) <= MOST_PACKED else b""


def meter_from(counts: SectionCounts, where: str, known: Iterable[type[Metric] | Metric] = ()) -> Meter:
    """The meter whose counts a report holds, after their digest was found to be right.

    Args:
        counts: what `counts_of` gave.
        where: what messages call it.
        known: see `Meter.from_file`.

    Raises:
        StateError: a metric is not known, or the counts are not those of their digest.
    """
    try:
        metrics = {name: json.loads(text) for name, text in counts.metrics.items()}
        description = MeterDescription(metrics, counts.weighted, counts.rows)
        tensors = safetensors.torch.load(_unpacked(counts.packed))
    except Exception as error:
        got = f"counts that cannot be read ({error})"
        raise StateError(describe(where, got, "the counts of a meter", "Make the report again")) from error
    if checksum(description.to_json(), tensors) != counts.sha256:
        do = "They were changed after they were counted: make the report again"
        raise StateError(describe(where, "counts of another digest", f"sha256 {counts.sha256}", do))
    with as_file_error(where):
        made: dict[str, Any] = description.made(known, where)
        meter = Meter(weighted=description.weighted, **made)
        meter.counts.replace(*counts_in(meter.plan, description, from_sparse(tensors), where))
    return meter


def _unpacked(packed: str) -> bytes:
    """The bytes of counts, which are at most `MOST_RAW` and their names."""
    reader = zlib.decompressobj()
    data = reader.decompress(base64.b64decode(packed, validate=True), 2 * MOST_RAW)
    if not reader.eof or reader.unused_data:
        raise ValueError("compressed data that end or go on")
    return data


def origin_of(call: str, options: ReportOptions, data: Mapping[str, str], model: Any = None) -> ReportOrigin:
    """What made a report, as far as it is known; it never fails.

    Args:
        call: the function.
        options: its options.
        data: digests of files, by name.
        model: the model, if there is one.
    """
    commit, dirty = revision()
    digest = ""
    with suppress(Exception):  # of tensors of other libraries nothing is known: no digest is worth losing the report
        digest = model_digest(model)
    return ReportOrigin(call, (), _plain(options), commit, dirty, digest, dict(data), options.seed)


def _plain(options: ReportOptions) -> str:
    """Options that are not their defaults and are plain values, as JSON."""
    found = {}
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        with suppress(TypeError, ValueError):
            if each.name not in _NO_OPTIONS and value != each.default:
                found[each.name] = json.loads(json.dumps(value, allow_nan=False))
    return json.dumps(found, sort_keys=True)


def model_digest(model: Any, most: int = MOST_DIGESTED) -> str:
    """SHA-256 of the names, dtypes, shapes and bytes of the parameters and buffers of a module on the CPU.

    Args:
        model: the model.
        most: a larger model has no digest.

    Returns:
        The digest; empty where it is no module, too large, or its tensors are not all plain ones on the CPU.
    """
    if not isinstance(model, nn.Module):
        return ""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    size = sum(each.numel() * each.element_size() for each in tensors.values())
    if not tensors or size > most or not all(map(_is_plain, tensors.values())):
        return ""
    return checksum("", {name: each.detach() for name, each in tensors.items()})


def _is_plain(tensor: Tensor) -> bool:
    return can_read(tensor.detach()) and tensor.layout == torch.strided and not tensor.is_quantized


def file_digests(named: Any, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Digests of files by their names, without folders: SHA-256 of all bytes of small ones, else what is known.

    Args:
        named: a path, or several; anything else has none.
        known: by file, digests of some places of it.

    Returns:
        ``"sha256:..."`` or ``"blake2b:..."``, by name.
    """
    paths = [named] if isinstance(named, str | os.PathLike) else list(named) if isinstance(named, list | tuple) else []
    sampled = {_short(name): f"blake2b:{digest}" for name, digest in (known or {}).items()}
    found = {}
    for path in paths:
        with suppress(OSError, ValueError, TypeError):
            file = Path(path)
            status = file.stat()
            if file.is_file() and status.st_size <= MOST_DIGESTED:
                found[_short(os.fspath(path))] = f"sha256:{_digest(file, status.st_size, status.st_mtime_ns)}"
    return sampled | found


@functools.lru_cache(maxsize=64)
def _digest(file: Path, size: int, changed: int) -> str:  # the size and the time tell files of one name apart
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _short(name: str) -> str:
    return without_password(name) if "://" in name else Path(name).name
