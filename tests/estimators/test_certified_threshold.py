import pickle

import numpy as np
import pytest
from samples import draw_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from setpoint import Problem, certify, fpr, recall
from setpoint.estimators import CertifiedThreshold, NotCertifiedWarning

GOAL = "maximize recall subject to fpr <= 0.05"


def data(count: int = 3000, seed: int = 0):
    return draw_array(count, seed, gap=1.5, features=4)


FOREST = RandomForestClassifier(n_estimators=20, random_state=0)
CLASSIFIERS = [
    LogisticRegression(),
    LinearSVC(),
    FOREST,  # has predict_proba only, with many ties
    make_pipeline(StandardScaler(), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
]


def holds(model) -> bool:
    x, y = data(20_000, seed=9)
    return model.predict(x)[y == 0].mean() <= 0.05


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_any_classifier_gets_a_threshold_that_holds(estimator):
    model = CertifiedThreshold(estimator, goal=GOAL, random_state=1).fit(*data())
    assert model.certificate_.status == "certified"
    assert model.threshold_ == model.certificate_.threshold
    assert holds(model)
    x, y = data(seed=1)
    assert model.predict(x)[y == 1].mean() > 0.6
    assert ((model.decision_function(x) > 0) == model.predict(x)).all()
    assert hasattr(model, "predict_proba") == hasattr(estimator, "predict_proba")


def test_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=30, verbose=-1, n_jobs=1)
    model = CertifiedThreshold(trees, goal=GOAL, random_state=0).fit(*data())
    assert model.certificate_.status == "certified"
    assert holds(model)


def test_the_classifier_never_sees_the_calibration_rows():
    x, y = data()
    model = CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=3).fit(x, y)
    train, calibration = model.splits_["train"], model.splits_["calibration"]
    assert sorted([*train, *calibration]) == list(range(len(y)))
    alone = LogisticRegression().fit(x[train], y[train])
    np.testing.assert_array_equal(model.estimator_.coef_, alone.coef_)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_fitted_classifier_is_left_alone_and_certified_on_all_rows(frozen):
    x, y = data(seed=5)
    fitted = LogisticRegression().fit(x, y)
    given = (FrozenEstimator(fitted), None) if frozen else (fitted, "prefit")
    model = CertifiedThreshold(given[0], goal=GOAL, cv=given[1]).fit(*data())
    assert model.estimator_ is given[0]
    assert len(model.splits_["calibration"]) == 3000
    assert holds(model)


def test_prefit_must_be_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        CertifiedThreshold(LogisticRegression(), goal=GOAL, cv="prefit").fit(*data())


def test_other_classes_than_the_fitted_ones_are_refused():
    x, y = data()
    fitted = LogisticRegression().fit(x, np.where(y, "yes", "no"))
    with pytest.raises(ValueError, match="fitted on the classes"):
        CertifiedThreshold(fitted, goal=GOAL, cv="prefit").fit(x, y)


def test_not_certified_falls_back_with_a_warning():
    x, y = data(300)
    with pytest.warns(NotCertifiedWarning, match="infeasible.*needs 299 negatives"):
        model = CertifiedThreshold(
            LogisticRegression(), goal="maximize recall subject to fpr <= 0.01", random_state=0
        ).fit(x, y)
    assert model.certificate_.status == "infeasible"
    assert np.isfinite(model.threshold_)


def test_tables_with_text_and_string_labels_go_straight_to_the_classifier():
    pandas = pytest.importorskip("pandas")
    x, y = data()
    frame = pandas.DataFrame({"letter": np.where(x[:, 0] > 0.7, "a", "b")})
    model = CertifiedThreshold(
        make_pipeline(OneHotEncoder(), LogisticRegression()),
        goal="minimize fpr subject to recall >= 0.5",
        pos_label="yes",
    )
    model.fit(frame, pandas.Series(np.where(y, "yes", "no")))
    assert model.feature_names_in_.tolist() == ["letter"]
    assert set(model.predict(frame)) <= {"yes", "no"}


def test_fit_parameters_are_cut_to_the_classifiers_rows():
    x, y = data()
    weights = np.linspace(0.5, 2, len(y))
    model = CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=0)
    model.fit(x, y, sample_weight=weights)
    rows = model.splits_["train"]
    alone = LogisticRegression().fit(x[rows], y[rows], sample_weight=weights[rows])
    np.testing.assert_array_equal(model.estimator_.coef_, alone.coef_)


def test_goals_about_groups():
    x, y = data(4000)
    sex = np.random.default_rng(1).choice(["f", "m"], 4000)
    x[sex == "f"] += 0.5
    goal = Problem(maximize=recall, subject_to=fpr.on(sex="f") <= 0.2)
    model = CertifiedThreshold(LogisticRegression(), goal=goal, random_state=0)
    weights = np.where(np.arange(4000) < 1000, 0.0, 1.0)  # rows of weight 0 are absent
    model.fit(x, y, groups=sex, sample_weight=weights)
    rows = 1000 + model.splits_["calibration"]
    scores = model.decision_function(x[rows]) + model.threshold_
    found = certify(scores, y[rows], goal, groups={"sex": sex[rows]})
    assert model.threshold_ == pytest.approx(found.threshold, rel=1e-12)
    with pytest.raises(ValueError, match="needs groups"):
        model.fit(x, y)


def test_score_and_pickle():
    model = CertifiedThreshold(LogisticRegression(), goal=GOAL, random_state=0).fit(*data())
    x, y = data(seed=1)
    assert model.score(x, y) == model.problem_.evaluate(model.decision_function(x), y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(x) == model.predict(x)).all()


def test_a_regressor_or_a_wrong_cv_is_refused():
    with pytest.raises(ValueError, match=r"cv must be None, 'prefit', a splitter.*got 5"):
        CertifiedThreshold(LogisticRegression(), goal=GOAL, cv=5).fit(*data())
    with pytest.raises((TypeError, AttributeError, ValueError)):
        CertifiedThreshold(LinearRegression(), goal=GOAL).fit(*data())
