"""What must be the same when an evaluation resumes: data, model, functions, options and metrics, by their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from assay.data.columns import Columns
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.coverage import SampleAssignment
from assay.evaluation.data.data_source import DataSource, Unit
from assay.evaluation.processes.ranks import Ranks
from assay.evaluation.processes.weights import shared_digest
from assay.evaluation.resume.stable_digest import NoDigestError, stable_digest
from assay.meter import Meter
from assay.meter.file import MeterDescription
from assay.stats.sampling import mixed

ROWS = 16
"""Samples of a data set that are digested: the first, the last, and others chosen by a hash of the size."""
UNREADABLE = "cannot be read"
"""In place of the digest of a sample that raises: it may be corrected before the evaluation resumes."""
_RANDOM = "has other values each time it is read"
_NAME_IT = 'Pass run_id="a name" (--run-id), and another one whenever that changes'


class Identity:
    """Digests for one evaluation.

    Args:
        run_id: stands for what has no digest; None: that is an error.
    """

    def __init__(self, run_id: str | None) -> None:
        self._run_id = run_id

    def of(
        self, model: Any, meter: Meter, source: DataSource, options: EvaluateOptions, ranks: Ranks
    ) -> dict[str, Any]:
        """The identity of a run as plain values for JSON, the same on all ranks and in every process.

        How samples are loaded and where they are computed is no part of it: batch size, workers, device, ranks.

        Raises:
            ConfigError: something has no digest, and there is no `run_id`.
        """
        slices = options.slice_spec
        groups = None if options.confidence_level is None else options.seed  # a seed assigns samples to groups
        kept = options.keep_samples and options.max_kept_samples
        followed = [kept, groups, list(slices.tables), [[name, list(parts)] for name, parts in slices.slices.items()]]
        selectors = {
            name: getattr(options, name)
            for name in ("inputs", "target", "preds", "weights", "columns", "ids", "cluster")
        }
        described = json.loads(MeterDescription.of(meter.metrics, meter.weighted, 0, meter.plan.labels).to_json())
        return {
            "metrics": [described, self.digest(dict(meter.metrics), "metrics")],
            "data": self._data(source, ranks),
            "model": self.of_model(model, ranks),
            "precision": options.precision,
            "compile": self.digest(options.compile, "compile"),
            "slices, samples, intervals or seed": [followed, self.digest(dict(slices.selectors), "slices")],
            **{name: self.digest(each, name) for name, each in selectors.items()},
            "run_id": self._run_id,
        }

    def digest(self, value: Any, name: str, tensor_bytes: int | None = None) -> str:
        """The digest of a value.

        Raises:
            ConfigError: it has none.
        """
        try:
            return stable_digest(value, name, self._run_id, tensor_bytes)
        except NoDigestError as error:
            raise _refused(str(error)) from error

    def of_model(self, model: Any, ranks: Ranks) -> Any:
        """The digest of a model; of one that is shared the digests of its parts, on all processes that call this."""
        if not ranks.place.communicates:
            return self.digest(model, "model")
        parts = set(ranks.gather(lambda: shared_digest(model, self.digest)))
        return sorted(parts)  # one where all parts are of type DTensor, so that another number of processes may resume

    def _data(self, source: DataSource, ranks: Ranks) -> Any:
        if source.shares is None:
            return f"a stream on {ranks.place.count} ranks"
        expected = source.shares.expected
        contents = set(ranks.gather(lambda: self._content(source.dataset)))
        return {
            "samples": [len(expected), hashlib.sha256(expected.tobytes()).hexdigest()],
            "content": contents.pop() if len(contents) == 1 else "",  # each rank has its own
            "rows": self._rows(source.shares, source.read, ranks),
        }

    def _content(self, dataset: Any) -> str:
        """The digest of all of a data set that is in memory, or the one that it says itself."""
        if isinstance(dataset, TensorDataset):
            return self.digest(dataset.tensors, "data")
        if isinstance(dataset, list | tuple):
            return self.digest(list(dataset), "data")
        if isinstance(dataset, Subset):
            indices = np.asarray(dataset.indices, np.int64).tobytes()
            return self.digest([self._content(dataset.dataset), hashlib.sha256(indices).hexdigest()], "data")
        if isinstance(dataset, ConcatDataset):
            return self.digest([self._content(each) for each in dataset.datasets], "data")
        if isinstance(dataset, Columns) and dataset.is_in_memory and not dataset.content_digest:
            return self.digest(dataset.parts, "data")
        return str(getattr(dataset, "content_digest", ""))

    def _rows(self, shares: SampleAssignment, read: Callable[[list[int]], list[Unit]], ranks: Ranks) -> dict[str, str]:
        """Digests of some samples, each read twice; every rank reads those that it counts."""
        own = np.concatenate([np.empty(0, np.int64), *shares.lists])
        mine = np.intersect1d(_sample_of(np.flatnonzero(shares.expected)), own).tolist()
        result: dict[str, str] = {}
        for each in ranks.gather(lambda: self._digests(mine, read)):
            result |= each
        return result

    def _digests(self, index: list[int], read: Callable[[list[int]], list[Unit]]) -> dict[str, str]:
        units = read([*index, *index])
        digests = [UNREADABLE if unit.error is not None else self.digest(unit.data, "data") for unit in units]
        result = {}
        for number, first, again in zip(index, digests, digests[len(index) :], strict=False):
            if first != again and self._run_id is None:
                raise _refused(f"data: sample {number}, which {_RANDOM}")
            result[str(number)] = first if first == again else _RANDOM
        return result


def same(mine: Any, theirs: Any) -> bool:
    """Whether two parts of an identity are the same; a sample that could not be read may be any."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same(each, theirs[name]) for name, each in mine.items())
    return bool(mine == theirs) or UNREADABLE in (mine, theirs)


def _sample_of(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(indices) <= ROWS:
        return indices
    drawn = mixed(np.arange(ROWS - 2, dtype=np.uint64) + np.uint64(len(indices))) % np.uint64(len(indices))
    chosen: NDArray[np.int64] = indices[np.unique([0, len(indices) - 1, *drawn.astype(np.int64)])]
    return chosen


def _refused(got: str) -> ConfigError:
    expected = "a model, data and functions with a digest, so that another run is not taken for this one"
    return ConfigError(describe("resume", got, expected, _NAME_IT))
