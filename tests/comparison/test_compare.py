"""The same problem by several methods."""

import json

import numpy as np
import pytest
import torch
from samples import draw_array
from torch import nn

import setpoint
import setpoint as sp
from setpoint.comparison import Comparison, MethodTrial
from setpoint.comparison.pictures import draw_comparison, rates_at
from setpoint.datasets import DataSplit, Table, split
from setpoint.solvers import METHODS, Method, cross_entropy

GOAL = sp.fnr_at_fpr(0.1)
QUICK = {"steps": 30, "batch_size": 100, "seeds": 2}


def data(n=800, seed=0):
    x, y = draw_array(n, seed, gap=1.2 * np.array([1, 0, 1, 0]), features=4)
    return x.astype(np.float32), y


def broken(_problem, _steps):
    return lambda scores, labels, weights=None: 0 * scores.sum() / 0


def refuses(_problem, _steps):
    raise ValueError("Only areas, please.")


def test_every_method_has_a_row_and_a_trial_for_every_seed():
    found = sp.compare(GOAL, data(), ["cross_entropy", "implicit"], **QUICK)
    assert [row.method for row in found.rows] == ["cross_entropy", "implicit"]
    assert [(t.method, t.seed) for t in found.trials] == [
        (m, s) for s in (0, 1) for m in ("cross_entropy", "implicit")
    ]
    assert found.rows[0].gain is None
    assert found.rows[1].value.count == 2
    assert all(t.ms_per_step > 0 for t in found.trials)


def test_a_trial_is_what_training_by_hand_gives():
    from setpoint.train import Validation, fit, score

    found = sp.compare(GOAL, data(), ["focal"], steps=30, batch_size=100, seeds=[4]).trials[0]
    parts = split(Table(*data()), 4)
    torch.manual_seed(4)
    tensors = [(torch.from_numpy(p.x), torch.from_numpy(p.y)) for p in parts]
    fitted = fit(
        nn.Linear(4, 1),
        setpoint.solvers.focal,
        *tensors[0],
        steps=30,
        batch_size=100,
        learning_rate=0.03,
        seed=4,
        sampler=METHODS["focal"].sampler(100),
        validation=Validation(GOAL, *tensors[1]),
    )
    scores = score(fitted.model, tensors[2][0]).numpy()
    assert found.value == GOAL.evaluate(scores, parts.test.y)
    seen = score(fitted.model, tensors[1][0]).numpy()
    threshold = GOAL.choose(seen, parts.validation.y).thresholds
    assert found.carried == GOAL.evaluate(scores, parts.test.y, thresholds=threshold)
    rate = (scores[parts.test.y == 0] > threshold[0]).mean()
    assert found.status.startswith("missed") == (rate > 0.1)


def test_a_method_against_itself_gains_nothing():
    twice = {"a": METHODS["focal"], "b": METHODS["focal"]}
    row = sp.compare(GOAL, data(), twice, **QUICK).rows[1]
    assert (row.gain.mean, row.gain.standard_error) == (0, 0)


def test_the_portfolio_is_a_method_that_takes_one_run():
    found = sp.compare(GOAL, data(), ["implicit", "auto"], **QUICK)
    assert [t.steps for t in found.trials] == [30, 30, 30, 30]
    assert found.rows[1].value is not None


def test_the_sign_of_the_gain_follows_the_objective():
    backwards = Method(lambda *_: lambda s, y, weights=None: -cross_entropy(s, y, weights))
    methods = {"focal": METHODS["focal"], "backwards": backwards}
    for goal in (GOAL, sp.precision_at_recall(0.9)):
        found = sp.compare(goal, data(), methods, **QUICK)
        assert found.rows[1].gain.mean < 0
        assert found.best == "focal"


def test_no_row_hides_a_failure():
    methods = {"focal": METHODS["focal"], "broken": Method(broken), "refuses": Method(refuses)}
    found = sp.compare(GOAL, data(), methods, **QUICK)
    by_name = {row.method: row for row in found.rows}
    assert by_name["broken"].failed == by_name["refuses"].failed == 2
    assert "diverged" in by_name["broken"].trouble
    assert "cannot express it: Only areas, please." in by_name["refuses"].trouble
    assert by_name["broken"].value is None
    text = str(found)
    assert "diverged" in text
    assert "Only areas, please." in text
    assert found.best == "focal"


