from __future__ import annotations

import json
import sys

import pytest

from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import open_model
from assay.errors import MissingDependencyError


@pytest.mark.parametrize(("package", "ending", "extra"), [("pyarrow", ".csv", "tables"), ("PIL", "", "images")])
def test_packages_that_read_data_are_named_where_they_are_missing(
    tmp_path, monkeypatch, options, model, package, ending, extra
):
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"held{ending}"
    path.write_text("a,label\n1,2\n", "utf-8") if ending else path.mkdir()
    with pytest.raises(MissingDependencyError, match=rf'Run: pip install "assay\[{extra}\]"'):
        open_data(options(path), model, {})


def test_transformers_are_named_where_they_are_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}), "utf-8")
    with pytest.raises(MissingDependencyError, match=r'transformers: got no such package.*"assay\[hf\]"'):
        open_model(str(tmp_path))
