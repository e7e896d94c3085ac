"""A million scores: under a second of processor time and 200 MB, forward and backward."""

import pytest

CODE = """
import resource, time
import torch
from functools import partial
from setpoint.losses import {name} as loss
torch.set_num_threads(1)
rng = torch.Generator().manual_seed(0)
def batch(n):
    labels = (torch.rand(n, generator=rng) < 0.1).long()
    return (torch.randn(n, generator=rng) + labels).requires_grad_(), labels
few, many = batch(1000), batch(1_000_000)
loss(*few, **{options}).backward()
memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
loss(*many, **{options}).backward()
print(time.process_time() - start)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
assert many[0].grad.isfinite().all() and many[0].grad.any()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("auc_loss", {}),
        ("f_score_loss", {"threshold": "best"}),
    ],
)
def test_a_million_scores(fresh_python, name, options):
    code = CODE.format(name=name, options=options)
    seconds, megabytes = map(float, fresh_python(code).split())
    assert seconds < 1
    assert megabytes < 200
