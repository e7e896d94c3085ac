"""The last layer: who gets which gradient, from where, and what is said when something is wrong."""

import copy
from functools import partial

import pytest
import samples
import torch
from torch import nn

import setpoint as sp
from setpoint.solvers import Penalty, Split, cross_entropy

PROBLEMS = [
    sp.fnr_at_fpr(0.1),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
    sp.precision_at_recall(0.9),
    sp.roc_auc((0, 0.2), points=3),
    sp.pr_auc((0.8, 1.0), points=2),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(minimize=sp.fpr, subject_to=[sp.recall >= 0.8, sp.fpr <= 0.5]),
]
BODIES = {
    "cross-entropy": sp.CrossEntropy,
    "focal": lambda: sp.CrossEntropy(gamma=2),
    "weighted": lambda: sp.CrossEntropy(positives="balanced"),
    "penalty": Penalty,
    "penalty 3": lambda: Penalty(eta=3.0),
    "ablation": lambda: Penalty(everywhere=True),
}
every_body = pytest.mark.parametrize("body", BODIES)
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def network(seed=0, width=5):
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))
    return layers.double()


draw = partial(samples.draw, gap=0.8, features=4)


def gradients(loss, parameters):
    found = torch.autograd.grad(loss, list(parameters), allow_unused=True, retain_graph=True)
    return [None if g is None else g.clone() for g in found]


def same(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, **{"rtol": 1e-12, "atol": 1e-14, **tolerance})


def warmed(problem, body, **options):
    """A criterion after one step, so that the penalty has a threshold to look back to."""
    net = network()
    split = Split(net)
    criterion = sp.LastLayer(problem, split, body=BODIES[body](), **options)
    criterion(split(draw(seed=7)[0]), draw(seed=7)[1])
    return net, split, criterion


# ---- who sees what -----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [name for name in BODIES if name != "ablation"])
@every_problem
def test_the_head_never_sees_the_bodys_loss(problem, body):
    _, split, criterion = warmed(problem, body)
    alone = copy.deepcopy(criterion.implicit)
    x, y = draw()
    found = gradients(criterion(split(x), y), split.head.parameters())
    expected = gradients(alone(split.head(split(x).detach()), y), split.head.parameters())
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@every_problem
def test_the_body_never_sees_the_implicit_term(problem):
    """Its gradient is that of cross-entropy through its own head, to the last bit."""
    net, split, criterion = warmed(problem, "cross-entropy")
    x, y = draw()
    found = gradients(criterion(split(x), y), net[0].parameters())
    loss = cross_entropy(split.auxiliary(net[:2](x))[:, 0], y)
    same(found, gradients(loss, net[0].parameters()), rtol=1e-13)
    implicit = sp.Implicit(problem)(split.head(net[:2](x)), y)
    assert not torch.allclose(found[0], gradients(implicit, net[0].parameters())[0])


def published(problem, scores, labels, at, width, eta):
    """Method 2 by hand: soft rates at given thresholds, one price for every gap."""
    steps = torch.sigmoid((scores[:, None] - at) / width)
    false, missed = (
        (steps * (labels == 0)[:, None]).sum(0) / (labels == 0).sum(),
        ((1 - steps) * (labels == 1)[:, None]).sum(0) / labels.sum(),
    )
    targets = [target for (target,) in problem.points]
    gaps = false - torch.tensor([target.level for target in targets], dtype=false.dtype)
    gaps = gaps.clamp(min=0) if hasattr(targets[0], "sense") else abs(gaps)
    return missed.mean() - float(problem.maximize) + (eta * gaps).sum()


