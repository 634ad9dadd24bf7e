"""The rules of devices that are not there agree with what the installed torch says and does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_leaves

from assay.devices.kinds import ACCELERATORS as DEVICES
from assay.devices.operators import overloads as overloads_module
from assay.devices.operators import rules as rules_module
from assay.devices.operators.overloads import BACKENDS, derive, overloads
from assay.devices.operators.rules import rules
from assay.errors import AssayError, ConfigError

of_2_13 = pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the numbers are those of torch 2.13")


@pytest.fixture(params=DEVICES)
def rule(request):
    return rules(request.param)


def missing(device):
    rows = (row for row in overloads().values() if "CPU" in row.kernels)
    return {row.name for row in rows if not rules(device).operator(row.name).available}


# What torch says of its operators ------------------------------------------------------------------------------------


@of_2_13
def test_sizes_of_the_table_of_torch_2_13():
    own = {back: sum(back in row.kernels for row in overloads().values()) for back in BACKENDS}
    assert len(overloads()) == 3114
    assert own == {"CPU": 1067, "CUDA": 1269, "MPS": 892, "XPU": 40, "PrivateUse1": 0, "HPU": 0, "XLA": 0}
    assert sum(row.iterates for row in overloads().values()) == 650


@of_2_13
def test_operators_with_a_cpu_kernel_that_a_device_lacks():
    # 187 on mps by the file alone; two have a kernel that Python registers, and torch sends one to the CPU itself.
    lacked = {"cuda": 40, "mps": 184, "xpu": 45, "npu": 303, "mlu": 373, "musa": 110, "hpu": 0, "xla": 0}
    assert {device: len(missing(device)) for device in DEVICES} == lacked  # the last two run everything, on the CPU
    assert not rules("mps").operator("aten::frexp.Tensor_out").available
    assert rules("mps").operator("aten::linalg_lu_solve.out").available
    assert rules("mps").operator("aten::embedding_renorm_").on_cpu


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("aten::heaviside", "aten::heaviside.out"),
        ("aten::frexp.Tensor", "aten::frexp.Tensor_out"),
        ("aten::put", "aten::put_"),
        ("aten::poisson", "aten::poisson"),
    ],
)
def test_an_error_names_the_overload_that_is_not_there(name, named):
    if rules("mps").operator(named).available:
        pytest.skip("this release of torch has a kernel for mps")
    assert rules("mps").operator(name).named == named
    assert (
        rules("mps")
        .missing(name)
        .startswith(f"The operator '{named}' is not currently implemented for the MPS device. If you want this op")
    )
    assert torch.version.git_version in rules("mps").missing(name)


def test_operators_that_call_others_do_so():
    x = torch.rand(4)
    calls = {
        "frexp.Tensor": lambda: torch.frexp(x),
        "put": lambda: x.put(torch.tensor([0]), x[:1]),
        "logspace": lambda: torch.logspace(0, 1, 3),
        "linalg_lstsq": lambda: torch.linalg.lstsq(torch.rand(3, 2), torch.rand(3, 1)),
    }
    lacking = {name: call for name, call in calls.items() if not rules("mps").operator(f"aten::{name}").available}
    for name, call in lacking.items():
        called = rules("mps").operator(f"aten::{name}").named
        assert called.partition(".")[0] in names_inside(call)


def test_only_mps_checks_no_devices_before_the_kernel():
    assert [device for device in DEVICES if not rules(device).operator("aten::mm").checks_devices] == ["mps"]
    for device in DEVICES:
        added = rules(device).operator("aten::add.Tensor")
        assert (added.iterates, added.checks_devices) == (True, False)


def test_kernels_are_the_devices_own(rule):
    kernels = rule.kernels
    assert {"aten::mm", "aten::sum.dim_IntList"} <= kernels
    assert not kernels & rule.on_cpu
    assert not {name for name in kernels if not rule.operator(name).available}


def test_a_structured_operator_runs_on_the_cpu_where_its_worker_does():
    assert rules("xpu").operator("aten::_linalg_svd").on_cpu
    assert rules("xpu").operator("aten::_linalg_svd.U").on_cpu
    assert not rules("cuda").on_cpu
    assert not rules("xpu").operator("aten::cudnn_convolution").available


def test_of_operators_that_are_not_torchs_nothing_is_known(rule):
    custom = rule.operator("mylib::op")
    assert (custom.known, custom.available, custom.waits, custom.nondeterminism) == (False, True, "", ())


def test_a_custom_operator_may_have_facts():
    assert rules("cuda").operator("torchvision::nms").waits_when == "always"


def test_unknown_devices_are_refused():
    with pytest.raises(
        ConfigError, match=r"^device: got 'tpu', expected one of cuda, mps, .*, xla\. Name one of these\.$"
    ):
        rules("tpu")


def test_a_torch_without_its_list_of_operators_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "torch" / "__init__.py"))
    with pytest.raises(
        AssayError, match=r"^torch's operators: got no .*native_functions\.yaml, expected the file that"
    ):
        derive()


def test_a_table_that_was_kept_is_the_table_that_is_derived(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    fresh = overloads.__wrapped__()
    (kept,) = tmp_path.iterdir()
    monkeypatch.setattr(overloads_module, "derive", lambda: pytest.fail("derived again"))
    assert overloads.__wrapped__() == fresh
    monkeypatch.setattr(overloads_module, "derive", list)
    for changed in ("[{}]", kept.read_text().replace("MPS", "CPU", 1)):
        kept.write_text(changed)
        assert overloads.__wrapped__() == {}


# What torch does -----------------------------------------------------------------------------------------------------


def names_inside(call):
    """The operators that run inside a call, without the first one."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        call()
    return {event.name for event in seen.events() if event.cpu_parent is not None}


