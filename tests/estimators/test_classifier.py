import pickle
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from samples import draw_array
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from setpoint import Problem, certify, fnr, fpr, recall
from setpoint.estimators import Classifier, NotCertifiedWarning
from setpoint.estimators.calibration import Calibrator
from setpoint.estimators.networks import scores_of_rows
from setpoint.solvers import METHODS

GOAL = "minimize fnr subject to fpr <= 0.05"
QUICK = {"model": "linear", "epochs": 40, "random_state": 0}


def data(count: int = 3000, share: float = 0.3, seed: int = 0):
    return draw_array(count, seed, gap=1.5, share=share, features=4)


@pytest.fixture(scope="module")
def fitted():
    return Classifier(GOAL, **QUICK).fit(*data())


def test_it_is_certified_and_the_promise_holds_on_new_data(fitted):
    certificate = fitted.certificate_
    assert certificate.status == "certified"
    assert fitted.threshold_ == certificate.threshold
    x, y = data(20_000, seed=9)
    assert np.mean(fitted.predict(x)[y == 0]) <= 0.05
    assert np.mean(fitted.predict(x)[y == 1]) > 0.8
    scores = fitted.decision_function(x) + fitted.threshold_
    assert certificate.check(scores, y).exit_code == 0


def test_predict_is_decision_function_above_zero_and_what_the_certificate_decides(fitted):
    x, _ = data(seed=1)
    accepted = fitted.decision_function(x) > 0
    assert (fitted.predict(x) == accepted).all()
    scores = fitted.module_(torch.from_numpy(x)).detach().numpy()
    assert (fitted.certificate_.decide(scores) == accepted).all()


def test_the_three_parts_are_disjoint_and_hold_both_classes(fitted):
    parts = fitted.splits_
    _, y = data()
    assert sorted(np.concatenate(list(parts.values()))) == list(range(3000))
    assert {name: len(rows) for name, rows in parts.items()} == pytest.approx(
        {"train": 1800, "validation": 600, "calibration": 600}, abs=2
    )
    for rows in parts.values():
        assert y[rows].mean() == pytest.approx(y.mean(), abs=0.002)


def test_calibration_rows_change_nothing_but_the_promise(fitted):
    x, y = data()
    rows = fitted.splits_["calibration"]
    x2 = x.copy()
    x2[rows] = x[rows] + 100.0  # nothing but the certificate may look at these rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        other = Classifier(GOAL, **QUICK).fit(x2, y)
    assert (other.splits_["calibration"] == rows).all()
    probe = torch.from_numpy(x[:50])
    assert torch.equal(other.module_(probe), fitted.module_(probe))
    assert other.calibrator_ == fitted.calibrator_


def test_history_and_module_are_as_documented(fitted):
    assert [row["epoch"] for row in fitted.history_] == list(range(1, 41))
    assert {"epoch", "step", "loss", "validation", "seconds", "status"} == set(fitted.history_[0])
    assert not fitted.module_.training
    x, _ = data()
    assert fitted.module_(torch.from_numpy(x[:7]).float()).shape == (7,)
    assert fitted.problem_ == Problem(minimize=fnr, subject_to=fpr <= 0.05)


def test_the_same_seed_gives_the_same_model_and_leaves_the_users_alone(fitted):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    again = Classifier(GOAL, **QUICK).fit(*data())
    assert torch.equal(torch.rand(1), expected)
    x, _ = data(seed=1)
    assert (again.decision_function(x) == fitted.decision_function(x)).all()


def test_score_is_the_goals_metric_and_greater_is_better(fitted):
    x, y = data(seed=2)
    scores = fitted.decision_function(x)
    assert fitted.score(x, y) == -fitted.problem_.evaluate(scores, y)
    higher = Classifier("maximize recall subject to fpr <= 0.05", **QUICK).fit(*data())
    assert higher.score(x, y) == Problem(maximize=recall, subject_to=fpr <= 0.05).evaluate(
        higher.decision_function(x), y
    )


