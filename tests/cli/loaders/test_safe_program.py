"""Exported programs of strangers: what torch writes is loaded, anything else is refused, and nothing in a file runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import random
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from assay.cli.loaders.models import open_model
from assay.errors import AssayError, StateError
from thinning import draws, every_third

AUTO = torch.export.Dim.AUTO
X = torch.arange(32.0).reshape(8, 4) / 32


class Small(nn.Module):
    """A program with all that is screened: sizes, guards, options of operators, names, weights and a constant."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Linear(4, 3)
        self.register_buffer("shift", torch.ones(3))
        self.scale = torch.full((3,), 2.0)

    def forward(self, x, *, options):
        assert x.shape[0] % 2 == 0
        y = torch.einsum("bi,i->bi", nn.functional.gelu(self.layer(x), approximate="tanh"), self.scale)
        return {"scores": y + self.shift, "half": y[: y.shape[0] // 2], "bias-free": options["bias"]}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "small.pt2"
    exported = torch.export.export(
        Small().eval(),
        (X,),
        {"options": {"bias": torch.zeros(1)}},
        dynamic_shapes={"x": {0: AUTO}, "options": {"bias": None}},
    )
    torch.export.save(exported, path, extra_files={"notes.txt": "made for a test"})
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(path):
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def written(records, path="net.pt2", root="net/", **options):
    """An archive of entries: a dictionary, or pairs where a name comes twice."""
    pairs = records.items() if isinstance(records, dict) else records
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in pairs:
            archive.writestr(root + name, data)
    return path


def run(path):
    """Load a program, and run it as its example was."""
    model = open_model(path).model
    return model(X, options={"bias": torch.zeros(1)})


class Touches:
    """What a stranger's file would do when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


CODE = "__import__('os').mkdir('ran')"
PICKLED = pickle.dumps(Touches())


def test_the_program_gives_the_same_after_it_was_screened(good):
    open_model(str(good))
    found, wanted = run(str(good)), Small().eval()(X, options={"bias": torch.zeros(1)})
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_an_entry_of_any_other_name_is_refused(good, folder):
    records = entries(good)
    bad = json.loads(records["models/model.json"])
    bad["range_constraints"][CODE] = {"min_val": 0, "max_val": 1}
    text = json.dumps(bad).encode()
    for name in (
        "models/model.pwnd",
        "models/model.JSON",
        "models/other.json",
        "models/",
        "MODELS/model.json",
        "models\\model.json",
        "models/../models/model.json",
        "../models/model.json",
        "data/aotinductor/model/x.so",
        "data/constants/opaque_obj_0",
        "data/constants/custom_obj_0",
        "data/weights/model.pt",
        "data/constants/model.pt",
        "data/sample_inputs/other.pt",
        "version",
        "serialized_exported_program.json",
    ):
        with pytest.raises(StateError, match=r"net\.pt2: got the entry .*--allow-code"):
            open_model(written({**records, name: text}))
    moved = {("models/model.pwnd" if name == "models/model.json" else name): each for name, each in records.items()}
    with pytest.raises(StateError, match=r"the entry 'net/models/model\.pwnd'"):
        open_model(written(moved))
    assert not (folder / "ran").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_twice_or_in_another_folder_or_compressed_is_refused(good, folder):
    records = entries(good)
    for name in ("models/model.json", "archive_format", "data/weights/weight_0"):
        with pytest.raises(StateError, match=f"the entry 'net/{name}' twice"):
            open_model(written([*records.items(), (name, records[name])]))
    with zipfile.ZipFile(written(records), "a") as archive:
        archive.writestr("other/models/model.json", records["models/model.json"])
    with pytest.raises(StateError, match=r"the entry 'other/models/model\.json'"):
        open_model("net.pt2")
    with pytest.raises(StateError, match="which is compressed"):
        open_model(written(records, compression=zipfile.ZIP_DEFLATED))
    for name in ("data/constants/model_constants_config.json", "data/weights/weight_0", "data/sample_inputs/model.pt"):
        with pytest.raises(StateError, match=f"no entry {name}"):
            open_model(written({key: each for key, each in records.items() if key != name}))
    with pytest.raises(StateError, match="no bytes in data/weights/weight_0"):  # torch would load zeros
        open_model(written({**records, "data/weights/weight_0": b""}))
    with pytest.raises(StateError, match="b'big' in byteorder"):
        open_model(written({**records, "byteorder": b"big"}))


def _graph(tree):
    return tree["graph_module"]["graph"]


def _node(tree):
    return next(each for each in _graph(tree)["nodes"] if each["target"].startswith("torch.ops.aten.linear"))


def _signature(tree):
    return tree["graph_module"]["module_call_graph"][0]["signature"]


def _call(target):
    return lambda tree: _node(tree).update(target=target)


def _value(text):
    return lambda tree: _graph(tree)["sym_int_values"].update(x={"as_expr": {"expr_str": text}})


def _guard(text):
    return lambda tree: tree["guards_code"].append(text)


def _constant(tree):
    _graph(tree)["inputs"].append({"as_string": f"' + str({CODE}) + '"})


def _nested(context):
    leaf = '{"type": null, "context": null, "children_spec": []}'
    return json.dumps([1, {"type": "builtins.dict", "context": context, "children_spec": [json.loads(leaf)]}])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_call("torch.os.system"), "a call of 'torch.os.system', which is no operator"),
        (_call("torch.load"), "a call of 'torch.load'"),
        (_call("torch.ops.load_library"), "a call of 'torch.ops.load_library'"),
        (_call("torch.ops.aten.from_file.default"), "'torch.ops.aten.from_file.default', which takes a filename"),
        (_call("torch.ops.aten.save.default"), "a call of 'torch.ops.aten.save.default'"),
        (_call("torch.ops.debugprims.load_tensor.default"), "a call of"),
        (_call("torch.ops.higher_order.call_torchbind"), "a call of"),
        (_call("torch.ops.aten.linear.__class__"), "a call of"),
        (_call("torch.ops.aten.__class__.__base__"), "a call of"),
        (_call("_operator.methodcaller"), "a call of '_operator.methodcaller'"),
        (_call("math.__loader__"), "a call of"),
        (_call("#mine:op"), "a call of"),
        (lambda t: _node(t)["inputs"][0].update(arg={"as_operator": "torch.os.system"}), "a call of 'torch.os.system'"),
        (lambda t: _node(t).update(name=f"x={CODE}"), "as Node.name"),
        (lambda t: _graph(t)["inputs"][0].update(as_tensor={"name": f"x={CODE}"}), "as TensorArgument.name"),
        (lambda t: _signature(t)["forward_arg_names"].append(f"x={CODE}"), "as ModuleCallSignature.forward_arg_names"),
        (lambda t: _signature(t).update(in_spec=_nested('{"__enum__": true, "fqn": "this:x"}')), "the key"),
        (lambda t: _signature(t).update(out_spec=_nested('[{"__enum__": true, "fqn": "this:x"}]')), "the key"),
        (lambda t: _signature(t).update(in_spec=_nested('["a b"]')), "the specification of inputs"),
        (lambda t: _signature(t).update(out_spec=_nested('["a\'b"]')), "the key"),
        (
            lambda t: _signature(t).update(
                out_spec='[1, {"type": "collections.defaultdict", "children_spec": [], "context": '
                '{"default_factory_module": "this", "default_factory_name": "s", "dict_context": []}}]'
            ),
            "the type 'collections.defaultdict'",
        ),
        (_constant, "as Graph.inputs"),
        (_guard("L['x'].__class__"), "the guard \"L['x'].__class__\""),
        (_guard("exit()"), "the guard 'exit()'"),
        (_guard("torch.load('x') == 1"), "the guard"),
        (_guard("L['\"+exit()+\"']"), "the guard"),
        (_guard("[exit() for x in L['x'].shape]"), "the guard"),
        (_guard("L['x'].size()[exit()] == 1"), "the guard"),
        (_guard("9 ** 9 ** 9 == 1"), "the guard"),
        (lambda t: t["range_constraints"].update({"__import__('os')": {}}), "as ExportedProgram.range_constraints"),
        (lambda t: t["range_constraints"].update({"u99999999": {}}), "as ExportedProgram.range_constraints"),
        (_value(CODE), f"the expression {CODE!r}"),
        (_value("Max('exit()')"), "the expression"),
        (_value("Symbol('x').__class__"), "the expression"),
        (_value("(lambda: 1)()"), "the expression"),
        (_value("Symbol('x', cls=exit())"), "the expression"),
        (_value("Pow(Integer(9), Integer(99999999))"), "the expression"),
        (_value("(" * 9999), "the expression"),
        (lambda t: _graph(t).update(custom_obj_values={"x": {"name": "x", "class_fqn": "a.b"}}), "CustomObjArgument"),
        (lambda t: _node(t)["inputs"][0].update(arg={"as_tensor": {"name": "x"}, "as_none": True}), "as Argument"),
        (lambda t: t["range_constraints"].update({"s0": {"min_val": CODE, "max_val": 1}}), "RangeConstraint.min_val"),
    ],
)
def test_a_program_that_is_more_than_operators_is_refused(good, folder, edit, message):
    records = entries(good)
    tree = json.loads(records["models/model.json"])
    edit(tree)
    with pytest.raises(StateError) as error:
        open_model(written({**records, "models/model.json": json.dumps(tree)}))
    assert message in str(error.value)
    assert "--allow-code" in str(error.value)
    assert not (folder / "ran").exists()


PAYLOAD = {"weights": "data/weights/weight_0", "constants": "data/constants/tensor_0"}


@pytest.mark.parametrize("what", PAYLOAD)
def test_weights_that_are_pickled_are_refused(good, folder, what):
    name = f"data/{what}/model_{what}_config.json"
    records = entries(good)
    config = json.loads(records[name])
    for each in config["config"].values():
        each["use_pickle"] = True
    with pytest.raises(StateError, match="the pickled object"):
        open_model(written({**records, name: json.dumps(config), PAYLOAD[what]: PICKLED}))
    for strange in ("opaque_obj_0", "custom_obj_0", "../constants/tensor_0"):
        next(iter(config["config"].values()))["path_name"] = strange
        with pytest.raises(StateError, match=f"{strange!r} as PayloadMeta.path_name"):
            open_model(written({**records, name: json.dumps(config)}))
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    "inputs",
    [((Touches(),), {}), ((X,), {"options": {"a'+open('ran','w')": X}}), ((X,), {"options": {"bias": {1, 2}}})],
)
def test_example_inputs_that_are_more_than_tensors_are_refused(good, folder, inputs):
    file = io.BytesIO()
    torch.save(inputs, file)
    with pytest.raises(StateError, match=r"cannot be read|the key|a set as example input"):
        open_model(written({**entries(good), "data/sample_inputs/model.pt": file.getvalue()}))
    assert not (folder / "ran").exists()


def test_what_is_trusted_is_loaded_as_it_is(good, folder):
    """The control of the tests above: with --allow-code the same file runs what is in it."""
    tree = json.loads(entries(good)["models/model.json"])
    tree["guards_code"].append(CODE)
    path = written({**entries(good), "models/model.json": json.dumps(tree)})
    with pytest.raises(StateError, match="the guard"):
        open_model(path)
    assert not (folder / "ran").exists()
    with pytest.raises(AssertionError, match="Guard failed"):
        open_model(path, allow_code=True).model(X, options={"bias": torch.zeros(1)})
    assert (folder / "ran").exists()


class Several(nn.Module):
    def forward(self, x, y):
        rows, columns = x.shape
        wider = nn.functional.interpolate(x.view(rows, 1, columns), scale_factor=1.5)
        halved = torch.div(x, 2.0, rounding_mode="floor").reshape(rows * columns)[: (rows * columns) // 2]
        return torch.einsum("bin,bm->bi", wider, y), x.new_zeros(rows, columns // 2 + 1), halved


class Branches(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return y @ y.T


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("shift", torch.arange(8.0))
        self.register_buffer("factor", torch.ones(8), persistent=False)
        self.constant = torch.full((8,), 2.0)
        self.several = nn.ModuleDict({"a-b": nn.Linear(8, 8), "the c": nn.Identity()})

    def forward(self, x):
        return self.out(self.several["a-b"](self.embed(x) * self.constant + self.shift) * self.factor)


class Items(nn.Module):
    def forward(self, x):
        count = x.sum().item()
        torch._check(count >= 0)
        torch._check(count < 100)
        return torch.zeros(count) + 1


class Given(nn.Module):
    def forward(self, a, b, *, scale=None, mode="mean"):
        assert mode == "mean"
        return [(a + b) * scale, (a, b)]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, x):
        return self.layer(x)


BATCH = torch.export.Dim("batch", min=2, max=64)


@every_third
@pytest.mark.parametrize(
    ("module", "args", "kwargs", "shapes"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.GELU(approximate="tanh"), nn.Linear(8, 3)), (X,), {}, ({0: BATCH},)),
        (nn.Identity(), (X,), {}, ({0: 2 * torch.export.Dim("half", min=2, max=64)},)),
        (Several(), (torch.ones(4, 6), torch.ones(4, 5)), {}, ({0: AUTO, 1: AUTO}, {0: AUTO})),
        (Branches(), (torch.ones(3, 3),), {}, None),
        (Tied(), (torch.ones(2, 5, dtype=torch.long),), {}, ({0: AUTO},)),
        (Items(), (torch.ones(4, dtype=torch.long),), {}, None),
        (Given(), (torch.ones(2), torch.ones(2)), {"scale": 1.5, "mode": "mean"}, None),
        (Layer(), (torch.ones(2, 5, 16),), {}, ({0: AUTO, 1: AUTO},)),
        (nn.LSTM(4, 5, batch_first=True), (torch.ones(2, 3, 4),), {}, None),
        (
            nn.Sequential(
                nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="reflect"),
                nn.BatchNorm2d(4),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
            ),
            (torch.ones(2, 3, 9, 9),),
            {},
            ({0: AUTO, 2: AUTO},),
        ),
    ],
    ids=["mlp", "derived", "shapes", "branches", "tied", "items", "given", "transformer", "lstm", "conv"],
)
@pytest.mark.filterwarnings("ignore:The tensor attributes self._flat_weights")
def test_what_torch_exports_is_loaded_as_torch_loads_it(folder, module, args, kwargs, shapes):
    exported = torch.export.export(module.eval(), args, kwargs, dynamic_shapes=shapes)
    torch.export.save(exported, "net.pt2")
    found, wanted = open_model("net.pt2").model.program, torch.export.load("net.pt2")
    assert str(found.range_constraints) == str(wanted.range_constraints)
    assert len(found._guards_code) == len(wanted._guards_code)
    places = [{name: each.data_ptr() for name, each in program.state_dict.items()} for program in (found, wanted)]
    assert len(set(places[0].values())) == len(set(places[1].values()))  # tied weights stay tied
    torch.testing.assert_close(found.module()(*args, **kwargs), wanted.module()(*args, **kwargs), rtol=0, atol=0)


def _mutated(draw, records):
    """A file that somebody changed: bytes, entries, or strings and numbers of its JSON."""
    how = draw.randrange(6)
    if how == 0:
        data = bytearray(Path(written(records)).read_bytes())
        for _ in range(draw.choice((1, 2, 8))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data)
    if how == 1:
        data = Path(written(records)).read_bytes()
        start = draw.randrange(len(data))
        return data[:start] + draw.choice((b"", data[start + draw.randrange(1, 64) :], data))
    if how == 2:
        name = draw.choice(list(records))
        new = draw.choice((name.upper(), f"{name}.pwnd", f"../{name}", f"models/{draw.randrange(9)}", f"{name}\0.json"))
        kept = records if draw.random() < 0.5 else {key: each for key, each in records.items() if key != name}
        return Path(written({**kept, new: draw.choice((records[name], PICKLED))})).read_bytes()
    if how == 3:
        return Path(written({**records, draw.choice(list(records)): draw.choice((PICKLED, b"", b"{}"))})).read_bytes()
    name = draw.choice([name for name in records if name.endswith(".json")])
    tree = json.loads(records[name])
    for _ in range(draw.choice((1, 1, 3))):
        _change(draw, tree)
    return Path(written({**records, name: json.dumps(tree)})).read_bytes()


def _change(draw, tree):
    """Put something of a stranger at a random place of a tree."""
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(tree)
    node, key = draw.choice(places)
    strange = draw.choice(
        [
            CODE,
            f"__import__('builtins').{CODE}",
            f'x"+str({CODE})+"',
            f"x'+str({CODE})+'",
            f"x=({CODE})",
            f"x\n {CODE}\n",
            f"Max({CODE})",
            f"L['x'] == {CODE}",
            "torch.ops.aten.from_file.default",
            "torch.os.mkdir",
            "torch.ops.load_library",
            "opaque_obj_0",
            {"__enum__": True, "fqn": "this:x", "name": "x"},
            {"as_expr": {"expr_str": CODE, "hint": None}},
            {"as_string": "ran"},
            None,
            True,
            -1,
            2**70,
            1e308,
            [],
            {},
            ["ran"],
        ]
    )
    if isinstance(node, dict) and draw.random() < 0.3:
        node[draw.choice((CODE, f'x"+{CODE}+"', "ran", "expr_str", "target"))] = strange
    elif isinstance(node[key], str) and isinstance(strange, str) and draw.random() < 0.5:
        node[key] += strange
    else:
        node[key] = strange


def _loads(path):
    """Whether a file is a model; if it is not, the error is one of assay and names the file."""
    try:
        open_model(path, factory="builtins:list")
    except Exception as error:
        told = isinstance(error, AssayError) and path in str(error)
        return None if told else pytest.fail(f"{type(error).__name__}: {error}")
    return True


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("count", [len(draws(60)), pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_in_a_changed_file_runs(good, folder, count):
    """Loads, or is refused with an error that names the file; the canary ("ran") never appears."""
    records, draw = entries(good), random.Random(count)
    loaded = 0
    for k in range(count):
        Path("net.pt2").write_bytes(_mutated(draw, records))
        if _loads("net.pt2"):
            loaded += 1
            with contextlib.suppress(Exception):  # what was changed may fail when it runs, and touch nothing
                run("net.pt2")
        assert not Path("ran").exists(), k
    assert loaded < count / 2