def computes_on_cpu(call):
    return bool(names_inside(call) & {"aten::item", "aten::nonzero"})


MATRIX = torch.eye(3) + 0.1
ONES = torch.ones(3)
SHARED = {  # code that the CPU shares with the device: what it copies to the CPU here it copies there
    "normal.Tensor_Tensor": (lambda: torch.normal(ONES, ONES), ("cuda", "mps")),
    "normal.float_Tensor": (lambda: torch.normal(0.0, ONES), ("cuda", "mps")),
    "normal.Tensor_float": (lambda: torch.normal(ONES, 1.0), ("cuda", "mps")),
    "linalg_cholesky_ex": (lambda: torch.linalg.cholesky_ex(MATRIX), ("cuda", "mps")),
    "cholesky": (lambda: torch.cholesky(MATRIX), ("cuda", "mps")),
    "_linalg_eigh": (lambda: torch.linalg.eigvalsh(MATRIX), ("cuda",)),
    "_linalg_svd": (lambda: torch.linalg.svdvals(MATRIX), ("cuda",)),
    "linalg_lstsq.out": (lambda: torch.linalg.lstsq(MATRIX, MATRIX), ("cuda",)),
    "linalg_matrix_exp": (lambda: torch.linalg.matrix_exp(MATRIX), ("cuda",)),
    "linalg_qr": (lambda: torch.linalg.qr(MATRIX), ("cuda", "mps")),
    "isin.Tensor_Tensor": (lambda: torch.isin(ONES, ONES), ("cuda",)),
    "_to_sparse": (lambda: MATRIX.to_sparse(), ("cuda", "mps")),
}


@pytest.mark.parametrize("name", [name for name in SHARED if f"aten::{name}" in overloads()])
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_operators_wait_where_the_code_they_share_with_the_cpu_reads_a_value(name):
    call, devices = SHARED[name]
    kernels = overloads()[f"aten::{name}"].kernels
    for device in devices:
        assert device.upper() in kernels or (device == "mps" and torch.__version__.startswith("2.6."))
        waits = rules(device).operator(f"aten::{name}").waits_when == "always"
        assert waits == computes_on_cpu(call)


def test_what_checks_values_on_the_device_does_not_wait(rule):
    assert "aten::_assert_async" in names_inside(lambda: torch.multinomial(ONES, 2))
    assert not rule.operator("aten::multinomial").waits


def test_text_of_a_nondeterministic_operator(rule):
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError) as caught:
            torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    finally:
        torch.use_deterministic_algorithms(False)
    assert str(caught.value) == rule.texts["deterministic"].format(operator="put_")


