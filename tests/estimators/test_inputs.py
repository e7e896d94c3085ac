"""Goals as users write them: sentences, problems, or only what must hold."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from setpoint import CertifiedThreshold, Problem, fpr, precision, recall
from setpoint.estimators import Classifier
from setpoint.estimators.inputs import as_problem


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        ("fpr <= 0.01", "maximize recall subject to fpr <= 0.01"),
        ("recall >= 0.95", "minimize fpr subject to recall >= 0.95"),
        (fpr <= 0.01, "maximize recall subject to fpr <= 0.01"),
        ((recall >= 0.5, precision >= 0.9), "maximize recall subject to recall >= 0.5 and "),
        ("minimize fnr subject to fpr <= 0.1", "minimize fnr subject to fpr <= 0.1"),
        ("maximize f_score(1)", "maximize f_score(1)"),
    ],
)
def test_bounds_alone_are_a_goal(goal, sentence):
    assert str(as_problem(goal)).startswith(sentence)


def test_a_goal_that_cannot_be_read_says_how_goals_start():
    with pytest.raises(ValueError, match="This can be read: minimize fnr"):
        as_problem("minimze fnr")
    with pytest.raises(TypeError, match=r"takes a Problem.*got 3"):
        as_problem(3)


def data(n=4000):
    random = np.random.default_rng(0)
    y = random.random(n) < 0.4
    return random.normal(size=(n, 2)) + y[:, None], y


def test_a_bound_is_certified_as_its_problem_is():
    fitted = [
        CertifiedThreshold(LogisticRegression(), goal=goal, random_state=0).fit(*data())
        for goal in ("fpr <= 0.05", Problem(maximize=recall, subject_to=fpr <= 0.05))
    ]
    assert fitted[0].certificate_.certified
    assert fitted[0].threshold_ == fitted[1].threshold_


def test_decisions_stay_finite_and_ordered_where_everybody_is_accepted():
    x, y = data(600)
    model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.3", random_state=0).fit(x, y)
    before = model.decision_function(x)
    model.threshold_ = -np.inf
    after = model.decision_function(x)
    assert np.isfinite(after).all()
    assert (after > 0).all()
    assert (np.argsort(before, kind="stable") == np.argsort(after, kind="stable")).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("named", [False, True])
def test_an_entry_that_is_no_number_is_named_by_row_and_column(value, named):
    x, y = data(200)
    x[[17, 30], [1, 0]] = value
    x = pd.DataFrame(x, columns=["age", "income"]) if named else x
    column = "'income'" if named else "1"
    found = f"X has {'NaN' if np.isnan(value) else value} in row 17, column {column}, and 2 such"
    with pytest.raises(ValueError, match=re.escape(found)):
        Classifier("fpr <= 0.1").fit(x, y)


def test_a_label_that_is_missing_is_named_by_its_row():
    x, y = data(200)
    with pytest.raises(ValueError, match="y has NaN in row 3, and 1 such entries in all"):
        Classifier("fpr <= 0.1").fit(x, np.where(np.arange(200) == 3, np.nan, y))


def test_a_row_too_far_for_a_finite_score_is_named():
    x, y = data(600)
    model = Classifier("fpr <= 0.3", model="linear", random_state=0).fit(x * 1e-300, y)
    new = np.where(np.eye(5, 2, -3) > 0, 1.7e308, x[:5] * 1e-300)
    with pytest.raises(ValueError, match=r"row 3, whose largest entry is 1\.7e\+308 in column 0"):
        model.predict(new)


def test_a_column_of_texts_is_named():
    x, y = data(200)
    table = pd.DataFrame({"age": x[:, 0], "kind": np.where(y, "shop", "web"), "sum": x[:, 1]})
    said = "Column 'kind' holds '(web|shop)', which is no number: encode categories, as by sklearn"
    for model in (Classifier("fpr <= 0.3", epochs=1), Classifier("fpr <= 0.3", model="linear")):
        with pytest.raises(ValueError, match=said):
            model.fit(table, y)
    with pytest.raises(ValueError, match=r"X holds '(web|shop)', which is no number"):
        Classifier("fpr <= 0.3").fit(table.to_numpy(), y)


@pytest.mark.parametrize("positive", ["bad", "good"])  # of which one is the first of ``classes_``
def test_the_certificate_takes_the_raw_scores(positive):
    x, y = data()
    names = np.where(y, "bad", "good")
    model = CertifiedThreshold(
        LogisticRegression(), goal="fpr <= 0.1", pos_label=positive, random_state=0
    ).fit(x, names)
    scores = model.raw_scores(x)
    assert (model.certificate_.decide(scores) == (model.predict(x) == positive)).all()
    assert model.certificate_.check(scores, names == positive).verdict == "ok"


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_labels_that_are_missing_are_counted(missing):
    x, y = data(200)
    names = np.where(y, "bad", "good").astype(object)
    names[[3, 8]] = missing
    for labels in (names, pd.Series(names)):
        with pytest.raises(ValueError, match="y has NaN in row 3, and 2 such entries in all"):
            Classifier("fpr <= 0.3").fit(x, labels)
