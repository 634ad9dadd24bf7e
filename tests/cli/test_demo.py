"""The demo: what it writes, that its numbers are right, and that it shows what it claims to show."""

from __future__ import annotations

import random
import re
import socket
import sys
from pathlib import Path

import jiwer
import numpy as np
import pytest
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from sklearn import metrics as sk
from sklearn.datasets import load_digits

from assay.cli import demo, main
from assay.cli.demo import run
from assay.cli.demonstration import bits
from assay.cli.demonstration import scenes as demo_scenes
from assay.cli.demonstration.models import Task, one_thread, tasks
from assay.cli.demonstration.scenes import SHAPES, SIZE, SceneExample, _targets, draw_scene
from assay.cli.demonstration.spelling import Corrector, SpellingExample, misspell, one_slip_away
from assay.cli.options.tools import DemoCommand
from assay.errors import MissingDependencyError
from assay.report import Report, Section, Table, compare


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The report of one run with little training, and the folder that it was written to."""
    out = tmp_path_factory.mktemp("demo") / "new"
    return run(DemoCommand(out), max_epochs=2), out


def trained(task: Task, epochs: int = 2) -> Task:
    with one_thread():
        for _ in task.train(epochs):
            pass
    return task


def measure(task: Task) -> tuple[Section, np.ndarray, np.ndarray]:
    """The section, the predictions and the target."""
    preds, target = trained(task).predictions()
    (section,) = demo.measure(task).sections
    return section, preds.double().numpy(), target.numpy()


def table(found: Section, name: str) -> Table:
    return next(each for each in found.tables if each.name == name)


def values(found: Section) -> dict[str, float]:
    return {value.name: value.value for value in found.values}


@pytest.mark.exhaustive  # a whole demo
def test_the_report_is_written_whole(written):
    report, out = written
    assert Report.load(out / "report.json") == report
    page = (out / "report.html").read_text(encoding="utf-8")
    assert len(re.findall("<svg ", page)) >= sum(len(section.plots) for section in report.sections) == 11
    assert [s.name for s in report.sections][:5] == [
        "Handwritten digits",
        "Breast cancer",
        "Diabetes",
        "Shapes in drawn scenes",
        "Misspelt sentences, corrected",
    ]
    kept = {section.name: len(section.samples.pictures) for section in report.sections if section.samples}
    assert page.count("data:image/png") == 2 * 12  # the worst ones; a report keeps as many other errors for comparisons
    assert all(12 < kept[name] <= 24 for name in ("Handwritten digits", "Shapes in drawn scenes"))


@pytest.mark.exhaustive  # a whole demo
def test_assay_gives_one_answer_and_it_is_the_exact_one(written):
    report, _ = written
    same_bits, _ = report.sections[5:]
    (table,) = same_bits.tables
    answers = {row[1] for row in table.rows}
    assert len(table.rows) >= 10
    assert len(answers) == 1
    assert f"rounded once to float64, is {answers.pop()}." in same_bits.note
    assert len({row[2] for row in table.rows}) > 1
    assert "assay gave one answer; running sums in float32 gave" in same_bits.note


@pytest.mark.exhaustive  # a whole demo
def test_float32_ends_where_assay_does_not(written):
    (table,) = written[0].sections[6].tables
    counts, concordance = table.rows
    assert counts[1:] == ("16,778,216", "16,778,216", "16,777,216")
    assert concordance[1] == concordance[2]
    assert abs(float(concordance[3]) - float(concordance[1])) > 0.1


@pytest.mark.exhaustive  # a whole demo
def test_two_demos_are_compared_sample_by_sample(written):
    first, second = (
        Report(f"{n} epochs", [demo.measure(trained(task, n)).sections[0] for task in tasks()]) for n in (1, 4)
    )
    found = compare(first, second)
    assert found.deltas
    assert all(delta.paired for delta in found.deltas)
    assert found.delta("Log loss").verdict == "better"
    samples = written[0].sections[0].samples
    digits = load_digits()
    assert samples.target.values.tolist() == digits.target[samples.ids.values].tolist()


@pytest.mark.parametrize(("arguments", "folder"), [((), "assay-demo"), (("--out", "there"), "there")])
def test_the_folder_has_a_default(monkeypatch, arguments, folder):
    given = []
    monkeypatch.setattr(demo, "run", given.append)
    monkeypatch.setattr(sys, "argv", ["assay", "demo", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert given == [DemoCommand(Path(folder))]


@pytest.mark.exhaustive  # a second demo
def test_the_demo_prints_what_it_measured_and_where_it_wrote(tmp_path, capsys, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the demo opens no connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(bits, "LAST_FLOAT32_COUNT", 2**20)
    seed, threads = torch.get_rng_state(), torch.get_num_threads()
    report = run(DemoCommand(tmp_path), max_epochs=1)
    printed = capsys.readouterr().out
    for word in (
        "Training: Diabetes",
        "Accuracy",
        "Training: Shapes",
        "COCO map_50",
        "Before and after",
        "Concordance, bit by bit",
        str(tmp_path / "report.html"),
    ):
        assert word in printed
    assert report.duration_s is not None
    assert torch.equal(torch.get_rng_state(), seed)
    assert torch.get_num_threads() == threads


def test_many_classes_are_measured_as_scikit_learn_does():
    found, preds, target = measure(tasks()[0])
    decided, one_hot = preds.argmax(1), np.eye(10)[target]
    expected = {
        "Accuracy": sk.accuracy_score(target, decided),
        "Macro F1": sk.f1_score(target, decided, average="macro"),
        "Matthews correlation": sk.matthews_corrcoef(target, decided),
        "Macro AUROC": sk.roc_auc_score(one_hot, preds, average="macro"),
    }
    measured = values(found)
    assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    own = preds[np.arange(len(target)), target]
    assert measured["Log loss"] == pytest.approx(-np.log(own).mean(), rel=1e-6)
    matrix, _, _, roc, pr = found.plots
    assert np.array_equal(matrix.counts, sk.confusion_matrix(target, decided))
    assert [c.area for c in roc.curves] == pytest.approx(sk.roc_auc_score(one_hot, preds, average=None).tolist())
    assert [c.area for c in pr.curves] == pytest.approx(
        sk.average_precision_score(one_hot, preds, average=None).tolist()
    )
    assert all(c.x[0] == 0 and c.y[-1] == 1 for c in roc.curves)
    recall = {row[0]: row[2] for row in table(found, "Per class").rows[:10]}
    assert list(recall.values()) == pytest.approx(sk.recall_score(target, decided, average=None).tolist())


def test_two_classes_are_measured_as_scikit_learn_does():
    found, preds, target = measure(tasks()[1])
    expected = {
        "Accuracy": sk.accuracy_score(target, preds > 0.5),
        "Sensitivity": sk.recall_score(target, preds > 0.5),
        "Specificity": sk.recall_score(1 - target, preds <= 0.5),
        "AUROC": sk.roc_auc_score(target, preds),
        "Average precision": sk.average_precision_score(target, preds),
        "Brier score": sk.brier_score_loss(target, preds),
    }
    measured = values(found)
    assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    reliability = found.plots[1]
    gaps = np.abs(np.subtract(reliability.confidence, reliability.accuracy))
    weights = np.divide(reliability.counts, len(target))
    assert measured["Calibration error"] == pytest.approx(np.nansum(gaps * weights), rel=1e-12)
    assert reliability.error == measured["Calibration error"]


def test_a_regression_is_measured_as_scikit_learn_does():
    found, preds, target = measure(tasks()[2])
    target = target.astype(np.float64)
    mean_square = ((preds - target) ** 2).mean()
    expected = {
        "R²": sk.r2_score(target, preds),
        "Root mean squared error": mean_square**0.5,
        "Mean absolute error": sk.mean_absolute_error(target, preds),
        "Pearson correlation": np.corrcoef(target, preds)[0, 1],
        "Concordance": 2
        * np.cov(target, preds, ddof=0)[0, 1]
        / (target.var() + preds.var() + (target.mean() - preds.mean()) ** 2),
    }
    assert values(found) == pytest.approx(expected, rel=1e-9)
    assert sorted(found.plots[0].residuals) == pytest.approx(sorted((preds - target).tolist()))


def test_training_gives_the_same_model_twice():
    first, second = (trained(tasks()[2]) for _ in range(2))
    assert torch.equal(first.predictions()[0], second.predictions()[0])


def test_a_folder_that_cannot_be_made_is_one_line_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(demo, "tasks", lambda: pytest.fail("trained for nothing"))
    monkeypatch.setattr(sys, "argv", ["assay", "demo", "--out", str(tmp_path / "file" / "folder")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert re.fullmatch(r"assay: .*Not a directory: '.*folder'\n", printed.err)
    assert printed.out == ""


def test_held_out_samples_were_not_trained_on():
    task = tasks()[0]
    train, held_out = (
        {tuple(row) for row in part[0].flatten(1).tolist()} for part in (task._train, task.held_out.tensors)
    )
    assert len(train) + len(held_out) == 1797
    assert not train & held_out


def test_every_way_feeds_the_same_samples():
    preds, target = torch.arange(20.0), torch.arange(20.0) + 1
    for name, pieces in bits.ways(preds, target):
        fed = torch.cat([batch for piece in pieces for batch, _ in piece]).cpu().float()
        assert torch.equal(fed.sort().values, preds), name
        assert len(pieces) == (3 if "three" in name else 1)


def test_other_devices_are_fed_alone_and_in_turn_with_the_cpu(monkeypatch):
    monkeypatch.setattr(bits, "available", lambda: [torch.device("cpu"), torch.device("cpu:0")])
    names = [name for name, _ in bits.ways(torch.arange(9.0), torch.arange(9.0))]
    assert names[-2:] == ["on cpu:0", "cpu and cpu:0 in turn"]


def test_float32_bits_are_written_without_the_zeros_of_float64():
    assert bits.short_hex(0.6582450218385048) == (0.6582450218385048).hex()
    assert bits.short_hex(0.5) == "0x1.p-1"
    assert float.fromhex(bits.short_hex(0.5)) == 0.5
    assert bits.short_hex(float("nan")) == "nan"


def test_without_scikit_learn_the_message_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    message = (
        r'scikit-learn: got no such package, expected it for the data of the demo. Run: pip install "assay\[demo\]".'
    )
    with pytest.raises(MissingDependencyError, match=message):
        run(DemoCommand(tmp_path))
    assert not list(tmp_path.iterdir())


def test_scenes_are_the_same_each_time_and_shapes_lie_in_their_boxes():
    for seed in range(40):
        scene, again = draw_scene(seed), draw_scene(seed)
        assert torch.equal(scene.image, again.image)
        boxes, labels = scene.truth["boxes"], scene.truth["labels"]
        assert 1 <= len(boxes) == len(labels) <= 5
        assert boxes.min() >= 0
        assert boxes.max() <= SIZE
        assert (boxes[:, :2] < boxes[:, 2:]).all()
        assert 0 <= labels.min() <= labels.max() < len(SHAPES)
        assert 0 <= scene.image.min() <= scene.image.max() <= 1


def test_a_box_is_that_of_what_is_drawn():
    ground = draw_scene(3).image
    for label, shape in enumerate(SHAPES):
        box, mask = demo_scenes._shape(label, np.array([30.0, 34.0]), 12.0, 0.3)
        rows, columns = (np.flatnonzero(mask.max(axis) > 0.5) for axis in (1, 0))
        drawn = columns[0], rows[0], columns[-1] + 1, rows[-1] + 1
        assert np.abs(box - drawn).max() < 1.5, shape
    assert ground.shape == (3, SIZE, SIZE)


def test_a_grid_that_is_right_is_decoded_to_the_true_boxes(monkeypatch):
    example = SceneExample()
    for seed in range(20):
        scene = draw_scene(seed)
        middles, sides, _ = (each[None] for each in _targets(scene.truth))
        monkeypatch.setattr(example.model, "grid", lambda images, m=middles, s=sides: (20 * (m == 1) - 10.0, s))
        (detected,) = example.model(scene.image[None])
        sure = detected["scores"] > 0.5
        for box, label in zip(scene.truth["boxes"], scene.truth["labels"], strict=True):
            off = (detected["boxes"][sure & (detected["labels"] == label)] - box).abs().amax(1)
            assert off.min() < 1e-3


@pytest.mark.exhaustive
def test_the_detector_is_measured_as_pycocotools_does(monkeypatch):
    monkeypatch.setattr(demo_scenes, "TRAINED", 64)
    monkeypatch.setattr(demo_scenes, "HELD_OUT", 24)
    example = SceneExample()
    with one_thread():
        for _ in example.train(8):
            pass
    (found,) = demo.measure(example).sections
    with torch.inference_mode():
        detected = example.model.eval()(torch.stack([scene.image for scene in example.scenes]))
    expected = coco_map([scene.truth for scene in example.scenes], detected)
    assert 0 < expected < 1
    assert values(found)["COCO map"] == pytest.approx(expected, rel=1e-12)
    per_class = table(found, "COCO per class")
    assert [row[0] for row in per_class.rows] == list(SHAPES)
    assert np.nanmean([row[1] for row in per_class.rows]) == pytest.approx(expected, rel=1e-12)


def coco_map(truths: list[dict[str, torch.Tensor]], detections: list[dict[str, torch.Tensor]]) -> float:
    """What pycocotools says."""
    coco = COCO()
    annotations = [
        {"image_id": image, "category_id": int(label), "bbox": [x, y, right - x, bottom - y], "iscrowd": 0}
        for image, truth in enumerate(truths)
        for (x, y, right, bottom), label in zip(truth["boxes"].tolist(), truth["labels"], strict=True)
    ]
    for number, each in enumerate(annotations, 1):
        each |= {"id": number, "area": each["bbox"][2] * each["bbox"][3]}
    coco.dataset = {
        "images": [{"id": image} for image in range(len(truths))],
        "categories": [{"id": label} for label in range(len(SHAPES))],
        "annotations": annotations,
        "info": {},
    }
    coco.createIndex()
    results = [
        {"image_id": image, "category_id": int(label), "bbox": [x, y, right - x, bottom - y], "score": score}
        for image, each in enumerate(detections)
        for (x, y, right, bottom), score, label in zip(
            each["boxes"].tolist(), each["scores"].tolist(), each["labels"], strict=True
        )
    ]
    evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
    for step in (evaluation.evaluate, evaluation.accumulate, evaluation.summarize):
        step()
    return float(evaluation.stats[0])


@pytest.fixture(scope="module")
def spelling() -> SpellingExample:
    example = SpellingExample()
    for _ in example.train(1):
        pass
    return example


@pytest.mark.exhaustive
def test_sentences_are_corrected_and_measured_as_jiwer_does(spelling):
    (found,) = demo.measure(spelling).sections
    inputs, targets, ids = map(list, zip(*spelling.sentences, strict=True))
    corrected = spelling.model(inputs)
    measured = values(found)
    assert measured["Word error rate"] == pytest.approx(jiwer.wer(targets, corrected), rel=1e-12)
    assert measured["Character error rate"] == pytest.approx(jiwer.cer(targets, corrected), rel=1e-12)
    rows = {row[0]: row[1:] for row in table(found, "Before and after").rows}
    assert rows["Word error rate"] == pytest.approx((jiwer.wer(targets, inputs), jiwer.wer(targets, corrected)))
    assert rows["Word error rate"][1] < rows["Word error rate"][0]
    assert rows["chrF"][1] > rows["chrF"][0]
    assert found.samples.ids.values.tolist() == ids
    assert len(found.samples.raw) >= 20
    assert all(value.lower < value.value < value.upper for value in found.values)


@pytest.mark.exhaustive
def test_no_held_out_sentence_was_learned(spelling):
    assert len(spelling.sentences) > 100
    assert not {target for _, target, _ in spelling.sentences} & set(spelling.training_sentences)


def test_a_corrector_takes_the_likely_word():
    corrector = Corrector()
    corrector.learn(["Close the file now."] * 9 + ["A fine day."])
    assert corrector(["Close the fie now.", "Close the file now."]) == ["Close the file now."] * 2


def test_every_slip_is_one_slip_away():
    rng = random.Random(5)
    for _ in range(200):
        wrong = misspell("these words have slips.", rng).removesuffix(".").split()
        for right, written in zip(["these", "words", "have", "slips"], wrong, strict=True):
            assert right == written or right in set(one_slip_away(written))