def test_a_rate_that_breaks_training_costs_neither_the_others_nor_the_compare():
    methods = ["implicit", "cross_entropy"]
    options = {**QUICK, "steps": 6, "seeds": 1, "model": "mlp"}
    found = sp.compare(GOAL, data(), methods, **options, learning_rates=[1e30, 0.01])
    assert [t.learning_rate for t in found.trials] == [0.01, 0.01]
    assert all(0 <= t.value <= 1 for t in found.trials)
    lost = sp.compare(GOAL, data(), methods, **options, learning_rates=1e30)
    assert [row.failed for row in lost.rows] == [1, 1]
    assert "failed at the learning rate 1e+30: Scores must be finite" in lost.rows[0].trouble
    assert "finite" in lost.rows[1].trouble


def test_a_goal_out_of_reach_is_not_called_divergence():
    goal = sp.Problem(minimize=sp.fpr, subject_to=[sp.recall >= 0.9, sp.precision >= 0.9999])
    (row,) = sp.compare(goal, data(), ["focal"], **QUICK).rows
    assert row.trouble.startswith("infeasible on the validation data: no pass has a threshold")


def test_multipliers_that_were_diverging_are_told_although_there_is_a_value():
    """At a threshold nobody reaches, the price of recall runs away; the scores still rank."""
    runaway = Method(lambda problem, _: sp.Lagrangian(problem, threshold=50.0, dual_rate=1e5))
    goal = sp.Problem(minimize=sp.fpr, subject_to=sp.recall >= 0.5)
    found = sp.compare(goal, data(), {"runaway": runaway}, **QUICK)
    (row,) = found.rows
    assert row.value is not None
    assert row.trouble.startswith("diverging (multiplier")
    assert "diverging (multiplier" in str(found)
    assert row.missed == sum("missed: recall" in t.status for t in found.trials)


def test_a_bound_that_the_validation_threshold_breaks_is_counted():
    found = sp.compare(GOAL, data(), ["focal"], steps=30, batch_size=100, seeds=8)
    missed = [t for t in found.trials if t.status.startswith("missed: fpr <= 0.1 became 0.1")]
    assert 0 < len(missed) < 8
    assert found.rows[0].missed == len(missed)
    assert f"{len(missed)} of 8" in str(found)


@pytest.mark.parametrize("tried", [(1e-9, 0.03), (0.03, 1e-9)])
def test_the_rate_is_chosen_on_validation(tried):
    found = sp.compare(GOAL, data(), ["focal"], **QUICK, learning_rates=tried)
    assert {t.learning_rate for t in found.trials} == {0.03}


def test_a_method_that_failed_once_is_not_the_best():
    def trial(method, seed, value, validation):
        return MethodTrial(method, seed, value, value, validation, 0.1, 5, 1.0, "ok")

    trials = [trial("good", seed, 0.3, 0.3) for seed in (0, 1)]
    lucky = [trial("lucky", 0, 0.1, 0.1), trial("lucky", 1, None, 0.1)]
    assert Comparison(GOAL, (*trials, *lucky)).best == "good"
    assert Comparison(GOAL, (*trials, *lucky[:1])).best == "lucky"


def test_the_order_of_methods_changes_no_value():
    one, other = (
        sp.compare(GOAL, data(), names, **QUICK)
        for names in (["focal", "implicit"], ["implicit", "focal"])
    )
    values = [{(t.method, t.seed): t.value for t in c.trials} for c in (one, other)]
    assert values[0] == values[1]


def test_areas_own_models_and_own_splits():
    def parts(seed):
        made = split(Table(*data()), seed)
        assert isinstance(made, DataSplit)
        return made

    own = {"model": lambda: nn.Linear(4, 1), "learning_rates": 0.03}
    found = sp.compare(sp.roc_auc(fpr=(0, 0.2)), parts, ["cross_entropy"], **own, **QUICK)
    assert all(0.5 < t.value < 1 and t.carried is None for t in found.trials)


def test_stored_and_read_back():
    found = sp.compare(GOAL, data(), {"focal": METHODS["focal"], "broken": Method(broken)}, **QUICK)
    again = Comparison.from_json(found.to_json())
    assert json.loads(again.to_json()) == json.loads(found.to_json())
    assert again.problem == GOAL
    assert [t.value for t in again.trials] == [t.value for t in found.trials]
    assert str(again).splitlines()[0] == str(GOAL)
    assert isinstance(again.trials[0], MethodTrial)
    with pytest.raises(ValueError, match="no scores to draw"):
        again.plot("nowhere.png")


def test_the_plot_is_written(tmp_path):
    found = sp.compare(GOAL, data(), ["focal", "implicit"], **QUICK)
    found.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[1:4] == b"PNG"


