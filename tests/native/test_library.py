"""The compiled library is taken as a whole or not at all: an older one is as none, and everything runs in torch."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from assay.metrics import Accuracy
from assay.native import library as module
from assay.native import weights
from assay.native.library import FUNCTIONS, MISSING, library, takes

PREDS, TARGET = torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1])


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Build a library of empty functions, and take it for the compiled one."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")

    def make(*names: str) -> None:
        source, built = tmp_path / "empty.c", tmp_path / "_native.so"
        source.write_text("".join(f"void assay_{name}(void) {{}}\n" for name in names))
        subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(built)], check=True)
        monkeypatch.setattr(module, "PATH", built)
        library.cache_clear()

    yield make
    monkeypatch.undo()
    library.cache_clear()


@pytest.mark.parametrize("absent", FUNCTIONS)
def test_a_library_that_lacks_a_function_is_as_none(absent: str, build: Callable[..., None]) -> None:
    build(*(name for name in FUNCTIONS if name != absent))
    assert library() is None
    assert not takes(PREDS)
    assert weights.why_not(32) == MISSING
    assert Accuracy(num_classes=2)(PREDS, TARGET).item() == 0.5


def test_a_library_with_every_function_is_loaded(build: Callable[..., None]) -> None:
    build(*FUNCTIONS, "another")
    assert library() is not None
    assert weights.why_not(32) == ""


def test_the_functions_are_those_of_the_sources() -> None:
    sources = Path(module.__file__).parent.glob("*.c")
    defined = {name for source in sources for name in re.findall(r"^\w.*?\bassay_(\w+)\(", source.read_text(), re.M)}
    assert set(FUNCTIONS) == defined
