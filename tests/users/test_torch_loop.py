"""A loop of one's own: rare positives, balanced batches, the numbers of scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_curve
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.integrations.shared import goal_metrics, scalars

GOAL = "maximize recall subject to fpr <= 5 %"


def draw(seed, rows=4000):
    random = np.random.default_rng(seed)
    y = (random.random(rows) < 0.03).astype(np.float32)
    x = random.normal(size=(rows, 4)).astype(np.float32) + 1.2 * y[:, None]
    return torch.tensor(x), torch.tensor(y)


def test_the_loop_of_the_readme_on_rare_positives():
    torch.manual_seed(0)
    x, y = draw(0)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=sp.Stratified(y, 128))
    model, steps = nn.Linear(4, 1), 4 * len(loader)
    criterion = sp.Implicit(GOAL, steps=steps)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(4):
        for rows, labels in loader:
            assert labels.sum() > 0  # batches without a positive teach nothing
            loss = criterion(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert criterion.status.split(":")[0].endswith("over the last 50 steps")
    assert "0.142857142" not in criterion.status
    assert scalars(criterion.stats())["setpoint/train/recent/recall"] > 0.3

    held_out, truth = draw(1, 20000)
    with torch.no_grad():
        scores = model(held_out)[:, 0].numpy()
    alarms, hits, _ = roc_curve(truth, scores)
    best = hits[alarms <= 0.05].max()
    assert sp.evaluate(scores, truth, GOAL) == pytest.approx(best)
    assert goal_metrics(scores, truth, GOAL)["setpoint/val/goal"] == pytest.approx(best)
    certificate = sp.certify(scores, truth, GOAL)
    new, labels = draw(2, 20000)
    with torch.no_grad():
        accepted = certificate.decide(model(new)[:, 0]).numpy()
    assert accepted[labels == 0].mean() <= 0.05
    assert accepted[labels == 1].mean() > 0.4


def test_small_batches_of_rare_positives_warn_once():
    from setpoint.solvers.implicit import StarvedBatchWarning

    x, y = draw(0)
    model, criterion = nn.Linear(4, 1), sp.Implicit("maximize recall subject to fpr <= 1 %")

    def epoch():
        for start in range(0, 64 * 30, 64):
            criterion(model(x[start : start + 64]), y[start : start + 64]).backward()

    with pytest.warns(StarvedBatchWarning, match="Stratified") as told:
        epoch()
    assert len(told) == 1
