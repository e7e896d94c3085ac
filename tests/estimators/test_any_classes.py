"""CertifiedThreshold: the positive class, the scale of its threshold, and any number of classes."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from setpoint import evaluate
from setpoint.estimators import CertifiedThreshold, Classifier, MonitoredClassifier

NAMES = np.array(["bird", "cat", "dog"])


def draw(seed, rows=3000, shares=(0.6, 0.3, 0.1)):
    random = np.random.default_rng(seed)
    labels = random.choice(3, rows, p=shares)
    centres = np.array([[0, 0], [2.5, 0], [0, 2.5]])
    return centres[labels] + random.normal(size=(rows, 2)), NAMES[labels]


MODELS = {
    "decision function": LogisticRegression(),
    "probabilities": RandomForestClassifier(30, min_samples_leaf=5, random_state=0),
    "boosted": LGBMClassifier(n_estimators=20, n_jobs=1, verbosity=-1),
    "margins": SVC(decision_function_shape="ovr"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("positive", ["bird", "dog"])
def test_one_class_against_the_rest(name, positive):
    """The promise holds on new rows, whichever class it is about, and the rest is told apart."""
    x, y = draw(0)
    goal = "maximize recall subject to fpr <= 0.1"
    model = CertifiedThreshold(MODELS[name], goal=goal, pos_label=positive, random_state=0)
    model.fit(x, y)
    assert model.certificate_.certified
    new, truth = draw(1, 20000)
    found = model.predict(new)
    accepted = found == positive
    assert np.mean(accepted[truth != positive]) <= 0.1
    assert np.mean(accepted[truth == positive]) > 0.4
    inside = model.estimator_
    raw = inside.decision_function(new) if hasattr(inside, "decision_function") else None
    raw = inside.predict_proba(new) if raw is None else raw
    place = list(NAMES).index(positive)
    np.testing.assert_array_equal(accepted, raw[:, place] > model.threshold_)
    others = np.delete(np.arange(3), place)
    likeliest = NAMES[others[raw[:, others].argmax(1)]]
    np.testing.assert_array_equal(found[~accepted], likeliest[~accepted])
    scale = "score" if hasattr(inside, "decision_function") else "probability"
    assert model.threshold_scale_ == scale
    np.testing.assert_array_equal(model.decision_function(new) > 0, accepted)


@pytest.mark.parametrize("name", MODELS)
def test_shifts_of_classes_are_proved_for_any_model(name):
    x, y = draw(0, 6000)
    goal = 'maximize macro(recall) subject to recall of "dog" >= 0.5'
    model = CertifiedThreshold(
        MODELS[name], goal=goal, calibration_fraction=0.4, random_state=0
    ).fit(x, y)
    assert model.certificate_.certified
    new, truth = draw(1, 20000)
    found = model.predict(new)
    assert recall_score(truth, found, labels=["dog"], average=None)[0] >= 0.5
    plain = balanced_accuracy_score(truth, model.estimator_.predict(new))
    assert balanced_accuracy_score(truth, found) > plain
    margins = model.decision_function(new)
    np.testing.assert_array_equal(NAMES[margins.argmax(1)], found)
    scores = hasattr(model.estimator_, "decision_function")
    assert model.threshold_scale_ == ("score" if scores else "log probability")


def test_a_goal_without_bounds_has_shifts_and_no_warning():
    x, y = draw(0)
    model = CertifiedThreshold(LogisticRegression(), goal="maximize macro(recall)", random_state=0)
    model.fit(x, y)
    assert model.certificate_ is None
    new, truth = draw(1, 20000)
    plain = balanced_accuracy_score(truth, model.estimator_.predict(new))
    assert balanced_accuracy_score(truth, model.predict(new)) > plain + 0.02


def test_two_classes_by_shifts_are_those_of_one_difference():
    x, y = draw(0)
    y = np.where(y == "bird", "bird", "other")
    for inside in (LogisticRegression(), RandomForestClassifier(30, random_state=0)):
        model = CertifiedThreshold(inside, goal="maximize macro(recall)", random_state=0).fit(x, y)
        assert model.decision_function(x).shape == (len(x),)
        np.testing.assert_array_equal(model.predict(x) == "other", model.decision_function(x) > 0)


@pytest.mark.parametrize("inside", [LogisticRegression(), DecisionTreeClassifier(max_depth=4)])
def test_the_first_of_two_classes_can_be_the_positive_one(inside):
    random = np.random.default_rng(0)
    bad = random.random(4000) < 0.3
    x = (random.normal(size=4000) + 2 * bad)[:, None]
    y = np.where(bad, "bad", "good")
    model = CertifiedThreshold(clone(inside), goal="fpr <= 0.1", pos_label="bad", random_state=0)
    model.fit(x[:3000], y[:3000])
    found = model.predict(x[3000:])
    assert np.mean(found[~bad[3000:]] == "bad") <= 0.1 + 3 * (0.1 * 0.9 / 700) ** 0.5
    assert np.mean(found[bad[3000:]] == "bad") > 0.4
    other = CertifiedThreshold(clone(inside), goal="fpr <= 0.1", random_state=0, pos_label="z bad")
    other.fit(x[:3000], np.where(bad, "z bad", "good")[:3000])
    np.testing.assert_array_equal(other.predict(x[3000:]) == "z bad", found == "bad")
    assert model.score(x[3000:], y[3000:]) == pytest.approx(
        other.score(x[3000:], np.where(bad, "z bad", "good")[3000:])
    )
    # for scikit-learn a decision function speaks for the second class
    np.testing.assert_array_equal(model.decision_function(x[3000:]) > 0, found == "good")


def test_a_monitor_of_one_class_against_the_rest_predicts_the_same():
    x, y = draw(0)
    goal = "fpr <= 0.1"
    model = CertifiedThreshold(LogisticRegression(), goal=goal, pos_label="cat", random_state=0)
    watched = MonitoredClassifier(model.fit(x, y))
    new, truth = draw(1, 500)
    np.testing.assert_array_equal(watched.predict(new), model.predict(new))
    assert watched.update(*draw(2, 2000)) == "holds"
    assert truth.shape == (500,)


def test_a_search_over_the_model_inside():
    x, y = draw(0)
    model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", pos_label="dog")
    search = GridSearchCV(model, {"estimator__C": [0.01, 1.0]}, cv=2).fit(x, y)
    assert set(search.predict(x)) <= set(NAMES)


def test_what_is_wrong_is_said():
    x, y = draw(0, 600)
    with pytest.raises(ValueError, match=r"3 classes .*pos_label=\.\.\.\), or write a goal"):
        CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1").fit(x, y)
    with pytest.raises(ValueError, match="pos_label='cow' is not in y"):
        CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", pos_label="cow").fit(x, y)
    with pytest.raises(ValueError, match="is for two classes"):
        CertifiedThreshold(
            LogisticRegression(), goal="maximize macro(recall)", pos_label="cat"
        ).fit(x, y)


@pytest.mark.parametrize(
    ("goal", "bounded"),
    [("accuracy", False), ("error", False), ("accuracy >= 0.7", True), ("error <= 0.3", True)],
)
def test_accuracy_alone_is_that_of_all_classes(goal, bounded):
    x, y = draw(0)
    model = CertifiedThreshold(LogisticRegression(), goal=goal, random_state=0).fit(x, y)
    assert (model.certificate_ is not None and model.certificate_.certified) == bounded
    right = np.mean(model.predict(x) == y)
    assert right > 0.8
    scores, labels = model.estimator_.decision_function(x), np.searchsorted(NAMES, y)
    value = evaluate(scores, labels, goal, thresholds=model.shifts_)
    assert value == pytest.approx(1 - right if goal == "error" else right, abs=1e-12)


def test_a_classifier_that_wants_numbers_for_labels_is_told_how():
    x, y = draw(0)
    model = CertifiedThreshold(XGBClassifier(n_estimators=2), goal="fpr <= 0.1", pos_label="cat")
    with pytest.raises(ValueError, match=r"Invalid classes.*pass LabelEncoder\(\)"):
        model.fit(x, y)
    two = y != "dog"
    with pytest.raises(ValueError, match="pass y == 'cat' instead of y"):
        model.fit(x[two], y[two])
    model.set_params(pos_label=None).fit(x[two], y[two] == "cat")


@pytest.mark.parametrize("model", [CertifiedThreshold(LogisticRegression()), Classifier()])
def test_of_two_names_one_must_be_said_to_be_positive(model):
    """Of "fraud" and "ok" the second would be taken, silently."""
    random = np.random.default_rng(0)
    fraud = random.random(400) < 0.3
    x, y = (random.normal(size=400) + 3 * fraud)[:, None], np.where(fraud, "fraud", "ok")
    model = clone(model).set_params(goal="fpr <= 0.2", random_state=0)
    if isinstance(model, Classifier):
        model.set_params(model="linear", epochs=1)
    with pytest.warns(UserWarning, match="'ok' is taken.*pos_label='fraud'") as caught:
        model.fit(x, y)
    assert caught[0].filename == __file__
    model.set_params(pos_label="fraud").fit(x, y)
    model.set_params(pos_label=None, goal="minimize error subject to accuracy >= 0.5").fit(x, y)
