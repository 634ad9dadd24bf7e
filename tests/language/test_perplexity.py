from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.errors import ConfigError, ShapeError
from assay.language import ByteTokenizer, CausalModel, Tokens, Windows, perplexity
from assay.pretend import pretend
from assay.report import compare
from language.models import TEXT, Recurrent, llama

IDS = torch.tensor(ByteTokenizer().encode(TEXT))[:700]


def values(report):
    return {value.name: value.value for value in report.sections[0].values}


def nats(model, ids, window, stride):
    """The mean negative log likelihood, straight from its definition, in float64."""
    total, known, last = [], 0, len(ids) - 1 - min(window, len(ids) - 1)
    begin = 0
    while known < len(ids) - 1:
        piece = ids[begin : begin + window + 1]
        with torch.no_grad():
            found = model(piece[None, :-1])
        logits = getattr(found, "logits", found)[0].double()
        losses = nn.functional.cross_entropy(logits, piece[1:], reduction="none")
        total += losses[known - begin :].tolist()
        known = begin + len(piece) - 1
        begin = min(begin + stride, last)
    assert len(total) == len(ids) - 1
    return math.fsum(total) / len(total)


@pytest.mark.parametrize(("window", "stride"), [(64, 32), (128, 128), (100, 7), (1, 1)])
def test_perplexity_is_that_of_the_definition(window, stride):
    model = llama()
    ids = IDS[:300]
    found = values(perplexity(model, ids, tokenizer=ByteTokenizer(), window=window, stride=stride, device="cpu"))
    expected = nats(model, ids, window, stride)
    assert found["nats per token"] == pytest.approx(expected, rel=2e-6)
    assert found["perplexity"] == pytest.approx(math.exp(expected), rel=1e-5)
    assert found["bits per byte"] == pytest.approx(expected / math.log(2), rel=2e-6)


def test_perplexity_does_not_depend_on_the_size_of_batches():
    model = Recurrent()
    ids = torch.cat([IDS, IDS.flip(0)])
    found = [values(perplexity(model, ids, window=50, stride=20, device="cpu", batch_size=size)) for size in (1, 4, 64)]
    expected = nats(model, ids, 50, 20)
    for each in found:
        assert each["nats per token"] == pytest.approx(expected, rel=1e-6)


def test_a_model_of_equal_odds_has_the_perplexity_of_its_vocabulary():
    model = nn.Embedding.from_pretrained(torch.zeros(256, 256))
    found = values(perplexity(model, TEXT, device="cpu"))
    assert found["perplexity"] == pytest.approx(256, rel=1e-6)
    assert found["bits per byte"] == pytest.approx(8, rel=1e-6)


def test_more_context_is_used_where_the_stride_is_smaller():
    """A model that knows what stood 30 tokens earlier needs windows that still hold it."""

    def echo(ids):
        earlier = torch.cat([ids.new_zeros(len(ids), 29), ids], 1)[:, : ids.shape[1]]
        return nn.functional.one_hot(earlier, 256).float() * 20

    ids = torch.arange(30).repeat(30)
    far, near = (values(perplexity(echo, ids, window=60, stride=stride, device="cpu")) for stride in (60, 20))
    assert near["nats per token"] < far["nats per token"] / 3


def test_the_report_says_how_it_was_measured_and_proves_it():
    report = perplexity(llama(), TEXT[:500], window=64, stride=16, device="cpu", title="a model")
    (section,) = report.sections
    tables = {table.name: dict(row[:2] for row in table.rows) for table in section.tables}
    told = tables["How it was measured"]
    size = len(TEXT[:500].encode())
    windows = 1 + math.ceil((size - 1 - 64) / 16)
    assert (told["tokens predicted"], told["window"], told["stride"]) == (size - 1, 64, 16)
    assert told["least context after the first window"] == 48
    assert told["windows"] == tables["Every sample once"]["counted"] == windows
    assert section.note == f"{size - 1} tokens predicted once each, in {windows} windows of 64 that begin 16 apart."
    assert [value.count for value in section.values] == [size - 1] * 3
    assert report.title == "a model"


def test_intervals_are_over_windows_and_two_models_are_paired_by_them():
    def report(model):
        return perplexity(model, IDS, window=32, stride=16, device="cpu")

    first, second = report(Recurrent(0)), report(Recurrent(1))
    for value in first.sections[0].values:
        assert value.lower < value.value < value.upper, value.name
    samples = first.sections[0].samples
    assert len(samples) == len(Windows(Tokens(IDS), 32, 16))
    assert samples.column("tokens").sum() == len(IDS) - 1
    delta = compare(first, second).delta("nats per token")
    assert delta.paired
    assert delta.higher_is_better is False
    assert delta.lower < delta.difference < delta.upper
    bare = perplexity(Recurrent(), IDS, window=32, device="cpu", confidence_level=None)
    assert bare.sections[0].values[0].lower is None


