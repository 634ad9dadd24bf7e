from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError, DtypeError, ShapeError
from assay.language import ByteTokenizer, Tokens, Windows, tokens_of
from assay.language.windows import IGNORED, sizes


@given(st.integers(2, 60), st.integers(1, 70), st.data())
def test_every_token_but_the_first_is_predicted_once_with_as_much_context_as_was_promised(length, window, data):
    stride = data.draw(st.integers(1, window))
    windows = Windows(Tokens(torch.arange(length)), window, stride)
    seen = []
    for number in range(len(windows)):
        sample = windows[number]
        ids, labels = sample["input_ids"], sample["labels"]
        assert len(ids) == len(labels) == min(window, length - 1)
        scored = labels != IGNORED
        assert scored.any(), "no window is for nothing"
        assert torch.equal(ids[scored] + 1, labels[scored]), "a target is the token after its input"
        if number:
            assert int(scored.nonzero()[0]) >= window - stride
        seen += labels[scored].tolist()
    assert seen == list(range(1, length))


def test_the_last_window_ends_with_the_text():
    windows = Windows(Tokens(torch.arange(11)), 4, 4)
    assert [windows.span(k) for k in range(len(windows))] == [(0, 0), (4, 4), (6, 8)]
    with pytest.raises(IndexError):
        windows[3]


@pytest.mark.parametrize(
    ("window", "stride", "message"),
    [
        (0, 1, "window: got 0, expected an integer above 0. Leave window out to take what the model holds."),
        (4, 2.5, "stride: got 2.5, expected an integer above 0. Leave stride out to take what the model holds."),
        (
            4,
            5,
            "stride: got 5, with a window of 4, expected a stride that leaves no token out. "
            "Pass at most the window; half of it is usual.",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused(window, stride, message):
    with pytest.raises(ConfigError) as raised:
        Windows(Tokens(torch.arange(9)), window, stride)
    assert str(raised.value) == message


def test_sizes_are_as_usual_unless_asked_for():
    assert sizes(None, None, None) == (1024, 512)
    assert sizes(None, None, 100) == (100, 50)
    assert sizes(None, 3, 4096) == (1024, 3)
    assert sizes(1, None, None) == (1, 1)
    with pytest.raises(ConfigError, match="got 129, expected what the model can hold, 128 tokens"):
        sizes(129, None, 128)


def test_bytes_come_back_and_are_counted():
    text = "naïve 日本 \ud800 text"
    tokens = tokens_of(text)
    assert tokens.num_bytes == len(text.encode("utf-8", "surrogatepass")) - 1 == len(tokens) - 1
    assert ByteTokenizer().decode(ByteTokenizer().encode("naïve 日本")) == "naïve 日本"
    assert tokens_of(torch.tensor([1, 2, 3], dtype=torch.int16)).num_bytes is None
    assert tokens_of([1, 2, 3], ByteTokenizer()).num_bytes == 2


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("", ConfigError, "got 0 tokens, expected two or more"),
        ("a", ConfigError, "got 1 tokens, expected two or more"),
        (Tokens(torch.arange(1)), ConfigError, "got 1 tokens"),
        (torch.zeros(2, 3, dtype=torch.long), ShapeError, r"got shape \(2, 3\), expected one series of token ids"),
        ([0.5, 1.5], DtypeError, "got torch.float32, expected token ids of an integer dtype"),
        (torch.tensor([True, False]), DtypeError, "got torch.bool"),
        ([3, -1], ConfigError, "got token -1, expected token ids of 0 or more"),
        ({"text": "abc"}, ConfigError, "got dict, expected text, or token ids"),
        (["two", "texts"], ConfigError, "got list, expected text, or token ids"),
    ],
)
def test_data_that_is_no_text_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        tokens_of(data)


def test_bytes_beyond_255_are_not_decoded():
    with pytest.raises(ConfigError, match="got token 300, expected bytes"):
        ByteTokenizer().decode([97, 300])
