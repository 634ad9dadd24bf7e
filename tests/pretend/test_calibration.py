"""The part of the calibration that is small enough for each run; `python -m benchmarks.calibration` runs all of it."""

from __future__ import annotations

import os
import sys
import warnings

import pytest
import torch
from benchmarks import pretend_overhead
from benchmarks.calibration import bits, compare, mps_lists, page, probe, stream
from benchmarks.calibration.bits import Rounding, differ

from assay.pretend import pretend

needs_lists = pytest.mark.skipif(not mps_lists.FILE.exists(), reason="this release of torch ships no lists of mps")
EVERY = 14  # of the operators, one in so many
# Questions whose answer is known to differ from what PyTorch's tests expect; docs/calibration.md shows those left.
KNOWN = {
    "deterministic: embedding_bag max backward",
    "deterministic: mm without CUBLAS_WORKSPACE_CONFIG",
    "mixed: set_: device, host",
    "mixed: set_: host, device",
    "mixed: set_ storage: device, host",
    "two devices: set_",
    "number: where both: on the CPU",
    "waits: index by the CPU's mask",
    "waits: put a tensor by the CPU's mask",
    "mixed: mm: device, host",
    "mixed: linear: device, host",
    "mixed: linear: host, device",
    "lands: pin_memory",
    "deterministic: ctc_loss backward",
    "deterministic: nll_loss of images",
    "deterministic: reflection_pad3d backward",
    "deterministic: replication_pad2d backward",
    "deterministic: replication_pad3d backward",
}


def some_operators() -> list[str]:
    from benchmarks.calibration import samples

    return [samples.name(operator) for operator in samples.operators()][::EVERY]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cuda:1", "xpu", "mps"])
def test_operators_have_the_bits_of_the_cpu(device: str) -> None:
    pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")
    from benchmarks.calibration import operators

    results = operators.run(device, some_operators(), most=2)
    assert len(results) > 40
    outcomes = {one["name"]: (one["outcome"], one["why"]) for one in results}
    assert {name: why for name, (outcome, why) in outcomes.items() if outcome in ("wrong", "failed")} == {}
    if device != "mps":  # which lacks operators
        assert operators.share_equal(operators.summary(results)["samples"]) >= 0.98


@pytest.mark.slow
def test_mps_refuses_only_what_pytorch_expects_to_fail_there() -> None:
    pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")
    from benchmarks.calibration import operators

    listed = [name for name, dtypes in mps_lists.lists()[mps_lists.UNIMPLEMENTED].items() if dtypes is None]
    results = operators.run("mps", [*listed[::3], *some_operators()], most=2)
    agreement = mps_lists.compare(results)
    assert len(agreement.both) > 5
    assert agreement.refused_only == ()
    assert set(agreement.listed_only) <= set(mps_lists.REASONS)


@pytest.mark.slow
def test_errors_that_the_database_expects_of_cuda() -> None:
    pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")
    from benchmarks.calibration import errors, samples

    wanted = {"cat", "dot", "vdot", "gather", "index_select", "scatter", "where", "nn.functional.embedding"}
    with pretend("cuda:1") as pretended:
        for operator in errors.with_errors():
            if samples.name(operator) in wanted:
                found = errors.check(operator, pretended.device)
                assert found["outcome"] == "same", (operator.name, found["why"])
                assert found["samples"]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cuda:1", "mps", "xpu:1"])
def test_what_pytorch_s_own_tests_expect(device: str) -> None:
    with pretend(device) as pretended:
        answers = probe.run(device, pretended)
    verdicts = compare.against_tests(answers, device)
    assert {name for verdict, name, _ in verdicts if verdict != "agree"} <= KNOWN
    assert sum(verdict == "agree" for verdict, _, _ in verdicts) >= {"cuda:1": 80, "mps": 5, "xpu:1": 38}[device]


@pytest.mark.slow
def test_a_real_device_would_be_asked_the_same_way() -> None:
    """Synchronizations are then what torch's debug mode warns of, which a pretend device answers, too."""
    with pretend("cuda:1") as pretended:
        as_real = probe.run("cuda:1", None, "^waits")
        noted = probe.run("cuda:1", pretended, "^waits")
    assert len(noted) > 90
    assert [row for row in compare.compare(as_real, noted) if row[0] != "agree"] == []


