"""A stack of models trains each of them as if it were alone; tables say who lost."""

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks import operating_points, portfolio
from benchmarks.points.judging import Cell, Judge
from benchmarks.points.methods import READINGS, RUNS, Column
from benchmarks.points.stack import Stack, Stepper
from benchmarks.points.tables import best_baseline, cells, difference, lost, mean_ranks
from benchmarks.points.training import _losses
from setpoint import Implicit, fnr_at_fpr
from setpoint.solvers import cross_entropy
from setpoint.train import Averaged


def batch(step, n=64):
    g = torch.Generator().manual_seed(step)
    y = (torch.rand(n, generator=g) < 0.3).long()
    return torch.randn(n, 5, generator=g) + y[:, None], y


def alone(column, hidden, kind, steps):
    """The same model by itself, in the plainest code."""
    torch.manual_seed(7)
    layers = [nn.Linear(5, hidden), nn.ReLU()] if hidden else []
    model = nn.Sequential(*layers, nn.Linear(hidden or 5, 1))
    made = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[kind]
    extra = {"momentum": 0.9} if kind == "sgd" else {}
    optimizer = made(model.parameters(), lr=column.rate, **extra)
    average = Averaged(model)
    direct = RUNS[column.run].direct
    loss = Implicit(fnr_at_fpr(0.01), steps=steps) if direct else cross_entropy
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        loss(model(x)[:, 0], y).backward()
        optimizer.step()
        average.update()
    return model, average.module


@pytest.mark.parametrize("hidden", [0, 6], ids=["linear", "mlp"])
@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_a_column_trains_as_if_it_were_alone(hidden, kind):
    columns = [
        Column(run, goal, 0, rate)
        for run, goal in (("cross-entropy", None), ("default", "fnr1"))
        for rate in (0.03, 0.01)
    ]
    steps = 12
    stack = Stack(5, hidden, len(columns), seed=7, zero_head=False)
    stepper = Stepper(stack, torch.tensor([c.rate for c in columns]), kind)
    losses = _losses(columns, steps, 0.3)
    for step in range(steps):
        x, y = batch(step)
        scores = stack(x)
        total = sum(2 * loss(scores[:, s], y[:, None].expand(-1, 2)) for loss, s in losses)
        total.backward()
        stepper.step()
    x, _ = batch(99)
    found = [stepper.scores(x, averaged) for averaged in (False, True)]
    for place, column in enumerate(columns):
        for scores, model in zip(found, alone(column, hidden, kind, steps), strict=True):
            expected = model(x)[:, 0].detach().numpy()
            np.testing.assert_allclose(scores[:, place], expected, rtol=1e-3, atol=1e-4)


def test_a_zero_head_starts_at_zero():
    stack = Stack(5, 6, 3, seed=0, zero_head=True)
    assert not stack(batch(0)[0]).any()


@pytest.mark.parametrize("benchmark", [operating_points, portfolio], ids=["points", "portfolio"])
@pytest.mark.parametrize("flags", [["--quick"], []], ids=["quick", "full"])
def test_a_quick_run_leaves_the_results_alone(benchmark, flags, monkeypatch):
    """Rows of 200 steps among those of 1,000 would be shown as results."""
    seen = []
    monkeypatch.setattr(benchmark, "run", seen.append)
    monkeypatch.setattr("sys.argv", ["benchmark", *flags])
    benchmark.main()
    assert (seen[0].out == benchmark.RESULTS) == (not flags)


def row(method, test, validation=None, seed=0, goal="fnr1", **changes):
    cell = Cell("some")._replace(seed=seed, **changes)._asdict()
    best = test if validation is None else validation
    return {**cell, "goal": goal, "method": method, "test": test, "validation": best}


def test_the_best_baseline_is_picked_on_validation_not_on_test():
    rows = [row("cross-entropy", 50.0, 60.0), row("focal", 55.0, 40.0), row("default", 99.0, 99.0)]
    methods = next(iter(cells(rows).values()))[0]
    assert best_baseline(methods)["method"] == "cross-entropy"
    assert difference({0: methods}, "default")[0] == 49.0


def test_a_cell_that_is_behind_in_every_seed_is_listed_and_a_noisy_one_is_not():
    rows = []
    for seed, (clear, noisy) in enumerate([(-1.0, -9.0), (-1.1, 8.0), (-0.9, -1.0)]):
        rows += [row("focal", 50.0, seed=seed, goal=goal) for goal in ("fnr1", "pr95")]
        rows += [row("default", 50.0 + clear, seed=seed)]
        rows += [row("default", 50.0 + noisy, seed=seed, goal="pr95")]
    bad = lost(cells(rows))
    assert [key[-1] for key, *_ in bad] == ["fnr1"]
    assert bad[0][1] == pytest.approx(-1.0)


def test_ranks_average_over_cells_and_ties_share():
    rows = [row("focal", 1.0), row("default", 2.0), row("weighted", 1.0)]
    rows += [
        row("focal", 3.0, goal="f1"),
        row("default", 2.0, goal="f1"),
        row("weighted", 1.0, goal="f1"),
    ]
    assert mean_ranks(cells(rows)) == {"default": 1.5, "focal": 1.75, "weighted": 2.75}


def test_the_judge_keeps_the_checkpoint_and_the_rate_that_validation_prefers():
    labels = {
        "validation": np.array([0, 0, 1]),
        "test": np.array([0, 1, 1]),
        "train": np.array([0, 1, 1]),
    }
    judge = Judge(labels, ["f1"])
    good, bad = np.array([0.0, 0.1, 1.0]), np.array([1.0, 0.5, 0.0])
    columns = [Column("focal", None, 0, 0.1), Column("focal", None, 0, 0.2)]
    for step, quality in enumerate([(bad, bad), (bad, good), (bad, bad)]):
        judge.look(step, columns, lambda part, mean, q=quality: np.stack(q, 1))
    found = {r["method"]: r for r in judge.rows(Cell("some"))}
    assert set(found) == {name for name, reading in READINGS.items() if reading.run == "focal"}
    assert (found["focal"]["rate"], found["focal"]["step"]) == (0.2, 1)
    assert found["focal"]["test"] == 100.0
