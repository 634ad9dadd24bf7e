"""Is the new model better, or was it luck, and is it better everywhere? Two models, two reports, a comparison, a gate.

Each report keeps what every sample contributed, in a few bytes, so the two can be compared sample by sample.

    python examples/compare.py
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from assay.report import Report, Samples, Section, Slice, Value, compare, gate


def section(name, data, model):
    """Train on a half, measure the other half, and keep the samples; an id is a row of the data set."""
    train, held_out = train_test_split(np.arange(len(data.target)), test_size=0.5, random_state=0)
    model.fit(data.data[train], data.target[train])
    probabilities, target = model.predict_proba(data.data[held_out]), data.target[held_out]
    decision = probabilities.argmax(1)
    own = np.clip(probabilities[np.arange(len(target)), target], 1e-7, 1)
    columns = {"correct": decision == target, "log loss": -np.log(own)}
    values = [
        Value(
            "accuracy", accuracy_score(target, decision), numerator="correct", higher_is_better=True, count=len(target)
        ),
        Value("log loss", columns["log loss"].mean(), numerator="log loss", higher_is_better=False),
    ]
    if len(data.target_names) == 2:  # recall and F1 are quotients of two means over samples
        hits = columns["true positives"] = (decision == 1) & (target == 1)
        columns |= {"positives": target == 1, "twice the hits": 2 * hits, "called or positive": decision + target}
        values += [
            Value(
                "recall",
                recall_score(target, decision),
                numerator="true positives",
                denominator="positives",
                higher_is_better=True,
            ),
            Value(
                "F1",
                f1_score(target, decision),
                numerator="twice the hits",
                denominator="called or positive",
                higher_is_better=True,
            ),
        ]
    else:
        macro = f1_score(target, decision, average="macro")  # no mean over samples: compared without a test
        values.append(Value("Macro F1", macro, higher_is_better=True))
    slices = [
        Slice.of(f"class {data.target_names[label]}", [_accuracy(columns["correct"][target == label])], target == label)
        for label in range(len(data.target_names))
    ]
    samples = Samples.pack(held_out, columns, decision=decision, target=target, data=name)
    return Section(name, values, samples=samples, slices=slices, min_slice_size=20)


def _accuracy(correct):
    return Value("accuracy", correct.mean(), numerator="correct", higher_is_better=True, count=len(correct))


def report(title, make):
    """One model on two data sets."""
    return Report(title, [section("digits", load_digits(), make()), section("cancer", load_breast_cancer(), make())])


out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
main = report("naive Bayes", GaussianNB)
new = report("logistic regression", lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)))
for name, each in (("main", main), ("new", new)):
    path = each.save(out / f"{name}.json")
    samples = sum(len(part.samples) for part in each.sections)
    print(f"{path}: {samples:,} samples, {path.stat().st_size / 1024:.0f} KiB")

comparison = compare(main, new, names=("main", "new"))
comparison.show()
comparison.to_html(out / "compare.html")
(out / "compare.md").write_text(comparison.to_markdown(), encoding="utf-8")

accuracy = comparison.delta("accuracy", "digits")
assert accuracy.paired
assert accuracy.verdict == "better"
eights = comparison.delta("accuracy", "digits", slice="class 8")
print(f"Among the eights: {eights.baseline:.2f} -> {eights.value:.2f}, {eights.verdict} (p = {eights.corrected:.3f})")

checked = gate(
    new,
    {
        "min": {"digits/accuracy": 0.9},
        "max-drop": {"cancer/accuracy": 0.02, "digits/accuracy[class *]": 0.1},
        "worst-slice": {"digits/accuracy": 0.8},
    },
    baseline=main,
)
checked.show()
new.to_html(out / "new.html")  # with the worst slice of each metric, and the worst errors by id
assert checked.exit_code in (0, 2)  # passed, or too few samples to say so
