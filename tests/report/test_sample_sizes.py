"""How many samples comparisons need, from reports; and the line of a comparison that says what it could not show."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from assay._records import seal
from assay.errors import ConfigError
from assay.report import Comparison, Power, Report, Samples, Section, Slice, Value, compare, power
from assay.stats.power import Spread
from report.runs import column, run

MAIN, NEW = run("main", 400, 1), run("new", 400, 2)


def designs(found):
    return [each.design for each in found.estimates]


def test_one_report_bounds_how_many_samples_yes_or_no_need():
    found = power(MAIN, {"accuracy": 0.02}, counts=[4000])
    share = column(MAIN, "correct").mean()
    least, most, other = found.estimates
    assert designs(found) == ["same samples, at least", "same samples, independent models", "other samples"]
    assert least.samples == math.ceil(Spread(0, 0, 0.02).units_for(0.02))
    assert most.samples == other.samples == math.ceil(Spread(0, 0, 2 * share * (1 - share)).units_for(0.02))
    assert most.counts == (400, 4000)
    assert most.smallest[0] == Spread(400, 0, 2 * share * (1 - share)).smallest()
    assert most.smallest[1] < most.smallest[0]


def test_two_reports_say_how_much_models_differ():
    found = power(MAIN, {"test/accuracy": 0.02, "loss": 0.1}, NEW)
    flips = (column(MAIN, "correct") != column(NEW, "correct")).mean()
    apart = column(NEW, "loss") - column(MAIN, "loss")
    shares, _, losses, other = found.estimates
    assert designs(found) == ["same samples", "other samples"] * 2
    assert shares.samples == math.ceil(Spread(0, 0, flips).units_for(0.02))
    assert losses.samples == math.ceil(Spread(0, apart.var(ddof=1)).units_for(0.1))
    assert other.samples == math.ceil(Spread(0, 2 * column(MAIN, "loss").var(ddof=1)).units_for(0.1))
    assert shares.smallest[0] == compare(MAIN, NEW).delta("accuracy").smallest
    own = shares.counts[0]
    again = power(MAIN, {"test/accuracy": 0.02}, NEW, counts=[own, 9000, 9000]).estimates[0]
    assert again.counts == (own, 9000)  # no number of samples twice
    assert len(again.smallest) == 2


def test_more_power_and_a_higher_level_need_more_samples():
    def needed(**more):
        return power(MAIN, {"loss": 0.1}, **more).estimates[0].samples

    assert needed() < needed(power=0.9) < needed(power=0.9, confidence_level=0.99)


def test_a_stored_interval_suffices_where_the_number_of_samples_is_known():
    section = Section("test", [Value("AUROC", 0.8, 0.75, 0.85, count=900, confidence_level=0.95)])
    found = power(Report("old", [section]), {"AUROC": 0.01})
    error = 0.05 / 1.959964
    assert designs(found) == ["same samples, independent models", "other samples"]
    assert found.estimates[0].samples == pytest.approx(2 * 900 * (2.801585 * error / 0.01) ** 2 + 1.92, abs=2)


@pytest.mark.parametrize("kind", ["yes or no", "numbers"])
def test_clusters_multiply_by_the_design_effect(kind):
    random = np.random.default_rng(3)
    codes = np.repeat(np.arange(60), 10)
    values = [random.standard_normal(60)[codes] + 0.3 * random.standard_normal(600) for _ in range(2)]
    values = [each > 0 for each in values] if kind == "yes or no" else values

    def report(title, terms):
        samples = Samples.pack(range(600), {"x": terms}, data="made up")
        return Report(title, [Section("test", [Value("x", terms.mean(), numerator="x")], samples=samples)])

    a, b = report("a", values[0]), report("b", values[1])
    for other in (None, b):
        plain, clustered = power(a, {"x": 0.1}, other), power(a, {"x": 0.1}, other, cluster=codes)
        for one, many in zip(plain.estimates, clustered.estimates, strict=True):
            assert 3 < many.samples / one.samples < 12
            assert many.clusters == math.ceil(many.samples / 10)
            assert one.clusters is None
            assert many.smallest > one.smallest
    assert "design effect" in clustered.to_markdown()
    assert clustered.notes[0].startswith("600 samples in 60 clusters")


def test_two_clusters_that_say_nothing_are_refused():
    with pytest.raises(ConfigError, match="fewer than 6"):
        power(MAIN, {"loss": 0.1}, cluster=np.arange(400) // 200)


def test_it_is_saved_and_shown(tmp_path):
    found = power(MAIN, {"accuracy": 0.02, "loss": 0.1}, NEW, counts=[50])
    assert Power.load(found.save(tmp_path / "power.json")) == found
    shown = found.to_markdown()
    assert "test/loss" in shown
    assert "least at 50" in shown


@pytest.mark.parametrize(
    ("effects", "more", "message"),
    [
        ({"F1": 0.01}, {}, "missing: there is test/accuracy"),
        ({"accuracy": 0.0}, {}, "above 0"),
        ({"accuracy": -0.01}, {}, "above 0"),
        ({"loss": math.nan}, {}, "above 0"),
        ({"accuracy": 0.99}, {}, "at most 0.81, as it is 0.81"),
        ({}, {}, "no effect"),
        ({"AUROC": 0.01}, {}, "number of its samples"),
        ({"accuracy": 0.01}, {"counts": [1]}, "a number of samples"),
        ({"accuracy": 0.01}, {"power": 1.0}, "Pass 0.8"),
        ({"accuracy": 0.01}, {"confidence_level": 95}, "confidence_level"),
        ({"accuracy": 0.01}, {"run": run("other", 300)}, "another model on the same samples"),
        ({"accuracy": 0.01}, {"run": MAIN}, "another model on the same samples"),
        ({"accuracy": 0.01}, {"run": Report("none", [Section("test")])}, "of the run: got missing"),
    ],
)
def test_what_cannot_be_said_is_refused(effects, more, message):
    with pytest.raises(ConfigError, match=message):
        power(MAIN, effects, **more)


def test_no_samples_and_equal_samples_are_refused():
    for values, message in (([], "no samples"), ([0.5] * 9, "contribute the same")):
        samples = Samples.pack(range(len(values)), {"loss": np.array(values, dtype=float)})
        value = Value("loss", values[0] if values else math.nan, numerator="loss")
        with pytest.raises(ConfigError, match=message):
            power(Report("r", [Section("test", [value], samples=samples)]), {"loss": 0.1})
    with pytest.raises(ConfigError, match="neither samples nor an interval"):
        power(Report("r", [Section("test", [Value("loss", 0.5)])]), {"loss": 0.1})


def test_a_comparison_ends_with_what_it_could_not_show():
    mask = np.arange(400) < 200
    a, b = (
        Report(
            each.title,
            [
                Section(
                    "test",
                    each.sections[0].values,
                    samples=each.sections[0].samples,
                    slices=[
                        Slice.of("half", [Value("loss", column(each, "loss")[mask].mean(), numerator="loss")], mask)
                    ],
                )
            ],
        )
        for each in (MAIN, NEW)
    )
    found = compare(a, b)
    assert {delta.verdict for delta in found.deltas} == {"no evidence"}
    ends = found.to_markdown().split("What could have been seen")[1]
    assert ends.count("could not have been seen") == 2
    for metric in ("accuracy", "loss"):
        assert f"{metric}: a difference below {found.delta(metric).smallest:.4f} could not" in ends
    assert found.delta("loss", slice="half").smallest is None
    assert found.delta("AUROC").smallest is None


def test_a_difference_that_was_found_has_this_line_but_where_it_is_smaller():
    found = compare(MAIN, run("worse", 400, 3, share=0.3, shift=1.0))
    loss = found.delta("loss")
    assert loss.verdict == "worse"
    assert abs(loss.difference) > loss.smallest
    assert f"loss: a difference below {loss.smallest:.4f} could not have been seen" in found.to_markdown()
    larger = replace(loss, smallest=2 * abs(loss.difference))
    others = tuple(larger if each is loss else each for each in found.deltas)
    assert "loss: a difference below" not in replace(found, deltas=others).to_markdown()


def unpaired(draw, n1, n2, random):
    """Two reports of other samples, whose values are drawn."""
    return [
        Report(
            "r",
            [
                Section(
                    "test",
                    [Value("x", float(values.mean()), numerator="x", higher_is_better=True)],
                    samples=Samples.pack([f"{k} {i}" for i in range(len(values))], {"x": values}),
                )
            ],
        )
        for k, values in enumerate((draw(n1, 0.0, random), draw(n2, 1.0, random)))
    ]


@pytest.mark.parametrize("kind", ["yes or no", "numbers", "intervals"])
def test_of_other_samples_the_smallest_difference_is_found_in_four_of_five_cases(kind):
    def draw(by):
        def values(n, second, random):
            if kind == "yes or no":
                return random.random(n) < 0.7 + second * by
            return random.normal(second * by, 1 + second, n)

        return values

    def compared(by, random):
        two = unpaired(draw(by), 300, 150, random)
        if kind == "intervals":
            two = [
                Report("r", [Section("test", [replace(value, numerator="", count=count, **ends)])])
                for each, count in zip(two, (300, 150), strict=True)
                for value in each.sections[0].values
                for ends in [interval(column(each, "x"))]
            ]
        return compare(*two).delta("x")

    def interval(values):
        half = 1.959964 * values.std(ddof=1) / math.sqrt(len(values))
        return {"lower": values.mean() - half, "upper": values.mean() + half, "confidence_level": 0.95}

    random = np.random.default_rng(0)
    smallest = float(np.mean([compared(0.12 if kind == "yes or no" else 0.5, random).smallest for _ in range(20)]))
    found = [compared(smallest, random) for _ in range(150)]
    assert not found[0].paired
    assert 0.7 < np.mean([each.verdict == "better" for each in found]) < 0.9  # 0.8, with a standard error of 0.033
    assert "x: a difference below" in compare(*unpaired(draw(0.0), 300, 150, random)).to_markdown()


def test_of_as_many_other_samples_the_smallest_difference_is_that_of_power():
    a = unpaired(lambda n, second, random: np.arange(n) < 0.9 * n, 400, 400, None)
    found = power(a[0], {"x": 0.02}).estimates[-1]
    assert found.design == "other samples"
    assert compare(*a).delta("x").smallest == pytest.approx(found.smallest[0], rel=1e-12)
    with pytest.raises(ConfigError, match="not paired"):
        power(a[0], {"x": 0.02}, a[1])


def test_other_samples_that_are_all_right_say_a_smallest_difference():
    a = unpaired(lambda n, second, random: np.ones(n, dtype=bool), 50, 50, None)
    smallest = compare(*a).delta("x").smallest
    assert Spread(50, 0, 0.0).smallest() == smallest
    assert 0.05 < smallest < 0.2


def test_other_samples_in_clusters_have_a_larger_smallest_difference():
    def draw(n, second, random):
        return np.repeat(random.random(n // 10) < 0.7, 10)

    two = unpaired(draw, 400, 400, np.random.default_rng(1))
    alone, together = (compare(*two, cluster=each).delta("x").smallest for each in (None, clusters_of_ten))
    assert 2.5 * alone < together < 4.5 * alone  # the root of ten, and Student's quantile


def clusters_of_ten(name):
    first, second = name.split()
    return f"{first} {int(second) // 10}"


def test_older_files_of_comparisons_have_no_such_line():
    found = compare(MAIN, NEW)
    data = json.loads(found.to_json())
    del data["digest"]
    for delta in data["deltas"]:
        delta.pop("smallest", None)
    loaded = Comparison.from_json(json.dumps(seal(data)))
    assert loaded.delta("loss").smallest is None
    assert "could not have been seen" not in loaded.to_text()


def test_no_fewer_clusters_are_asked_for_than_a_comparison_takes():
    (least, *_) = power(MAIN, {"accuracy": 0.5}, counts=[40], cluster=np.arange(400) // 10).estimates
    assert (least.samples, least.clusters) == (60, 6)
    assert least.smallest[1] == math.inf
