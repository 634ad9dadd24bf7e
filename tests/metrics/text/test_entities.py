"""F1 of entities against seqeval."""

from __future__ import annotations

import math
import random
import warnings

import pytest
import torch
from seqeval import scheme as schemes
from seqeval.metrics import f1_score

from assay.errors import ConfigError, InputError
from assay.metrics import EntityF1Score
from assay.metrics.per_sample import per_sample_values
from thinning import draws

LETTERS = {
    "IOB1": "IOB",
    "IOB2": "IOB",
    "IOE1": "IOE",
    "IOE2": "IOE",
    "IOBES": "IOBES",
    "BILOU": "BILOU",
    None: "IOBES",
}
TYPES = ("A", "B-2", "C")


def tags(chance: random.Random, letters: str, count: int) -> list[str]:
    drawn = (chance.choice(letters) for _ in range(count))
    return [letter if letter == "O" else f"{letter}-{chance.choice(TYPES[:2])}" for letter in drawn]


def drawn(seed: int, letters: str) -> tuple[list[list[str]], list[list[str]]]:
    """Any tags, so that most sentences break the rules of the scheme; half of the predictions are nearly right."""
    chance = random.Random(seed)
    lengths = [chance.randrange(8) for _ in range(4)]
    target = [tags(chance, letters, count) for count in lengths]
    target[0] = [f"{letters[-1]}-A", *target[0]]
    preds = [tags(chance, letters, len(each)) for each in target]
    return [chance.choice([pred, each]) for pred, each in zip(preds, target, strict=True)], target


def expected_f1(preds, target, scheme, average):
    mode = {"mode": "strict", "scheme": getattr(schemes, scheme)} if scheme else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f1_score(target, preds, average=average, **mode)


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_it_is_seqevals(scheme, average):
    metric = EntityF1Score(scheme, average, None if average == "micro" else TYPES)
    for seed in draws(200 if average == "micro" else 50):
        preds, target = drawn(seed, LETTERS[scheme])
        found = float(metric(preds, target))
        expected = float(expected_f1(preds, target, scheme, average))
        if not math.isnan(found):  # without any entity seqeval has 0 or NaN
            assert found == pytest.approx(expected, rel=1e-12)
        else:
            assert expected == 0 or math.isnan(expected)


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize("scheme", [None, "IOB2"])
def test_by_type_it_is_seqevals(scheme):
    metric = EntityF1Score(scheme, "none", TYPES)
    for seed in draws(50):
        preds, target = drawn(seed, LETTERS[scheme])
        found = metric(preds, target)
        present = [name for name, value in found.items() if not value.isnan()]
        assert list(found) == list(TYPES)
        assert [float(found[name]) for name in present] == pytest.approx(
            list(expected_f1(preds, target, scheme, None)), rel=1e-12
        )


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_without_an_entity_it_is_nan():
    assert EntityF1Score()([["O", "O"], []], [["O", "O"], []]).isnan()
    assert EntityF1Score(None, "macro", TYPES)([["O"]], [["O"]]).isnan()


def test_rows_are_those_of_each_sentence():
    preds, target = drawn(1, "IOB")
    for metric in (EntityF1Score("IOB1"), EntityF1Score(None, "macro", TYPES)):
        encoder = metric.encoder
        parts = [encoder.rows(preds[k], target[k]) for k in (slice(0, 1), slice(1, 1), slice(1, None))]
        assert torch.equal(encoder.rows(preds, target), torch.cat(parts))


def test_what_a_sentence_contributes_is_named():
    found = per_sample_values(EntityF1Score(), [["B-A", "O"], ["O"]], [["B-A", "B-C"], ["O"]])
    assert found is not None
    counts = {name: term.tolist() for name, term in found.terms.items()}
    assert counts == {"conlleval common entities, twice": [2, 0], "conlleval entities of both": [3, 0]}
    assert (found.numerator, found.denominator) == tuple(counts)


@pytest.mark.parametrize(
    ("metric", "pred", "place"),
    [
        (EntityF1Score(), ["O"], r"preds\[1\].*1 tags for 2"),
        (EntityF1Score(), "OO", r"preds\[1\].*str"),
        (EntityF1Score(), ["O", None], r"preds\[1\]\[1\].*None"),
        (EntityF1Score(), ["O", ""], r"preds\[1\]\[1\]"),
        (EntityF1Score(), ["O", "X-A"], r"preds\[1\]\[1\].*X-A"),
        (EntityF1Score("IOB2"), ["O", "S-A"], r"preds\[1\]\[1\].*S-A"),
        (EntityF1Score("IOB2", "macro", ("A",)), ["O", "B-B"], r"preds\[1\]\[1\].*B-B.*types"),
    ],
)
def test_a_wrong_tag_is_named_by_its_position(metric, pred, place):
    with pytest.raises(InputError, match=place):
        metric.encoder.check([["O"], pred], [["O"], ["O", "O"]])


@pytest.mark.parametrize("arguments", [{"scheme": "IOBX"}, {"average": "samples"}, {"types": (), "average": "macro"}])
def test_arguments_are_checked(arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        EntityF1Score(**arguments)


@pytest.mark.parametrize(
    "options", [{"types": ("A",)}, {"types": ("A", "A"), "average": "macro"}, {"types": "A", "average": "macro"}]
)
def test_types_that_are_not_used_or_stand_twice_are_refused(options):
    with pytest.raises(ConfigError, match="types"):
        EntityF1Score(**options)
