"""The ranker: the calls of LightGBM's and XGBoost's, scikit-learn's conventions, the goal."""

import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setpoint import Problem, Ranker, fnr, fpr, precision_at_k
from setpoint.train import Validation, WholeQueries, fit

QUICK = {"epochs": 15, "batch_size": 10, "random_state": 0}


def draw(queries=40, length=15, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(queries * length, 4))
    qid = np.repeat(np.arange(queries), length)
    x[:, 1] += 5 * rng.normal(size=queries)[qid]
    y = (x[:, 0] - 0.5 * x[:, 2] + 0.5 * rng.normal(size=len(x)) > 0.8) * 2
    return x, y, qid


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_it_learns_to_rank_and_scores_by_its_goal(model):
    x, y, qid = draw()
    new_x, new_y, new_qid = draw(seed=1)
    ranker = Ranker(precision_at_k(3), model=model, **QUICK).fit(x, y, qid=qid)
    found = ranker.score(new_x, new_y, qid=new_qid)
    goal = precision_at_k(3).per("query")
    scores = ranker.predict(new_x)
    assert found == goal.evaluate(scores, new_y > 0, queries=new_qid)
    best = goal.evaluate(new_x[:, 0] - 0.5 * new_x[:, 2], new_y > 0, queries=new_qid)
    assert found >= best - 0.05
    assert found > goal.evaluate(new_x[:, 1], new_y > 0, queries=new_qid) + 0.2


def test_group_sizes_are_queries_too_and_order_is_irrelevant():
    x, y, qid = draw(20, 10)
    first = Ranker(**QUICK).fit(x, y, qid=qid)
    second = Ranker(**QUICK).fit(x, y, group=[10] * 20)
    assert np.array_equal(first.predict(x), second.predict(x))
    names = np.array([f"q{i:02d}" for i in range(20)])[qid]
    third = Ranker(**QUICK).fit(x, y, qid=names)
    assert np.array_equal(first.predict(x), third.predict(x))
    mixed = np.random.default_rng(0).permutation(len(x))
    unsorted = Ranker(**QUICK).fit(x[mixed], y[mixed], qid=names[mixed])
    assert unsorted.predict(x) == pytest.approx(first.predict(x), abs=1e-5)
    assert third.score(x[mixed], y[mixed], qid=names[mixed]) == first.score(x, y, group=[10] * 20)


def test_queries_are_never_split():
    x, y, qid = draw(20, 10)
    ranker = Ranker(validation_fraction=0.3, **QUICK).fit(x, y, qid=qid)
    learnt, chosen = (set(qid[ranker.splits_[part]]) for part in ("train", "validation"))
    assert not learnt & chosen
    assert len(chosen) == 6
    sampler = WholeQueries(qid[::-1].copy(), 7)
    for rows, weights in sampler.draw(torch.zeros(200), steps=5, seed=0):
        assert weights is None
        assert len(rows) == 70
        assert all((qid[::-1][rows.numpy()] == q).sum() in (0, 10) for q in range(20))
    seen = np.concatenate([r.numpy() for r, _ in sampler.draw(torch.zeros(200), steps=2, seed=1)])
    assert len(set(seen.tolist())) == 140  # no query twice in a pass
    assert sampler.size == 70
    with pytest.raises(ValueError, match="200 examples with a query, and 3 labels"):
        next(sampler.draw(torch.zeros(3), steps=1, seed=0))


def test_it_keeps_the_conventions_of_scikit_learn():
    x, y, qid = draw(12, 10)
    ranker = Ranker(model="mlp", **QUICK)
    again = clone(ranker)
    assert again.get_params() == ranker.get_params()
    assert again.set_params(batch_size=5).batch_size == 5
    with pytest.raises(NotFittedError):
        ranker.predict(x)
    ranker.fit(x, y, qid=qid)
    assert ranker.n_features_in_ == 4
    copy = pickle.loads(pickle.dumps(ranker))
    assert np.array_equal(copy.predict(x), ranker.predict(x))
    with pytest.raises(ValueError, match="4 features"):
        ranker.predict(x[:, :2])
    piped = make_pipeline(StandardScaler(), Ranker(**QUICK)).fit(x, y, ranker__qid=qid)
    assert piped.predict(x).shape == (120,)
    assert np.array_equal(clone(ranker).fit(x, y, qid=qid).predict(x), ranker.predict(x))
    assert len(ranker.history_) == 15


