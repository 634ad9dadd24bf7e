"""The page of `assay.compat` and the declarations that it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.compat.drop_ins import ADAPTED, drop_ins

PAGE = (Path(__file__).parents[2] / "docs" / "compat.md").read_text("utf-8")
SECTIONS = {"torchmetrics": "### What stays TorchMetrics' own", "ignite": "### What stays Ignite's own"}


def normal(name: str) -> str:
    """The name of a class and of its function."""
    return name.replace("_", "").lower()


@pytest.mark.parametrize("library", SECTIONS)
def test_the_page_names_what_is_passed_through(library):
    """Functions of a class are named with it."""
    declared = drop_ins(library)
    adapted = ADAPTED if library == "torchmetrics" else ()
    own = {name for name, each in declared.items() if not (each.assay or each.tasks or name in adapted)}
    section = PAGE.partition(SECTIONS[library])[2]
    intro, _, rest = section.partition("\n\n")[2].partition("\n\n")
    names = set(re.findall(r"`(\w+)`", rest.partition("\n\n")[0]))
    counted = len(declared) - len(own) - len(adapted)
    assert re.findall(r"\d+", intro) == [str(len(declared)), str(counted)]
    assert names <= own
    assert {normal(each) for each in names} == {normal(each) for each in own}