def test_the_plot_marks_where_every_method_is_judged():
    found = sp.compare(GOAL, data(), ["focal", "implicit"], **QUICK)
    roc, precision_recall = draw_comparison(found.problem, found.trials, found.labels).axes
    for method, curve, dot, other in zip(
        ["focal", "implicit"],
        roc.lines[::2],
        roc.lines[1::2],
        precision_recall.lines[1::2],
        strict=True,
    ):
        assert curve.get_label() == method
        assert curve.get_color() == dot.get_color() == other.get_color()
        values = [t.value for t in found.trials if t.method == method]
        ((fpr_at, tpr_at),) = dot.get_xydata()
        assert tpr_at == pytest.approx(1 - np.mean(values), abs=1e-12)
        assert 0 < fpr_at <= GOAL.subject_to[0].level
        ((recall_at, precision_at),) = other.get_xydata()
        assert recall_at == tpr_at
        assert 0 < precision_at < 1
    area = sp.compare(sp.roc_auc(fpr=(0, 0.2), points=4), data(), ["focal"], **QUICK)
    assert (
        len(draw_comparison(area.problem, area.trials, area.labels).axes[0].lines[1].get_xydata())
        == 4
    )


def test_nobody_accepted_is_a_point_too():
    nobody, labels = np.zeros(4, bool), np.array([True, False, False, True])
    assert rates_at(nobody, labels) == (0, 0, 1)
    assert rates_at(~nobody, labels) == (1, 1, 0.5)


def test_the_room_is_no_function():
    import setpoint.comparison as room

    assert not callable(room)
    assert setpoint.compare is room.compare
    assert room.Comparison is Comparison


SLICED = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.1)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((sp.fnr, data()), TypeError, "compare takes a Problem"),
        ((SLICED, data()), NotImplementedError, "does not take groups"),
        ((sp.Problem(maximize=sp.macro(sp.recall)), data()), ValueError, "about several. Implicit"),
        ((GOAL, (data()[0], 0 * data()[1])), ValueError, "validation data cannot judge the goal"),
        ((GOAL, data(), ["magic"]), ValueError, "method must be one of"),
        ((GOAL, data(), []), ValueError, "at least one method"),
        ((GOAL, 3), TypeError, "data must be"),
        ((GOAL, (np.zeros((4, 2)), np.zeros(3))), ValueError, r"got \(4, 2\) and \(3,\)"),
        ((GOAL, (np.zeros((4, 2)), np.arange(4))), ValueError, "Labels must be 0 or 1"),
        ((GOAL, ([[0, 1], [2, np.nan]], [0, 1])), ValueError, "got nan in row 1, column 1"),
    ],
    ids=[
        "problem",
        "groups",
        "classes",
        "one class",
        "method",
        "none",
        "data",
        "shape",
        "labels",
        "nan",
    ],
)
def test_what_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        sp.compare(*arguments, **QUICK)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seeds": 0}, "seeds must be"),
        ({"seeds": []}, "seeds must name at least one split"),
        ({"steps": 0}, "steps must be"),
        ({"learning_rates": []}, "at least one rate"),
        ({"learning_rates": -1.0}, "learning_rates must be positive"),
        ({"model": "tree"}, "model must be"),
    ],
    ids=str,
)
def test_which_settings_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        sp.compare(GOAL, data(), ["focal"], **{**QUICK, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"methods": {"a": sp.Implicit(GOAL)}},
            r"'a' must be a Method; got Implicit.*Method\(lambda problem, steps:",
        ),
        ({"methods": [sp.Implicit(GOAL)]}, r"names.*got Implicit.*Method\(lambda problem, steps:"),
        ({"methods": {1: METHODS["focal"]}}, "names.*got 1"),
        ({"methods": None}, "methods must be names.*got None"),
        ({"methods": 3}, "methods must be names.*got 3"),
        ({"seeds": 2.0}, "seeds must be a whole number, or a list of them; got 2.0"),
        ({"seeds": None}, "seeds must be a whole number, or a list of them; got None"),
        ({"seeds": [0, 0.5]}, r"seeds must be a whole number, or a list of them; got \[0, 0.5\]"),
        ({"seeds": "ab"}, "seeds must be a whole number, or a list of them; got 'ab'"),
    ],
    ids=["criterion", "listed", "key", "none", "number", "2.0", "no seeds", "half", "text"],
)
def test_what_is_of_another_kind_is_told_what_to_pass(options, words):
    with pytest.raises(TypeError, match=words):
        sp.compare(GOAL, data(), **{**QUICK, "methods": ["focal"], **options})


def test_seeds_may_come_from_numpy():
    found = sp.compare(GOAL, data(), ["focal"], **{**QUICK, "seeds": np.int64(1)})
    again = sp.compare(GOAL, data(), ["focal"], **{**QUICK, "seeds": np.arange(1)})
    assert [t.value for t in found.trials] == [t.value for t in again.trials]
    assert json.loads(again.to_json())["trials"][0]["seed"] == 0
