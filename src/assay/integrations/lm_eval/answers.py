"""Answers of a model to requests of lm-eval, in a file that is whole or not there: a run that is killed resumes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from assay._atomic import local_path, prepare_folder
from assay._records import Record
from assay.errors import StateError, describe

Likelihood: TypeAlias = tuple[float, bool]
"""The log likelihood of some tokens, and whether each is the most probable one."""

AnswerContent: TypeAlias = tuple[dict[str, str], dict[str, Likelihood], dict[str, str]]
"""The digests of requests, likelihoods and texts that a store has."""

EVERY_S = 30.0
MOST_OF_THE_TIME = 0.05
_ANEW = "Name another folder, or delete this one to start anew"


class AnswerFile(Record, schema="assay.lm-eval-answers/1"):
    """What the file holds.

    Attributes:
        run: digests and options that must be the same when a run resumes.
        requests: the digest of all requests of each kind, in their order.
        likelihoods: log likelihoods by the digests of the requests.
        greedy: digests of those whose tokens are all the most probable ones.
        texts: generated texts by the digests of the requests.
    """

    run: dict[str, str]
    requests: dict[str, str]
    likelihoods: dict[str, float]
    greedy: tuple[str, ...]
    texts: dict[str, str]


class AnswerStore:
    """The answers of one run in a folder, written every 30 seconds and at the end, also when an error ends the run.

    Args:
        folder: where the file is; made where it is missing. None to write nothing.
        run: digests and options that must be the same when a run resumes.

    Raises:
        ConfigError: the folder is a URL, a file, or cannot be made.
        StateError: the file is damaged, of another version, or of another run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with AnswerStore(folder, {"model": "a"}) as store:
        ...         store.add_text("4f", "Paris")
        ...     AnswerStore(folder, {"model": "a"}).texts
        {'4f': 'Paris'}
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, run: Mapping[str, str] | None = None) -> None:
        self._path = None if folder is None else _made(folder) / "lm-eval-answers.json"
        self._run = dict(run or {})
        self.requests: dict[str, str] = {}
        self.likelihoods: dict[str, Likelihood] = {}
        self.texts: dict[str, str] = {}
        if self._path is not None and self._path.is_file():
            self._read(AnswerFile.load(self._path))
        self._is_new = False
        self._next = time.monotonic() + EVERY_S

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.save()

    @property
    def content(self) -> AnswerContent:
        """What is known so far, for a store of another process."""
        return self.requests, self.likelihoods, self.texts

    @content.setter
    def content(self, content: AnswerContent) -> None:
        self.requests, self.likelihoods, self.texts = content

    def begin(self, kind: str, digests: Sequence[str]) -> None:
        """Compare all requests of a kind with those of the run before.

        Raises:
            StateError: they are others.
        """
        digest = digest_of(*digests)
        if self.requests.setdefault(kind, digest) != digest:
            got = f"answers to other requests ({kind}): a task, its data or its prompts have changed"
            raise StateError(describe(str(self._path), got, "those of this run", _ANEW))

    def add_likelihoods(self, digests: Iterable[str], answers: Iterable[Likelihood]) -> None:
        """Take over a batch of answers, and write the file where it is time; the first answer of a digest stays."""
        for digest, answer in zip(digests, answers, strict=True):
            self.likelihoods.setdefault(digest, answer)
        self._added()

    def add_text(self, digest: str, text: str) -> None:
        """Take over a generated text, and write the file where it is time."""
        self.texts[digest] = text
        self._added()

    def _added(self) -> None:
        self._is_new = True
        if time.monotonic() >= self._next:
            self.save()

    def save(self) -> None:
        """Write what is new.

        Raises:
            StateError: the system refuses; the file from before is kept.
        """
        if self._path is None or not self._is_new:
            return
        start = time.monotonic()
        likelihoods = {digest: value for digest, (value, _) in self.likelihoods.items()}
        greedy = tuple(digest for digest, (_, is_greedy) in self.likelihoods.items() if is_greedy)
        try:
            AnswerFile(self._run, self.requests, likelihoods, greedy, self.texts).save(self._path)
        except OSError as error:
            do = "Make room or change its rights; the same call then resumes from the last file that was written"
            raise StateError(describe(os.fspath(self._path), str(error), "a file that can be written", do)) from error
        end = time.monotonic()
        self._is_new = False
        self._next = end + max(EVERY_S, (end - start) / MOST_OF_THE_TIME)

    def _read(self, file: AnswerFile) -> None:
        names = dict.fromkeys([*self._run, *file.run])
        if others := [name for name in names if self._run.get(name) != file.run.get(name)]:
            got = f"answers of a run with other {', '.join(others)}"
            raise StateError(describe(str(self._path), got, "those of this run", _ANEW))
        greedy = set(file.greedy)
        self.requests = dict(file.requests)
        self.likelihoods = {digest: (value, digest in greedy) for digest, value in file.likelihoods.items()}
        self.texts = dict(file.texts)


def digest_of(*parts: Any) -> str:
    """The digest of token ids, texts and settings.

    Example:
        >>> digest_of([1, 2], "a") == digest_of([1, 2], "a"), digest_of([1], [2]) == digest_of([1, 2], [])
        (True, False)
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, list) and all(isinstance(each, int) for each in part):
            content = np.asarray(part, np.int64).tobytes()
        else:
            content = json.dumps(part, sort_keys=True, default=repr).encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _made(folder: str | os.PathLike[str]) -> Path:
    path = local_path("resume", folder)
    prepare_folder("resume", path)
    return path
