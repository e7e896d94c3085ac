"""How a point is trained and judged: batches of its own, no dropout in its numbers, its rules."""

import pytest
import torch
from pareto.toys import Number, losses, noisy_data, squares
from torch import nn
from torch.optim import Adam

from setpoint import pareto_front
from setpoint.pareto.rules import MEND, PUSH_CAP, AtMost, Tchebycheff


def test_every_point_draws_batches_of_its_own():
    x, y = noisy_data()
    seen = []

    def watched(model, x, y):
        if torch.is_grad_enabled():
            seen.append(x[0].tolist())
        return losses(model, x, y)

    pareto_front(lambda: nn.Linear(3, 1), watched, (x, y), batch_size=8, points=4, steps=2)
    first_of_each = [seen[0], seen[20], seen[40], seen[42]]  # two ends of 20 steps
    assert len({tuple(row) for row in first_of_each}) == 4


def test_numbers_of_a_point_are_those_of_its_model_in_evaluation():
    x, y = noisy_data()

    def make():
        return nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1))

    front = pareto_front(make, losses, (x, y), points=3, steps=3)
    for point, state in zip(front.points, front.state_dicts, strict=True):
        model = make()
        model.load_state_dict(state)
        found = losses(model.eval(), x, y)
        assert point.held == pytest.approx(found["size"].item(), rel=1e-6)  # of float32


def test_exact_steps_go_straight_to_their_level_and_batches_keep_the_slow_defaults():
    optimizer = Adam(Number().parameters(), lr=0.1)
    straight = AtMost(optimizer, 0.5, exact=True, steps=9).barrier
    assert (straight.fraction, straight.push.beta, straight.bounds.gain) == (MEND, PUSH_CAP, 0.0)
    slow = AtMost(optimizer, 0.5, exact=False, steps=9).barrier
    assert (slow.fraction, slow.push.alpha, slow.push.beta) == (None, 1.0, 1.0)
    assert slow.bounds.gain > 0


@pytest.mark.parametrize(
    ("exact", "level", "means"),
    [
        (True, 0.01, [True, True, False, False]),
        (False, 0.01, [False] * 4),
        (True, 0.089, [True, True, False, False]),
        (True, 0.0901, [False] * 4),  # the bound keeps: whole, though it has a multiplier
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_point_comes_near_by_a_mean_of_both_gradients_and_lands_by_their_sum(
    exact, level, means, swapped
):
    model = Number()  # at 0.3, and it stays there: the held loss is 0.09
    rule = AtMost(
        Adam(model.parameters(), lr=0.1), level, exact=exact, steps=4, holds_first=swapped
    )
    found = []
    for _ in range(4):
        model.zero_grad()
        minimized, held = squares(model).values()
        rule.backward(*((held, minimized) if swapped else (minimized, held)))
        (multiplier,) = rule.barrier.last["multiplier"]
        assert multiplier > 0
        whole = 2 * (0.3 - 1) + multiplier * 2 * 0.3
        found.append(model.x.grad.item() == pytest.approx(whole / (1 + multiplier), rel=1e-4))
        assert found[-1] or model.x.grad.item() == pytest.approx(whole, rel=1e-4, abs=1e-6)
    assert found == means


class Ring(nn.Module):
    """Two weights far from the ring on which one loss is zero, and from the other's least."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.tensor([0.0, 1.5]))


def ring(model):
    """The second loss is zero on the circle, the first one least at (1, 0), a point of it."""
    return {
        "away": (model.x - torch.tensor([1.0, 0.0])).square().sum(),
        "off": (model.x.norm() - 1).abs(),
    }


@pytest.mark.parametrize("swapped", [False, True])
def test_an_end_is_settled_where_its_first_loss_stays(swapped):
    def losses(model):
        found = ring(model)
        return {name: found[name] for name in reversed(found)} if swapped else found

    front = pareto_front(
        Ring, losses, points=3, steps=80, end_steps=60, learning_rate=0.03, batch_size=None
    )
    end = front.points[-1 if swapped else 0]
    away, off = end.pair[::-1] if swapped else end.pair
    assert off < 1e-3
    assert away < 0.1


def test_an_end_counts_the_steps_of_its_descent_and_of_settling():
    exact = pareto_front(Number, squares, points=3, steps=2, end_steps=5)
    assert [point.steps for point in exact.points] == [7, 2, 7]
    batches = pareto_front(
        lambda: nn.Linear(3, 1), losses, noisy_data(), batch_size=8, points=3, steps=2, end_steps=5
    )
    assert [point.steps for point in batches.points] == [5, 2, 5]


def test_tchebycheff_pulls_alike_where_both_losses_are_as_far_from_their_best():
    """(2 - 1) / 2 = (5 - 3) / 4: both enter by half, and by their weights over their scales."""
    f, g = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    Tchebycheff(0.5, best=(1.0, 3.0), scales=(2.0, 4.0)).backward(f, g)
    assert f.grad.item() == pytest.approx(0.5 * 0.5 / 2)
    assert g.grad.item() == pytest.approx(0.5 * 0.5 / 4)


def test_other_first_weights_need_another_folder(tmp_path):
    class Other(Number):
        def __init__(self):
            super().__init__()
            self.x.data += 1

    options = {"points": 3, "steps": 2, "folder": tmp_path}
    pareto_front(Number, squares, **options)
    with pytest.raises(ValueError, match="holds another front \\(model was 'sha256"):
        pareto_front(Other, squares, **options)


def test_the_bar_of_a_resumed_front_counts_what_was_done_before(tmp_path, capsys):
    options = {"points": 3, "steps": 2, "folder": tmp_path, "progress": True}
    pareto_front(Number, squares, **options)
    (tmp_path / "point-001" / "checkpoint.safetensors").unlink()
    capsys.readouterr()
    pareto_front(Number, squares, **options)
    assert "46/46 steps" in capsys.readouterr().err