def test_probabilities_are_calibrated_and_not_the_sigmoid_of_the_score(fitted):
    x, y = data(20_000, seed=3)
    probability = fitted.predict_proba(x)[:, 1]
    for low in np.arange(0, 1, 0.2):
        inside = (probability >= low) & (probability < low + 0.2)
        # 600 validation rows fix the curve to a few points; the bound is loose on purpose
        assert abs(probability[inside].mean() - y[inside].mean()) < 0.12
    assert np.mean((probability - y) ** 2) < 0.06
    scores = fitted.decision_function(x) + fitted.threshold_
    sigmoid = 1 / (1 + np.exp(-scores))
    assert np.mean((sigmoid - y) ** 2) > np.mean((probability - y) ** 2)


def test_the_calibrator_never_decreases_even_for_scores_that_rank_the_wrong_way():
    y = np.repeat([0.0, 1.0], 50)
    curve = Calibrator.fit(np.linspace(1, -1, 100), y)
    assert (np.diff(curve(np.linspace(-2, 2, 9))) > 0).all()
    assert curve(np.zeros(1)) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_calibrator_ignores_the_scale_of_scores(scale):
    random = np.random.default_rng(0)
    y = (random.random(500) < 0.3).astype(float)
    scores = random.normal(size=500) + y
    expected = Calibrator.fit(scores, y)(scores)
    shifted = scale * (scores + 3)
    np.testing.assert_allclose(Calibrator.fit(shifted, y)(shifted), expected, rtol=1e-6)


def test_string_labels_and_named_columns():
    pandas = pytest.importorskip("pandas")
    x, y = data()
    frame = pandas.DataFrame(x, columns=list("abcd"))
    named = np.where(y == 1, "spam", "ham")
    model = Classifier(GOAL, pos_label="spam", **QUICK).fit(frame, named)
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.feature_names_in_.tolist() == list("abcd")
    assert set(model.predict(frame)) == {"ham", "spam"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def test_too_few_rows_for_a_proof_warn_and_fall_back(fitted):
    x, y = data(300)
    with pytest.warns(NotCertifiedWarning, match="needs 299 negatives"):
        model = Classifier("minimize fnr subject to fpr <= 0.01", **QUICK).fit(x, y)
    assert model.certificate_.status == "infeasible"
    rows = model.splits_["validation"]
    scores = model.decision_function(x[rows]) + model.threshold_
    assert model.threshold_ == pytest.approx(
        model.problem_.choose(scores, y[rows]).thresholds[0], rel=1e-12
    )


def test_very_few_rows_are_not_split():
    x, y = data(30)
    with pytest.warns(NotCertifiedWarning, match="a class has under 20 rows"):
        model = Classifier(GOAL, **QUICK).fit(x, y)
    assert model.certificate_ is None
    assert len(model.splits_["train"]) == len(model.splits_["validation"]) == 30


def test_trees_that_know_ten_positives_by_heart_do_not_decide():
    """Chosen by the rows that trained, twice the false alarms asked for came on new rows."""
    x, y = draw_array(400, 0, gap=0.5, features=6)
    y = y * (np.cumsum(y) <= 10)
    with pytest.warns(NotCertifiedWarning, match="under 20 rows"):
        model = Classifier("fpr <= 0.05", epochs=5, random_state=0).fit(x, y)
    assert "linear_0, implicit" in model.histories_
    x, y = draw_array(4000, 1, gap=0.5, features=6)
    assert model.predict(x[y == 0]).mean() <= 0.08


def test_sample_weights_train_but_are_not_certified():
    x, y = data()
    weights = np.where(y == 1, 2.0, 1.0)
    with pytest.warns(NotCertifiedWarning, match="sample weights"):
        model = Classifier(GOAL, **QUICK).fit(x, y, sample_weight=weights)
    assert model.certificate_ is None
    assert len(model.splits_["calibration"]) == 0
    assert Classifier(GOAL, **QUICK).fit(x, y, np.full(len(y), 2.0)).certificate_ is not None


def test_rows_without_weight_are_absent():
    x, y = data(300)
    weights = np.where(np.arange(300) % 3, 1.0, 0.0) * (1 + y)
    there = weights > 0
    goal = "minimize fnr subject to fpr <= 0.3"
    rare = np.where((y == 1) & (np.cumsum(y) > 2), 0.0, 1 + y)  # two positives with a weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        whole = Classifier(goal, **QUICK | {"epochs": 2}).fit(x, y, weights)
        fewer = Classifier(goal, **QUICK | {"epochs": 2}).fit(x[there], y[there], weights[there])
        Classifier(goal, **QUICK | {"epochs": 2}).fit(x, y, rare)
    assert there[np.concatenate(list(whole.splits_.values()))].all()
    np.testing.assert_array_equal(whole.decision_function(x), fewer.decision_function(x))


def test_goals_without_a_bound_ask_for_no_promise():
    model = Classifier("maximize accuracy", **QUICK).fit(*data())
    assert model.certificate_ is None
    assert len(model.splits_["calibration"]) == 0
    assert model.score(*data(seed=4)) > 0.9


def test_an_exact_value_cannot_be_promised():
    goal = Problem(minimize=fnr, subject_to=fpr.at(0.05))
    with pytest.warns(NotCertifiedWarning, match="an exact value cannot be proved"):
        assert Classifier(goal, **QUICK).fit(*data()).certificate_ is None


def test_no_certificate_is_made_when_none_is_wanted():
    model = Classifier(GOAL, calibration_fraction=0, **QUICK).fit(*data())
    assert model.certificate_ is None
    assert len(model.splits_["train"]) > 2300


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method):
    model = Classifier(GOAL, method=method, **QUICK | {"model": "mlp"}).fit(*data())
    assert model.score(*data(seed=1)) > -0.15
    assert model.method_ == method


