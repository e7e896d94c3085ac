"""Every method by its name, in the same loop; some of them need the network first."""

from functools import partial
from inspect import signature

import pytest
import samples
import torch
from torch import nn

from setpoint import (
    CrossEntropy,
    Implicit,
    LastLayer,
    Problem,
    error,
    fit,
    fnr_at_fpr,
    macro,
    precision_at_k,
    recall,
    roc_auc,
)
from setpoint.fairness import demographic_parity
from setpoint.solvers import METHODS, Method, Penalty, SlackVariables, Split, methods_named
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


GROUPS = Problem(
    minimize=error, subject_to=demographic_parity(0.2, g=[0, 1]), thresholds="per group"
)
KINDS = {
    "groups": (GROUPS, {"groups": torch.arange(160) % 2}),
    "queries": (precision_at_k(3).per("query"), {"queries": torch.arange(160) // 20}),
    "area": (roc_auc(fpr=(0, 0.5)), {}),
    "classes": (Problem(maximize=macro(recall)), {}),
}


ONE_THRESHOLD = {
    "lagrangian",
    "proxy_lagrangian",
    "pairwise",
    "barrier",
    "barrier_printed",
    "program",
    "slack",
    "tfco",
}
FICO = {"fico_1", "fico_2", "fico_ablation"}
REFUSED = {
    "groups": ONE_THRESHOLD | {"fico_2", "fico_ablation"},
    "queries": ONE_THRESHOLD | FICO | {"last_layer"},
    "area": {"barrier", "barrier_printed", "slack"},
    "classes": ONE_THRESHOLD | FICO | {"last_layer", "lp_f1"},
}


def built(name, kind):
    problem, _ = KINDS[kind]
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3 if kind == "classes" else 1))
    return model, *methods_named(name, problem.kind)[name].build(model, problem, 12)


@pytest.mark.parametrize(("name", "kind"), [(n, k) for k in KINDS for n in METHODS])
def test_a_method_trains_for_every_kind_of_goal_or_says_which_does(name, kind):
    if name in REFUSED[kind]:
        with pytest.raises((NotImplementedError, ValueError), match=r"'implicit'|Implicit"):
            built(name, kind)
        return
    (x, y), (model, module, criterion) = draw(), built(name, kind)
    if kind == "classes":
        y = y + (x[:, 0] > 0).long() * y  # three classes
    takes = signature(getattr(criterion, "forward", criterion)).parameters
    criterion(module(x), y, **{k: v for k, v in KINDS[kind][1].items() if k in takes}).backward()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(bool(grad.isfinite().all()) for grad in found)
    assert any(bool(grad.abs().sum() > 0) for grad in found)


def test_published_methods_are_what_their_papers_say():
    model = network("mlp", 4, 5)

    def criterion(name):
        return METHODS[name].build(model, PROBLEM, 12)[1]

    ico = criterion("ico")
    assert (ico.share, ico.step.temperature) == (0, 1)
    assert ico.schedule.follow is not None  # line 10 of Algorithm 1
    assert isinstance(criterion("fico_1").body, CrossEntropy)
    assert criterion("fico_2").body == Penalty()
    assert criterion("fico_ablation").body == Penalty(everywhere=True)
    assert criterion("tfco").proxy
    assert isinstance(criterion("slack"), SlackVariables)


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