def test_a_text_shorter_than_the_window_is_one_window():
    found = perplexity(llama(), "ab", device="cpu")
    assert found.sections[0].values[0].count == 1
    assert found.sections[0].note == "1 tokens predicted once each, in 1 windows of 1 that begin 64 apart."


def test_bits_per_byte_are_those_of_the_text_not_of_the_tokens():
    tokens = Tokens(IDS[:101] // 8, num_bytes=400)
    found = values(perplexity(Recurrent(vocab=32), tokens, device="cpu", window=50))
    assert found["bits per byte"] == pytest.approx(found["nats per token"] * 100 / math.log(2) / 400)
    assert "bits per byte" not in values(perplexity(Recurrent(), IDS[:50], device="cpu"))


def test_an_impossible_token_makes_it_infinite_without_an_error():
    logits = torch.zeros(256, 256)
    logits[:, 98] = -math.inf
    with pytest.warns(UserWarning, match="log probability that is NaN or infinite"):
        found = values(perplexity(nn.Embedding.from_pretrained(logits), "abab", device="cpu"))
    assert math.isinf(found["perplexity"])
    assert math.isinf(found["bits per byte"])


@pytest.mark.parametrize("device", ["mps", "cuda:0", "xpu"])
def test_perplexity_is_the_same_on_other_devices(device):
    expected = values(perplexity(Recurrent(), TEXT[:200], window=32, device="cpu"))
    with pretend(device):
        model = Recurrent()
        found = perplexity(model, TEXT[:200], window=32)
        assert found.device.startswith(device.partition(":")[0])
        assert {each.device.type for each in model.parameters()} == {"cpu"}, "the model is given back where it was"
    assert values(found) == pytest.approx(expected, rel=1e-12)


def test_models_are_given_back_as_they_were():
    model = Recurrent().train()
    perplexity(model, TEXT[:100], device="cpu")
    assert model.training
    assert model.gru.training


def test_precision_and_resume_reach_the_loop(tmp_path):
    model = Recurrent()
    exact = values(perplexity(model, TEXT[:300], window=32, device="cpu"))
    rough = values(perplexity(model, TEXT[:300], window=32, device="cpu", precision="bfloat16"))
    assert rough["nats per token"] != exact["nats per token"]
    assert rough["nats per token"] == pytest.approx(exact["nats per token"], rel=0.02)
    for _ in range(2):
        again = perplexity(model, TEXT[:300], window=32, device="cpu", resume=tmp_path)
        assert values(again) == exact
    run = next(table for table in again.sections[0].tables if table.name == "Run")
    assert dict(run.rows)["samples from checkpoints"] != "0"


@pytest.mark.parametrize(
    ("model", "data", "options", "error", "message"),
    [
        (llama(), "", {}, ConfigError, "data: got 0 tokens"),
        (llama(), TEXT, {"window": 129}, ConfigError, "window: got 129, expected what the model can hold, 128 tokens"),
        (llama(), TEXT, {"window": 16, "stride": 17}, ConfigError, "stride: got 17, with a window of 16"),
        (
            nn.Sequential(nn.Embedding(256, 4), nn.Flatten()),
            TEXT,
            {},
            ShapeError,
            r"expected logits of shape \(4, 1024, V\)",
        ),
        (lambda ids: None, TEXT, {}, ConfigError, "got NoneType, expected a tensor, or an output with logits"),
        (Recurrent(vocab=300), [1, 2, 300, 4], {}, Exception, "index out of range"),
        (
            lambda ids: torch.zeros(*ids.shape, 50),
            [1, 2, 99, 4],
            {},
            ConfigError,
            "got token 99, expected tokens below 50",
        ),
        (llama(vocab=90), [1, 2, 99, 4], {}, ConfigError, "got token 99, expected tokens below 90, as the model has"),
    ],
)
def test_what_cannot_be_measured_is_refused(model, data, options, error, message):
    with pytest.raises(error, match=message):
        perplexity(model, data, device="cpu", **options)


def test_logits_are_found_in_outputs():
    ids = torch.tensor([[1, 2]])
    logits = torch.zeros(1, 2, 7)
    for outputs in (logits, (logits, "more"), {"logits": logits}, llama()(ids)):
        assert CausalModel(lambda _, outputs=outputs: outputs)(ids).ndim == 3