@pytest.mark.parametrize("moved", [0.3, -0.3], ids=["above the target", "below it"])
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("eta", [3.0, None])
@pytest.mark.parametrize("problem", [*PROBLEMS[:2], PROBLEMS[3]], ids=str)
def test_method_two_is_the_penalized_objective_at_the_last_steps_threshold(
    problem, eta, everywhere, moved
):
    net = network()
    split = Split(net)
    criterion = sp.LastLayer(problem, split, body=Penalty(eta, everywhere=everywhere))
    first, second = draw(seed=7), draw(seed=8)
    criterion(split(first[0]), first[1])
    at = criterion.penalty.held_at.clone()
    net[2].bias.data += moved  # a step was taken
    loss = criterion(split(second[0]), second[1])
    width = torch.as_tensor(criterion.implicit.outcome.counts.width[0])
    price = criterion.penalty.multipliers[0, 0]
    if eta is not None:  # of the mean gap
        price = torch.full_like(price, eta / len(price))
    assert (price > 0).all()
    with torch.no_grad():
        frozen = nn.utils.parameters_to_vector(net[2].parameters()).clone()
    scores = net[:2](second[0]) @ frozen[:5] + frozen[5]
    if everywhere:
        scores = net(second[0])[:, 0]
    by_hand = published(problem, scores, second[1], at[0], width, price)
    weights = list(net.parameters() if everywhere else net[0].parameters())
    same(gradients(loss, weights), gradients(by_hand, weights), rtol=1e-9, atol=1e-12)
    assert criterion.stats()["body_loss"] == pytest.approx(by_hand.item(), rel=1e-12)


def test_method_one_literally_has_one_head_and_method_two_this_steps_threshold():
    net, (x, y) = network(), draw(seed=8)
    split = Split(net)
    literal = sp.LastLayer(sp.fnr_at_fpr(0.1), split, auxiliary=False)
    loss = literal(split(x), y)
    frozen = copy.deepcopy(net[2]).requires_grad_(False)
    by_hand = cross_entropy(frozen(net[:2](x))[:, 0], y)
    body = list(net[0].parameters())
    same(gradients(loss, body), gradients(by_hand, body), rtol=1e-12)
    assert split.auxiliary is None
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1))
    printed = sp.LastLayer(problem, split, body=Penalty(2.0, threshold="this"))
    printed(split(draw(seed=7)[0]), draw(seed=7)[1])
    loss = printed(split(x), y)
    outcome = printed.implicit.outcome
    at, width = (torch.as_tensor(v[0]) for v in (outcome.placed.marginal, outcome.counts.width))
    expected = published(problem, frozen(net[:2](x))[:, 0], y, at, width, 2.0)
    same(gradients(loss, body), gradients(expected, body), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="'last' or 'this'"):
        Penalty(threshold="next")


def test_the_running_multiplier_follows_and_starts_where_the_first_one_is():
    net = network()
    split = Split(net)
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), split, body=Penalty())
    expected = None
    for seed in range(4):
        criterion(split(draw(seed=seed)[0]), draw(seed=seed)[1])
        now = criterion.implicit.stats()["multiplier"]
        expected = now if expected is None else expected + 0.1 * (now - expected)
        assert float(criterion.penalty.multipliers) == pytest.approx(expected, rel=1e-12)


# ---- as a module -------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["weighted", "penalty"])
def test_it_compiles_without_a_graph_break(body):
    x, y = draw(40)
    results = []
    for compiled in (False, True):
        _, split, criterion = warmed(sp.fnr_at_fpr(0.1), body)
        features = split(x).detach().requires_grad_()
        torch._dynamo.reset()
        run = criterion
        if compiled:
            run = torch.compile(criterion, fullgraph=True, backend="aot_eager")
        weights = [features, *split.head.parameters()]
        results.append(gradients(run(features, y), weights))
    same(results[1], results[0], rtol=1e-9, atol=1e-12)


def test_an_auxiliary_head_that_no_optimizer_knows_is_told():
    net = network()
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), net[2])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        criterion(net[:2](draw()[0]), draw()[1]).backward()
        optimizer.step()
    assert criterion.status.startswith("the auxiliary head is not trained")
    assert criterion.stats()["status"] == criterion.status


