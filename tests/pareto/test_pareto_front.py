import runpy
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from pareto.toys import Number, Pair, curved, losses, noisy_data, squares
from torch import nn
from torch.optim import SGD
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

from setpoint import pareto_front
from setpoint.pareto import Front
from setpoint.pareto.rules import FRONT_METHODS

QUICK = {"points": 5, "steps": 90, "end_steps": 240, "learning_rate": 0.05}


@pytest.fixture(scope="module")
def front():
    return pareto_front(Number, squares, **QUICK, measure=lambda m: {"x": m.x.item()})


def test_the_ends_are_the_two_minima_and_the_levels_are_even(front):
    assert front.names == ("to one", "to zero")
    assert front.points[0].held == pytest.approx(0, abs=1e-3)
    assert front.points[-1].minimized == pytest.approx(0, abs=1e-3)
    low, high = front.points[0].held, front.points[-1].held
    levels = [low + k / 4 * (high - low) for k in (1, 2, 3)]
    assert [point.level for point in front.points[1:-1]] == pytest.approx(levels, rel=1e-12)
    assert front.gaps[0] is front.gaps[-1] is None


def test_every_point_is_on_its_level_and_optimal(front):
    for point in front.points[1:-1]:
        assert abs(point.gap) < 2e-3
        x = point.held**0.5  # the smallest distance to one among all numbers with this square
        assert point.minimized == pytest.approx((1 - x) ** 2, abs=1e-6)
        assert point.measures == {"x": pytest.approx(x, abs=1e-6)}
    assert all(front.non_dominated)
    assert front.unevenness < 0.01


def test_the_weights_are_those_of_the_points(front):
    for point, state in zip(front.points, front.state_dicts, strict=True):
        model = Number()
        model.load_state_dict(state)
        assert model.x.item() ** 2 == pytest.approx(point.held, rel=1e-6)  # of float32


def test_a_front_that_bends_outwards_is_found_by_the_barrier_and_not_by_weights():
    ours = pareto_front(Pair, curved, **(QUICK | {"steps": 150}))
    theirs = pareto_front(Pair, curved, **(QUICK | {"steps": 150}), method="linear")
    assert max(abs(gap) for gap in ours.gaps[1:-1]) < 0.01
    assert ours.unevenness < 0.05
    # between the ends there is no point that a weighted sum would stay at
    low, high = theirs.points[0].held, theirs.points[-1].held
    inner = [p for p in theirs.points[1:-1] if 0.1 < (p.held - low) / (high - low) < 0.9]
    assert not inner
    assert ours.hypervolume(ours.reference) > theirs.hypervolume(ours.reference) + 0.1


@pytest.mark.parametrize("method", FRONT_METHODS)
def test_every_method_finds_points_of_a_convex_front(method):
    front = pareto_front(Number, squares, **QUICK, method=method)
    assert front.method == method
    for point in front.points:
        assert point.minimized**0.5 + point.held**0.5 == pytest.approx(1, abs=0.01)


def test_weights_are_a_grid_from_end_to_end():
    front = pareto_front(Number, squares, **QUICK, method="linear")
    # (1 - w) (x - 1)^2 + w x^2 is least at x = 1 - w
    found = [point.held**0.5 for point in front.points[1:-1]]
    assert found == pytest.approx([0.25, 0.5, 0.75], abs=5e-3)


@pytest.mark.parametrize("order", ["loosen", "inward", "bisect"])
def test_a_convex_front_is_the_same_in_every_order(front, order):
    other = pareto_front(Number, squares, **QUICK, order=order)
    for mine, yours in zip(front.points, other.points, strict=True):
        assert mine.held == pytest.approx(yours.held, abs=3e-3)


def test_minibatches_tensors_and_loaders():
    x, y = noisy_data()
    options = {"points": 4, "steps": 80, "end_steps": 160, "learning_rate": 0.05}
    make = partial(nn.Linear, 3, 1)
    batches = pareto_front(make, losses, (x, y), batch_size=64, **options)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    loaded = pareto_front(make, losses, loader, **options)
    for front in (batches, loaded):
        assert front.points[0].held < 0.2 < front.points[-1].held
        spread = front.points[-1].held - front.points[0].held
        assert max(abs(gap) for gap in front.gaps[1:-1]) < 0.1 * spread
    again = pareto_front(make, losses, loader, **options)
    assert [p.pair for p in again.points] == [p.pair for p in loaded.points]


def test_the_caller_keeps_the_random_state_and_the_optimizer_is_the_callers():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    rates = []

    def optimizer(params):
        made = SGD(params, lr=0.1)
        rates.append(made)
        return made

    pareto_front(Number, squares, points=3, steps=10, optimizer=optimizer)
    assert_close(torch.rand(3), expected)
    assert len(rates) == 5  # one a point, and one more to settle each end
    assert all(made.param_groups[0]["lr"] == pytest.approx(0.001) for made in rates)  # it fell


def test_a_loss_that_is_not_finite_is_named():
    def broken(model):
        return {"fine": model.x**2, "odd": torch.log(model.x - 5)}

    with pytest.raises(ValueError, match="odd is nan at point 0 of the front, in step 0"):
        pareto_front(Number, broken, points=3, steps=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 2}, "points must be a whole number of at least 3; got 2"),
        ({"steps": 0}, "steps must be a whole number of at least 1; got 0"),
        ({"method": "magic"}, "method must be one of barrier, linear.*got 'magic'"),
        ({"order": "random"}, "order must be one of tighten.*got 'random'"),
        ({"learning_rate": -1}, "learning_rate must be positive; got -1"),
        ({"processes": 0}, "processes must be a whole number of at least 1; got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
    ],
)
def test_bad_options_are_told(options, message):
    with pytest.raises(ValueError, match=message):
        pareto_front(Number, squares, **options)


def test_progress_is_shown_on_stderr(capsys):
    pareto_front(Number, squares, points=3, steps=5, progress=True)
    shown = capsys.readouterr()
    assert "115/115 steps" in shown.err
    assert not shown.out


def test_the_front_door_has_both_names():
    assert Front.__module__ == "setpoint.pareto.front"


def test_the_example_runs_and_trades_loss_for_the_gap(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pareto_front.py", "--points", "4", "--steps", "30"])
    example = Path(__file__).parents[2] / "examples" / "pareto_front.py"
    runpy.run_path(str(example), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.split()[:3] == ["place", "loss", "gap"]
    assert "4 of 4 points are not dominated" in shown
    assert "With a gap of at most 0.1 the loss is" in shown