def test_auto_keeps_the_best_on_validation_data():
    model = Classifier(GOAL, method="auto", **QUICK).fit(*data())
    assert set(model.histories_) == {"implicit", "cross_entropy"}
    best = {name: min(r["validation"] for r in h) for name, h in model.histories_.items()}
    assert best[model.method_] == min(best.values())
    assert model.history_ == model.histories_[model.method_]
    assert model.certificate_.candidates == 1


def test_a_module_of_ones_own_is_copied_and_trained():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))
    before = [p.clone() for p in network.parameters()]
    model = Classifier(GOAL, model=network, learning_rate=0.02, epochs=40, random_state=0)
    model.fit(*data())
    assert model.score(*data(seed=1)) > -0.2
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_a_module_with_two_scores_a_row_is_refused():
    with pytest.raises(ValueError, match=r"one score per row.*\(512, 2\) for 512 rows"):
        Classifier(GOAL, **QUICK | {"model": nn.Linear(4, 2)}).fit(*data())


def test_clone_pipeline_search_and_pickle(fitted):
    x, y = data(1500)
    pipeline = make_pipeline(StandardScaler(), Classifier(GOAL, **QUICK))
    grid = {"classifier__learning_rate": [1e-6, 0.03]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        search = GridSearchCV(pipeline, grid, cv=2).fit(x, y)
    assert search.best_params_ == {"classifier__learning_rate": 0.03}
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.decision_function(x) == fitted.decision_function(x)).all()
    assert again.certificate_ == fitted.certificate_


