"""What `evaluate` takes besides loaders and modules, compared with scikit-learn's own scores."""

import importlib.util

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, log_loss, mean_squared_error, roc_auc_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch.utils.data import DataLoader, IterableDataset

import assay.cli
from assay import AUROC, Accuracy, F1Score, Meter, evaluate
from assay.errors import AssayError, ConfigError, ShapeError
from assay.evaluation import BatchError
from assay.evaluation.model.estimators import method_for
from assay.metrics import HammingDistance, LogLoss, MeanSquaredError
from assay.report import Report

X, Y = load_iris(return_X_y=True)
X = X.round(0)  # so that not all is right
NAMES = np.array(["setosa", "versicolor", "virginica"])
XS, YS = torch.tensor(X).float(), torch.tensor(Y)
NET = torch.nn.Linear(4, 3)
ACC = "acc:num_classes=3"
OF_IRIS = LogisticRegression(max_iter=500).fit(X, NAMES[Y])


class Stream(IterableDataset):
    """Samples in order, which cannot be asked for by index."""

    def __init__(self, samples):
        self.samples = samples

    def __iter__(self):
        return iter(self.samples)


class Frame:
    """As much of a frame as is asked for, for machines without pandas and Polars."""

    def __init__(self, columns):
        self.parts, self.columns = dict(columns), list(columns)
        self.iloc = self

    def __len__(self):
        return len(self.parts[self.columns[0]])

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.parts[key]
        names = key if isinstance(key[0], str) else self.columns
        rows = slice(None) if isinstance(key[0], str) else key
        return Frame({name: np.asarray(self.parts[name])[rows] for name in names})

    def __array__(self, dtype=None, copy=None):
        return np.stack(list(self.parts.values()), 1)


Frame.__module__ = "pandas.like"


def frames():
    yield pytest.param(Frame, id="like")
    for name in ("pandas", "polars"):
        if importlib.util.find_spec(name):
            yield pytest.param(importlib.import_module(name).DataFrame, id=name)


def values(*arguments, **options):
    report = evaluate(*arguments, progress=False, confidence_level=None, **options)
    return {value.name: value.value for value in report.sections[0].values}


def test_an_estimator_on_arrays_has_scikit_learns_numbers():
    found = values(OF_IRIS, (X, NAMES[Y]), "accuracy,f1:average=macro,nll,auroc")
    decided, scores = OF_IRIS.predict(X), OF_IRIS.predict_proba(X)
    assert found["accuracy"] == accuracy_score(NAMES[Y], decided) == OF_IRIS.score(X, NAMES[Y])
    assert found["f1"] == pytest.approx(f1_score(NAMES[Y], decided, average="macro"), abs=1e-12)
    assert found["nll"] == pytest.approx(log_loss(NAMES[Y], scores), rel=1e-6)
    assert found["auroc"] == pytest.approx(roc_auc_score(NAMES[Y], scores, multi_class="ovr"), abs=1e-12)


def test_two_classes_are_a_binary_task_unless_a_metric_says_otherwise():
    target = np.where(Y > 1, "yes", "no")
    model = LogisticRegression(max_iter=500).fit(X, target)
    area = roc_auc_score(target == "yes", model.predict_proba(X)[:, 1])
    assert values(model, (X, target), {"a": "auroc", "acc": Accuracy()}) == {"a": area, "acc": model.score(X, target)}
    found = values(model, (X, target.tolist()), AUROC(num_classes=2))
    assert found["AUROC"] == pytest.approx(area, abs=1e-12)
    assert values(model, (X, target), "auroc:logits=true")["auroc"] == pytest.approx(area, abs=1e-12)


def test_margins_regression_and_several_labels():
    svc = LinearSVC().fit(X, Y)
    scores = svc.decision_function(X)
    assert values(svc, (X, Y), "accuracy,auroc")["accuracy"] == svc.score(X, Y)
    binary = LinearSVC().fit(X, Y > 1)
    expected = roc_auc_score(Y > 1, binary.decision_function(X))
    assert values(binary, (X, Y > 1), "auroc")["auroc"] == pytest.approx(expected, abs=1e-12)
    line = LinearRegression().fit(X[:, :3], X[:, 3])
    expected = mean_squared_error(X[:, 3], line.predict(X[:, :3]))
    assert values(line, (X[:, :3], X[:, 3]), "mse")["mse"] == pytest.approx(expected, rel=1e-12)
    labels = np.stack([Y > 0, Y > 1], 1).astype(int)
    several = MultiOutputClassifier(LogisticRegression(max_iter=500)).fit(X, labels)
    wrong = values(several, (X, labels), HammingDistance(num_labels=2))["HammingDistance"]
    assert wrong == pytest.approx((several.predict(X) != labels).mean(), abs=1e-12)
    areas = roc_auc_score(labels, np.stack([each[:, 1] for each in several.predict_proba(X)], 1))
    assert values(several, (X, labels), AUROC(num_labels=2))["AUROC"] == pytest.approx(areas, abs=1e-12)
    assert scores.shape == (150, 3)


