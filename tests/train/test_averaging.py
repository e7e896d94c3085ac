import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint.train import Averaged


def wander(model: nn.Module, steps: int, averaged: Averaged | None = None) -> list[dict]:
    """Random steps, with the state after each."""
    states = []
    for _ in range(steps):
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p))
        model(torch.randn(8, 3, dtype=torch.float64))  # batch-norm statistics move, too
        if averaged is not None:
            averaged.update()
        states.append(copy.deepcopy(model.state_dict()))
    return states


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)).double()


def by_hand(states: list[dict], name: str) -> torch.Tensor:
    average = states[0][name]
    for t, state in enumerate(states[1:], start=1):
        decay = min(0.99, (1 + t) / (10 + t))
        average = decay * average + (1 - decay) * state[name]
    return average


@pytest.mark.parametrize("steps", [1, 2, 15])
def test_weights_and_batch_norm_statistics_are_averaged_by_the_formula(steps):
    torch.manual_seed(0)
    model = network()
    averaged = Averaged(model)
    states = wander(model, steps, averaged)
    for name in ("0.weight", "2.bias", "1.running_mean", "1.running_var"):
        assert_close(averaged.module.state_dict()[name], by_hand(states, name))


def test_the_decay_stops_at_099():
    model = nn.Linear(1, 1, bias=False).double()
    averaged = Averaged(model)
    averaged.n_averaged.fill_(10_000)
    nn.init.constant_(averaged.module.weight, 0.0)
    nn.init.constant_(model.weight, 1.0)
    averaged.update()
    assert_close(averaged.module.weight.item(), 0.01, rtol=1e-12, atol=0)


def test_counters_are_copied_not_averaged():
    model = network()
    averaged = Averaged(model)
    wander(model, 5, averaged)
    assert averaged.module.state_dict()["1.num_batches_tracked"] == 5


def test_the_model_itself_is_only_read():
    torch.manual_seed(0)
    model = network()
    averaged = Averaged(model)
    states = wander(model, 3, averaged)
    for name, value in model.state_dict().items():
        assert_close(value, states[-1][name], rtol=0, atol=0)
    assert {id(p) for p in model.parameters()}.isdisjoint(id(p) for p in averaged.parameters())


def test_the_trained_model_is_no_part_of_the_state():
    names = set(Averaged(network()).state_dict())
    assert names == {"n_averaged", *(f"module.{name}" for name in network().state_dict())}


def test_it_is_called_like_the_model():
    model = network().eval()
    x = torch.randn(4, 3, dtype=torch.float64)
    averaged = Averaged(model).eval()
    averaged.update()
    assert_close(averaged(x), model(x))


def test_resumed_it_goes_on_as_if_never_stopped():
    torch.manual_seed(0)
    model = network()
    through, first = Averaged(model), Averaged(model)
    for _ in range(4):
        wander(model, 1, through)
        first.update()
    resumed = Averaged(model)
    resumed.load_state_dict(first.state_dict())
    wander(model, 1, through)
    resumed.update()
    assert_close(resumed.module.state_dict(), through.module.state_dict(), rtol=0, atol=0)
