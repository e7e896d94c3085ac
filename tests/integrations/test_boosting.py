"""The boosting objective: its gradient, its bound, and both real libraries."""

import lightgbm
import numpy as np
import pytest
import torch
import xgboost
from sklearn.base import clone

from setpoint import Implicit, Problem, Sigmoid, fnr, fnr_at_fpr, fpr, pr_auc, precision_at_recall
from setpoint.axes import read_sample, spread
from setpoint.integrations.boosting import REACH, Objective, boost, raw_scores

PROBLEMS = [fnr_at_fpr(0.1), precision_at_recall(0.9), pr_auc(recall=(0.5, 1.0), points=3)]
QUIET = {"lightgbm": {"num_threads": 1}, "xgboost": {"nthread": 1}}


def draw(n=400, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 5))
    y = (x[:, 0] + x[:, 1] * x[:, 2] + random.normal(size=n) > 1.2).astype(float)
    return x, y


def scored(n=400, seed=0):
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.2).astype(float)
    return random.normal(size=n) + 1.5 * y, y


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_bare_gradient_points_where_the_implicit_loss_falls(problem):
    s, y = scored()
    gradient, curvature = Objective(problem, main_share=0.0).derivatives(s, y)
    scores = torch.from_numpy(s).requires_grad_()
    Implicit(problem, share=0.0, step=Sigmoid(width=0.125), widening=1)(
        scores, torch.from_numpy(y)
    ).backward()
    expected = scores.grad.numpy()
    length = np.abs(gradient).sum() / np.abs(expected).sum()
    np.testing.assert_allclose(gradient, length * expected, rtol=1e-9, atol=0)
    assert (curvature > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_step_of_any_leaf_raises_the_frozen_loss(seed):
    """At frozen threshold, width and multiplier the loss is below its quadratic bound."""
    problem = Problem(minimize=fnr, subject_to=fpr <= 0.1)
    s, y = scored(seed=seed)
    gradient, curvature = Objective(problem, main_share=0.0).derivatives(s, y)
    width = np.median(np.abs(gradient) / curvature) / REACH
    threshold = problem.choose(s, y).thresholds[0]
    u = (s - threshold) / width
    kernel = 1 / (2 + np.exp(u) + np.exp(-u))
    steepness = gradient * width / kernel  # the same for all of a class: the frozen multiplier
    for of_class in (y == 0, y == 1):
        np.testing.assert_allclose(steepness[of_class], steepness[of_class][0], rtol=1e-6)
    random = np.random.default_rng(seed)
    frozen = lambda scores: steepness @ (1 / (1 + np.exp(-(scores - threshold) / width)))  # noqa: E731
    for leaves in (1, 3, 20, 400):
        leaf = random.integers(leaves, size=len(s))
        sums = [np.bincount(leaf, part, leaves) for part in (gradient, curvature)]
        step = -sums[0] / np.maximum(sums[1], 1e-300)
        assert np.abs(step).max() <= REACH * width * (1 + 1e-9)  # never beyond the bound's reach
        moved = step[leaf]
        promised = gradient @ moved + 0.5 * curvature @ moved**2
        for rate in (1.0, 0.5, 0.1):
            change = frozen(s + rate * moved) - frozen(s)
            assert change <= rate * gradient @ moved + 0.5 * curvature @ (rate * moved) ** 2 + 1e-12
        assert promised <= 1e-12


def test_a_smaller_curvature_would_be_no_bound():
    """The constant is tight: with half the curvature some single row's bound is broken."""
    s, y = scored(2000)
    gradient, curvature = Objective(fnr_at_fpr(0.1), main_share=0.0).derivatives(s, y)
    width = np.median(np.abs(gradient) / curvature) / REACH
    threshold = fnr_at_fpr(0.1).choose(s, y).thresholds[0]
    step = lambda v: 1 / (1 + np.exp(-(v - threshold) / width))  # noqa: E731
    kernel = step(s) * (1 - step(s))
    moves = -np.sign(gradient) * width * np.linspace(0.05, REACH, 10)[:, None]
    change = gradient * width / kernel * (step(s + moves) - step(s))
    assert (change <= gradient * moves + 0.5 * curvature * moves**2 + 1e-15).all()
    assert (change > gradient * moves + 0.25 * curvature * moves**2).any()


def test_weight_two_is_two_copies():
    s, y = scored(60)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    objective = Objective(fnr_at_fpr(0.1))
    gradient, curvature = objective.derivatives(s, y, weights)
    copies, slopes = objective.derivatives(s[twice], y[twice], np.array([]))
    np.testing.assert_allclose(gradient / weights, copies[:60], rtol=1e-9)
    np.testing.assert_allclose(curvature / weights, slopes[:60], rtol=1e-9)


@pytest.mark.parametrize("labels", [np.zeros(30), np.ones(30)])
def test_a_missing_class_and_constant_scores_stay_finite(labels):
    gradient, curvature = Objective(fnr_at_fpr(0.1)).derivatives(np.zeros(30), labels)
    assert np.isfinite(gradient).all()
    assert (curvature > 0).all()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_goal_trees_go_on_from_the_log_loss_trees(library):
    """The scores the objective sees first are those of the warm trees, all of them kept."""
    x, y = draw()
    seen = []

    class Watched(Objective):
        def __call__(self, scores, data):
            seen.append(np.array(scores, dtype=float))
            return super().__call__(scores, data)

    params = {**QUIET[library], "learning_rate": 0.3, "max_depth": 3}
    warm = boost(Watched(fnr_at_fpr(0.1)), x, y, library=library, rounds=5, warm=1, params=params)
    assert not seen
    both = boost(
        Watched(fnr_at_fpr(0.1)), x, y, library=library, rounds=10, warm=0.5, params=params
    )
    assert len(seen) == 5
    np.testing.assert_allclose(seen[0], raw_scores(warm, x), atol=1e-5)
    assert np.abs(raw_scores(both, x) - raw_scores(warm, x)).max() > 0.01
    trees = both.num_trees() if library == "lightgbm" else both.num_boosted_rounds()
    assert trees == 10


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_goal_trees_lower_the_training_goal(library):
    x, y = draw(600)
    goal = fnr_at_fpr(0.1)
    values = [
        goal.evaluate(
            raw_scores(
                boost(
                    Objective(goal),
                    x,
                    y,
                    library=library,
                    rounds=20,
                    warm=warm,
                    params={**QUIET[library], "max_depth": 2, "learning_rate": 0.1},
                ),
                x,
            ),
            y,
        )
        for warm in (1.0, 0.5)
    ]
    assert values[1] < values[0]


def test_metric_is_the_goal_for_both_libraries():
    x, y = draw()
    goal = precision_at_recall(0.9)
    objective = Objective(goal)
    scores = x[:, 0]
    expected = -goal.evaluate(scores, y)
    assert objective.metric(scores, xgboost.DMatrix(x, label=y)) == ("setpoint/goal", expected)
    data = lightgbm.Dataset(x, y, params={"verbosity": -1}).construct()
    assert objective.feval(scores, data) == ("setpoint/goal", expected, False)


def test_metric_where_the_targets_are_missed_and_where_there_are_groups():
    data = xgboost.DMatrix(np.zeros((4, 1)), label=[0, 0, 1, 1])
    scores = np.array([3.0, 2.0, 1.0, 0.0])
    missed = Problem.parse("minimize 5 * fnr + fpr subject to precision >= 0.9 and recall >= 0.1")
    assert Objective(missed).metric(scores, data) == ("setpoint/goal", np.inf)
    grouped = Problem.parse('minimize fnr subject to fpr on g="a" <= 0.1')
    with pytest.raises(ValueError, match="does not say which groups"):
        Objective(grouped, groups={"g": ["a"] * 4}).metric(scores, data)


def test_wrong_settings_are_named():
    x, y = draw(40)
    objective = Objective(fnr_at_fpr(0.1))
    with pytest.raises(ValueError, match="lightgbm, xgboost; got 'catboost'"):
        boost(objective, x, y, library="catboost")
    with pytest.raises(ValueError, match="Leave the objective out"):
        boost(objective, x, y, library="lightgbm", params={"objective": "binary"})
    with pytest.raises(ValueError, match="main_share must be a share"):
        Objective(fnr_at_fpr(0.1), main_share=30)


def test_counts_at_the_width_used_by_the_bound():
    """The width that the curvature is made of is a share of the robust spread."""
    s, y = scored()
    gradient, curvature = Objective(fnr_at_fpr(0.1), main_share=0.0).derivatives(s, y)
    sample = read_sample(((),), torch.from_numpy(s), torch.from_numpy(y))
    expected = 0.125 * float(spread(sample.scores, sample.weights)[0])
    ratio = np.abs(gradient) / curvature / REACH
    np.testing.assert_allclose(ratio[curvature > 1e-12], expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Cannot compute class prob")  # LightGBM has raw scores only
@pytest.mark.parametrize("metric", ["metric", "feval"])
def test_scikit_learn_estimators_of_lightgbm_train_as_its_own_function(metric):
    x, y = draw()
    objective = Objective(fnr_at_fpr(0.1))
    weights = np.linspace(0.5, 2, len(y))
    model = lightgbm.LGBMClassifier(
        objective=objective, n_estimators=8, n_jobs=1, verbosity=-1, random_state=0
    )
    seen = clone(model).fit(
        x,
        y,
        sample_weight=weights,
        eval_X=(x,),
        eval_y=(y,),
        eval_metric=getattr(objective, metric),
    )
    data = lightgbm.Dataset(x, y, weight=weights)
    params = {"objective": objective, "num_threads": 1, "verbosity": -1}
    seen_by_train = {}
    own = lightgbm.train(
        params,
        data,
        8,
        valid_sets=[data.create_valid(x, y)],
        feval=getattr(objective, metric),
        callbacks=[lightgbm.record_evaluation(seen_by_train)],
    )
    known, found = seen_by_train["valid_0"], seen.evals_result_["valid_0"]
    assert known["setpoint/goal"] == pytest.approx(found["setpoint/goal"])
    np.testing.assert_allclose(seen.predict(x), own.predict(x), rtol=1e-9)
    values = seen.evals_result_["valid_0"]["setpoint/goal"]
    assert values[-1] == pytest.approx(fnr_at_fpr(0.1).evaluate(seen.predict(x), y))


def test_scikit_learn_estimators_of_xgboost_train_as_its_own_function():
    x, y = draw()
    objective = Objective(fnr_at_fpr(0.1))
    weights = np.linspace(0.5, 2, len(y))
    model = xgboost.XGBClassifier(
        objective=objective, n_estimators=8, n_jobs=1, eval_metric=objective.metric
    )
    seen = clone(model).fit(x, y, sample_weight=weights, eval_set=[(x, y)], verbose=False)
    data = xgboost.DMatrix(x, label=y, weight=weights)
    own = xgboost.train({"nthread": 1, "objective": "binary:logistic"}, data, 8, obj=objective)
    found = seen.predict(x, output_margin=True)
    assert fnr_at_fpr(0.1).evaluate(found, y) < 0.35
    np.testing.assert_allclose(found, own.predict(data, output_margin=True), rtol=1e-6)
    values = seen.evals_result()["validation_0"]["setpoint/goal"]
    assert values[-1] == pytest.approx(fnr_at_fpr(0.1).evaluate(found, y))