def test_placeholders_of_the_texts(rule):
    fields = {"operator": {"operator", "commit"}, "fallback": {"operator"}, "deterministic": {"operator"}}
    for name, text in rule.texts.items():
        allowed = fields.get(name, {"first", "second"} if name == "mixed" else set())
        assert set(re.findall(r"\{(\w+)\}", text)) <= allowed


def test_copies_are_known_in_every_way(rule):
    ways = {f"to {end}{pinned}{late}" for end in ("host", "device") for pinned in ("", ", pinned") for late in LATE}
    assert set(rule.copies) == ways
    for way, copy in rule.copies.items():
        assert copy.source
        assert copy.waits or "non_blocking" in way  # one that was not asked to be late is not
        assert not copy.corrupts or copy.why


LATE = ("", ", non_blocking")


@pytest.mark.parametrize("device", ["mlu", "musa", "hpu", "xla"])
def test_what_has_no_source_of_its_own_waits_and_copies_as_xpu(device):
    for name in ("aten::nonzero", "aten::_local_scalar_dense", "aten::histc", "torchvision::nms"):
        assert rules(device).operator(name).waits == rules("xpu").operator(name).waits
    assert rules(device).copies == rules("xpu").copies


def test_what_several_devices_do_is_not_done_by_all():
    waits = {device: rules(device).operator("aten::histc").waits_when for device in ("cuda", "mps", "xpu", "npu")}
    assert waits == {"cuda": "without a range", "mps": "without a range", "xpu": "", "npu": ""}
    why = {device: rules(device).copies["to host, non_blocking"].why for device in ("cuda", "xpu")}
    assert why["cuda"].startswith(f"{why['xpu']}; .to")
    assert rules("xpu").copies["to host"] == rules("cuda").copies["to host"]


def test_only_mps_lacks_dtypes():
    lacked = {device: sorted(rules(device).missing_dtypes) for device in DEVICES}
    assert lacked == {device: ["complex128", "float64"] if device == "mps" else [] for device in DEVICES}


# What torch documents ------------------------------------------------------------------------------------------------

DOCUMENTED = {  # torch's words -> what it comes down to in its operators; None: a copy of another one, or not strided
    "torch.nn.Conv": "convolution_backward",
    "torch.nn.ConvTranspose": "convolution_backward",
    "torch.nn.ReplicationPad": None,  # pad takes another way; the operator itself raises
    "torch.bmm": None,
    "torch.Tensor.scatter_add_": "scatter_add_",
    "torch.gather": "scatter_add_",
    "torch.index_add": "index_add",
    "torch.index_select": "index_add_",
    "torch.repeat_interleave": "index_add_",
    "torch.Tensor.index_copy": "index_copy",
    "torch.Tensor.scatter": "scatter.src",
    "torch.nn.MaxPool": "max_pool3d_with_indices_backward",
    "torch.nn.AvgPool": "avg_pool3d_backward",
    "torch.nn.AdaptiveAvgPool": "_adaptive_avg_pool2d_backward",
    "torch.nn.AdaptiveMaxPool": "adaptive_max_pool2d_backward",
    "torch.nn.FractionalMaxPool": "fractional_max_pool2d_backward",
    "torch.nn.functional.interpolate": "upsample_bicubic2d_backward",
    "torch.nn.ReflectionPad": "reflection_pad2d_backward",
    "torch.nn.NLLLoss": "nll_loss2d_forward",
    "torch.nn.CTCLoss": "_ctc_loss_backward",
    "torch.nn.Embedding": "embedding_dense_backward",
    "torch.nn.EmbeddingBag": "_embedding_bag_dense_backward",
    "torch.Tensor.put_": "put_",
    "torch.histc": "histc",
    "torch.bincount": "bincount",
    "torch.median": "median.dim",
    "torch.nn.functional.grid_sample": "grid_sampler_2d_backward",
    "torch.cumsum": None,  # deterministic since 2.6, says its code and pytorch/pytorch#190975
    "torch.Tensor.scatter_reduce": "scatter_reduce.two",
}