def test_large_offsets_and_constant_columns_do_not_matter(fitted):
    x, y = data()
    odd = np.column_stack([1.7e9 + x[:, 0], x[:, 1:], np.full(len(y), 3.3e7)])
    model = Classifier(GOAL, **QUICK).fit(odd, y)
    x_new, y_new = data(seed=1)
    new = np.column_stack([1.7e9 + x_new[:, 0], x_new[:, 1:], np.full(len(y), 3.3e7)])
    assert model.score(new, y_new) == pytest.approx(fitted.score(x_new, y_new), abs=0.03)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"goal": "maximize precision over recall in [0.95, 1]"}, "is an area|Cannot read"),
        ({"goal": Problem(minimize=fnr.on(sex="f"))}, "needs groups: pass fit"),
        ({"goal": f"{GOAL} with thresholds per group"}, "names no group to find a threshold for"),
        (
            {"validation_fraction": 0.005},
            "The validation part has 1 rows, all of one class: raise validation_fraction",
        ),
        ({"calibration_fraction": 0.005}, "The calibration part has 1 rows, all of one class"),
        (
            {"model": "forest"},
            "model must be 'linear', 'mlp', 'boosted', 'auto' or an nn.Module; got 'forest'",
        ),
        ({"method": "magic"}, "method must be one of 'implicit'.*got 'magic'"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0"),
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"learning_rate": -1}, "learning_rate must be positive; got -1"),
        ({"learning_rate": "fast"}, "learning_rate must be a number or 'auto'"),
        ({"confidence": 95}, "confidence must be a share.*write 0.95"),
        ({"validation_fraction": 0.6, "calibration_fraction": 0.4}, "leave nothing to train on"),
    ],
)
def test_wrong_settings_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Classifier(**{"goal": GOAL, **QUICK, **wrong}).fit(*data(200))


def grouped(count: int = 4000, seed: int = 0):
    x, y = data(count, seed=seed)
    sex = np.random.default_rng(seed + 1).choice(["f", "m"], count)
    x[sex == "f", 0] += 1.0
    return x, y, sex


def test_goals_about_groups_are_trained_validated_and_certified():
    goal = Problem(maximize=recall, subject_to=fpr.on(sex="f") <= 0.05)
    x, y, sex = grouped()
    model = Classifier(goal, **QUICK).fit(x, y, groups=sex)
    assert model.certificate_.status == "certified"
    assert model.threshold_ == model.certificate_.threshold
    x, y, sex = grouped(20_000, seed=5)
    accepted = model.predict(x) == 1
    assert accepted[(y == 0) & (sex == "f")].mean() <= 0.05
    assert accepted[(y == 0) & (sex == "m")].mean() < accepted[(y == 0) & (sex == "f")].mean()
    scores = model.decision_function(x)
    assert model.score(x, y, groups=sex) == goal.evaluate(scores, y, groups=sex)
    rows = model.splits_["validation"]
    x, y, sex = grouped()
    seen = model.decision_function(x[rows])
    best = max(row["validation"] for row in model.history_)
    assert goal.evaluate(seen, y[rows], groups=sex[rows]) == best
    rows = model.splits_["calibration"]
    scores = model.module_(torch.from_numpy(x[rows])).detach().numpy()
    found = certify(scores, y[rows], goal, groups={"sex": sex[rows]})
    assert replace(model.certificate_, fingerprint=found.fingerprint) == found


@pytest.mark.parametrize(
    ("goal", "groups", "message"),
    [
        (GOAL, np.zeros(200), "groups= was given, and .* looks at no group"),
        (Problem(minimize=fnr, subject_to=fpr.on(sex="f") <= 0.1), None, "needs groups: pass fit"),
        (
            Problem(minimize=fnr, subject_to=fpr.on(sex="f") <= 0.1),
            {"age": np.zeros(200)},
            "needs the group column 'sex'",
        ),
        (
            Problem(minimize=fnr, subject_to=fpr.on(sex="f") <= 0.1),
            np.zeros(199),
            r"one value per row, \(200,\); got \(199,\)",
        ),
    ],
)
def test_wrong_groups_are_named(goal, groups, message):
    with pytest.raises(ValueError, match=message):
        Classifier(goal, **QUICK).fit(*data(200), groups=groups)