def test_a_head_that_is_not_part_of_the_trained_model_is_told():
    """Nothing but its weights, which no optimizer has, can give it away."""
    net, other = network(), nn.Linear(5, 1).double()
    told = []
    for head in (other, net[2]):
        criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), head)
        optimizer = torch.optim.Adam([*net.parameters(), *criterion.parameters()], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            criterion(net[:2](draw()[0]), draw()[1]).backward()
            optimizer.step()
        told.append(criterion.status)
    assert told[0].startswith("the head is not trained: it is not part of the model")
    assert told[1].startswith("held; over the last 3 steps: fnr ")


def test_a_head_of_another_model_cannot_be_attached():
    net, other = network(), nn.Linear(5, 1).double()
    with pytest.raises(ValueError, match="head is not part of the model that is trained"):
        sp.LastLayer(sp.fnr_at_fpr(0.1), other).attach(net)
    assert sp.LastLayer(sp.fnr_at_fpr(0.1), net[2]).attach(net).reduction is None


@pytest.mark.parametrize("fused", [True, False])
def test_heads_that_are_trained_are_seen_to_be_by_any_optimizer(fused):
    net = network()
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), net[2])
    optimizer = torch.optim.Adam([*net.parameters(), *criterion.parameters()], fused=fused)
    for _ in range(3):
        optimizer.zero_grad()
        criterion(net[:2](draw()[0]), draw()[1]).backward()
        optimizer.step()
    assert criterion.status.startswith("held; ")


def test_the_last_threshold_is_kept_through_a_batch_without_a_class():
    split = Split(network())
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), split, body=Penalty())
    x, y = draw()
    criterion(split(x), torch.ones_like(y))
    assert criterion.penalty.held_at.isnan().all()  # there is none yet
    criterion(split(x), y)
    at = criterion.penalty.held_at.clone()
    assert at.isfinite().all()
    criterion(split(x), torch.ones_like(y))
    assert torch.equal(criterion.penalty.held_at, at)


def test_the_last_threshold_is_kept_with_a_frozen_head():
    net = network()
    net[2].requires_grad_(False)
    split = Split(net)
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), split, body=Penalty())
    criterion(split(draw(seed=7)[0]), draw(seed=7)[1])
    at = criterion.penalty.held_at.clone()
    criterion(split(draw(seed=8)[0]), draw(seed=8)[1])
    assert at.numel() == 1
    assert not torch.equal(criterion.penalty.held_at, at)


class Chance(nn.Linear):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.5, self.training)


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 1, dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight


def test_a_head_with_chance_of_its_own_or_another_width_is_told_by_its_first_batch():
    x, y = draw()
    features = network()[:2](x)
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match="head gives other scores each time"):
        sp.LastLayer(sp.fnr_at_fpr(0.1), Chance(5, 1).double())(features, y)
    steady = sp.LastLayer(sp.fnr_at_fpr(0.1), Chance(5, 1).double().eval())(features, y)
    assert steady.isfinite()
    with pytest.raises(ValueError, match=r"cannot take features of shape \(\d+, 5\): "):
        sp.LastLayer(sp.fnr_at_fpr(0.1), Narrow())(features, y)
    torch.set_rng_state(state)


def test_a_look_at_validation_data_is_no_step():
    _, split, criterion = warmed(sp.fnr_at_fpr(0.1), "penalty")
    kept = copy.deepcopy(criterion.state_dict())
    criterion.eval()
    with torch.no_grad():
        criterion(split(draw(seed=3)[0]), draw(seed=3)[1])
    assert all(torch.equal(kept[name], now) for name, now in criterion.state_dict().items())


def test_the_recipe_is_in_the_repr():
    text = repr(sp.LastLayer(sp.fnr_at_fpr(0.1), nn.Linear(5, 1), body=Penalty(eta=2.0)))
    assert "minimize fnr subject to fpr <= 0.1" in text
    assert "eta=2.0" in text


# ---- batches nobody planned ----------------------------------------------------------------------

SOME = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
MIXED = torch.tensor([1, 0, 1, 0, 0, 1])
BATCHES = {
    "no positives": (SOME, torch.zeros(6)),
    "no negatives": (SOME, torch.ones(6)),
    "one example": (SOME[:1], torch.ones(1)),
    "constant features": (SOME[:1].repeat(6, 1), MIXED),
    "zero features": (torch.zeros_like(SOME), MIXED),
    "ties": (SOME[[0, 0, 0, 1, 1, 1]], MIXED),
    "huge": (SOME * 1e30, MIXED),
    "tiny": (SOME * 1e-30, MIXED),
    "single precision": (SOME.float(), MIXED),
    "empty": (SOME[:0], MIXED[:0]),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("body", ["focal", "weighted", "penalty", "ablation"])
@pytest.mark.parametrize("problem", PROBLEMS[1:6], ids=str)
def test_loss_and_gradients_are_finite_and_attached(problem, body, batch):
    features, labels = BATCHES[batch]
    torch.manual_seed(0)
    head = nn.Linear(5, 1).to(features.dtype)
    criterion = sp.LastLayer(problem, head, body=BODIES[body]())
    for _ in range(2):
        leaf = features.clone().requires_grad_()
        head.zero_grad()
        loss = criterion(leaf, labels)
        loss.backward()
        assert loss.isfinite()
        assert leaf.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in head.parameters())
        assert isinstance(criterion.status, str)