def documented():
    """torch's lists: the way ("switches" or "raises"), the name without its number of dimensions, the conditions."""
    text = torch.use_deterministic_algorithms.__doc__
    act = text.index("will act")
    throw = text.index("will throw a", act)
    for way, part in (("switches", text[act:throw]), ("raises", text[throw:])):
        for name, rest in re.findall(r"\* :\w+:`([\w.]+?)(?:[123]d)?`((?:(?!\n\s*\* )[\s\S])*?)(?=\n\s*\*|\n\n)", part):
            if "CUDA" in rest:
                yield way, name, rest


@of_2_13
def test_every_documented_nondeterminism_of_cuda_has_its_rule():
    entries = list(documented())
    assert len(entries) > 30
    for way, name, rest in entries:
        assert name in DOCUMENTED, f"torch documents {name}{rest}"
        if DOCUMENTED[name] is not None:
            ways = rules("cuda").operator(f"aten::{DOCUMENTED[name]}").nondeterminism
            assert way in {one.deterministic for one in ways}, name


def test_cumsum_takes_another_way():
    (way,) = rules("cuda").operator("aten::cumsum").nondeterminism
    assert (way.named, way.deterministic, way.since) == ("cumsum_cuda_kernel", "switches", "2.6")


@pytest.mark.parametrize(
    ("release", "ways"), [("2.13.0+cpu", []), ("2.14.0", ["switches"]), ("2.15.0+cu132", ["switches"])]
)
def test_the_backward_of_an_embedding_is_noted_since_torch_documents_it(monkeypatch, release, ways):
    monkeypatch.setattr(rules_module, "version", lambda package: release)
    rules_module._operator.cache_clear()
    try:
        found = rules("cuda").operator("aten::embedding_dense_backward").nondeterminism
    finally:
        monkeypatch.undo()
        rules_module._operator.cache_clear()
    assert [way.deterministic for way in found] == ways


@pytest.mark.parametrize(("release", "lacks"), [("2.14.1", ("complex64",)), ("2.15.0", ())])
def test_complex_matrices_are_refused_until_the_release_that_has_kernels(monkeypatch, release, lacks):
    monkeypatch.setattr(rules_module, "version", lambda package: release)
    rules_module._operator.cache_clear()
    try:
        assert rules("mps").operator("aten::linalg_lu_factor_ex").missing_dtypes == lacks
    finally:
        monkeypatch.undo()
        rules_module._operator.cache_clear()


# What torch's own tests expect of mps --------------------------------------------------------------------------------

NOT_PREDICTED = {
    "linalg.pinvhermitian",  # an argument decides which operator is called inside
    "masked.median",  # fails for some values
    "nn.functional.adaptive_avg_pool1d",  # sizes must divide
    "nn.functional.adaptive_avg_pool2d",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_operators_that_torchs_own_tests_expect_to_fail_on_mps_are_missing():
    from torch.testing._internal.common_methods_invocations import op_db

    expected = {name for name in expected_failures() if any(name in spellings(op) for op in op_db)}
    predicted = {name for name in expected if any(lacks(op) for op in op_db if name in spellings(op))}
    assert len(expected) == 56
    assert expected - predicted == NOT_PREDICTED


def expected_failures():
    """The float32 part of a list that torch's wheel carries, inside a branch that runs on a Mac only."""
    source = Path(torch.__file__).parent / "testing/_internal/common_mps.py"
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "UNIMPLEMENTED_XFAILLIST" in names_of(node):
            for key, dtypes in zip(node.value.keys, node.value.values, strict=True):
                if ast.unparse(dtypes) == "None" or "torch.float32" in ast.unparse(dtypes):
                    yield key.value


def names_of(node):
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def spellings(op):
    return {op.name + op.variant_test_name} | ({op.name} if not op.variant_test_name else set())


def lacks(op):
    """Whether mps lacks an operator or a dtype that occurs in one of its samples."""
    for sample in op.sample_inputs("cpu", torch.float32):
        with Seen() as seen:
            op(sample.input, *sample.args, **sample.kwargs)
        if seen.dtypes & rules("mps").missing_dtypes.keys():
            return True
        if any(not rules("mps").operator(name).available for name in seen.names):
            return True
    return False


class Seen(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names, self.dtypes = set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.add(func.name())
        self.dtypes |= {str(leaf.dtype)[6:] for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)}
        return result
