"""States as rows of integers, added up by SQL: the same bits as all samples counted at once."""

import csv
import io
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import torch

pa = pytest.importorskip("pyarrow")

from assay import Meter  # noqa: E402 - pyarrow is optional
from assay.errors import ConfigError, DeviceFaultError, StateError  # noqa: E402
from assay.metrics import (  # noqa: E402
    AUROC,
    Accuracy,
    CalibrationError,
    CohenKappa,
    F1Score,
    LogLoss,
    Max,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    PearsonCorrCoef,
    R2Score,
)
from assay.scoring import from_table, to_table  # noqa: E402

LABELS = {
    "accuracy": Accuracy(num_classes=5),
    "f1": F1Score(num_classes=5, average="macro"),
    "kappa": CohenKappa(num_classes=5),
}
NUMBERS = {"mae": MeanAbsoluteError(), "mse": MeanSquaredError(), "r2": R2Score(), "pearson": PearsonCorrCoef()}
SCORES = {"loss": LogLoss(), "calibration": CalibrationError(), "auroc": AUROC(thresholds=20)}
SUM = "select field, place, sum(count)::bigint as count from states {where} group by field, place"
CASES = {"labels": LABELS, "numbers": NUMBERS, "scores": SCORES}


def samples(case, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    if case == "labels":
        return [torch.randint(5, (rows,), generator=generator) for _ in range(2)]
    if case == "scores":
        return torch.rand(rows, generator=generator), torch.randint(2, (rows,), generator=generator)
    scale = 10.0 ** torch.randint(-20, 20, (rows,), generator=generator)
    return [torch.randn(rows, generator=generator, dtype=torch.float64) * scale for _ in range(2)]


def states(case):
    """The states of seven parts in one table, and a meter that counted all but the last."""
    whole, tables = Meter(**CASES[case]), []
    for part in range(7):
        meter, given = Meter(**CASES[case]), samples(case, 40 + part, part)
        meter.update(*given)
        if part < 6:
            whole.update(*given)
        table = to_table(meter)
        tables.append(table.append_column("part", pa.array([part] * len(table))))
    return pa.concat_tables(tables), whole


def same_bits(found, expected):
    values, wanted = found.compute(), expected.compute()
    assert found.rows == expected.rows
    for name, value in wanted.items():
        assert torch.equal(torch.as_tensor(values[name]), torch.as_tensor(value)), name


@pytest.mark.parametrize("case", CASES)
def test_rows_added_up_by_arrow(case):
    table, whole = states(case)
    chosen = table.filter(pa.compute.less(table["part"], 6))
    summed = chosen.group_by(["field", "place"]).aggregate([("count", "sum")])
    same_bits(from_table(CASES[case], summed.rename_columns(["field", "place", "count"])), whole)
    assert to_table(from_table(CASES[case], to_table(whole))) == to_table(whole)


@pytest.mark.parametrize("case", CASES)
def test_rows_added_up_by_duckdb(case, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table, whole = states(case)
    pa.parquet.write_table(table, tmp_path / "states.parquet")
    connection = duckdb.connect()
    connection.sql(f"create table states as select * from '{tmp_path}/states.parquet'")
    relation = connection.sql(SUM.format(where="where part < 6"))
    same_bits(from_table(CASES[case], relation), whole)
    same_bits(from_table(CASES[case], relation.fetchall()), whole)


def test_labels_counted_by_duckdb():
    duckdb = pytest.importorskip("duckdb")
    preds, target = samples("labels", 900, 3)
    predictions = pa.table({"p": preds.numpy(), "y": target.numpy()})
    relation = duckdb.connect().sql(
        "select '0.counts' as field, (y + 1) * (5 + 2) + p + 1 as place, count(*) as count "
        "from predictions group by y, p union all select 'rows', 0, count(*) from predictions"
    )
    whole = Meter(**LABELS)
    whole.update(preds, target)
    assert len(predictions) == 900
    same_bits(from_table(LABELS, relation), whole)


def server(name):
    """A program of PostgreSQL: on the path, or where Debian has it."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.mark.slow
@pytest.mark.skipif(server("initdb") is None or shutil.which("psql") is None, reason="PostgreSQL is not installed")
def test_rows_added_up_by_postgresql(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pg")
    how = {"check": True, "capture_output": True, "cwd": folder}
    if os.geteuid() == 0:  # which PostgreSQL refuses
        how["user"] = "nobody"
        for each in (folder, *folder.parents[:2]):
            each.chmod(0o777)
    data = folder / "data"
    subprocess.run([server("initdb"), "-D", data, "-A", "trust", "-U", "assay", "--no-sync"], **how)
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    subprocess.run([server("pg_ctl"), "-D", data, "-o", options, "-w", "-l", folder / "log", "start"], **how)
    try:
        for case in CASES:
            table, whole = states(case)
            written = io.StringIO()
            csv.writer(written).writerows(zip(*(each.to_pylist() for each in table.columns), strict=True))
            commands = (
                "drop table if exists states;"
                "create table states (field text, place bigint, count bigint, part integer);"
            )
            psql = ["psql", "-h", str(folder), "-U", "assay", "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1"]
            subprocess.run([*psql, "-c", commands], **how)
            copy = [*psql, "-c", "copy states from stdin with (format csv)"]
            subprocess.run(copy, input=written.getvalue().encode(), **how)
            for query in (SUM, SUM.replace("::bigint", "")):
                query = f"copy ({query.format(where='where part < 6')}) to stdout with (format csv)"
                shown = subprocess.run([*psql, "-c", query], **how).stdout.decode()
                rows = [(field, int(place), Decimal(count)) for field, place, count in csv.reader(io.StringIO(shown))]
                same_bits(from_table(CASES[case], rows), whole)
    finally:
        subprocess.run([server("pg_ctl"), "-D", data, "-m", "immediate", "stop"], **how)


def test_what_is_no_sum_is_named():
    for metric, name in ((AUROC(), "AUROC"), (Max(), "Max")):
        with pytest.raises(ConfigError, match=f"to_table: {name}.*sums alone"):
            to_table(Meter(Mean() if name == "Max" else Accuracy(), metric))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("0.counts", 6, 5.0), ("rows", 0, 5)], "two integers"),
        ([("0.counts", 6, Decimal("5.5")), ("rows", 0, 5)], "two integers"),
        ([("0.counts", 6, 5), ("0.counts", 6, 5), ("rows", 0, 10)], "twice"),
        ([("1.counts", 6, 5), ("rows", 0, 5)], "field '1.counts'"),
        ([("0.counts", 20, 5), ("rows", 0, 5)], "place 20.*0 to 19"),
        ([("0.counts", 6, 2**63), ("rows", 0, 5)], "64 bits"),
    ],
)
def test_rows_of_something_else_are_refused(rows, message):
    with pytest.raises(StateError, match=message):
        from_table(Accuracy(num_classes=2), rows)


def test_sums_that_break_a_law_are_refused():
    with pytest.raises(DeviceFaultError):
        from_table(Accuracy(num_classes=2), [("0.counts", 6, -5), ("rows", 0, 5)])
    with pytest.raises(StateError, match="also count"):
        from_table(Accuracy(num_classes=2), pa.table({"field": ["rows"], "place": [0], "sum(count)": [3]}))


def test_nothing_counted_is_nothing():
    assert from_table(Accuracy(num_classes=2), to_table(Meter(Accuracy(num_classes=2)))).rows == 0