def test_weights_of_zero_are_absent():
    x, y, qid = draw(12, 10)
    weights = np.tile([1.0, 0.0], 60)
    ranker = Ranker(validation_fraction=0, **QUICK).fit(x, y, weights, qid=qid)
    kept = weights > 0
    other = Ranker(validation_fraction=0, **QUICK).fit(x[kept], y[kept], qid=qid[kept])
    assert ranker.predict(x) == pytest.approx(other.predict(x), abs=1e-6)
    value = ranker.score(x, y, weights, qid=qid)
    assert value == pytest.approx(ranker.score(x[kept], y[kept], qid=qid[kept]))


def test_goals_that_are_minimized_are_negated():
    x, y, qid = draw(12, 20)
    goal = Problem(minimize=fnr, subject_to=fpr <= 0.2)
    ranker = Ranker(str(goal), **QUICK).fit(x, y, qid=qid)
    value = goal.per("query").evaluate(ranker.predict(x), y > 0, queries=qid)
    assert ranker.score(x, y, qid=qid) == -value


SLIPS = {
    "no queries": ({}, "pass qid="),
    "both": ({"qid": np.zeros(20), "group": [20]}, "pass qid="),
    "too short": ({"qid": np.zeros(3)}, "queries must have the shape"),
    "sizes": ({"group": [3, 4]}, "adds up to 7 rows; there are 20"),
    "half rows": ({"group": [10.5, 9.5]}, "whole numbers of rows"),
}


@pytest.mark.parametrize(("given", "error"), SLIPS.values(), ids=SLIPS.keys())
def test_slips_are_answered(given, error):
    x, y, _ = draw(2, 10)
    with pytest.raises(ValueError, match=error):
        Ranker(**QUICK).fit(x, y, **given)


def test_other_slips():
    x, y, qid = draw(2, 10)
    with pytest.raises(ValueError, match="at least 0; got -2"):
        Ranker(**QUICK).fit(x, -y, qid=qid)
    with pytest.raises(ValueError, match="leaves none to train on"):
        Ranker(validation_fraction=1.0, **QUICK).fit(x, y, qid=qid)
    with pytest.raises(ValueError, match="epochs must be a number or 'auto'"):
        Ranker(epochs="many").fit(x, y, qid=qid)
    with pytest.raises(ValueError, match="model must be"):
        Ranker(model="forest", **QUICK).fit(x, y, qid=qid)


def test_one_query_and_a_module_of_ones_own():
    x, y, _ = draw(1, 30)
    ranker = Ranker(model=torch.nn.Linear(4, 1), **QUICK).fit(x, y, group=[30])
    assert np.isfinite(ranker.predict(x)).all()


def test_the_loop_takes_queries_as_a_column():
    """``fit`` and ``Validation`` need no word of their own for queries."""
    x, y, qid = draw(12, 10)
    goal = precision_at_k(3).per("qid")
    from setpoint import Implicit

    features, labels = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y > 0).long()
    torch.manual_seed(0)
    fitted = fit(
        torch.nn.Linear(4, 1),
        Implicit(goal, steps=20),
        features,
        labels,
        steps=20,
        batch_size=1,
        learning_rate=0.05,
        seed=0,
        groups={"qid": qid},
        sampler=WholeQueries(qid, 4),
        validation=Validation(goal, features, labels, groups={"qid": qid}),
    )
    assert fitted.best > 0.5


def test_the_example_runs(capsys):
    path = Path(__file__).parents[2] / "examples" / "ranking.py"
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert "'status': 'held'" in shown
    values = [float(part.split()[0]) for part in shown.split("query: ")[1:]]
    assert values[0] > 0.5  # a fifth of the documents is relevant
