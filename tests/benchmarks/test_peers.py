"""What the comparison with peers stands on: the same starts, both readings, folds, tables."""

import numpy as np
import pytest
import samples
import torch

from benchmarks.common import images
from benchmarks.common.images import Images
from benchmarks.peers import (
    cost,
    faces,
    fair,
    figures,
    last_layer,
    page,
    pictures_text,
    rates,
    reach,
    table5_text,
)
from benchmarks.peers.learners import network, ours, shuffled, train
from benchmarks.peers.readings import GRID, at_anchors, curve, under_curve
from benchmarks.peers.roster import FIVE, GOALS, ONE, expressing
from benchmarks.points.stack import Stack
from setpoint import Implicit, Problem, fnr_at_fpr, precision, recall
from setpoint.datasets import Table


def draw(n=400, seed=0):
    return samples.draw(n, seed, gap=0.9, features=4, dtype=torch.float32)


def best_precision(scores, labels, level):
    """The best precision of all thresholds with at least this recall, in the plainest code."""
    found = []
    for t in scores:
        accepted = scores >= t
        hits = (labels[accepted] == 1).sum()
        if hits >= level * labels.sum() - 1e-9:
            found.append(hits / accepted.sum())
    return max(found)


def test_the_curve_is_the_best_precision_at_every_recall_and_its_area_the_mean():
    x, y = draw()
    scores, labels = x.sum(1).numpy(), y.numpy()
    positives = labels.sum()
    exact = [best_precision(scores, labels, k / positives) for k in range(1, positives + 1)]
    levels = np.arange(1, positives + 1) / positives
    expected = np.interp(GRID, levels, exact)
    assert curve(scores, labels)[10:] == pytest.approx(expected[10:], abs=1e-4)
    fine = np.linspace(0.5, 1, 20_001)
    area = 100 * np.interp(fine, levels, exact).mean()
    assert under_curve(scores, labels, 0.5) == pytest.approx(area, abs=0.02)  # a sum of 20,001


def test_anchors_are_the_five_mid_points_of_the_range():
    x, y = draw()
    scores, labels = x.sum(1).numpy(), y.numpy()
    problems = [
        Problem(maximize=precision, subject_to=recall.at(r)) for r in (0.55, 0.65, 0.75, 0.85, 0.95)
    ]
    expected = 100 * np.mean([p.evaluate(scores, labels) for p in problems])
    assert at_anchors(scores, labels, 0.5) == pytest.approx(expected, rel=1e-9)


def test_perfect_scores_have_all_the_area():
    labels = np.array([0, 1] * 50)
    assert at_anchors(labels.astype(float), labels) == under_curve(labels, labels) == 100


@pytest.mark.parametrize("hidden", [(), (6,)])
def test_peers_start_from_the_weights_of_the_stacks(hidden):
    model, stack = network(5, hidden, seed=3), Stack(5, sum(hidden), 2, seed=3, zero_head=False)
    x = torch.randn(7, 5)
    torch.testing.assert_close(stack(x), model(x).expand(-1, 2))


@pytest.mark.parametrize("name", ["cross-entropy", "Implicit", "LastLayer", "Lagrangian"])
def test_our_learners_learn(name):
    x, y = draw(600)
    problem = fnr_at_fpr(0.1)
    learner = ours(name, network(4, (8,), seed=1), x, y, problem, steps=60, rate=0.02)
    before = problem.evaluate(learner.scores(x), y)
    looks = []
    assert train(learner, shuffled(y, 128, 60, seed=0), looks.append, every=20) == 60
    assert looks == [20, 40, 60]
    assert problem.evaluate(learner.scores(x), y) < before - 0.1


def test_rates_for_other_solvers_are_ours_and_have_their_gradients():
    x, y = draw()
    scores = x.sum(1).double()
    problem = Problem(maximize=precision, subject_to=recall >= 0.8)
    choice = problem.choose(scores, y)
    at = torch.tensor(choice.thresholds, dtype=torch.float64)
    hard = rates.tables(scores, y, at, soft=False)
    assert float(rates.objective(problem, hard)) == pytest.approx(-choice.value, abs=1e-12)
    assert -0.02 < float(rates.violations(problem, hard)) <= 1e-12  # one of about 120 positives
    cap = fnr_at_fpr(0.1)
    at = torch.tensor(cap.choose(scores, y).thresholds, dtype=torch.float64) - 1
    assert float(rates.violations(cap, rates.tables(scores, y, at, soft=False))) > 0
    at.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda t: rates.objective(cap, rates.tables(scores, y, t)), (at,)
    )


