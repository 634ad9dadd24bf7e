"""Each planted cause is found and named, and sound models have nothing but rounding."""

from __future__ import annotations

import functools
import re

import pytest
import torch
from torch import nn

from assay.stability import check_stability
from stability import planted as p
from thinning import every_third


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(40, *shape, generator=torch.Generator().manual_seed(1))


def texts() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(2)
    tokens = torch.randint(1, 11, (40, p.WIDTH), generator=random)
    lengths = torch.randint(2, p.WIDTH + 1, (40, 1), generator=random)
    mask = (torch.arange(p.WIDTH)[None] < lengths).long()
    return {"tokens": tokens * mask, "mask": mask}


def norm_in_training_mode() -> nn.Module:
    model = nn.Sequential(nn.Linear(p.WIDTH, 10), nn.BatchNorm1d(10), nn.Linear(10, 3))
    model.eval = lambda: model  # type: ignore[method-assign]
    return model


PLANTED = {
    p.DropoutInTraining: ("repeat", r"dropout is active: 'drop' is in training mode"),
    p.FunctionalDropout: ("repeat", r"dropout is active .*pass training=self\.training"),
    p.Noise: ("repeat", r"random numbers without a seed: randn_like|random numbers without a seed: randn"),
    p.OwnGenerator: ("repeat", r"random numbers without a seed: randn|'generator'"),
    p.PythonNoise: ("repeat", r"random numbers without a seed: Python's random"),
    p.ModuleInAList: ("repeat", r"dropout is active: eval\(\) does not reach 'branches\.0'.*nn\.ModuleList"),
    p.NormInADictionary: ("neighbours", r"batch norm 'branches\.norm'.*eval\(\) does not reach"),
    p.NormWithoutStatistics: ("neighbours", r"batch norm 'norm' normalizes by the batch: it has no running statistics"),
    p.SoftmaxOverTheBatch: ("neighbours", r"_softmax in the model's own forward works over the samples"),
    p.Standardized: ("neighbours", r"mean in the model's own forward works over the samples"),
    p.CumulativeSum: ("order", r"cumsum in the model's own forward works over the samples"),
    p.TopKOverTheBatch: ("neighbours", r"topk in the model's own forward works over the samples"),
    p.ScaledByTheLargest: ("neighbours", r"amax in the model's own forward works over the samples"),
    p.Counter: ("repeat", r"state is carried from call to call: buffer 'count'"),
    p.CacheByShape: ("neighbours", r"the cache 'cache' keeps results of earlier calls"),
    p.HiddenStateKept: ("repeat", r"state is carried from call to call: attribute 'hidden'"),
    p.InPlace: ("inputs", r"changes its input in place"),
    p.FirstRowIsSpecial: ("order", r"outputs depend on the place in the batch"),
    p.OtherBranchForOne: ("batch size", r"other operators run in the model's own forward: a branch depends"),
    p.DtypeOfTheData: ("batch size", r"the dtype depends on the data: _to_copy"),
    p.HalfSums: ("dtype", r"_to_copy computes in fewer bits than float32"),
    p.Cancellation: ("dtype", r"digits are lost, by cancellation"),
    p.ShuffledScatter: ("repeat", r"numbers are added in another order.*randperm draws it"),
    p.TimeDependent: ("repeat", r"outputs depend on something outside of the model, such as the time"),
    p.HashDependent: ("repeat", r"outputs depend on something outside of the model.*an id"),
    p.LeakingMean: ("padding", r"padding leaks"),
    p.LeakingAttention: ("padding", r"padding leaks"),
    norm_in_training_mode: ("neighbours", r"batch norm '1' normalizes by the batch: '1' is in training mode"),
}


@pytest.mark.parametrize("make", PLANTED, ids=lambda each: each.__name__)
def test_a_planted_cause_is_found_and_named(make):
    torch.manual_seed(0)
    model = make()
    what, cause = PLANTED[make]
    result = check_stability(model, texts() if what == "padding" else numbers(p.WIDTH))
    assert result.exit_code == 1
    causes = [each.cause for each in result.checks if each.verdict == "depends" and each.what == what]
    assert [each for each in causes if re.search(cause, each)] == causes != [], result.checks


