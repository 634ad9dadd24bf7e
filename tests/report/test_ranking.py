"""Rankings of many reports: against comparisons of pairs, and what is not ranked."""

from __future__ import annotations

import math
import sys
from itertools import combinations

import pytest

import assay.cli
from assay.errors import ConfigError
from assay.report import Report, RunRanking, Section, Value, compare, rank
from assay.stats.hypothesis_tests import correct
from report.runs import run

SHARES = {"e": 0.86, "a": 0.7, "c": 0.8, "b": 0.72, "d": 0.84}
RUNS = [run(title, 400, k, share=share) for k, (title, share) in enumerate(SHARES.items())]


def ranking(metric="accuracy", runs=RUNS, **more):
    return rank(runs, metrics=[metric], **more).metrics[0]


def test_pairs_are_those_that_compare_tells_apart():
    found = ranking()
    pairs = list(combinations(RUNS, 2))
    deltas = [compare(*pair, correction="none").delta("accuracy") for pair in pairs]
    told = {
        frozenset(each.title for each in pair)
        for pair, p in zip(pairs, correct([each.p for each in deltas], "holm"), strict=True)
        if p < 0.05
    }
    assert 0 < len(told) < found.pairs == 10
    assert found.apart == len(told)
    for place in found.places:
        values = {other.run: other.value for other in found.places}
        is_known = [values[other] > place.value for other in SHARES if frozenset((other, place.run)) in told]
        assert (place.best, place.worst) == (1 + sum(is_known), 5 - is_known.count(False))
        for other in found.places:
            is_apart = frozenset((place.run, other.run)) in told
            assert is_apart is not bool(set(place.groups) & set(other.groups))


def test_intervals_hold_together_for_all_pairs():
    first, *others = ranking("loss").places
    assert [each.value for each in (first, *others)] == sorted(each.value for each in (first, *others))
    assert (first.behind, first.lower, first.upper) == (0.0, None, None)
    by_title = {each.title: each for each in RUNS}
    for place in others:
        delta = compare(by_title[first.run], by_title[place.run], confidence_level=1 - 0.05 / 10).delta("loss")
        assert (place.behind, place.lower, place.upper) == pytest.approx((delta.difference, delta.lower, delta.upper))


def test_one_run_twice_shares_a_place():
    places = rank([RUNS[0], RUNS[0]], names=["x", "y"], metrics=["accuracy"]).metrics[0].places
    assert [(each.best, each.worst, each.groups) for each in places] == [(1, 2, ("a",))] * 2


def test_every_rendering_and_the_file_have_the_places(tmp_path):
    found = rank(RUNS)
    assert repr(found) == "<RunRanking of 5 runs by accuracy, loss, AUROC>"
    for shown in (found.to_markdown(), found.to_html(tmp_path / "ranking.html").read_text()):
        assert "told apart, corrected by Holm" in shown
        assert "against the first" in shown
    assert (
        RunRanking.load(found.save(tmp_path / "ranking.json")).metrics[0].places[0].run
        == found.metrics[0].places[0].run
    )
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert len(found.plot("test, loss").get_yticklabels()) >= 5


def test_what_cannot_be_ranked_is_named():
    def stored(title, *values):
        return Report(title, [Section("test", values)])

    runs = [
        stored(title, Value("x", k), Value("y", math.nan, higher_is_better=True), Value("z", k, higher_is_better=False))
        for title, k in {"a": 2.0, "b": 1.0}.items()
    ]
    found = rank(runs)
    assert [each.metric for each in found.metrics] == ["z"]
    assert (found.metrics[0].untested, found.metrics[0].apart) == (1, 0)
    assert any("test/x: not ranked" in note for note in found.notes)
    assert any("undefined" in note for note in found.notes)
    with pytest.raises(ConfigError, match="two or more"):
        rank(runs[:1])
    with pytest.raises(ConfigError, match="one that can be ranked"):
        rank(runs, metrics=["w"])
    with pytest.raises(ConfigError, match="a name for each run"):
        rank(runs, names=["a", "a"])


def test_the_command_line_ranks_files(tmp_path, monkeypatch, capsys):
    paths = [str(each.save(tmp_path / f"{each.title}.json")) for each in RUNS]
    monkeypatch.setattr(sys, "argv", ["assay", "rank", *paths, "--metric", "accuracy", "--json"])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    assert not ended.value.code
    assert RunRanking.from_json(capsys.readouterr().out).metrics[0].places[0].run == ranking().places[0].run