def test_every_goal_has_our_methods_and_no_peer_that_is_not_installed():
    for goal in (ONE, FIVE):
        assert {"cross-entropy", "Implicit", "LastLayer", "Lagrangian"} <= set(expressing(goal))
    assert set(GOALS) == {ONE, FIVE}


def test_every_face_is_tested_once_in_five_folds(monkeypatch):
    g = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (50, 2), generator=g)
    stamps = torch.arange(50.0)[:, None, None, None].expand(-1, 3, 2, 2)
    none = labels[:0]
    found = Images(stamps, labels, stamps[:0], none, ("a", "b"))
    monkeypatch.setattr(images, "load", lambda _: found)
    tested = []
    for number in range(faces.FOLDS):
        parts = faces.fold("celeba/b", number)
        seen = [set(x[:, 0, 0, 0].int().tolist()) for x, _ in parts]
        assert sorted(map(len, seen)) == [8, 10, 32]
        assert len(seen[0] | seen[1] | seen[2]) == 50
        for x, y in parts:
            assert torch.equal(y, labels[x[:, 0, 0, 0].long(), 1])
        tested += seen[2]
    assert sorted(tested) == list(range(50))


def test_gains_are_bold_beyond_two_standard_errors():
    assert page.gain([1.0, 1.1, 0.9]) == "**+1.00 ± 0.06**"
    assert page.gain([1.0, -1.0]) == "+0.00 ± 1.00"
    assert page.gain([2.0]) == "+2.00 (1)"
    assert page.gain([]) == page.spread([]) == ""
    assert page.spread([1.0, 3.0]) == "2.00 ± 1.00"


def five(ours_, theirs):
    """Rows of Table 5 on one set, a split after the other."""
    return [
        {
            "cell": {"data": "letter", "seed": seed},
            "methods": {
                "default": {"curve": a, "anchors": a},
                "TFCO": {"curve": b, "anchors": b},
            },
        }
        for seed, (a, b) in enumerate(zip(ours_, theirs, strict=True))
    ]


@pytest.mark.parametrize(
    ("ours_", "theirs", "verdicts"),
    [
        ([23, 24, 22], [20, 21, 19], ("+3.00", "| met |", "inside")),
        ([23, 24, 22], [26, 27, 25], ("-3.00", "**not met**", "inside")),
        ([20, 21, 19], [20, 22, 18.5], ("-0.17", "| met |", "**below**")),
    ],
)
def test_table_five_says_who_is_first_and_whether_the_published_interval_is_reached(
    ours_, theirs, verdicts
):
    line = next(
        x for x in table5_text.text(five(ours_, theirs)).splitlines() if x.startswith("| letter |")
    )
    for verdict in verdicts:
        assert verdict in line


def test_the_mark_is_the_best_of_cross_entropy_and_those_who_never_reach_it_stay_in():
    def row(method, path):
        cell = {"data": "letter", "model": "linear", "seed": 0, "method": method}
        return {"cell": cell, "path": path}

    rows = [
        row("cross-entropy", [[1.0, 50.0], [2.0, 60.0], [3.0, 55.0]]),
        row("Implicit", [[2.0, 59.9], [4.0, 60.0]]),
        row("Lagrangian", [[2.0, 40.0], [4.0, 59.0]]),
    ]
    lines = reach.text(rows).splitlines()
    assert "| cross-entropy | 2.00 s (1/1); 60.0 |" in lines
    assert "| Implicit | 4.00 s (1/1); 60.0 |" in lines
    assert "| Lagrangian | never; 59.0 |" in lines


def test_what_a_step_costs_is_measured_for_groups_too(monkeypatch):
    monkeypatch.setitem(cost.MODELS, "tiny", (3, ()))
    found = cost.measure("tiny", fair.FAIR, 64, rounds=2)
    assert {"cross-entropy", "Implicit", "Lagrangian", "proxy-Lagrangian"} <= set(found)
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in found.values())


