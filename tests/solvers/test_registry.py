"""Every method by its name, in the same loop; some of them need the network first."""

from functools import partial

import pytest
import samples
import torch
from torch import nn

from setpoint import CrossEntropy, Implicit, LastLayer, fit, fnr_at_fpr
from setpoint.solvers import METHODS, Method, Penalty, Split
from setpoint.train import Validation, fit_best, network

PROBLEM = fnr_at_fpr(0.2)


draw = partial(samples.draw, 160, features=4, dtype=torch.float32)


def trained(model, criterion, folder=None, steps=12, **options):
    settings = {"batch_size": 40, "learning_rate": 0.02, "seed": 0, "checkpoint": folder}
    return fit(model, criterion, *draw(), steps=steps, **settings, **options)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_trains_by_its_name_and_resumes(name, tmp_path):
    def run(folder=None, on_step=None):
        torch.manual_seed(0)
        method = METHODS[name]
        judge = Validation(PROBLEM, *draw(seed=1))
        options = {"sampler": method.sampler(40), "validation": judge, "on_step": on_step}
        return trained(*method.build(network("mlp", 4, 5), PROBLEM, 12), folder, **options)

    def stop(step, _loss):
        if step == 7:
            raise KeyboardInterrupt

    whole = run()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stop)
    resumed = run(tmp_path)
    assert 0 <= whole.best <= 1
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_method_that_needs_the_model_gives_back_a_plain_one():
    """The split around the model is gone after training; the body has learnt as well."""
    torch.manual_seed(0)
    judge, start = Validation(PROBLEM, *draw(seed=1)), network("mlp", 4, 5)
    options = {"steps": 12, "batch_size": 40, "learning_rate": 0.02, "seed": 0}
    for name in ("last_layer", "barrier"):
        members = {name: METHODS[name]}
        found = fit_best(start, members, *draw(), validation=judge, **options).model
        assert found.state_dict().keys() == start.state_dict().keys()
        assert not torch.equal(found[0].weight, start[0].weight)


def test_a_model_that_is_one_layer_is_its_own_last_layer():
    model = nn.Linear(4, 1)
    module, criterion = METHODS["last_layer"].build(model, PROBLEM, 12)
    assert module is model
    assert isinstance(criterion, Implicit)
    with pytest.raises(ValueError, match="one output at the end"):
        METHODS["last_layer"].build(nn.Linear(4, 2), PROBLEM, 12)


class Gated(nn.Module):
    """Its gate was registered after its head, and gives one number as well."""

    def __init__(self):
        super().__init__()
        self.body, self.head, self.gate = nn.Linear(4, 3), nn.Linear(3, 1), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x) * self.gate(x).sigmoid())


def test_of_several_last_layers_none_is_guessed():
    with pytest.raises(ValueError, match=r"'head', 'gate'.*Split\(model, \"head\"\)"):
        METHODS["last_layer"].build(Gated(), PROBLEM, 12)


def test_what_is_advised_for_several_last_layers_works():
    named = Method(
        on=lambda model, problem, steps: (
            split := Split(model, "head"),
            LastLayer(problem, split, steps=steps),
        )
    )
    module, criterion = named.build(Gated(), PROBLEM, 12)
    assert module.head.in_features == 3
    assert trained(module, criterion).history


def test_a_method_is_made_in_one_way():
    with pytest.raises(TypeError, match="give one of the two"):
        Method()


@pytest.mark.parametrize("body", [CrossEntropy(gamma=2), Penalty()], ids=["focal", "penalty"])
def test_the_last_layer_trains_in_the_same_loop_and_resumes(body, tmp_path):
    """A split gives features to the criterion and scores to the validation data."""

    def run(folder=None, on_step=None):
        torch.manual_seed(0)
        split = Split(network("mlp", 4, 5))
        criterion = LastLayer(PROBLEM, split, body=body, steps=12)
        judge = Validation(PROBLEM, *draw(seed=1))
        return trained(split, criterion, folder, validation=judge, on_step=on_step), criterion

    def stop(step, _loss):
        if step == 7:
            raise KeyboardInterrupt

    whole, criterion = run()
    assert "not trained" not in criterion.status
    assert whole.model(draw()[0]).shape == (160, 1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stop)
    resumed, _ = run(tmp_path)
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)
