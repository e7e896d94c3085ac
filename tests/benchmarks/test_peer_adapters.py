"""Every peer takes a few steps as the benchmarks call it; those not installed are left out."""

import pytest
import torch

from benchmarks.peers.learners import network
from benchmarks.peers.roster import GOALS, METHODS, PACKAGES, Task, expressing, rows_for

PEERS = [name for name in METHODS if name.startswith(tuple(PACKAGES))]


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns(name, goal):
    package = next(p for peer, p in PACKAGES.items() if name.startswith(peer))
    pytest.importorskip(package)
    if name not in expressing(goal):
        pytest.skip("cannot express it")
    drawn = torch.Generator().manual_seed(0)
    y = (torch.rand(400, generator=drawn) < 0.3).long()
    x = torch.randn(400, 4, generator=drawn) + 0.9 * y[:, None]
    task = Task(x, y, GOALS[goal], 100, 20, 0.05)
    torch.manual_seed(0)
    learner = METHODS[name](network(4, ()), task)
    before = torch.as_tensor(learner.scores(x)).clone()
    for rows in rows_for(name, task, 0):
        learner.step(rows)
    after = torch.as_tensor(learner.scores(x))
    assert after.isfinite().all()
    gaps = [float(s[y == 1].mean() - s[y == 0].mean()) for s in (before, after)]
    assert gaps[1] > gaps[0] + 1e-3