@pytest.mark.exhaustive
def test_the_cpu_answers_the_same_questions() -> None:
    answers = probe.run("cpu", None, "^(lands: zeros|mixed: (add|copy_|mm)|range: gather$)")
    assert answers["lands: zeros on the device"] == {"value": "float32 (2,) on cpu"}
    assert answers["mixed: add: device, host"] == {"value": "float32 (2, 2) on cpu"}
    assert answers["range: gather"]["error"] == "RuntimeError"  # asked in a process of its own


def test_a_difference_of_one_bit_is_seen() -> None:
    one = torch.tensor([1.0, float("nan"), -0.0])
    assert differ((one, 2), (one.clone(), 2)) == ""
    off = one.clone()
    off[0] = torch.nextafter(off[0], torch.tensor(2.0))
    assert isinstance(differ(one, off), Rounding)
    assert differ(one, torch.tensor([2.0, float("nan"), -0.0])) == "values differ by up to inf"
    assert differ(torch.tensor([1, 2]), torch.tensor([1, 3])) == "values differ by up to 1"
    assert differ(torch.tensor([0.0]), torch.tensor([-0.0])) != ""
    assert differ(one, one.double()) == "dtype torch.float64 instead of torch.float32"
    assert "shape" in differ(one, one[:2])
    assert "instead of" in differ((one, one), (one,))
    assert differ(one, off * 3, values=False) == ""


@pytest.mark.parametrize("layout", list(bits.SPARSE))
def test_sparse_results_are_compared(layout: torch.layout) -> None:
    block = (1, 1) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    with warnings.catch_warnings(action="ignore"):  # that compressed layouts are young, once a process
        a, b = (torch.tensor([[0.0, n], [2.0, 0.0]]).to_sparse(layout=layout, blocksize=block) for n in (1.0, 3.0))
    assert differ(a, a.clone()) == ""
    assert differ(a, b) == "values differ by up to 2"


@pytest.mark.parametrize(
    ("real", "found", "verdict"),
    [
        ({"value": "a"}, {"value": "a"}, "agree"),
        ({"value": "a"}, {"value": "b"}, "disagree"),
        ({"error": "RuntimeError", "text": "at 0x7f3a"}, {"error": "RuntimeError", "text": "at 0x11"}, "agree"),
        ({"error": "RuntimeError", "text": "x"}, {"error": "RuntimeError", "text": "y"}, "other text"),
        ({"error": "RuntimeError", "text": "x"}, {"error": "TypeError", "text": "x"}, "disagree"),
        ({"value": "a"}, {"error": "TypeError", "text": "x"}, "disagree"),
        ({"waits": True, "times": 2}, {"waits": True, "times": 1}, "agree"),
        ({"waits": True, "times": 2}, {"waits": False, "times": 0}, "disagree"),
        ({"unknown": "no"}, {"waits": False, "times": 0}, "unknown"),
    ],
)
def test_two_answers_are_compared(real: dict, found: dict, verdict: str) -> None:
    assert compare.verdict(real, found) == verdict


def test_a_question_that_only_one_was_asked_is_unknown() -> None:
    assert compare.compare({"a": {"value": "1"}}, {"b": {"value": "1"}}) == [
        ("unknown", "a", "1 | not asked"),
        ("unknown", "b", "not asked | 1"),
    ]


def test_wrong_answers_disagree_with_the_tests() -> None:
    wrong = {
        "waits: nonzero": {"waits": False, "times": 0},
        "deterministic: put_": {"value": "float32"},
        "deterministic: kthvalue": {"error": "RuntimeError", "text": "something else"},
        "lands: zeros": {"value": "float32 (2,) on cuda:0"},
    }
    verdicts = {name: verdict for verdict, name, _ in compare.against_tests(wrong, "cuda:1")}
    assert [verdicts[name] for name in wrong] == ["disagree", "disagree", "other text", "disagree"]
    assert verdicts["waits: if"] == "unknown"


