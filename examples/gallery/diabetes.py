"""Diabetes: a regression, for women and men, young and old

A linear regression predicts the progression of diabetes after a year from ten measurements; half of 442 patients are
held out.

- Residuals show that large values are predicted too low.
- Slices by sex, by age in thirds and by both: is the model worse for some patients? The report names a worst slice only
  where it is worse than chance explains.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from assay import evaluate

patients = load_diabetes(scaled=False)
model = LinearRegression().fit(patients.data[::2], patients.target[::2])
x, y = patients.data[1::2], patients.target[1::2]
age, sex = x[:, 0], np.where(x[:, 1] == 1, "a", "b")  # the data set does not say which code is which

report = evaluate(
    model,
    {"x": x, "y": y, "sex": sex, "age": np.digitize(age, [40, 56])},
    "mae,rmse,r2,spearman",
    slices="sex,age,sex*age",
    progress=False,
    title="Progression of diabetes",
)
