"""Steps with one threshold per group, compiled: the same numbers, state and words."""

import copy

import pytest
import torch
from torch.testing import assert_close

from setpoint import Implicit, Problem, error
from setpoint.fairness import demographic_parity

FAIR = Problem(minimize=error, subject_to=demographic_parity(0.1, g=[0, 1]), thresholds="per group")


def draw(seed, groups=2):
    r = torch.Generator().manual_seed(seed)
    y = (torch.rand(48, generator=r) < 0.4).long()
    s = torch.randn(48, generator=r, dtype=torch.float64) + y
    return s, y, torch.randint(0, groups, (48,), generator=r)


def step(criterion, s, y, g):
    leaf = s.clone().requires_grad_()
    loss = criterion(leaf, y, groups=g)
    loss.backward()
    return loss.detach(), leaf.grad


@pytest.mark.parametrize("options", [{"steps": 5, "memory": 64}, {"share": 0.0}], ids=str)
def test_a_compiled_step_is_the_plain_one(options):
    plain, other = Implicit(FAIR, **options), Implicit(FAIR, **options)
    assert other.status == "not started"
    torch._dynamo.reset()
    compiled = torch.compile(other, fullgraph=True, backend="aot_eager")
    for seed, groups in ((0, 2), (1, 1), (2, 2)):  # once a group is missing
        batch = draw(seed, groups)
        assert_close(step(plain, *batch), step(compiled, *batch), rtol=1e-12, atol=1e-14)
        assert (other.status, other.stats()) == (plain.status, plain.stats())
    assert_close(plain.state_dict(), other.state_dict(), rtol=0, atol=1e-14)
    s, y, g = draw(3)
    assert compiled(s.index_fill(0, torch.tensor([4]), torch.nan), y, groups=g).isnan()


def test_a_copy_is_found_by_its_own_number():
    first = Implicit(FAIR)
    step(first, *draw(0))
    second = copy.deepcopy(first)
    assert second.number != first.number
    assert second.status == "not started"