def text_model(layers: int):
    return functools.partial(p.Encoder, layers)


def layers(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(p.WIDTH, 16), *between, nn.Linear(16, 3))


def deep() -> nn.Module:
    blocks = [each for _ in range(24) for each in (nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU())]
    return layers(*blocks)


def warmed_up() -> nn.Module:
    model = layers(nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
    model(numbers(p.WIDTH))
    return model


def tiny_bert() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=11, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, num_labels=3
    )
    return transformers.BertForSequenceClassification(config)


def tiny_llama() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=11, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    return transformers.LlamaForCausalLM(config)


SQUARES = (p.WIDTH * p.WIDTH,)
SOUND = {
    "perceptron": (lambda: layers(nn.ReLU()), numbers, (p.WIDTH,)),
    "wide": (lambda: nn.Sequential(nn.Linear(p.WIDTH, 700), nn.ReLU(), nn.Linear(700, 3)), numbers, (p.WIDTH,)),
    "batch norm": (warmed_up, numbers, (p.WIDTH,)),
    "layer norm": (lambda: layers(nn.LayerNorm(16), nn.GELU()), numbers, (p.WIDTH,)),
    "softmax": (lambda: nn.Sequential(layers(nn.Softmax(1)), nn.LogSoftmax(1)), numbers, (p.WIDTH,)),
    "24 layers": (deep, numbers, (p.WIDTH,)),
    "float64": (lambda: layers(nn.Tanh()).double(), lambda *shape: numbers(*shape).double(), (p.WIDTH,)),
    "cached table": (p.CachedTable, numbers, (p.WIDTH,)),
    "convolution": (lambda: p.Image(nn.BatchNorm2d), numbers, SQUARES),
    "depthwise": (lambda: p.Image(nn.BatchNorm2d, depthwise=True), numbers, SQUARES),
    "group norm": (lambda: p.Image(lambda width: nn.GroupNorm(2, width)), numbers, SQUARES),
    "instance norm": (lambda: p.Image(nn.InstanceNorm2d), numbers, SQUARES),
    "lstm": (lambda: p.Recurrent(nn.LSTM), numbers, (p.WIDTH,)),
    "gru": (lambda: p.Recurrent(nn.GRU), numbers, (p.WIDTH,)),
    "rnn": (lambda: p.Recurrent(nn.RNN), numbers, (p.WIDTH,)),
    "masked mean": (p.MaskedMean, texts, ()),
    "masked attention": (lambda: p.LeakingAttention(masked=True), texts, ()),
    "2 encoder layers": (text_model(2), texts, ()),
    "6 encoder layers": (text_model(6), texts, ()),
    "bert": (tiny_bert, lambda: {"input_ids": texts()["tokens"], "attention_mask": texts()["mask"]}, ()),
    "llama": (tiny_llama, lambda: {"input_ids": texts()["tokens"], "attention_mask": texts()["mask"]}, ()),
}


@every_third
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_model_has_nothing_but_rounding(name):
    torch.manual_seed(0)
    make, data, shape = SOUND[name]
    result = check_stability(make(), data(*shape))
    assert result.outcome == "stable", [each for each in result.checks if each.verdict == "depends"]
    is_text = isinstance(data(*shape), dict)
    checked = {each.what: each.verdict for each in result.checks}
    assert (checked["padding"] != "not checked") is is_text
    assert checked["repeat"] == "same bits"


def test_padding_is_checked_without_a_mask_where_the_token_is_named():
    torch.manual_seed(0)
    tokens = texts()["tokens"]
    sound = check_stability(p.Bag(), tokens, padding=0)
    assert [each.verdict for each in sound.checks if each.what == "padding"] != ["not checked"]
    assert sound.outcome == "stable"
    leaking = nn.Sequential(nn.Embedding(11, 8), nn.AdaptiveAvgPool2d((1, 8)), nn.Flatten(), nn.Linear(8, 3))
    assert "padding leaks" in check_stability(leaking, tokens, padding=0).causes[0]
