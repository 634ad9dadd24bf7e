"""What stands in for a function of torch has what torch reads of the original."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import torch

from assay.audit.watching.hard_coded import watch_availability
from assay.pretend.torch_patches import Patches


def test_a_stand_in_has_the_attributes_of_a_cached_function_and_keeps_its_own():
    @functools.cache
    def answer() -> int:
        return 1

    plain = answer.__wrapped__
    owner = SimpleNamespace(answer=answer)
    with Patches() as patches:
        stand_in = lambda: 2  # noqa: E731
        stand_in.cache_info = "its own"
        patches.put(owner, "answer", stand_in)
        assert owner.answer() == 2
        assert owner.answer.__wrapped__ is plain
        owner.answer.cache_clear()
        assert owner.answer.cache_info == "its own"
    assert owner.answer is answer


def test_watching_mps_keeps_what_torch_reads_of_its_question():
    plain = getattr(torch.backends.mps.is_available, "__wrapped__", None)
    with watch_availability("mps", lambda *_: None, lambda *_: None):
        assert getattr(torch.backends.mps.is_available, "__wrapped__", None) is plain
        torch.backends.mps.is_available.cache_clear()
