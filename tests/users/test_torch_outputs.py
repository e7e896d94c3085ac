"""A loop of one's own with twenty binary outputs: names, values and promises of each."""

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, roc_curve
from torch import nn

import setpoint as sp
from setpoint.export import Decision, load_decision, save_decision

NAMES = [f"topic {i}" for i in range(20)]
GOAL = "maximize recall subject to fpr <= 10 %"


def draw(seed, rows=3000):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 20))
    y = x + 0.8 * random.normal(size=(rows, 20)) > 0.8
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y).float()


def test_twenty_outputs_from_training_to_decisions(tmp_path):
    torch.manual_seed(0)
    x, y = draw(0)
    model, criterion = nn.Linear(20, 20), sp.Implicit(GOAL, outputs=NAMES, steps=40)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        rows = torch.randint(len(x), (512,))
        loss = criterion(model(x[rows]), y[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert list(criterion.statuses) == NAMES
    assert criterion.status.startswith(f"held; over the last 40 steps: {NAMES[0]}: recall ")
    assert criterion.status.endswith("; and 17 more")

    held_out, truth = draw(1)
    with torch.no_grad():
        scores = model(held_out)
    values = sp.evaluate(scores, truth, GOAL, outputs=NAMES)
    for place, name in enumerate(NAMES):
        alarms, hits, _ = roc_curve(truth[:, place], scores[:, place])
        assert values[name] == pytest.approx(hits[alarms <= 0.1].max())
    decision = Decision(model, sp.certify(scores, truth, GOAL, outputs=NAMES))
    save_decision(decision, tmp_path / "d.safetensors")
    again = load_decision(tmp_path / "d.safetensors", nn.Linear(20, 20))
    new, labels = draw(2, 5000)
    with torch.no_grad():
        decided, _ = again(new)
    for place, name in enumerate(NAMES):
        (_, false), _ = confusion_matrix(labels[:, place], decided[:, place].numpy())
        negatives = int((labels[:, place] == 0).sum())
        assert false / negatives <= 0.1 + 4 * (0.09 / negatives) ** 0.5, name  # four deviations
