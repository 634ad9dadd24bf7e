"""Six runs: one page over many reports

The classifier of digits, trained on more and more of the data, as a project would from day to day. It is the page that
`assay view runs/` writes.

- Each run is a row, each metric a plot over time; a triangle is a change that is more than noise.
- Click a run to open its report, or choose two to compare them.
- Filter by metric, words and dates.
"""

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from assay import evaluate
from assay.report import collect

digits = load_digits()
pixels = digits.data / 16
order = np.random.default_rng(0).permutation(900)
runs = []
for day, count in enumerate((60, 100, 150, 250, 450, 900), 1):
    known = order[:count]
    classifier = LogisticRegression(max_iter=1000).fit(pixels[known], digits.target[known])
    run = evaluate(
        classifier,
        (pixels[900:], digits.target[900:]),
        "accuracy,f1:average=macro,logloss",
        progress=False,
        title=f"{count} digits",
    )
    runs.append(replace(run, created=f"2026-11-{day:02}T12:00:00+00:00"))
report = collect(runs)
