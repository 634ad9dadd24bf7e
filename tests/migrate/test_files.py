"""Files and folders: what is read, what is left out, and that a file is written whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from assay.errors import ConfigError
from assay.migrate import migrate, write

CODE = "from torchmetrics import R2Score\nm = R2Score()\n"


def test_a_folder_is_read_without_what_is_not_the_readers(tmp_path):
    for name in ("a.py", "b/c.py", ".git/d.py", "venv/e.py", "b/__pycache__/f.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(CODE)
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    found = list(migrate(tmp_path))
    assert [str(each.path.relative_to(tmp_path)) for each in found] == ["a.py", "b/c.py"]
    assert all(each.changed for each in found)


def test_a_file_is_written_with_its_permissions_encoding_and_ends_of_lines(tmp_path):
    file, link = tmp_path / "real.py", tmp_path / "link.py"
    file.write_bytes(
        "# coding: latin-1\r\nfrom torchmetrics import R2Score\r\nm = R2Score()  # \xfc\r\n".encode("latin-1")
    )
    file.chmod(0o750)
    link.symlink_to(file)
    (found,) = migrate(link)
    write(found)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert file.read_bytes().decode("latin-1") == (
        "# coding: latin-1\r\nfrom assay.integrations import as_torchmetric\r\n"
        "from assay.metrics import R2Score\r\nm = as_torchmetric(R2Score())  # \xfc\r\n"
    )


def test_a_mark_of_byte_order_stays(tmp_path):
    file = tmp_path / "a.py"
    file.write_bytes(b"\xef\xbb\xbf" + CODE.encode())
    (found,) = migrate(file)
    write(found)
    assert file.read_bytes().startswith(b"\xef\xbb\xbffrom assay")


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "a.py"
    file.write_text(CODE)
    (found,) = migrate(file)

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write(found)
    assert file.read_text() == CODE
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"def f(:\n", "is no Python that can be read (line 1): "),
        (b"x = '\xff'\n", "is no Python that can be read"),
        (b"# coding: nothing\n", "is no Python that can be read: unknown encoding: nothing"),
        (b"x = 1\0\n", "is no Python that can be read"),
    ],
)
def test_what_cannot_be_read_is_said_and_stays(tmp_path, raw, reason):
    file = tmp_path / "a.py"
    file.write_bytes(raw)
    (found,) = migrate(file)
    assert reason in found.error
    assert found.diff() == ""
    write(found)
    assert file.read_bytes() == raw


def test_paths_that_cannot_be_are_errors(tmp_path):
    with pytest.raises(ConfigError, match=r"path: got .*gone, which is not there, expected a file or a folder"):
        list(migrate(tmp_path / "gone"))
    (tmp_path / "a.ipynb").write_text("{}")
    with pytest.raises(
        ConfigError, match=r"expected Python, a \.py file\. Name a \.py file; of a notebook, export one"
    ):
        list(migrate(tmp_path / "a.ipynb"))


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_diff_is_one_that_patch_takes(tmp_path, end):
    file = tmp_path / "a.py"
    file.write_text(CODE + "x = 1" + end)
    (found,) = migrate(file)
    applied = subprocess.run(["patch", str(file)], input=found.diff(), text=True, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert found.result is not None
    assert file.read_text() == found.result.after


def test_the_tables_need_neither_torch_nor_the_libraries():
    code = (
        "import sys, assay.migrate as m; [m.library(n) for n in m.LIBRARIES]; m.rewrite('import torchmetrics')\n"
        "print([n for n in ('torch', 'torchmetrics', 'ignite', 'torcheval') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
