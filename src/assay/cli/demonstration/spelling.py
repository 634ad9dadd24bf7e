"""A spelling corrector, learned in seconds from the sentences that document Python's standard library.

Two thirds of the modules teach which words there are and which follow each other. Sentences of the others are misspelt
at random, and corrected: of all words one slip away, take the one that is most likely between its neighbours (a noisy
channel, as in speech recognition).
"""

from __future__ import annotations

import ast
import math
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from torch.utils.data import DataLoader

from assay.cli.demonstration.models import SEED, Example
from assay.metrics import CharErrorRate, CHRFScore, ROUGEScore, WordErrorRate
from assay.metrics.base import Metric
from assay.report import Table

PACKAGES = (
    ".",
    "asyncio",
    "concurrent/futures",
    "email",
    "http",
    "importlib",
    "json",
    "logging",
    "multiprocessing",
    "unittest",
    "urllib",
    "xml/dom",
)
_SENTENCE = re.compile(r"[A-Z][a-z]*(?:,? [a-z]+){4,20}\.")
_SLIPS = 0.12
"""The share of words that are misspelt."""
_UNSEEN = 0.1
"""How often a word of a sentence that was never seen counts as seen."""
_START = "^"
_WORD = re.compile(r"[a-z]{3,}")


@cache
def modules() -> tuple[Path, ...]:
    """The sources of the standard library that this Python has."""
    library = Path(sysconfig.get_path("stdlib"))
    return tuple(sorted(path for package in PACKAGES for path in (library / package).glob("*.py")))


@cache
def sentences_of(path: Path) -> tuple[str, ...]:
    """The plain sentences in the docstrings of a module, without code."""
    nodes = ast.walk(ast.parse(path.read_bytes()))
    documented = (node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    paragraphs = chain.from_iterable(re.split(r"\n\s*\n", ast.get_docstring(node) or "") for node in documented)
    parts = (re.split(r"(?<=\.)\s+", " ".join(each.split())) for each in paragraphs)
    return tuple(each for each in chain.from_iterable(parts) if _SENTENCE.fullmatch(each))


def misspell(sentence: str, rng: random.Random) -> str:
    """A sentence in which some words of more than two letters have a slip: a letter too many, too few, another, or two
    that changed places.

    Example:
        >>> misspell("Return the name of the file that was opened last.", random.Random(3))
        'Return the name of the file phat was opened last.'
    """
    return _WORD.sub(lambda word: _with_slip(word[0], rng) if rng.random() < _SLIPS else word[0], sentence)


def _with_slip(word: str, rng: random.Random) -> str:
    at, letter = rng.randrange(len(word) - 1), rng.choice(ascii_lowercase)
    slips = (
        word[:at] + letter + word[at:],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    )
    return rng.choice(slips)


def one_slip_away(word: str) -> Iterator[str]:
    """All strings that a slip makes of a word."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from (head + letter + tail for letter in ascii_lowercase)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in ascii_lowercase)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


class Corrector:
    """Corrects the words of sentences, each by its neighbours and how frequent it is."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def learn(self, sentences: Iterable[str]) -> None:
        """Count the words of sentences, and which follow which."""
        for sentence in sentences:
            words = [_START, *re.findall("[a-z]+", sentence.lower())]
            self.words.update(words)
            self.pairs.update(pairwise(words))

    def __call__(self, sentences: Sequence[str]) -> list[str]:
        """The sentences as they were probably meant."""
        return [self._corrected(sentence) for sentence in sentences]

    def _corrected(self, sentence: str) -> str:
        words = sentence.split(" ")
        before = _START
        for at, written in enumerate(words):
            plain = written.rstrip(",.")
            after = words[at + 1].rstrip(",.") if at + 1 < len(words) else ""
            if at and len(plain) > 1:
                plain = self._most_likely(before, plain, after)
                words[at] = plain + written[len(written.rstrip(",.")) :]
            before = plain.lower()
        return " ".join(words)

    def _most_likely(self, before: str, written: str, after: str) -> str:
        others = {word for word in one_slip_away(written) if word in self.words} - {written}
        if not others:
            return written
        scores = {word: self._score(before, word, after) + math.log(_SLIPS / len(others)) for word in others}
        scores[written] = self._score(before, written, after) + math.log(1 - _SLIPS)
        return max(sorted(scores), key=scores.__getitem__)

    def _score(self, before: str, word: str, after: str) -> float:
        """The logarithm of how likely a word is between its neighbours."""
        return self._log_follows(before, word) + (self._log_follows(word, after) if after in self.words else 0)

    def _log_follows(self, before: str, word: str) -> float:
        alone = (self.words[word] + _UNSEEN) / (self.words.total() + 1)
        together = self.pairs[before, word] / self.words[before] if self.words[before] else 0
        return math.log(0.6 * together + 0.4 * alone)


class SpellingExample(Example):
    """Sentences to learn from, misspelt ones to correct, and the corrector."""

    title = "Misspelt sentences, corrected"
    epochs = 1

    def __init__(self) -> None:
        self.options = {}
        self.model: Corrector = Corrector()

    @property
    def metrics(self) -> dict[str, Metric]:
        return {
            "Word error rate": WordErrorRate(),
            "Character error rate": CharErrorRate(),
            "chrF": CHRFScore(),
            "ROUGE-2": ROUGEScore("rouge2"),
        }

    @cached_property
    def training_sentences(self) -> list[str]:
        """The sentences of two thirds of the modules."""
        return [sentence for at, path in enumerate(modules()) if at % 3 for sentence in sentences_of(path)]

    @property
    def held_out(self) -> DataLoader[Any]:
        data: Any = self.sentences
        return DataLoader(data, batch_size=128)

    @cached_property
    def sentences(self) -> list[tuple[str, str, int]]:
        """Each other sentence once: misspelt, as it was, and its number."""
        others = dict.fromkeys(sentence for path in modules()[::3] for sentence in sentences_of(path))
        rng = random.Random(SEED)
        training = set(self.training_sentences)
        return [(misspell(each, rng), each, at) for at, each in enumerate(others) if each not in training]

    def train(self, epochs: int) -> Iterator[None]:
        """Read the sentences once; more epochs teach nothing new."""
        self.model = Corrector()
        self.model.learn(self.training_sentences)
        yield

    def tables(self) -> tuple[Table, ...]:
        """What the metrics say of the sentences before they are corrected, and after."""
        inputs, targets, _ = map(list, zip(*self.sentences, strict=True))
        outputs = self.model(inputs)
        rows = [
            (name, float(metric(inputs, targets)), float(metric(outputs, targets)))
            for name, metric in self.metrics.items()
        ]
        return (Table("Before and after", ("metric", "as written", "corrected"), tuple(rows)),)
