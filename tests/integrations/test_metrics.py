"""Metrics by torchmetrics' contract, and the plain dict as scalars."""

import numpy as np
import pytest
import samples
import torch
from integrations.ranks import on_ranks
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryRecallAtFixedPrecision

import setpoint as sp
from setpoint.integrations.metrics import GoalMetric, RatesAt
from setpoint.integrations.shared import scalars

GOAL = sp.tpr_at_fpr(0.1)


def draw(n=300, seed=0):
    return samples.draw(n, seed, gap=1.5, dtype=torch.float32)


def test_batches_and_all_at_once_agree_and_reset_forgets():
    s, y = draw()
    metric = GoalMetric(GOAL)
    for part in torch.arange(300).split(70):
        metric.update(s[part, None], y[part, None])
    assert float(metric.compute()) == pytest.approx(GOAL.evaluate(s, y), abs=1e-7)
    assert metric.thresholds == GOAL.choose(s, y).thresholds
    metric.reset()
    metric.update(-s, y)
    assert float(metric.compute()) == pytest.approx(GOAL.evaluate(-s, y), abs=1e-7)


def test_agrees_with_torchmetrics_where_it_has_the_goal():
    s, y = draw()
    theirs = BinaryRecallAtFixedPrecision(min_precision=0.6)
    theirs.update(s.sigmoid(), y)
    ours = GoalMetric(sp.recall_at_precision(0.6))
    ours.update(s, y)
    torch.testing.assert_close(ours.compute(), theirs.compute()[0])


def test_logits_inside_the_unit_interval_stay_what_they_are():
    """Where torchmetrics would mix two scales: a batch of small logits, then one of large."""
    low, high = torch.tensor([0.1, 0.4, 0.6]), torch.tensor([2.0, 5.0, -1.0])
    y = torch.tensor([0, 0, 1, 1, 1, 0])
    metric = GoalMetric(sp.tpr_at_fpr(0.0))
    metric.update(low, y[:3])
    metric.update(high, y[3:])
    assert float(metric.compute()) == 1.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_the_threshold_decides_the_same_in_the_precision_of_the_scores(dtype):
    s, y = draw()
    s = s.to(dtype)
    metric = GoalMetric(GOAL)
    metric.update(s, y)
    metric.compute()
    alarms = (s > metric.thresholds[0])[y == 0].double().mean()
    assert 0.05 < float(alarms) <= 0.1


def test_a_collection_and_a_forward_pass_work():
    s, y = draw()
    both = MetricCollection({"tpr": GoalMetric(GOAL), "area": GoalMetric(sp.pr_auc(points=5))})
    both(s[:150], y[:150])
    both(s[150:], y[150:])
    found = both.compute()
    assert float(found["tpr"]) == pytest.approx(GOAL.evaluate(s, y), abs=1e-7)
    assert float(found["area"]) == pytest.approx(sp.pr_auc(points=5).evaluate(s, y), abs=1e-7)


def test_a_missing_class_is_the_worst_value_with_a_status():
    metric = GoalMetric(GOAL)
    metric.update(torch.tensor([0.1, 0.2]), torch.tensor([0, 0]))
    assert float(metric.compute()) == 0.0
    assert metric.status.startswith("undefined")
    assert metric.thresholds == ()


def test_nonsense_is_refused_by_row():
    metric = GoalMetric(GOAL)
    with pytest.raises(ValueError, match="row 1"):
        metric.update(torch.tensor([0.1, torch.nan]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="Labels must be 0 or 1; got 2 in row 0"):
        metric.update(torch.tensor([0.1, 0.3]), torch.tensor([2, 1]))
    with pytest.raises(ValueError, match="looks at groups"):
        GoalMetric(sp.Problem(maximize=sp.recall, subject_to=sp.fpr.on(group="a") <= 0.1))


def test_rates_at_a_threshold_count_exactly():
    s, y = draw()
    metric = RatesAt(0.7, sp.fpr, sp.recall, sp.precision)
    for part in torch.arange(300).split(64):
        metric.update(s[part], y[part])
    yes, true = (s > 0.7).numpy(), y.numpy() == 1
    found = {name: float(value) for name, value in metric.compute().items()}
    assert found == {
        "setpoint/fpr": np.mean(yes[~true]),
        "setpoint/recall": np.mean(yes[true]),
        "setpoint/precision": np.mean(true[yes]),
    }
    metric.reset()
    metric.update(torch.tensor([0.9]), torch.tensor([1]))
    assert set(metric.compute()) == {"setpoint/recall", "setpoint/precision"}  # fpr is 0/0 so far


def shards(rank, folder):
    """Two ranks with unequal shares of the data, then with one that has none."""
    s, y = draw()
    found = []
    for end in (40, 300):
        mine = slice(0, end) if rank == 0 else slice(end, 300)
        goal, rates = GoalMetric(GOAL), RatesAt(0.7, sp.fpr, sp.recall)
        if mine.start < mine.stop:
            goal.update(s[mine], y[mine])
            rates.update(s[mine], y[mine])
        value = float(goal.compute())
        found.append([value, *goal.thresholds, *map(float, rates.compute().values())])
    return found


@pytest.mark.slow
def test_ranks_with_unequal_shards_see_all_data(tmp_path):
    s, y = draw()
    one = RatesAt(0.7, sp.fpr, sp.recall)
    one.update(s, y)
    alone = [float(torch.tensor(GOAL.evaluate(s, y))), *GOAL.choose(s, y).thresholds]
    alone += [float(value) for value in one.compute().values()]
    for found in on_ranks(shards, 2, tmp_path):
        assert found == [alone, alone]


def test_tensorboard_takes_the_scalars_of_a_criterion(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    s, y = draw()
    criterion = sp.Implicit(GOAL)
    criterion(s.requires_grad_(), y).backward()
    with SummaryWriter(tmp_path) as writer:
        for name, value in scalars(criterion.stats()).items():
            writer.add_scalar(name, value, 1)
    events = EventAccumulator(str(tmp_path)).Reload()
    logged = {tag: events.Scalars(tag)[0].value for tag in events.Tags()["scalars"]}
    assert logged["setpoint/train/status"] == 1.0
    assert logged["setpoint/train/threshold"] == pytest.approx(criterion.stats()["threshold"])
    assert set(logged) == set(scalars(criterion.stats()))


def test_scalars_leave_out_what_is_no_number():
    given = {
        "status": "infeasible (gap 0.1)",
        "threshold": [1.5, None, float("inf")],
        "rates": {"fpr": np.float64(0.25)},
        "name": "words",
        "held": True,
    }
    assert scalars(given, "x/") == {
        "x/status": 0.0,
        "x/threshold/0": 1.5,
        "x/rates/fpr": 0.25,
        "x/held": 1.0,
    }


def test_everybody_and_nobody_are_thresholds_too():
    s, y = draw()
    for threshold, expected in ((-float("inf"), 1.0), (float("inf"), 0.0)):
        metric = RatesAt(threshold, sp.fpr, sp.recall)
        metric.update(s, y)
        assert [float(value) for value in metric.compute().values()] == [expected, expected]
    with pytest.raises(TypeError, match="must be a finite number; got nan"):
        RatesAt(float("nan"), sp.fpr)
