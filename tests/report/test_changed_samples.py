"""The samples that changed most between two runs, and what a page shows of them."""

from dataclasses import replace

import numpy as np
import pytest

from assay.render.pictures import Picture
from assay.report import Comparison, RawSample, Report, Samples, Section, Value, compare

CLASSES = ("cat", "dog", "owl")


def run(title, loss, decision, raw=(), pictures=(), ids=None):
    """A run with a loss, right or wrong, and decisions."""
    loss, decision = np.array(loss, float), np.array(decision)
    ids = np.arange(len(loss)) if ids is None else ids
    target = np.array([0, 1, 2, 0, 1, 2])[ids]
    columns = {"loss": loss, "correct": decision == target}
    samples = Samples.pack(ids, columns, decision=decision, target=target, classes=CLASSES, raw=raw)
    values = [
        Value("accuracy", float((decision == target).mean()), numerator="correct", higher_is_better=True),
        Value("loss", loss.mean(), numerator="loss", higher_is_better=False),
        Value("loss again", loss.mean(), numerator="loss", higher_is_better=False),
    ]
    return Report(title, [Section("test", values, samples=replace(samples, pictures=pictures))])


def picture(name, value):
    return Picture.of(name, np.full((4, 4), value, np.uint8))


MAIN = run("main", [0.1, 0.2, 3.0, 0.4, 0.5, 1.0], [0, 1, 0, 0, 1, 1], pictures=[picture("2", 20), picture("3", 30)])
NEW = run("new", [0.1, 2.2, 0.5, 5.4, 0.5, 0.9], [0, 2, 2, 1, 1, 1], pictures=[picture("3", 31)])


def test_samples_are_in_the_order_of_how_much_they_changed():
    found = compare(MAIN, NEW)
    by_metric = {each.metric: each for each in found.changes}
    assert list(by_metric) == ["accuracy", "loss"]
    loss = by_metric["loss"]
    assert (loss.worse, loss.better) == (2, 2)
    assert [(each.id, each.target, each.before, each.now) for each in loss.worst] == [
        ("3", "cat", "cat", "dog"),
        ("1", "dog", "dog", "owl"),
    ]
    assert [each.id for each in loss.best] == ["2", "5"]
    assert (loss.worst[0].score_before, loss.worst[0].score_now) == (0.4, 5.4)
    assert [each.id for each in by_metric["accuracy"].worst] == ["3", "1"]  # of which there is a picture comes first


def test_a_picture_is_of_the_run_that_is_worse():
    loss = next(each for each in compare(MAIN, NEW).changes if each.metric == "loss")
    assert loss.worst[0].picture == NEW.sections[0].samples.pictures[0]
    assert loss.best[0].picture == MAIN.sections[0].samples.pictures[0]
    assert loss.worst[1].picture is None


def test_pairs_do_not_depend_on_the_order_of_the_samples():
    order = np.array([4, 2, 0, 5, 1, 3])
    sections = NEW.sections[0].samples
    mixed = run("new", sections.column("loss")[order], sections.decision.values[order], ids=order)
    bare = [replace(each, pictures=()) for each in (MAIN.sections[0].samples, sections)]
    pair = [
        replace(report, sections=[replace(report.sections[0], samples=samples)])
        for report, samples in zip((MAIN, NEW), bare, strict=True)
    ]
    assert compare(pair[0], mixed).changes == compare(*pair).changes


@pytest.mark.parametrize("flips", [0, 1])
def test_as_many_are_listed_as_flips(flips):
    found = compare(MAIN, NEW, flips=flips)
    assert [len(each.worst) for each in found.changes] == [1, 1] * flips
    assert Comparison.from_json(found.to_json()) == found


def test_a_page_has_a_gallery_and_every_rendering_a_table(tmp_path):
    found = compare(MAIN, NEW)
    page = found.to_html(tmp_path / "page.html").read_text()
    for word in ("Pictures of what got worse: loss", "Pictures of what got better: accuracy", "0.4000 → 5.4000"):
        assert word in page
    assert page.count("data:image/png") == 4
    for shown in (found.to_text(80), found.to_markdown()):
        assert "loss: what changed most: 2 worse, 2 better." in shown
        assert "accuracy: what changed most" not in shown  # the samples that flipped are listed
        assert "0.4000 → 5.4000" in shown


def test_errors_of_strings_are_counts_with_their_texts():
    def speech(title, errors, said):
        raw = [RawSample(str(k), text, "the cat sat") for k, text in enumerate(said)]
        samples = Samples.pack(range(3), {"errors": np.array(errors), "words": np.array([3, 3, 3])}, raw=raw)
        value = Value("WER", sum(errors) / 9, numerator="errors", denominator="words", higher_is_better=False)
        return Report(title, [Section("test", [value], samples=samples)])

    main = speech("main", [0, 1, 3], ["the cat sat", "the cat", "a dog ran"])
    found = compare(main, speech("new", [2, 1, 0], ["the rat", "the cat", "the cat sat"])).changes[0]
    (worst,), (best,) = found.worst, found.best
    assert (found.terms, worst.target, worst.before, worst.now) == ("errors", "the cat sat", "the cat sat", "the rat")
    assert (best.id, best.before, best.score_before) == ("2", "a dog ran", 3.0)
    assert "0 → 2" in compare(main, speech("new", [2, 1, 0], ["the rat", "the cat", "the cat sat"])).to_text(80)


def test_scores_that_are_not_numbers_do_not_count():
    with np.errstate(all="ignore"):
        found = compare(MAIN, run("new", [np.nan, 0.2, np.inf, 0.4, 0.5, 0.7], [0, 1, 0, 0, 1, 1]))
    assert [(each.worse, each.better) for each in found.changes if each.metric == "loss"] in ([], [(0, 1)])
