import json
import re
from functools import partial

import pytest
import torch
from samples import draw
from torch import nn
from torch.testing import assert_close

from setpoint import Implicit, Problem, fnr_at_fpr, fpr, precision, recall
from setpoint.solvers import cross_entropy
from setpoint.train import Validation, fit, score

BUDGET = {"steps": 30, "batch_size": 100, "learning_rate": 0.05, "seed": 1}


data = partial(draw, 300, seed=5, gap=2.0, features=3, dtype=torch.float32)


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def run(problem: Problem, criterion=cross_entropy, **options):
    x, y = data()
    validation = Validation(problem, x[200:], y[200:])
    return fit(
        linear(), criterion, x[:200], y[:200], validation=validation, **{**BUDGET, **options}
    )


def test_history_is_plain_data_one_dict_a_pass():
    fitted = run(fnr_at_fpr(0.05), Implicit(fnr_at_fpr(0.05), steps=30))
    assert json.loads(json.dumps(fitted.history)) == fitted.history
    assert [row["epoch"] for row in fitted.history] == list(range(1, 16))
    assert [row["step"] for row in fitted.history] == list(range(2, 31, 2))
    assert set(fitted.history[0]) == {"epoch", "step", "loss", "validation", "seconds", "status"}
    assert re.fullmatch(
        r"held; over the last 30 steps: fnr [\d.]+, fpr [\d.]+", fitted.history[-1]["status"]
    )
    assert all(row["seconds"] > 0 for row in fitted.history)


@pytest.mark.parametrize("problem", [fnr_at_fpr(0.05), Problem(maximize=recall)], ids=str)
def test_the_best_pass_by_the_goals_own_metric_is_kept(problem):
    fitted = run(problem)
    x, y = data()
    values = [row["validation"] for row in fitted.history]
    best = max(values) if problem.maximize else min(values)
    assert fitted.best == best == problem.evaluate(score(fitted.model, x[200:]), y[200:])
    assert fitted.best_epoch == values.index(best) + 1


def worsening(scores, labels):
    return -cross_entropy(scores, labels)


def test_patience_ends_a_run_that_gets_no_better():
    fitted = run(fnr_at_fpr(0.05), worsening, patience=3)
    assert len(fitted.history) == fitted.best_epoch + 3 < 15
    assert len(run(fnr_at_fpr(0.05), worsening).history) == 15


def test_weights_of_the_best_pass_are_not_those_of_the_last():
    kept, last = run(fnr_at_fpr(0.05), worsening), run_without_validation(worsening)
    assert kept.best_epoch < 15
    with pytest.raises(AssertionError):
        assert_close(kept.model.state_dict(), last.model.state_dict())


def run_without_validation(criterion):
    x, y = data()
    return fit(linear(), criterion, x[:200], y[:200], **BUDGET)


def test_a_goal_that_cannot_be_met_is_a_status_and_not_an_error():
    x, y = data()
    impossible = Problem(maximize=recall, subject_to=[precision >= 0.99, fpr <= 0.0])
    validation = Validation(impossible, torch.zeros(100, 3), y[200:])
    fitted = fit(linear(), cross_entropy, x, y, validation=validation, **BUDGET)
    assert fitted.best is None
    assert {row["status"] for row in fitted.history} == {"infeasible on the validation data"}


def test_patience_needs_validation():
    with pytest.raises(ValueError, match="patience needs validation="):
        fit(linear(), cross_entropy, *data(), patience=2, **BUDGET)


def test_progress_is_one_line_on_stderr(capsys):
    fit(linear(), cross_entropy, *data(), progress=True, **BUDGET)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "30/30 steps" in shown.err
    assert shown.err.count("\n") == 1


def test_scoring_leaves_the_mode_of_the_model_alone():
    model = nn.Sequential(nn.Dropout(0.5), linear())
    x, _ = data()
    assert_close(score(model, x), score(model, x))
    assert model.training
