from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.errors import ConfigError, InvalidValuesError, ShapeError
from assay.language import ByteTokenizer, generate
from assay.pretend import pretend
from language.models import Recurrent, llama

PROMPT = "The 7th sentence"
AHEAD = nn.Embedding.from_pretrained(torch.eye(256).roll(1, 1) * 9)  # after each byte the next one


def test_the_most_probable_tokens_are_those_of_hugging_face():
    model = llama()
    ids = torch.tensor([ByteTokenizer().encode(PROMPT)])
    expected = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, pad_token_id=0
    )
    found = generate(model, PROMPT, 20, device="cpu")
    assert list(found.ids) == expected[0, ids.shape[1] :].tolist()
    assert (found.prompt_tokens, len(found.ids)) == (16, 20)


def test_kept_keys_change_nothing():
    model = llama()
    cached = generate(model, PROMPT, 30, device="cpu")
    whole = generate(lambda ids: model(ids, use_cache=False), PROMPT, 30, device="cpu")
    assert cached.ids == whole.ids


def test_draws_follow_the_seed_and_nothing_else():
    model = Recurrent()
    first, again, other = (
        generate(model, PROMPT, 30, temperature=1.0, seed=seed, device="cpu").ids for seed in (1, 1, 2)
    )
    assert first == again != other
    state = torch.get_rng_state()
    generate(model, PROMPT, 3, temperature=1.0, device="cpu")
    assert torch.equal(state, torch.get_rng_state())


def test_draws_are_those_of_the_probabilities():
    logits = torch.full((256,), -math.inf)
    logits[[97, 98, 99]] = torch.tensor([0.5, 0.3, 0.2]).log()
    model = nn.Embedding.from_pretrained(logits.expand(256, 256).contiguous())
    ids = generate(model, "a", 2000, temperature=1.0, device="cpu").ids
    shares = [ids.count(token) / 2000 for token in (97, 98, 99)]
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=0.05)
    assert set(generate(model, "a", 200, temperature=1.0, top_k=2, device="cpu").ids) == {97, 98}
    cold = generate(model, "a", 200, temperature=0.01, device="cpu").ids
    assert set(cold) == {97}


def test_of_equal_ones_the_first_is_taken():
    model = nn.Embedding.from_pretrained(torch.zeros(256, 256))
    assert generate(model, "a", 2, device="cpu").ids == (0, 0)


def test_a_last_token_ends_the_text():
    class Ends(ByteTokenizer):
        stop = ord("e")

    found = generate(AHEAD, "ab", 10, tokenizer=Ends(), device="cpu")
    assert (found.text, str(found)) == ("cd", "abcd")


def test_what_it_cost_is_told():
    found = generate(AHEAD, "ab", 5, device="cpu")
    assert found.first_s > 0
    assert found.tokens_per_second == 4 / found.rest_s
    assert math.isnan(generate(AHEAD, "ab", 1, device="cpu").tokens_per_second)
    assert found.device == "cpu"
    if found.peak_bytes is not None:
        assert found.peak_bytes > 10 * 2**20
        assert found.memory == "of the whole process"


def test_it_can_be_watched():
    seen = []
    generate(AHEAD, "ab", 4, device="cpu", watch=seen.append)
    assert seen == ["c", "cd", "cde", "cdef"]


@pytest.mark.parametrize("device", ["mps", "cuda:0", "xpu"])
def test_the_same_is_said_on_other_devices(device):
    options = {"temperature": 0.9, "seed": 3}
    expected = generate(Recurrent(), PROMPT, 12, device="cpu", **options).ids
    with pretend(device):
        found = generate(Recurrent(), PROMPT, 12, device=device, **options)
    assert found.ids == expected
    assert found.device.startswith(device.partition(":")[0])


@pytest.mark.parametrize(
    ("model", "prompt", "count", "options", "error", "message"),
    [
        (AHEAD, "", 1, {}, ConfigError, "prompt: got no tokens, expected a text to continue"),
        (AHEAD, "a", 0, {}, ConfigError, "max_new_tokens: got 0, expected an integer above 0"),
        (AHEAD, "a", 1, {"temperature": -1}, ConfigError, "temperature: got -1, expected a number of 0 or more"),
        (AHEAD, "a", 1, {"temperature": math.nan}, ConfigError, "temperature: got nan"),
        (AHEAD, "a", 1, {"top_k": 0}, ConfigError, "top_k: got 0, expected an integer above 0"),
        (
            llama(positions=16),
            "a" * 10,
            7,
            {},
            ConfigError,
            "prompt: got 10 tokens and 7 new ones, expected at most 16, what the model can hold. "
            "Shorten the prompt, or pass a smaller max_new_tokens.",
        ),
        (nn.Flatten(0), "abc", 1, {}, ShapeError, r"outputs of the model: got shape \(3,\)"),
        (
            nn.Embedding.from_pretrained(torch.full((256, 256), math.nan)),
            "a",
            1,
            {},
            InvalidValuesError,
            "logits: got NaN, expected finite numbers",
        ),
        (
            nn.Embedding.from_pretrained(torch.eye(256).masked_fill(torch.eye(256).bool(), math.inf)),
            "a",
            1,
            {},
            InvalidValuesError,
            "logits: got inf as the largest, expected finite numbers",
        ),
        (AHEAD, "a", 1, {"device": "nowhere"}, ConfigError, "device: got 'nowhere'"),
        (AHEAD, None, 1, {}, ConfigError, "prompt: got NoneType, expected a text to continue"),
        (AHEAD, "a", 1, {"seed": "x"}, ConfigError, "seed: got 'x', expected an integer from 0"),
        (None, "a", 1, {}, ConfigError, "model: got None, expected a module or a function"),
        (nn.Linear(3, 3), "a", 1, {}, ConfigError, "model: got RuntimeError: .*, expected logits for token ids"),
    ],
)
def test_what_cannot_be_is_refused(model, prompt, count, options, error, message):
    with pytest.raises(error, match=message):
        generate(model, prompt, count, **{"device": "cpu", **options})


def test_the_text_ends_before_a_string():
    seen = []
    found = generate(AHEAD, "ab", 20, until=["zz", "", "gh", "ghi"], device="cpu", watch=seen.append)
    assert (found.text, len(found.ids)) == ("cdef", 6)
    assert seen[-2:] == ["cdefg", "cdef"]


def test_token_ids_are_taken_as_they_are():
    class Starts(ByteTokenizer):
        start = (7,)

    found = generate(AHEAD, [97, 98], 2, tokenizer=Starts(), device="cpu")
    assert (found.prompt, found.prompt_tokens, found.text) == ("ab", 2, "cd")


@pytest.mark.parametrize("ends", [6, [6, 250]])
def test_tokens_that_end_a_text_beside_the_model_do_so(ends):
    model = llama()
    free = generate(model, PROMPT, 12, device="cpu").ids
    model.generation_config.eos_token_id = free[4] if ends == 6 else [free[4], 250]
    ids = torch.tensor([ByteTokenizer().encode(PROMPT)])
    made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, pad_token_id=0)
    found = generate(model, PROMPT, 12, device="cpu").ids
    assert [*found, free[4]] == made[0, ids.shape[1] :].tolist()