def test_mistakes_of_certify_are_not_hidden(monkeypatch):
    def broken(*_, **__):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr("setpoint.estimators.decisions.certify", broken)
    with pytest.raises(ValueError, match="a mistake of ours"):
        Classifier(GOAL, **QUICK).fit(*data(300))


def test_an_exact_value_leaves_a_model_without_a_promise():
    with pytest.warns(NotCertifiedWarning, match="an exact value cannot be proved"):
        model = Classifier(Problem(minimize=fnr, subject_to=fpr.at(0.1)), **QUICK).fit(*data(600))
    assert model.certificate_ is None
    assert np.isfinite(model.threshold_)


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("setpoint.estimators")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "setpoint\[sklearn\]"'):
        import setpoint.estimators  # noqa: F401


def test_the_positive_class_can_be_named():
    """The same data with its classes called the other way round give the same decisions."""
    x, y = data(1000, share=0.5)
    plain = Classifier(GOAL, model="linear", epochs=2, random_state=0).fit(x, y)
    named = np.where(y == 1, "bad", "good")
    ours = Classifier(GOAL, pos_label="bad", model="linear", epochs=2, random_state=0).fit(x, named)
    assert ours.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(ours.predict(x) == "bad", plain.predict(x) == 1)
    assert ours.threshold_ == plain.threshold_
    assert ours.score(x, named) == plain.score(x, y)
    np.testing.assert_array_equal(ours.decision_function(x), -plain.decision_function(x))
    np.testing.assert_array_equal(ours.predict_proba(x), plain.predict_proba(x)[:, ::-1])
    scorer = get_scorer("roc_auc")  # which looks at the sign of the decision function
    assert scorer(ours, x, named) == pytest.approx(scorer(plain, x, y))
    options = {"model": "linear", "epochs": 2, "random_state": 0}
    good = Classifier(GOAL, pos_label="good", **options).fit(x, named)
    with pytest.warns(UserWarning, match="'good' is taken"):
        default = Classifier(GOAL, **options).fit(x, named)
    np.testing.assert_array_equal(good.decision_function(x), default.decision_function(x))


def test_a_positive_class_that_is_not_there_is_told_with_those_that_are():
    x, y = data(200)
    with pytest.raises(ValueError, match="pos_label='yes' is not in y, whose labels are 0, 1"):
        Classifier(GOAL, pos_label="yes").fit(x, y)
    with pytest.raises(ValueError, match=r"y has 3 classes \(0, 1, 2\)"):
        Classifier(GOAL).fit(x, np.arange(200) % 3)
    with pytest.raises(ValueError, match="pos_label=1 is for two classes"):
        Classifier("maximize macro(recall)", pos_label=1).fit(x, np.arange(200) % 3)


def test_a_device_that_is_not_there_is_told_before_training(monkeypatch):
    x, y = data(200)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"device='cuda:1': torch .* finds no .*device='cpu'"):
        Classifier(GOAL, device="cuda:1").fit(x, y)
    with pytest.raises(ValueError, match=r"must be a device of torch.*got 'gpu'"):
        Classifier(GOAL, device="gpu").fit(x, y)


def rings_array(seed, n=4000):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 2))
    return x, np.abs(np.hypot(*x.T) - 1.2) < 0.35


def test_boosted_trees_are_certified_like_networks():
    pytest.importorskip("lightgbm")
    x, y = rings_array(0)
    model = Classifier("minimize fnr subject to fpr <= 0.1", model="boosted", random_state=0)
    model.fit(x, y)
    assert (model.model_, model.method_) == ("boosted", "log_loss")
    assert model.certificate_.status.startswith("certified")
    x, y = rings_array(1, 20_000)
    found = model.predict(x)
    assert found[~y].mean() < 0.1
    assert found[y].mean() > 0.9
    assert (pickle.loads(pickle.dumps(model)).predict(x) == found).all()


