"""Splitting a network: same weights, same scores, and a clear word when it cannot be done."""

import copy

import pytest
import torch
from torch import nn

from setpoint.solvers import Split


class Named(nn.Module):
    """A network as people write them: a named head, and something after it."""

    def __init__(self, calls=1):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        self.fc = nn.Linear(3, 1)
        self.calls = calls

    def forward(self, x):
        scores = self.trunk(x)[:, :1]
        for _ in range(self.calls):
            scores = self.fc(self.trunk(x))
        return scores.squeeze(-1)


SEQUENTIAL = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
FLAT = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1), nn.Flatten(0))


@pytest.mark.parametrize(
    ("model", "head"),
    [(SEQUENTIAL, None), (SEQUENTIAL, "2"), (SEQUENTIAL, SEQUENTIAL[2]), (FLAT, None)],
    ids=["last", "by name", "itself", "with what follows"],
)
def test_the_head_of_the_features_is_the_model(model, head):
    x = torch.randn(6, 4)
    split = Split(model, head)
    assert split(x).shape == (6, 3)
    assert torch.equal(split.head(split(x)), model(x))
    assert torch.equal(split.eval()(x), model(x))
    model.train()


@pytest.mark.parametrize("head", ["fc", None])
def test_any_module_with_a_named_head_can_be_split(head):
    model = Named()
    split = Split(model, head or model.fc)
    x = torch.randn(6, 4)
    assert torch.equal(split(x), model.trunk(x))
    assert torch.equal(split.eval()(x)[:, 0], model(x))
    assert not model.fc._forward_pre_hooks


def test_a_copy_is_a_whole_of_its_own():
    split = Split(Named(), "fc")
    other = copy.deepcopy(split)
    other.model.fc.weight.data.zero_()
    assert other.head is other.model.fc
    assert split.head.weight.abs().sum() > 0


def test_gradients_reach_the_body():
    model = Named()
    Split(model, "fc")(torch.randn(6, 4)).sum().backward()
    assert model.trunk[0].weight.grad is not None
    assert model.fc.weight.grad is None


def test_a_head_that_is_not_part_of_the_model_is_refused():
    with pytest.raises(ValueError, match="not part of the model Named"):
        Split(Named(), nn.Linear(3, 1))
    with pytest.raises(ValueError, match=r"no part called 'head'; it has: trunk, trunk\.0"):
        Split(Named(), "head")
    model = Named()
    with pytest.raises(ValueError, match="whole model"):
        Split(model, model)


def test_what_cannot_be_split_says_why():
    with pytest.raises(ValueError, match='name it, as in head="fc"'):
        Split(Named())
    with pytest.raises(ValueError, match="two layers with weights"):
        Split(nn.Sequential(nn.Linear(3, 1)))
    with pytest.raises(TypeError, match="torch module"):
        Split([1, 2])


@pytest.mark.parametrize(("calls", "words"), [(0, "never"), (2, "2 times")])
def test_a_head_must_be_called_once(calls, words):
    with pytest.raises(ValueError, match=f"called {words}"):
        Split(Named(calls), "fc")(torch.randn(6, 4))