def test_figures_are_written_from_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "IMAGES", tmp_path)
    seconds = {"cross-entropy": [1.0, 2.0], "Implicit": [2.0, 3.0], "LastLayer": [3.0, 4.0]}
    step = {"cell": {"goal": ONE, "size": 512, "model": "linear"}, "seconds": seconds}
    figures.draw_cost([step, {**step, "cell": {**step["cell"], "goal": FIVE}}])
    path = [[0.1, 50.0], [0.2, 40.0]]
    at = {"data": "letter", "model": "mlp", "seed": 0}
    figures.draw_reach([{"cell": {**at, "method": m}, "path": path} for m in seconds])
    rows = pictured({"cross-entropy": [10, 20], "Implicit": [11, 22], "LibAUC": [9, 20]})
    figures.draw_pictures(rows)
    written = sorted(file.name for file in tmp_path.iterdir())
    assert written == ["peers_cost.png", "peers_pictures.png", "peers_reach.png"]


def pictured(tests):
    """Rows of one goal on one task, fold after fold."""
    goal = "FNR at FPR 1%"
    return [
        {"cell": {"task": "t", "fold": fold, "goal": goal, "method": name}, "test": float(value)}
        for name, values in tests.items()
        for fold, value in enumerate(values)
    ]


def test_pictures_are_paired_by_fold():
    rows = pictured({"cross-entropy": [10, 20, 30], "Implicit": [11, 22], "LibAUC": [9, 20, 30]})
    assert pictures_text.paired(rows, "FNR at FPR 1%", "Implicit") == [1.0, 2.0]
    text = pictures_text.text(rows)
    assert "| cross-entropy | 20.00 ± 5.77 |  |" in text
    assert "| Implicit | **+1.50 ± 0.50** |  | **+1.50 ± 0.50** |" in text.splitlines()[-1]


def test_batches_that_were_enriched_are_weighed_back():
    y = (torch.arange(1000) % 10 == 0).long()
    rows = next(iter(faces.batches("Implicit", y, 1, seed=0)))
    assert float(y[rows].float().mean()) == pytest.approx(0.2, abs=0.01)
    problem = fnr_at_fpr(0.2)
    scores = torch.randn(len(rows), 1, requires_grad=True)
    loss = faces._implicit(problem, 10, 0.1)(scores, y[rows], rows)
    weights = torch.where(y[rows] > 0, 0.1 / 0.2, 0.9 / 0.8)
    expected = Implicit(problem, steps=10)(scores[:, 0], y[rows], resampling=weights)
    assert loss.item() == pytest.approx(expected.item(), rel=0.02)


def test_thinned_rows_are_as_few_as_the_setting_says():
    x = np.arange(100.0)[:, None]
    part = Table(x, (x[:, 0] % 4 == 0).astype(int))
    few = last_layer.thinned(part, last_layer.Setting(positives=3), seed=0)
    assert few.y.sum() == 3
    assert (few.y == 0).sum() == 75
    assert (few.y == (few.x[:, 0] % 4 == 0)).all()
    assert len(last_layer.thinned(part, last_layer.Setting(rows=10), seed=0).y) == 10


def test_the_last_layers_table_pools_by_setting():
    def row(data, seed, gain):
        methods = {n: {"train": 90.0, "test": 50.0 + gain} for n in last_layer.TRAINED}
        methods[last_layer.PLAIN]["test"] = 50.0
        methods[last_layer.RETRAINED] = {"train": 90.0, "test": 50.0}
        return {"cell": {"data": data, "seed": seed, "setting": "all rows"}, "methods": methods}

    rows = [row("letter", 0, 1.0), row("letter", 1, 3.0), row("adult", 0, 2.0)]
    lines = last_layer.text(rows).splitlines()
    assert "| all rows | letter | 90.0 | 50.00 ± 0.00 | +2.00 ± 1.00 |" in lines[2]
    assert lines[-1].startswith("| **all rows** | all |")
    assert "**+2.00 ± 0.58**" in lines[-1]
