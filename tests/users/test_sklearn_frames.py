"""scikit-learn with pandas and polars: nullable columns, late labels, words as labels."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from setpoint import certify, evaluate
from setpoint.estimators import CertifiedThreshold, Classifier

pl = pytest.importorskip("polars")


def draw(rows=4000, seed=0):
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < 0.3).astype(int)
    return (
        random.normal(size=rows) + 2 * labels,
        labels,
        np.where(random.random(rows) < 0.5, "a", "b"),
    )


SCORES, LABELS, GROUPS = draw()
GOAL = "fpr <= 5 %"


@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (pd.Series(SCORES, dtype="Float64"), pd.Series(LABELS, dtype="boolean")),
        (pd.Series(SCORES), pd.Series(LABELS, dtype="Int64")),
        (pl.Series(SCORES), pl.Series(LABELS)),
        (pl.Series(SCORES), pl.Series(LABELS.astype(bool))),
    ],
)
def test_columns_of_other_libraries(scores, labels):
    assert certify(scores, labels, GOAL) == certify(SCORES, LABELS, GOAL)
    assert evaluate(scores, labels, GOAL) == evaluate(SCORES, LABELS, GOAL)
    found = certify(SCORES, LABELS, GOAL)
    np.testing.assert_array_equal(np.asarray(found.decide(scores)), found.threshold < SCORES)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "polars", "polars bool"])
def test_labels_that_are_missing_are_absent(kind):
    known = LABELS.tolist()
    if kind.startswith("polars"):
        known = [bool(x) for x in known] if "bool" in kind else known
        late = pl.Series([None] * 500 + known[500:])
    else:
        late = pd.Series(LABELS, dtype=kind)
        late[:500] = pd.NA
    found = certify(pd.Series(SCORES), late, GOAL)
    assert found.threshold == certify(SCORES[500:], LABELS[500:], GOAL).threshold
    assert evaluate(pd.Series(SCORES), late, GOAL) == evaluate(SCORES[500:], LABELS[500:], GOAL)
    fair = "minimize error subject to demographic_parity(0.1, g=[a, b]) with thresholds per group"
    expected = evaluate(SCORES[500:], LABELS[500:], fair, groups={"g": GROUPS[500:]})
    assert evaluate(SCORES, late, fair, groups={"g": pd.Series(GROUPS)}) == expected
    with pytest.raises(ValueError, match="No row has a label"):
        evaluate(SCORES[:500], late[:500], GOAL)


def test_groups_and_clusters():
    expected = certify(SCORES, LABELS, GOAL, groups={"g": GROUPS}).thresholds
    for column in (
        pd.Series(GROUPS, dtype="string"),
        pd.Series(GROUPS, dtype="category"),
        pl.Series(GROUPS),
        pl.Series(GROUPS, dtype=pl.Categorical),
    ):
        assert certify(SCORES, LABELS, GOAL, groups={"g": column}).thresholds == expected
    who = np.arange(len(SCORES)) // 2
    for column in (who, who.astype(str)):
        expected = certify(SCORES, LABELS, GOAL, clusters=column).threshold
        kind = "Int64" if column.dtype.kind == "i" else "string"
        for same in (pd.Series(column, dtype=kind), pl.Series(column)):
            assert certify(SCORES, LABELS, GOAL, clusters=same).threshold == expected
    missing = pd.Series(who, dtype="Int64")
    missing[5] = pd.NA
    with pytest.raises(ValueError, match="no id in row 5"):
        certify(SCORES, LABELS, GOAL, clusters=missing)


def test_a_frame_words_as_labels_and_a_boosted_model():
    random = np.random.default_rng(1)
    rows = 3000
    bad = random.random(rows) < 0.3
    frame = pd.DataFrame(
        {
            "amount": pd.Series(random.normal(size=rows) + 2 * bad, dtype="Float64"),
            "visits": pd.Series(random.integers(0, 9, rows), dtype="Int64"),
        }
    )
    frame.loc[::7, "visits"] = pd.NA
    y = pd.Series(np.where(bad, "default", "repaid"))
    booster = LGBMClassifier(n_estimators=20, n_jobs=1, verbosity=-1)
    model = CertifiedThreshold(booster, goal="fpr <= 10 %", pos_label="default", random_state=0)
    model.fit(frame[:2000], y[:2000])
    assert model.certificate_.certified
    found = model.predict(frame[2000:])
    counts = confusion_matrix(y[2000:], found, labels=["repaid", "default"])
    kept, truth = found == "default", bad[2000:]
    assert counts[0, 1] == (kept & ~truth).sum()
    assert counts[0, 1] / counts[0].sum() <= 0.1 + 3 * (0.09 / counts[0].sum()) ** 0.5


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_a_column_of_dates_is_refused_by_name(library):
    day = np.datetime64("2026-01-01") + np.arange(len(SCORES))
    columns = {"amount": SCORES, "day": day}
    given = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(library, lambda c: c["day"])(
        columns
    )
    given = given[:, None] if library == "numpy" else given
    name = "X" if library == "numpy" else "day"
    with pytest.raises(TypeError, match=f"Column '{name}' holds .*: make a number of it"):
        Classifier("maximize recall subject to fpr <= 5 %").fit(given, LABELS)
    if library == "pandas":  # an estimator that refuses dates in the words of numpy
        with pytest.raises(TypeError, match=r"Column 'day' holds .*: make a number of it"):
            CertifiedThreshold(LogisticRegression(), goal="fpr <= 5 %").fit(given, LABELS)