def test_which_method_is_called():
    assert method_for(OF_IRIS, [Accuracy(num_classes=3)]) == "predict"
    assert method_for(OF_IRIS, [MeanSquaredError()]) == "predict"
    assert method_for(OF_IRIS, [Accuracy(num_classes=3, top_k=2)]) == "predict_proba"
    assert method_for(OF_IRIS, [Accuracy(num_classes=3), AUROC(num_classes=3, logits=True)]) == "decision_function"
    assert method_for(OF_IRIS, [LogLoss(num_classes=3)]) == "predict_proba"


@pytest.mark.parametrize("frame", list(frames()))
def test_frames_have_the_target_the_slices_and_the_weights_in_columns(frame):
    columns = {name: X[:, k] for k, name in enumerate("abcd")}
    table = frame(columns | {"kind": NAMES[Y], "half": np.where(np.arange(150) % 2, "odd", "even"), "w": np.ones(150)})
    options = {"target": "kind", "slices": ["half"], "weights": "w", "progress": False}
    with torch.no_grad():
        right = NET(torch.tensor(X).float()).argmax(1).numpy() == Y
    report = evaluate(NET, table, "accuracy", classes=list(NAMES), **options)
    assert report.sections[0].values[0].value == right.mean()
    assert [each.name for each in report.sections[0].slices] == ["half = even", "half = odd"]
    named = {"inputs": list("abcd"), "target": "kind"}
    assert values(OF_IRIS, table, "accuracy", **named) == {"accuracy": OF_IRIS.score(X, NAMES[Y])}
    assert values(OF_IRIS, (frame(columns), NAMES[Y]), "accuracy") == {"accuracy": OF_IRIS.score(X, NAMES[Y])}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_estimator_gets_the_columns_that_it_was_fitted_on(library):
    frame = pytest.importorskip(library).DataFrame({"t": NAMES[Y], "b": X[:, 1], "a": X[:, 0]})
    model = LogisticRegression(max_iter=500).fit(frame[["b", "a"]], Y)
    table = frame.assign(y=Y) if library == "pandas" else frame.with_columns(y=Y)
    assert values(model, table, "accuracy") == {"accuracy": model.score(frame[["b", "a"]], Y)}


def test_a_data_set_of_hugging_face_names_its_classes():
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(
        {"x": datasets.Sequence(datasets.Value("float32")), "label": datasets.ClassLabel(names=NAMES.tolist())}
    )
    data = datasets.Dataset.from_dict({"x": X.tolist(), "label": Y.tolist()}, features=kinds)
    assert values(NET, data, "accuracy") == values(NET, (X, Y), ACC.replace("acc", "accuracy"))
    with pytest.raises(ConfigError, match=r"DatasetDict of train, test.*Pass data\['train'\]"):
        evaluate(NET, datasets.DatasetDict({"train": data, "test": data}), "accuracy")


def test_an_estimator_takes_vectors_in_one_column():
    frame = pytest.importorskip("pandas").DataFrame({"x": X.tolist(), "y": NAMES[Y]})
    assert values(OF_IRIS, frame, "accuracy", inputs="x") == {"accuracy": OF_IRIS.score(X, NAMES[Y])}
    unequal = frame.assign(x=[row[: 2 + k % 2] for k, row in enumerate(X.tolist())])
    with pytest.raises(ConfigError, match="column 'x': got no numbers"):
        evaluate(OF_IRIS, unequal, "accuracy", inputs="x")


def test_strings_in_one_column_go_to_a_pipeline():
    texts, target = np.array(["good film", "bad film", "good"]), ["pos", "neg", "neg"]
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(["good film", "bad film"], ["pos", "neg"])
    assert values(model, (texts, target), "accuracy") == {"accuracy": 2 / 3}


def test_arrays_of_a_module_have_its_dtype_and_tuples_are_columns(tmp_path):
    expected = values(NET, torch.utils.data.TensorDataset(XS, YS), ACC)
    for data in ((X, Y), (XS, YS), {"x": X, "y": Y}):
        assert values(NET, data, ACC) == expected
        assert values(NET, data, ACC, resume=tmp_path / str(type(data))) == expected
    batches = [
        (XS[:70], YS[:70]),
        (XS[70:], YS[70:]),
    ]
    assert values(NET, batches, ACC) == expected
    assert values(torch.nn.Identity(), X[:, 0], "mean")["mean"] == pytest.approx(X[:, 0].mean(), abs=1e-12)


