import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Implicit, Problem, fnr, fnr_at_fpr, fpr
from setpoint.solvers import cross_entropy
from setpoint.train import Averaged, Validation, batches, fit, score
from setpoint.train.loop import ProgressLine


def data(count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(5)
    y = (torch.rand(count, generator=random) < 0.3).long()
    return torch.randn(count, 3, generator=random) + 2.0 * y[:, None], y


def linear(seed: int = 0) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


BUDGET = {"steps": 30, "batch_size": 64, "learning_rate": 0.05, "seed": 1}


@pytest.mark.parametrize("method", ["cross-entropy", "implicit"])
def test_it_learns(method):
    x, y = data()
    problem = fnr_at_fpr(0.05)
    criterion = cross_entropy if method == "cross-entropy" else Implicit(problem, steps=150)
    model = linear(seed=3)
    nn.init.constant_(model.weight, -0.5)  # ranks the wrong way round
    before = problem.evaluate(model(x), y)
    fitted = fit(model, criterion, x, y, **{**BUDGET, "steps": 150})
    assert before > 0.95
    assert problem.evaluate(fitted.model(x), y) < 0.15


def test_the_same_call_gives_the_same_model():
    x, y = data()
    first, again = (fit(linear(), cross_entropy, x, y, **BUDGET).model for _ in range(2))
    assert_close(first.state_dict(), again.state_dict(), rtol=0, atol=0)


def test_the_seed_decides_batches_for_every_criterion_alike():
    x, y = data()
    seen: dict[str, list] = {"a": [], "b": [], "other": []}
    for name, seed in (("a", 1), ("b", 1), ("other", 2)):

        def criterion(scores, labels, name=name):
            seen[name].append(labels.tolist())
            return cross_entropy(scores, labels) * (1.0 if name == "a" else 2.0)

        fit(linear(), criterion, x, y, **{**BUDGET, "seed": seed})
    assert seen["a"] == seen["b"] != seen["other"]


def test_it_is_the_plain_loop():
    x, y = data()
    fitted = fit(linear(), cross_entropy, x, y, **BUDGET)
    model = linear()
    averaged, optimizer = Averaged(model), torch.optim.Adam(model.parameters(), lr=0.05)
    for rows in batches(len(y), 64, steps=30, seed=1):
        optimizer.zero_grad()
        cross_entropy(model(x[rows])[:, 0], y[rows]).backward()
        optimizer.step()
        averaged.update()
    assert_close(fitted.model.state_dict(), averaged.module.state_dict(), rtol=0, atol=0)


def test_averaging_can_be_left_out():
    x, y = data()
    model = linear()
    fitted = fit(model, cross_entropy, x, y, averaged=False, **BUDGET)
    assert fitted.model is model
    averaged = fit(linear(), cross_entropy, x, y, **BUDGET)
    assert not torch.equal(averaged.model.weight, model.weight)


def test_steps_are_announced_timed_and_end_the_fade():
    x, y = data()
    announced = []
    criterion = Implicit(fnr_at_fpr(0.05), steps=30)
    fitted = fit(
        *(linear(), criterion, x, y),
        on_step=lambda step, loss: announced.append((step, loss.requires_grad)),
        **BUDGET,
    )
    assert announced == [(step, False) for step in range(30)]
    assert criterion.step_count == 30
    assert criterion.current_share() == 0.0
    assert 0 < fitted.seconds_per_step < 1


def test_the_model_is_trained_in_training_mode_and_returned_ready_for_use():
    x, y = data()
    model = nn.Sequential(nn.Dropout(0.5), linear()).eval()
    modes = []
    fitted = fit(
        model, cross_entropy, x, y, on_step=lambda *_: modes.append(model.training), **BUDGET
    )
    assert all(modes)
    assert not fitted.model.training


def test_a_pass_shows_every_example_once():
    rows = list(batches(12, 4, steps=5, seed=0))
    first, second = torch.cat(rows[:3]), torch.cat(rows[3:])
    assert sorted(first.tolist()) == list(range(12))
    assert len(set(second.tolist())) == 8
    assert first[:8].tolist() != second.tolist()


def test_a_batch_larger_than_the_data_is_all_of_them():
    assert [len(rows) for rows in batches(3, 512, steps=2, seed=0)] == [3, 3]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1; got 0"),
        ({"size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"count": 0}, "The number of examples must be a whole number of at least 1; got 0"),
    ],
)
def test_an_empty_budget_is_refused(wrong, message):
    given = {"count": 4, "size": 2, "steps": 1, "seed": 0, **wrong}
    with pytest.raises(ValueError, match=message):
        list(batches(given.pop("count"), given.pop("size"), **given))


@pytest.mark.parametrize("labels", [9, 11])
def test_labels_for_other_rows_are_refused(labels):
    model, x, y = torch.nn.Linear(2, 1), torch.zeros(10, 2), torch.zeros(labels)
    with pytest.raises(ValueError, match=f"got 10 and {labels}"):
        fit(model, cross_entropy, x, y, steps=1, batch_size=4, learning_rate=0.1, seed=0)


class Watching(torch.nn.Module):
    """A criterion that remembers the groups it was shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, scores, labels, *, groups=None):
        self.seen.append((groups, labels))
        return cross_entropy(scores, labels)


@pytest.mark.parametrize("as_tensor", [True, False])
def test_groups_come_with_their_rows(as_tensor):
    x, y = data()
    groups = (y + 10) if as_tensor else np.where(y == 1, "yes", "no")
    criterion = Watching()
    fit(linear(), criterion, x, y, groups={"group": groups}, **BUDGET)
    assert len(criterion.seen) == 30
    for seen, labels in criterion.seen:
        expected = labels + 10 if as_tensor else np.where(labels == 1, "yes", "no")
        assert (seen["group"] == expected).all()
    fit(linear(), cross_entropy, x, y, groups=groups, **BUDGET)  # a loss that takes none
    with pytest.raises(ValueError, match=r"one value per example, \(400,\); got \(399,\)"):
        fit(linear(), cross_entropy, x, y, groups=groups[1:], **BUDGET)


def test_implicit_holds_a_rate_within_a_group():
    x, y = data(1000)
    sex = np.array(["f", "m"] * 500)
    x[:, 0] += 2 * torch.tensor(sex == "f")  # more false alarms among these
    problem = Problem(minimize=fnr, subject_to=fpr.on(sex="f") <= 0.05)
    criterion = Implicit(problem, steps=100)
    judge = Validation(problem, x, y, groups=sex)
    fitted = fit(
        *(linear(), criterion, x, y),
        groups=sex,
        validation=judge,
        **{**BUDGET, "steps": 100, "batch_size": 200},
    )
    assert fitted.best == problem.evaluate(score(fitted.model, x), y, groups=sex)
    assert fitted.best < 0.3


def test_validation_data_of_one_class_are_refused_before_training():
    x, y = data()
    steps = []
    judge = Validation(fnr_at_fpr(0.05), x, torch.zeros_like(y))
    with pytest.raises(ValueError, match="validation data cannot judge the goal"):
        fit(
            *(linear(), cross_entropy, x, y),
            validation=judge,
            on_step=lambda *_: steps.append(1),
            **BUDGET,
        )
    assert not steps


def test_many_passes_over_small_data_are_measured_about_a_hundred_times():
    x, y = data(60)
    validation = Validation(fnr_at_fpr(0.2), x, y)
    budget = {**BUDGET, "batch_size": 60, "validation": validation}
    history = fit(linear(), cross_entropy, x, y, **{**budget, "steps": 250}).history
    assert [entry["step"] for entry in history] == [*range(3, 250, 3), 250]
    assert [entry["epoch"] for entry in history] == [entry["step"] for entry in history]
    few = fit(linear(), cross_entropy, x, y, **{**budget, "steps": 100}).history
    patient = fit(linear(), cross_entropy, x, y, **{**budget, "steps": 250}, patience=250).history
    assert len(few) == 100
    assert len(patient) == 250  # patience counts passes, so every one is measured


def test_a_progress_line_is_half_full_half_way(capsys):
    line = ProgressLine(10, shown=True)
    line.update(5, "loss 0.1")
    line.close()
    assert f"\r{'█' * 15}{'░' * 15} 5/10 steps, 0 s  loss 0.1" in capsys.readouterr().err
    ProgressLine(10, shown=False).update(10)
    assert capsys.readouterr().err == ""