def test_the_default_is_a_sum_of_all_kinds_of_model():
    pytest.importorskip("lightgbm")
    curved = Classifier("minimize fnr subject to fpr <= 0.1", epochs=10, random_state=0)
    curved.fit(*rings_array(0))
    kinds = {"linear": "implicit", "mlp": "implicit", "boosted": "log_loss"}
    folds = {f"{kind}_{fold}, {how}" for kind, how in kinds.items() for fold in range(3)}
    assert set(curved.histories_) == folds
    assert curved.model_ == curved.method_ == "stacked"
    x, y = rings_array(1)
    members = curved.module_.members
    assert set(members) >= {"mlp_0", "mlp_2", "boosted_1"}  # no line can tell a ring
    total = curved.module_.shift.numpy() + sum(
        weight * scores_of_rows(member, x, "cpu").astype(np.float64)
        for weight, member in zip(curved.module_.weights.numpy(), members.values(), strict=True)
    )
    np.testing.assert_allclose(curved.decision_function(x), total - curved.threshold_, rtol=1e-9)
    again = pickle.loads(pickle.dumps(curved))
    np.testing.assert_array_equal(again.predict(x), curved.predict(x))
    assert (curved.predict(x) == y).mean() > 0.8


def test_few_rows_are_cross_fitted_and_rows_in_order_are_not():
    x, y = draw_array(600, 0, features=3)
    how = {"epochs": 2, "random_state": 0}
    crossed = Classifier("fpr <= 0.3", **how).fit(x, y)
    train, held, proved = (crossed.splits_[n] for n in ("train", "validation", "calibration"))
    np.testing.assert_array_equal(train, held)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, proved])), np.arange(600))
    ordered = Classifier("fpr <= 0.3", accept_drift=True, **how).fit(x, y, order=np.arange(600))
    train, held = ordered.splits_["train"], ordered.splits_["validation"]
    assert train.max() < held.min()
    assert not any("_0" in name for name in ordered.histories_)


@pytest.mark.parametrize("scale", [2.0**900, 2.0**-1000, 1e300, 1e-300])
def test_features_of_any_scale_train(scale):
    """A power of two changes no digit; 1e300 rounds. Squares of either are no numbers."""
    x, y = draw_array(600, 0, features=3)
    how = {"epochs": 3, "random_state": 0, "model": "linear"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotCertifiedWarning)
        usual = Classifier("maximize recall subject to fpr <= 0.3", **how).fit(x, y)
        scaled = Classifier("maximize recall subject to fpr <= 0.3", **how).fit(x * scale, y)
    expected, found = usual.decision_function(x), scaled.decision_function(x * scale)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert 0 < scaled.predict(x * scale).mean() < 1


def test_weights_below_one_are_weights():
    x, y = draw_array(300, 0, features=2)
    model = Classifier(
        "maximize recall subject to fpr <= 0.3", model="linear", epochs=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(x, y, sample_weight=np.full(300, 0.5))
        with pytest.raises(ValueError, match="Only one class has rows with a positive"):
            model.fit(x, y, sample_weight=0.5 * y)


def test_weights_that_add_up_to_one_are_shares():
    x, y = draw_array(300, 0, share=0.1, features=2)
    weights = 1.0 + np.arange(300) % 2
    found = []
    for scale in (1 / weights.mean(), 1 / weights.sum()):
        model = Classifier("fpr <= 0.3", model="linear", epochs=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            found.append(model.fit(x, y, scale * weights).predict_proba(x))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert found[0][:, 1].mean() == pytest.approx(0.1, abs=0.05)


def test_the_first_certificate_of_a_table_has_no_note_and_nothing_is_printed(capsys):
    random = np.random.default_rng(7)
    y = np.arange(1200) % 2
    X = random.normal(size=(1200, 2)) + 2 * y[:, None]
    for number in (1, 2):
        found = (
            Classifier(GOAL, model="linear", epochs=1, random_state=number).fit(X, y).certificate_
        )
        told = [note for note in found.notes if "of the certificates on this table" in note]
        assert len(told) == number - 1, found.notes
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
