"""Searches in the reference of Python: topics as queries, and paragraphs, ranked by TF-IDF, as their documents."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

TOPICS = [
    *("assert", "break", "calls", "class", "comparisons", "context-managers", "del", "dynamic-features", "floating"),
    *("formatstrings", "global", "import", "lambda", "naming", "raise", "return", "shifting", "slicings", "truth"),
    *("unary", "while", "yield"),
]
OWN, OTHERS = 6, 14


@dataclass(frozen=True)
class Found:
    """A document of a query: the topic, its words, the document with its text, score and relevance."""

    topic: str
    question: str
    document: str
    text: str
    score: float
    relevance: int


@cache
def searches() -> tuple[Found, ...]:
    """The documents of all topics in a random order: a paragraph is relevant for its own topic, the first one more."""
    rng = random.Random(5)
    paragraphs = {
        topic: [" ".join(each.split()) for each in topics[topic].split("\n\n") if len(each) > 60] for topic in TOPICS
    }
    named = {f"{topic}/{k}": text for topic, several in paragraphs.items() for k, text in enumerate(several)}
    model = TfidfVectorizer().fit(named.values())
    found = []
    for topic, several in paragraphs.items():
        own = [f"{topic}/{k}" for k in range(min(OWN, len(several)))]
        others = rng.sample([each for each in named if not each.startswith(f"{topic}/")], OTHERS)
        question = topic.replace("-", " ")
        scores = (model.transform([named[each] for each in own + others]) @ model.transform([question]).T).toarray()
        for document, score in zip(own + others, scores[:, 0], strict=True):
            relevance = (2 if document.endswith("/0") else 1) if document in own else 0
            score = float(np.float32(round(float(score), 3)))
            found.append(Found(topic, question, document, named[document], score, relevance))
    rng.shuffle(found)
    return tuple(found)


def documents_of(topic: str) -> list[Found]:
    """The documents of a topic, the highest score first; equal scores by relevance, then by name."""
    of_topic = (each for each in searches() if each.topic == topic)
    return sorted(of_topic, key=lambda each: (-each.score, -each.relevance, each.document))


def as_shown(topic: str, most: int = 10) -> list[tuple[int, int, float, float, str, str]]:
    """What a report shows of the documents of a topic: both ranks, score, relevance, document and text."""
    every = documents_of(topic)
    scores = [each.score for each in every]
    first = next((k for k, each in enumerate(every) if each.relevance), 0)
    rows = [*range(min(most, len(every))), *([first] if first >= most else [])]
    return [
        (
            1 + sum(score > scores[k] for score in scores),
            sum(score >= scores[k] for score in scores),
            scores[k],
            float(every[k].relevance),
            every[k].document,
            excerpt(every[k].text),
        )
        for k in rows
    ]


def excerpt(text: str) -> str:
    """A text as a report shortens it."""
    return text if len(text) <= 200 else text[:199] + "…"