# ---- bad input -----------------------------------------------------------------------------------


def test_features_of_the_wrong_width_are_refused():
    criterion = sp.LastLayer(sp.fnr_at_fpr(0.1), nn.Linear(5, 1))
    with pytest.raises(ValueError, match=r"width 5, \[n, 5\]; got the shape \(8, 3\)"):
        criterion(torch.randn(8, 3), torch.ones(8))
    with pytest.raises(ValueError, match="not the model's scores"):
        criterion(torch.randn(8), torch.ones(8))


@pytest.mark.parametrize(
    "part",
    [
        nn.Dropout(0.1),
        nn.BatchNorm1d(5),
        nn.RReLU(),
        nn.InstanceNorm1d(5, track_running_stats=True),
    ],
)
def test_a_head_that_is_not_a_function_of_features_is_refused(part):
    with pytest.raises(ValueError, match=type(part).__name__):
        sp.LastLayer(sp.fnr_at_fpr(0.1), nn.Sequential(part, nn.Linear(5, 1)))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (nn.ReLU(), "no weights"),
        (nn.LazyLinear(1), "no shape yet"),
        (torch.ones(3), "torch module"),
    ],
)
def test_a_head_without_weights_is_refused(head, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sp.LastLayer(sp.fnr_at_fpr(0.1), head)


def test_what_it_cannot_express_is_refused_with_who_can():
    head = nn.Linear(5, 1)
    with pytest.raises(TypeError, match="LastLayer takes a Problem"):
        sp.LastLayer(sp.fnr, head)
    with pytest.raises(ValueError, match=r"about several\. Implicit\(problem\)"):
        sp.LastLayer(sp.Problem(maximize=sp.macro(sp.recall)), head)
    gap = abs(sp.coverage.on(g="a") - sp.coverage.on(g="b")) <= 0.1
    problem = sp.Problem(minimize=sp.error, subject_to=gap, thresholds="per group")
    with pytest.raises(NotImplementedError, match=r"body=CrossEntropy\(\) trains it"):
        sp.LastLayer(problem, head, body=Penalty())
    groups = ["a", "b"] * 45
    criterion = sp.LastLayer(problem, head.double())
    assert criterion(draw()[0] @ torch.ones(4, 5).double(), draw()[1], groups=groups).isfinite()


def test_settings_that_contradict_each_other_are_refused():
    head = nn.Linear(5, 1)
    with pytest.raises(TypeError, match="body must be"):
        sp.LastLayer(sp.fnr_at_fpr(0.1), head, body="cross_entropy")
    with pytest.raises(ValueError, match="same problem"):
        sp.LastLayer(sp.fnr_at_fpr(0.1), head, implicit=sp.Implicit(sp.fnr_at_fpr(0.2)))
    with pytest.raises(ValueError, match="eta must be positive"):
        Penalty(eta=-1)


def test_a_batch_without_a_class_teaches_the_body_nothing_by_its_penalty():
    """Rates that such a batch has, like the error, would drift towards the class that is there."""
    net = network()
    split = Split(net)
    problem = sp.Problem(minimize=sp.error, subject_to=sp.coverage <= 0.3)
    criterion = sp.LastLayer(problem, split, body=Penalty(eta=2.0))
    x, y = draw()
    criterion(split(x), y)
    net[2].bias.data += 0.3
    loss = criterion(split(x), torch.zeros_like(y))
    assert criterion.stats()["body_loss"] == 0
    assert not any(g.any() for g in gradients(loss, net[0].parameters()))
