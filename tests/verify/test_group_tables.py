"""Tables by a column are verified: their groups add up to the values, and a second count gives them again."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from assay import score
from assay.report.per_sample.packed_array import PackedArray
from assay.verify import verify_by_report, verify_file, verify_recount

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(0, 2, 300)
TABLE = pa.table({"p": 0.3 * Y + 0.7 * RANDOM.random(300), "y": Y, "user": RANDOM.integers(0, 40, 300)})


@pytest.fixture(scope="module")
def report():
    metrics = "accuracy,precision,mae,rmse=mse:squared=false"
    return score(TABLE, metrics, preds="p", target="y", by=["user"], progress=False)


def changed(report, name, field, change):
    """The report with one number of a group changed."""
    (section,) = report.sections
    (table,) = section.by
    metrics = []
    for each in table.metrics:
        if each.name == name:
            values = np.array(getattr(each, field).values)
            values[3] = change(values[3])
            each = replace(each, **{field: PackedArray.of(values)})
        metrics.append(each)
    return replace(report, sections=(replace(section, by=(replace(table, metrics=tuple(metrics)),)),))


def outcomes(checks):
    return {each.what: (each.outcome, each.found) for each in checks}


def of_file(report, tmp_path):
    return outcomes(verify_file(report.save(tmp_path / "report.json"))[1])["tables by a column"]


def test_sound_tables_pass(report, tmp_path):
    assert of_file(report, tmp_path)[0] == "pass"
    assert outcomes(verify_recount(report, TABLE))["tables by a column"] == ("pass", "the same bits")


@pytest.mark.parametrize("name", ["accuracy", "precision", "mae", "rmse"])
def test_groups_that_do_not_add_up_are_found_in_the_file(report, tmp_path, name):
    outcome, found = of_file(changed(report, name, "means", lambda x: x / 2 if x > 0.3 else x + 0.5), tmp_path)
    assert outcome == "fail"
    assert found.startswith(f"{name} by user: the groups add up to")


def test_counts_that_do_not_add_up_are_found_in_the_file(report, tmp_path):
    (section,) = report.sections
    counts = np.array(section.by[0].counts.values)
    counts[0] += 1
    other = replace(report, sections=(replace(section, by=(replace(section.by[0], counts=PackedArray.of(counts)),)),))
    assert of_file(other, tmp_path) == ("fail", "by user: 301 samples, but 300 were counted")


def test_values_of_other_samples_are_found_in_the_file(report, tmp_path):
    (section,) = report.sections
    metrics = tuple(replace(each, value=each.value / 2) for each in section.by[0].metrics)
    other = replace(report, sections=(replace(section, by=(replace(section.by[0], metrics=metrics),)),))
    assert of_file(other, tmp_path)[0] == "fail"


def test_a_second_count_names_the_group(report):
    group = report.sections[0].by[0].groups.values[3]
    checks = verify_recount(changed(report, "mae", "deviations", lambda x: x + 0.1), TABLE)
    outcome, found = outcomes(checks)["tables by a column"]
    assert outcome == "fail"
    assert found.startswith(f"user {group}: mae, deviation ")


def test_roundings_of_another_processor_are_near(report):
    near = changed(report, "mae", "means", lambda x: x * (1 + 1e-9))
    assert outcomes(verify_by_report(near, replace(report, device="other"), "rerun"))["tables by a column"][0] == (
        "not checked"
    )
    assert outcomes(verify_by_report(near, report, "rerun"))["tables by a column"][0] == "fail"
    far = changed(report, "mae", "means", lambda x: x + 0.01)
    assert outcomes(verify_by_report(far, replace(report, device="other"), "rerun"))["tables by a column"][0] == "fail"


def test_a_table_that_is_gone_is_found(report):
    without = replace(report, sections=(replace(report.sections[0], by=()),))
    assert outcomes(verify_by_report(without, report, "rerun"))["tables by a column"] == ("fail", "by user: missing")
