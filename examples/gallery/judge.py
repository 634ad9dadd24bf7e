"""A judge and people: how far can a judge be trusted

A table of 897 answers with two columns: whether a judge, a second model in place of people, takes the answer for right,
and whether it is. A naive Bayes classifier of digits answers, and a nearest-neighbour classifier judges.

- Agreement beyond chance (kappa), and whether the judge's confidence means anything.
- Slices by the digit that was answered: the judge is not equally good for all of them.
"""

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import assay

digits = load_digits()
known, new = slice(0, 900), slice(900, None)
answers = GaussianNB().fit(digits.data[known], digits.target[known]).predict(digits.data[new])
judge = KNeighborsClassifier(15).fit(digits.data[:200], digits.target[:200]).predict_proba(digits.data[new])

table = pa.table(
    {
        "judge": judge[np.arange(len(answers)), answers],  # how sure the judge is that the answer is right
        "right": (answers == digits.target[new]).astype(int),
        "answer": [f"says {each}" for each in answers],
    }
)
report = assay.score(
    table,
    "kappa=cohenkappa,accuracy,auroc,ece",
    preds="judge",
    target="right",
    slices="answer",
    progress=False,
    title="A judge in place of people",
)
