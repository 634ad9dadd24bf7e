"""Token strips: the loss of each token of the worst windows, as text that is whole."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.errors import ShapeError
from assay.huggingface import open_tokenizer
from assay.language import ByteTokenizer, perplexity
from assay.language.strips import MOST_TOKENS, pieces_of
from assay.render.html import to_html
from assay.render.token_strips import TokenStrip
from assay.report import Report
from language.models import TEXT, Recurrent, folder

AHEAD = nn.Embedding.from_pretrained(torch.eye(256).roll(1, 1) * 9)  # after each byte the next one


def strips_of(report):
    return report.sections[0].samples.strips


def test_losses_are_those_of_the_tokens_by_hand():
    text = "abcdefgh" * 3 + "naïve"
    (strip, *_) = strips_of(perplexity(AHEAD, text, window=64, device="cpu"))
    ids = torch.tensor(list(text.encode()))
    losses = -AHEAD(ids[:-1]).log_softmax(1).gather(1, ids[1:, None])[:, 0].double()
    assert "".join(strip.pieces) == text[1:]
    assert math.fsum(strip.losses) == pytest.approx(float(losses.sum()), abs=0.01)
    place = strip.pieces.index("ï")
    begin = len(text.encode()) - len(b"\xc3\xafve") - 1
    assert strip.losses[place] == pytest.approx(float(losses[begin : begin + 2].sum()), abs=1e-3)


def test_the_worst_windows_come_first_and_their_dearest_stretch_is_shown():
    text = "".join(chr(97 + k % 20) for k in range(1500)) + "zz" * 20 + "".join(chr(97 + k % 20) for k in range(900))
    report = perplexity(AHEAD, text, window=512, stride=512, device="cpu")
    strips = strips_of(report)
    assert len(strips) == 3
    assert [strip.mean for strip in strips] == sorted((strip.mean for strip in strips), reverse=True)
    assert len(strips[0].pieces) == MOST_TOKENS
    assert "zz" * 18 in "".join(strips[0].pieces)
    assert Report.from_json(report.to_json()) == report


def test_the_same_with_a_tokenizer_of_a_folder_and_none_for_ids_alone(tmp_path):
    tokenizer = open_tokenizer(folder(tmp_path, model=None))
    ids = tokenizer.encode(TEXT)
    pieces = [*pieces_of(ids, tokenizer)]
    assert "".join(piece for piece, _ in pieces) == TEXT
    assert sum(size for _, size in pieces) == len(ids)
    model = Recurrent(vocab=300)
    (strip, *_) = strips_of(perplexity(model, TEXT, tokenizer=tokenizer, window=32, stride=16, device="cpu"))
    assert "".join(strip.pieces) in TEXT
    assert strips_of(perplexity(model, torch.tensor(ids), window=32, device="cpu")) == ()


def test_bytes_that_are_no_text_are_marks():
    assert [*pieces_of([0xFF] * 9 + [97], ByteTokenizer())] == [("\ufffd" * 8, 8), ("\ufffda", 2)]


def test_pages_shade_tokens_and_others_mark_them():
    strip = TokenStrip("7", ("The", " <b>", "fox", "\n", " ran"), (0.5, 9.0, 7.0, 0.1, 4.0), 4.12)
    assert strip.shades() == (6, 100, 88, 1, 50)
    report = perplexity(AHEAD, "abc*d\x1b<i>zzzz" * 3, window=64, device="cpu")
    page, markdown, text = to_html(report.to_document()), report.to_markdown(), report.to_text()
    assert '<span style="--shade: ' in page
    assert "<i>" not in page
    assert "Text that was predicted worst" in page
    assert "**" in markdown
    assert "nats per token; least expected:" in markdown
    assert "sample 0:" in text
    assert "\x1b" not in text + markdown


def test_not_as_many_losses_as_pieces_is_refused():
    with pytest.raises(ShapeError, match=r"TokenStrip.losses: got 1 losses, expected 2, one a piece"):
        TokenStrip("0", ("a", "b"), (1.0,), 1.0)