@needs_lists
def test_the_lists_of_mps_are_read() -> None:
    listed = mps_lists.lists()[mps_lists.UNIMPLEMENTED]
    assert mps_lists.expected(listed, "linalg.eig", "torch.float32")
    name = next(name for name, dtypes in listed.items() if dtypes == ["torch.float32"])
    assert mps_lists.expected(listed, name, "torch.float32")
    assert not mps_lists.expected(listed, name, "torch.float16")
    assert not mps_lists.expected(listed, "add", "torch.float32")


DIES = """
import os, sys
first, last = (int(sys.argv[sys.argv.index(name) + 1]) for name in ("--first", "--last"))
for number in range(first, last):
    if number == 1:
        print("it ends here", file=sys.stderr)
        os._exit(7)
    print('{"name": "%d", "outcome": "equal"}' % number, flush=True)
"""


@pytest.fixture
def dies_once(tmp_path, monkeypatch) -> str:
    (tmp_path / "dies_once.py").write_text(DIES, "utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return "dies_once"


def test_a_check_that_ends_the_process_costs_only_itself(dies_once, tmp_path) -> None:
    results = stream.collect(dies_once, [], ["0", "1", "2"], tmp_path / "part")
    assert [one["outcome"] for one in results] == ["equal", "crash", "equal"]
    assert results[1]["why"] == "ended with 7: it ends here"


def test_an_interrupted_run_goes_on_where_it_ended(dies_once, tmp_path, monkeypatch) -> None:
    part, names = tmp_path / "part", ["0", "1", "2", "3"]
    begun = ['{"name": "0", "outcome": "before"}', '{"name": "1", "outcome": "before"}', '{"name": "2", "out']
    part.write_text("\n".join([stream.made_from(names), *begun]), "utf-8")
    results = stream.collect(dies_once, [], names, part)
    assert [one["outcome"] for one in results] == ["before", "before", "equal", "equal"]
    assert stream.collect("no_such_module", [], names, part) == results
    monkeypatch.setattr(torch, "__version__", "9.9")
    assert stream.collect(dies_once, [], names, part)[0]["outcome"] == "equal"


def test_a_check_that_says_much_is_not_stopped(dies_once, tmp_path) -> None:
    says = 'import sys\nprint("much " * 40_000, file=sys.stderr)\n'
    (tmp_path / "dies_once.py").write_text(says + DIES.replace("os._exit(7)", "pass"), "utf-8")
    results = stream.collect(dies_once, [], ["0", "1"], tmp_path / "part")
    assert [one["outcome"] for one in results] == ["equal", "equal"]


@needs_lists
def test_what_pytorch_expects_to_fail_on_mps_is_not_declared_there() -> None:
    pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")
    from benchmarks.calibration import dtypes, samples

    database = {samples.name(one): one for one in samples.operators()}
    relu, add = database["nn.functional.relu"], database["add"]
    assert torch.bool not in dtypes.declared_dtypes(relu, "mps")
    assert torch.float32 in dtypes.declared_dtypes(relu, "mps")
    assert torch.float64 not in dtypes.declared_dtypes(add, "mps")
    assert torch.float64 in dtypes.declared_dtypes(add, "cuda")


def test_numbers_stand_between_the_marks(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(page, "SECTIONS", {"about": lambda: "fresh"})
    file = tmp_path / "page.md"
    file.write_text("before <!-- begin: about -->old<!-- end: about --> after", "utf-8")
    page.write(file)
    assert file.read_text("utf-8") == "before <!-- begin: about -->\n\nfresh\n\n<!-- end: about --> after"


def test_the_page_has_a_place_for_each_section() -> None:
    text = page.PAGE.read_text("utf-8")
    assert set(page.MARK.findall(text)) == set(page.SECTIONS)


@pytest.mark.bench
@pytest.mark.parametrize("situation", ["CPU", "on native"])
@pytest.mark.exhaustive
def test_the_overhead_is_measured_for_every_step(situation: str) -> None:
    costs = pretend_overhead.one_round(situation, 0.0)
    assert len(costs) == 8
    assert all(isinstance(cost, float) and cost > 0 for cost in costs.values()), costs