def test_metrics_of_a_meter_may_be_strings():
    meter = Meter("accuracy:num_classes=3", F1Score(num_classes=3), top="accuracy:num_classes=3,top_k=2")
    assert list(meter.metrics) == ["accuracy", "F1Score", "top"]
    assert meter.metrics["top"] == Accuracy(num_classes=3, top_k=2)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((OF_IRIS, (X, Y), "accuracy"), {}, "target: got 0, expected one of the classes 'setosa'"),
        (
            (OF_IRIS, (X, NAMES[Y]), Accuracy()),
            {},
            r"Accuracy\(\) of two classes, expected 3.*Pass Accuracy\(num_cl",
        ),
        (
            (LinearSVC().fit(X, Y), (X, Y), AUROC(num_classes=3)),
            {},
            "LinearSVC without predict_proba.*Pass logits=True",
        ),
        ((OF_IRIS, (X, NAMES[Y]), "auroc,b=auroc:logits=true"), {}, "AUROC with logits=True and AUROC without"),
        (
            (NET, (X, NAMES[Y]), ACC),
            {},
            "target: got the strings 'setosa'.*classes=",
        ),
        ((NET, (X, Y[:9]), ACC), {}, "rows: 0 with 150, 1 with 9"),
        (
            (NET, Frame({"a": Y}), ACC),
            {"target": "b"},
            "no column 'b', expected one of a",
        ),
        ((NET, Frame({"y": Y}), ACC), {}, "features beside the target"),
        ((NET, Frame({"y": Y, "a": NAMES[Y], "b": Y}), "mse"), {}, "column 'a': got no numbers"),
        (
            (NET, (Frame({"a": Y}), Y), "mse"),
            {"target": "a"},
            r"and target='a', expected \(frame, target\)",
        ),
        ((NET, (X, Y), ["accurcy"]), {}, "metrics: got 'accurcy', expected Accuracy"),
        (
            (NET, (X, Y), {"a": "acc,f1"}),
            {},
            "metrics: got 'acc,f1', expected one metric without a name",
        ),
        ((NET, (X, Y), ["acc", Accuracy(), Accuracy()]), {}, "metrics: got Accuracy twice"),
    ],
)
def test_mistakes_are_one_line(arguments, options, message):
    with pytest.raises((ConfigError, ShapeError), match=message) as caught:
        evaluate(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_the_command_line_takes_an_estimator(tmp_path, monkeypatch, capsys):
    program = """
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
x, y = load_iris(return_X_y=True)
def classifier():
    return LogisticRegression(max_iter=500).fit(x, y)
def data():
    return x, y
"""
    (tmp_path / "of_iris.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    command = "evaluate of_iris:classifier --data of_iris:data --metrics accuracy,auroc --num-classes 3 --json"
    monkeypatch.setattr("sys.argv", ["assay", *command.split()])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    assert ended.value.code == 0
    values = Report.from_json(capsys.readouterr().out).sections[0].values
    x, y = load_iris(return_X_y=True)
    assert values[0].value == LogisticRegression(max_iter=500).fit(x, y).score(x, y)


def test_the_class_of_an_estimator_is_no_model():
    with pytest.raises(ConfigError, match=r"got the class LogisticRegression.*Make the model: LogisticRegression"):
        evaluate(LogisticRegression, (X, Y), ACC)


def test_a_model_and_data_in_the_other_order_say_so():
    with pytest.raises(ConfigError, match=r"model: got tuple.*Pass the model first"):
        evaluate((X, Y), NET, ACC)


def test_a_call_without_metrics_says_how_it_is_called():
    with pytest.raises(
        ConfigError, match=r'evaluate: got no metrics.*Write evaluate\(model, \(x, y\), "accuracy,f1"\)'
    ):
        evaluate(NET, (X, Y))


def test_inputs_and_target_apart_say_that_they_belong_together():
    with pytest.raises(ConfigError, match=r"evaluate: got 4 arguments by place.*evaluate\(model, \(x, y\),"):
        evaluate(NET, X, Y, ACC)


def test_a_slice_of_arrays_may_be_an_array_with_one_value_a_sample():
    sexes, ages = np.where(Y == 1, "f", "m"), torch.arange(len(Y)) // 50
    report = evaluate(NET, (X, Y), ACC, slices={"sex": sexes, "age": ages, "both": ("sex", "age")}, device="cpu")
    of_columns = evaluate(
        NET, {"x": X, "y": Y, "sex": sexes, "age": ages}, ACC, slices="sex,age", inputs="x", target="y", device="cpu"
    )
    assert report["acc"] == of_columns["acc"]
    for name in ("sex = f", "sex = m", "age = 0", "age = 2"):
        assert report.value("acc", slice=name) == of_columns.value("acc", slice=name)
    assert report.value("acc", slice={"sex": "f", "age": 1}).count == 50


def test_strings_stay_the_target_beside_a_slice_that_is_an_array():
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = LogisticRegression(max_iter=1000).fit(X, names)
    report = evaluate(model, (X, names), "accuracy", slices={"half": np.arange(len(Y)) // 75}, device="cpu")
    assert report["accuracy"].value == (model.predict(X) == names).mean()
    assert report.value("accuracy", slice={"half": 0}).value == (model.predict(X[:75]) == names[:75]).mean()


def test_a_slice_that_is_none_is_named_by_its_shape():
    with pytest.raises(ConfigError, match=r"slices: sex: got .*make the values a column of the data") as caught:
        evaluate(NET, {"x": X, "y": Y}, ACC, slices={"sex": Y}, inputs="x", target="y", device="cpu")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_module_takes_batches_of_arrays(dtype):
    x = X.astype(dtype)
    batches = [(x[k : k + 50], Y[k : k + 50]) for k in (0, 50, 100)]
    wanted = values(NET, (X, Y), ACC)
    assert values(NET, batches, ACC) == wanted
    assert values(NET, iter(batches), ACC) == wanted
    rows = list(zip(x, Y, strict=True))
    loader = DataLoader(rows, 50, collate_fn=lambda part: tuple(np.stack(each) for each in zip(*part, strict=True)))
    assert values(NET, loader, ACC) == wanted


def test_a_function_still_gets_arrays_as_they_are():
    seen = []

    def model(x):
        seen.append(type(x))
        return torch.from_numpy(x[:, :3])

    values(model, [(X, Y)], "accuracy:num_classes=3")
    assert seen == [np.ndarray]


@pytest.mark.parametrize("is_stream", [False, True])
def test_samples_that_do_not_stack_are_refused_with_what_to_do(is_stream):
    data = [(torch.ones(1 + k % 2, 4), torch.zeros(1 + k % 2).long()) for k in range(4)]
    data = Stream(data) if is_stream else data
    with pytest.raises(BatchError, match=r"stack expects .* each row is a batch already.*batch_size=None"):
        evaluate(NET, DataLoader(data, batch_size=4), ACC, progress=False)
    assert len(values(NET, DataLoader(data, batch_size=None), ACC)) == 1


def test_data_sets_of_hugging_face_of_any_format_and_of_batches():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"x": X.tolist(), "label": Y.tolist()})
    wanted = values(NET, (X, Y), ACC)
    for kind in (None, "torch", "numpy", "arrow", "python"):
        assert values(NET, data.with_format(kind), ACC) == wanted
    with pytest.raises(BatchError, match="each row is a batch already"):
        evaluate(NET, data.batch(40), ACC, progress=False)
    assert values(NET, DataLoader(data.batch(40).with_format("torch"), batch_size=None), ACC) == wanted


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("data.csv", "data: got data.csv, which does not exist"),
        (((x, y) for x, y in zip(torch.ones(4, 4), torch.zeros(4).long(), strict=True)), "Pass batches, in which dim"),
        ((X, Y[:, None]), r"Pass target.squeeze\(1\)"),
        ([{"x": torch.ones(2, 4), "label": ["a", "b"]}], "target: got list of 2 str, .* Number the strings"),
        ([(torch.ones(2, 5, 4), torch.zeros(2, 5).long())], r"Pass preds.movedim\(-1, 1\)"),
    ],
)
def test_data_that_cannot_be_read_are_refused_with_what_to_do(data, message):
    with pytest.raises(AssayError, match=message):
        evaluate(NET, data, ACC, progress=False)


def test_what_does_not_predict_or_is_lazy_is_refused():
    with pytest.raises(ConfigError, match=r"model: got StandardScaler.*Pass an estimator that predicts"):
        evaluate(StandardScaler(), (X, Y), ACC)
    frame = pytest.importorskip("polars").DataFrame({"a": X[:, 0], "label": Y})
    with pytest.raises(ConfigError, match=r"data: got LazyFrame, .* Pass data.collect\(\)"):
        evaluate(NET, frame.lazy(), ACC)
