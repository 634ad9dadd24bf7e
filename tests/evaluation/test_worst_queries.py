"""The worst queries of a ranking are in the report with their documents, however these came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import ndcg_score
from torch.utils.data import DataLoader, Dataset, IterableDataset

from assay import Accuracy, evaluate
from assay.errors import ConfigError
from assay.evaluation.observe import query_recorder, worst_queries
from assay.metrics import (
    RankBiasedPrecision,
    RetrievalFallOut,
    RetrievalMAP,
    RetrievalMRR,
    RetrievalNormalizedDCG,
    RetrievalPrecisionRecallCurve,
)
from assay.metrics.per_sample import per_sample_values
from assay.report import Report
from ranks import processes
from searches import TOPICS, as_shown, documents_of, searches

NDCG = RetrievalNormalizedDCG(top_k=10)
WIDTH = max(len(documents_of(topic)) for topic in TOPICS)
PADDING = -100


class Documents(Dataset):
    """A document a sample, with the number of its topic."""

    def __len__(self):
        return len(searches())

    def __getitem__(self, k):
        each = searches()[k]
        named = {"document": each.document, "question": each.question, "text": each.text}
        number = TOPICS.index(each.topic)
        return {"x": each.score, "target": each.relevance, "indexes": number, "pair": f"{number} {k}", **named}


class Queries(Dataset):
    """A topic a sample, with its documents in the order of their names, padded."""

    def __len__(self):
        return len(TOPICS)

    def __getitem__(self, k):
        every = sorted(documents_of(TOPICS[k]), key=lambda each: each.document)
        rest = WIDTH - len(every)
        scores = np.array([each.score for each in every] + [9.0] * rest, np.float32)
        target = np.array([each.relevance for each in every] + [PADDING] * rest)
        texts = [each.text for each in every] + [""] * rest
        return {"x": scores, "target": target, "topic": TOPICS[k], "texts": texts, "question": every[0].question}


class DocumentStream(IterableDataset):
    def __iter__(self):
        return iter([Documents()[k] for k in reversed(range(len(Documents())))])


class Stops:
    """Predicts so many batches, and then stops as a machine does."""

    def __init__(self, left=1000):
        self.left = left

    def __call__(self, x):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return x

    def __reduce__(self):
        return Stops, ()


def same(x):
    return x


def measured(data, metrics=None, model=same, **options):
    options = {"inputs": "x", "ids": "document", "show": "question,text", "device": "cpu", **options}
    return evaluate(model, data, {"nDCG": NDCG} if metrics is None else metrics, **options)


def measured_rows(metric, model=same, **options):
    options = {"ids": "topic", "show": "question,texts", "batch_size": 5, **options}
    return measured(Queries(), {"value": replace(metric, by_row=True, ignore_index=PADDING)}, model, **options)


def worst_of(report):
    return report.sections[0].worst_queries


def values_of_scikit_learn():
    """nDCG of each topic; ties are averaged."""
    values = {}
    for topic in TOPICS:
        every = documents_of(topic)
        relevance, scores = [[each.relevance for each in every]], [[each.score for each in every]]
        values[topic] = ndcg_score(relevance, scores, k=10)
    return values


def worst_topics(values, most=5):
    bad = [(value, TOPICS.index(topic), topic) for topic, value in values.items() if value < 1 - 1e-12]
    return [topic for *_, topic in sorted(bad)[:most]], len(bad)


def rows_of(query):
    return [(each.rank, each.last_rank, each.score, each.relevance, each.id, *each.shown) for each in query.documents]


def check_documents(worst):
    values = values_of_scikit_learn()
    topics, imperfect = worst_topics(values)
    assert (worst.query_count, worst.imperfect_count) == (len(TOPICS), imperfect)
    assert [TOPICS[int(query.id)] for query in worst.queries] == topics
    for query, topic in zip(worst.queries, topics, strict=True):
        every = documents_of(topic)
        assert query.value == pytest.approx(values[topic], abs=1e-12)
        counts = len(every), sum(each.relevance > 0 for each in every)
        assert (query.document_count, query.relevant_count) == counts
        assert rows_of(query) == as_shown(topic)
        assert query.shown == (every[0].question,)
    assert (worst.query_columns, worst.document_columns) == (("question",), ("text",))


@pytest.mark.parametrize("batch_size", [1, 50, 1000])
def test_documents_are_those_of_the_queries_for_every_batch_size_and_order(batch_size):
    for shuffle in (False, True):
        report = measured(DataLoader(Documents(), batch_size, shuffle=shuffle))
        check_documents(worst_of(report))
        assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("metric", [NDCG, RetrievalMRR(), RetrievalFallOut(top_k=3), RankBiasedPrecision()], ids=repr)
def test_their_mean_is_the_value_of_the_metric_and_rows_have_the_same(metric, monkeypatch):
    for module in (worst_queries, query_recorder):
        monkeypatch.setattr(module, "MOST_QUERIES", 1000)
    report, rows = measured(Documents(), {"value": metric}), measured_rows(metric)
    best = float(bool(metric.higher_is_better))
    for each in (report, rows):
        worst, (value,) = worst_of(each), each.sections[0].values
        values = [query.value for query in worst.queries]
        assert len(values) == worst.imperfect_count
        assert values == sorted(values, reverse=not best)
        mean = (sum(values) + best * (worst.query_count - worst.imperfect_count)) / worst.query_count
        assert mean == pytest.approx(value.value, abs=1e-6)
    by_topic = {query.id: query.value for query in worst_of(rows).queries}
    by_number = {TOPICS[int(query.id)]: query.value for query in worst_of(report).queries}
    assert by_topic == pytest.approx(by_number, abs=1e-6)


def check_rows(worst, values):
    topics, imperfect = worst_topics(values)
    assert (worst.query_count, worst.imperfect_count) == (len(TOPICS), imperfect)
    assert sorted(query.id for query in worst.queries) == sorted(topics)
    for query in worst.queries:
        names = sorted(each.document for each in documents_of(query.id))
        expected = [(*row[:4], str(names.index(row[4])), row[5]) for row in as_shown(query.id)]
        found = rows_of(query)
        assert [row[:4] for row in found] == [row[:4] for row in expected]
        assert sorted(found) == sorted(expected)
        assert query.document_count == len(names)
        assert query.shown == (documents_of(query.id)[0].question,)


def test_queries_that_are_rows_have_their_documents_without_the_padding():
    values = values_of_scikit_learn()
    for options in ({}, {"batch_size": 1}, {"max_kept_samples": 2}):
        check_rows(worst_of(measured_rows(NDCG, **options)), values)


@pytest.mark.parametrize("aggregation", ["median", "min", "max"])
def test_rows_have_them_whatever_is_taken_over_the_queries(aggregation):
    check_rows(worst_of(measured_rows(replace(NDCG, aggregation=aggregation))), values_of_scikit_learn())


def test_a_run_that_resumes_has_the_same_queries(tmp_path):
    options = {"checkpoint_every": 0.0, "batch_size": 100}
    with pytest.raises(KeyboardInterrupt):
        measured(Documents(), model=Stops(3), resume=tmp_path / "documents", **options)
    check_documents(worst_of(measured(Documents(), model=Stops(), resume=tmp_path / "documents", **options)))
    with pytest.raises(KeyboardInterrupt):
        measured_rows(NDCG, Stops(3), resume=tmp_path / "rows", checkpoint_every=0.0)
    report = measured_rows(NDCG, Stops(), resume=tmp_path / "rows", checkpoint_every=0.0)
    check_rows(worst_of(report), values_of_scikit_learn())


def on_rank(rank, size):
    return [worst_of(each).to_json() for each in (measured(Documents(), batch_size=16), measured_rows(NDCG))]


def test_several_processes_have_the_same_queries(tmp_path):
    expected = on_rank(0, 1)
    assert all(found == expected for found in processes(on_rank, 2, tmp_path))


def test_a_stream_has_them_without_what_would_have_to_be_read_again():
    report = measured(DataLoader(DocumentStream(), 30), ids="pair")
    worst = worst_of(report)
    assert worst.document_columns == ()
    for query in worst.queries:
        topic = TOPICS[int(query.id)]
        assert [row[:4] for row in rows_of(query)] == [row[:4] for row in as_shown(topic)]
        for each in query.documents:
            number, k = map(int, each.id.split())
            found = searches()[k]
            assert (TOPICS[number], found.score, found.relevance) == (topic, each.score, each.relevance)
    assert any("cannot be read again" in note for note in report.notes)


@pytest.mark.parametrize("options", [{"keep_samples": False}, {"max_kept_samples": 10}])
def test_without_samples_documents_have_no_names(options):
    worst = worst_of(measured(Documents(), **options))
    assert [TOPICS[int(query.id)] for query in worst.queries] == worst_topics(values_of_scikit_learn())[0]
    for query in worst.queries:
        shown = as_shown(TOPICS[int(query.id)])
        assert rows_of(query) == [(*row[:4], "") for row in shown]


def test_what_cannot_be_read_again_costs_its_text_and_not_the_report():
    class Once(Documents):
        def __init__(self):
            self.read = set()

        def __getitem__(self, k):
            if k in self.read:
                raise OSError("the disk is gone")
            self.read.add(k)
            return super().__getitem__(k)

    report = measured(DataLoader(Once(), 16))
    assert worst_of(report).document_columns == ()
    assert [row[:5] for row in rows_of(worst_of(report).queries[0])] == [
        row[:5] for row in as_shown(TOPICS[int(worst_of(report).queries[0].id)])
    ]
    assert any("OSError: the disk is gone" in note for note in report.notes)


def test_what_does_not_count_or_is_ignored_is_not_there():
    scores = torch.tensor([3.0, 2.0, 1.0] * 3)
    target = torch.tensor([0, 1, 1, 0, 0, 0, -1, 0, 1])
    data = [{"x": scores, "target": target, "indexes": torch.arange(9) // 3, "id": torch.arange(9)}]
    metric = RetrievalMRR(empty_target_action="skip", ignore_index=-1)
    worst = worst_of(evaluate(same, data, metric, inputs="x", ids="id", device="cpu"))
    assert (worst.query_count, worst.imperfect_count) == (2, 2)
    assert [(each.id, each.value, each.document_count) for each in worst.queries] == [("0", 0.5, 3), ("2", 0.5, 2)]
    assert [each.id for each in worst.queries[1].documents] == ["7", "8"]


def test_best_queries_are_not_listed():
    data = [{"x": torch.tensor([3.0, 2.0]), "target": torch.tensor([1, 0]), "indexes": torch.tensor([4, 4])}]
    worst = worst_of(evaluate(same, data, RetrievalMRR(), inputs="x", device="cpu"))
    assert (worst.query_count, worst.imperfect_count, worst.queries) == (1, 0, ())
    report = evaluate(same, data, RetrievalPrecisionRecallCurve(), inputs="x", device="cpu")
    assert worst_of(report) is None


def test_the_first_relevant_document_is_listed_wherever_it_is():
    scores = torch.arange(40.0).flip(0)
    scores[20:24] = 20.0
    target = torch.zeros(40, dtype=torch.int64)
    target[[22, 30]] = 1
    data = [{"x": scores, "target": target, "indexes": torch.zeros(40, dtype=torch.int64)}]
    (query,) = worst_of(evaluate(same, data, RetrievalMRR(), inputs="x", device="cpu")).queries
    assert [each.rank for each in query.documents] == [*range(1, 11), 20]
    first = query.first_relevant
    assert (first.rank, first.last_rank, first.relevance) == (20, 24, 1.0)
    expected = np.mean([1 / rank for rank in range(20, 25)])
    assert query.value == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_shown_is_an_error_at_the_start():
    with pytest.raises(ConfigError, match=r"show: got 'text' with Accuracy, expected a metric of retrieval"):
        evaluate(same, Documents(), Accuracy(), inputs="x", device="cpu", show="text")
    with pytest.raises(ConfigError, match="show: words: got no 'words'"):
        measured(Documents(), show="words", model=Stops(1))
    with pytest.raises(ConfigError, match="show: got 3"):
        measured(Documents(), show=3)


def test_the_worst_query_of_a_row_is_that_of_its_own_values():
    every = [Queries()[k] for k in range(len(TOPICS))]
    scores, target = (torch.stack([torch.from_numpy(each[name]) for each in every]) for name in ("x", "target"))
    metric = RetrievalMAP(by_row=True, ignore_index=PADDING)
    terms = per_sample_values(metric, scores, target)
    worst = worst_of(measured_rows(RetrievalMAP()))
    assert worst.queries[0].value == terms.terms[terms.numerator].min().item()
