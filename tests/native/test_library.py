"""The compiled library is of these sources or counts as none: everything then runs in torch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from assay.metrics import Accuracy
from assay.native import compilation, weights
from assay.native.library import MISSING, library, takes

PREDS, TARGET = torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1])


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Compile C code, and take it for the library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")

    def make(code: str) -> None:
        source, built = tmp_path / "other.c", tmp_path / "_native.so"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(built)], check=True)
        monkeypatch.setattr(compilation, "LIBRARY", built)
        library.cache_clear()

    yield make
    monkeypatch.undo()
    library.cache_clear()


@pytest.mark.parametrize("digest", ["", "0" * 64, "0" * 200])
def test_a_library_of_other_sources_is_as_none(digest: str, build: Callable[[str], None]) -> None:
    build(f'const char assay_sources[] = "{digest}";' if digest else "int other;")
    assert library() is None
    assert not takes(PREDS)
    assert weights.why_not(32) == MISSING
    assert Accuracy(num_classes=2)(PREDS, TARGET).item() == 0.5


def test_a_library_of_these_sources_is_loaded(build: Callable[[str], None]) -> None:
    build(f'const char assay_sources[] = "{compilation.digest()}";')
    assert library() is not None
    assert weights.why_not(32) == ""


def test_the_digest_is_of_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {compilation.digest()}
    for file in (*compilation.HOME.glob("*.c"), *compilation.HOME.glob("*.h")):
        shutil.copytree(compilation.HOME, tmp_path / file.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        with (tmp_path / file.name / file.name).open("a") as source:
            source.write("/* changed */")
        with monkeypatch.context() as patch:
            patch.setattr(compilation, "HOME", tmp_path / file.name)
            digests.add(compilation.digest())
    assert len(digests) == 1 + len([*compilation.HOME.glob("*.[ch]")])
