"""How a point is trained and judged: batches of its own, no dropout in its numbers, its rules."""

import pytest
import torch
from pareto.toys import Number, losses, noisy_data, squares
from torch import nn
from torch.optim import Adam

from setpoint import pareto_front
from setpoint.pareto.rules import END_PUSH, MEND, REACH, AtMost, Lexicographic
from setpoint.pareto.weights import Tchebycheff


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
    straight = AtMost(optimizer, 0.5, exact=True).barrier
    assert (straight.fraction, straight.push.beta, straight.gain) == (MEND, REACH, 0.0)
    slow = AtMost(optimizer, 0.5, exact=False).barrier
    assert (slow.fraction, slow.push.alpha, slow.push.beta) == (None, 1.0, 1.0)
    assert slow.gain > 0
    assert Lexicographic(optimizer, held_first=True).barrier.push.beta == END_PUSH


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
    assert "42/42 steps" in capsys.readouterr().err
