"""Temporary folders of killed processes are deleted by the next one; those of processes that work are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from assay._atomic import temporary_folder

class Owner: pass
owner = Owner()
folder = temporary_folder(owner)
(folder / "segment.arrow").write_bytes(b"rows")
print(folder, flush=True)
sys.stdin.read()
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no kill -9, and no locks of this kind")


def started(temporary):
    environment = os.environ | {"TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_a_folder_of_a_killed_process_is_deleted_by_the_next(tmp_path):
    unknown = tmp_path / "assay-of-something-else"
    unknown.mkdir()
    working, kept = started(tmp_path)
    killed, left = started(tmp_path)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert os.path.exists(left), "nobody had the time to delete it"
    last, own = started(tmp_path)
    assert not os.path.exists(left)
    assert os.listdir(kept)
    assert unknown.exists()
    for process in (working, last):
        process.communicate("")
        assert process.returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == [unknown.name], own


def test_a_process_that_was_forked_keeps_the_folder_of_its_parent(tmp_path):
    """As those of a `DataLoader`: they hold the lock as long as they live, and delete nothing."""
    script = SCRIPT.replace("sys.stdin.read()", "child = os.fork()\nif child:\n  os._exit(0)\nsys.stdin.read()")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    folder = process.stdout.readline().strip()
    process.wait()
    other, _ = started(tmp_path)
    assert os.path.exists(folder), "the forked process may still read it"
    process.communicate("")
    other.communicate("")
    last, _ = started(tmp_path)
    last.communicate("")
    assert not os.path.exists(folder)
