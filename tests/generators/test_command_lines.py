"""Random command lines end with one of the documented exit codes and no traceback, and change no file that is there.

A command line is a good one of which arguments are replaced, doubled, dropped or put in another order, with values that
are empty, long, of other types or files of another kind.
"""

from __future__ import annotations

import random
import sys
import warnings

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import assay.cli
from assay.scoring.stored_predictions import score

pytestmark = pytest.mark.slow
LINES = 100
TABLE = {
    "p": [0, 1, 2, 1],
    "y": [0, 1, 1, 1],
    "s,t": ["a", "b", None, "a"],
    "q": [0.1, 0.9, 0.4, 0.6],
    "z": [0, 1, 0, 1],
}
GOOD = [
    'score t.parquet --preds p --target y -m accuracy:num_classes=3 --slice "s,t"',
    "score t.csv --preds q --target z -m auroc,f1 --seed 1 --out made",
    "score t.parquet --preds p --target y -m f1:num_classes=3,average=macro --where y>0 --part 1/2 --out parts",
    "compare a.report b.report --confidence-level 0.9",
    "gate b.report --baseline a.report --max-drop accuracy=0.1",
    "history a.report b.report",
    "merge x.part",
    "migrate code.py",
]
ODD = [
    *(
        "",
        " ",
        "-",
        "--",
        "-1",
        "0",
        "1e9",
        "nan",
        "inf",
        "0/0",
        "3/2",
        "p0..p9",
        "p..",
        "=",
        "accuracy",
        "accuracy=",
        ":",
    ),
    *(
        "accuracy:",
        "accuracy:num_classes=0",
        "accuracy:num_classes=-3",
        "accuracy:num_classes=1e9",
        "accuracy:average=[]",
    ),
    *("f1=f1=f1", "auroc:{}", "y > 'a", "y in ()", "s,t*p", "age:bins=0", "q:bins=99", "q:edges=", "\N{SNOWMAN}" * 50),
    *(
        "x" * 3000,
        "missing.parquet",
        "t.csv",
        "code.py",
        "a.report",
        "folder",
        "/dev/null",
        "http://[",
        "s3:/x",
        "*.parquet",
    ),
    *(
        "--preds",
        "--out",
        "--slice",
        "--part",
        "--seed",
        "--metrics",
        "--config",
        "--ids",
        "--weights",
        "--where",
        "--help",
    ),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Tables, reports, a part and a program in the current folder."""
    monkeypatch.chdir(tmp_path)
    table = pa.table(TABLE)
    pq.write_table(table, "t.parquet", row_group_size=2)
    pyarrow.csv.write_csv(table, "t.csv")
    for name, preds in (("a", "p"), ("b", "z")):
        score(table, "accuracy:num_classes=3", preds=preds, target="y").save(f"{name}.report")
    (tmp_path / "x.part").write_bytes(b"no part")
    (tmp_path / "code.py").write_text("from torchmetrics import Accuracy\n", "utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


def _line(rng: random.Random) -> list[str]:
    line = rng.choice(GOOD).split()
    for _ in range(rng.randint(1, 3)):
        place, how = rng.randrange(1, len(line)), rng.randrange(4)
        if how == 0:
            del line[place]
        elif how == 1:
            line.insert(place, rng.choice(ODD))
        elif how == 2:
            line[place:place] = rng.choice(GOOD).split()[1:3]
        else:
            line[place] = rng.choice(ODD)
        if len(line) < 2:
            break
    return line


@pytest.mark.parametrize("part", range(3))
def test_a_command_line_ends_with_an_exit_code_of_its_own(monkeypatch, capsys, folder, part):
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    codes = set()
    for seed in range(part * LINES, (part + 1) * LINES):
        line = _line(random.Random(seed))
        monkeypatch.setattr(sys, "argv", ["assay", *line])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                assay.cli.main()
                code = 0
            except SystemExit as ended:
                code = ended.code or 0
            except BaseException as error:
                raise AssertionError(f"{seed}: {line}") from error
        printed = capsys.readouterr()
        assert code in (0, 1, 2), (seed, line)
        assert code != 2 or printed.err or printed.out, (seed, line)
        codes.add(code)
    assert codes >= {0, 2}
    assert {name: (folder / name).read_bytes() for name in before} == before
