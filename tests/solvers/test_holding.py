"""Where the threshold of everyone sits, and what holding it means. Laws: ``test_laws.py``.

Float64 throughout; counts are exact, algebra holds to 1e-12, finite differences to 1e-6.
"""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from samples import draw, loss_and_gradient
from scipy.optimize import brentq, root
from scipy.stats import norm
from subjects import EQUALITIES, PROBLEMS, SLICED

import setpoint as sp
from setpoint.rates import Counts
from setpoint.solvers import hold
from setpoint.steps import Softplus

every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def last_of(criterion):
    """The last batch of a criterion in tensors."""
    outcome = criterion.outcome
    reading = replace(outcome.counts, _kernels=[])
    width = torch.from_numpy(np.broadcast_to(reading.width, reading.at.shape).copy())
    marginal, *holding = map(torch.as_tensor, (outcome.placed.marginal, *outcome.placed.holding))
    slope = torch.from_numpy(outcome.anchor.slopes[..., 0, 0])
    held = SimpleNamespace(slope=slope, gradient=torch.from_numpy(outcome.gradient))
    seat = SimpleNamespace(marginal=marginal, holding=holding)
    return SimpleNamespace(reading=reading, width=width, seat=seat, held=held)


def bare(problem, **options):
    return sp.Implicit(problem, share=0.0, **options)


# ---- finding ---------------------------------------------------------------------------------


def cut_counts(scores, labels):
    """(accepted positives, accepted negatives) at every cut that splits no ties."""
    cuts = [-math.inf, *sorted(set(scores.tolist()))]
    return [
        (int((labels[scores > t] == 1).sum()), int((labels[scores > t] == 0).sum())) for t in cuts
    ]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("percent", [1, 5, 29, 50])
def test_an_upper_bound_is_met_and_the_next_block_would_break_it(percent, seed, ties):
    scores, labels = draw(100 + seed, seed=seed, ties=ties)
    criterion = bare(sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= percent / 100))
    criterion(scores.requires_grad_(), labels)
    accepted = scores > criterion.thresholds
    negatives = int((labels == 0).sum())
    admitted = int((accepted & (labels == 0)).sum())
    assert 100 * admitted <= percent * negatives  # integers: 29 % of 100 is 29
    more = scores >= scores[~accepted].max()
    assert 100 * int((more & (labels == 0)).sum()) > percent * negatives


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("percent", [50, 71, 95])
def test_a_floor_is_met_and_dropping_the_last_block_would_break_it(percent, seed, ties):
    scores, labels = draw(100 + seed, seed=seed, ties=ties)
    criterion = bare(sp.Problem(maximize=sp.precision, subject_to=sp.recall >= percent / 100))
    criterion(scores.requires_grad_(), labels)
    accepted = scores > criterion.thresholds
    positives, found = int(labels.sum()), int((accepted & (labels == 1)).sum())
    assert 100 * found >= percent * positives
    if last_of(criterion).seat.holding[0].item():  # else a better precision lies further down
        fewer = scores > scores[accepted].min()
        assert 100 * int((fewer & (labels == 1)).sum()) < percent * positives


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.03, 0.29, 0.5, 0.9])
@pytest.mark.parametrize("rate", [sp.fpr, sp.tnr, sp.recall, sp.fnr, sp.coverage], ids=str)
def test_a_setpoint_is_the_nearest_attainable_rate(rate, level, seed, ties):
    scores, labels = draw(60, seed=seed, ties=ties)
    criterion = bare(sp.Problem(minimize=sp.error, subject_to=rate.at(level)))
    criterion(scores.requires_grad_(), labels)
    held = criterion.stats()["held_rate"]
    positives, negatives = int(labels.sum()), int((labels == 0).sum())
    distances = []
    for tp, fp in cut_counts(scores.detach(), labels):
        table = Counts(tp, fp, positives - tp, negatives - fp, positives, negatives)
        distances.append(abs(rate.of({(): table}) - level))
    assert abs(held - level) == pytest.approx(min(distances), abs=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("problem", "held_class"),
    [
        (sp.fnr_at_fpr(0.07), 0),
        (sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.07)), 0),
        (sp.precision_at_recall(0.8), 1),
        (sp.Problem(minimize=sp.fpr, subject_to=sp.fnr.at(0.2)), 1),
        (sp.Problem(maximize=sp.recall, subject_to=sp.coverage.at(0.2)), None),
    ],
    ids=str,
)
def test_in_training_the_threshold_sits_on_a_score_so_the_slope_is_never_zero(
    problem, held_class, seed, ties
):
    scores, labels = draw(90, seed=seed, ties=ties)
    criterion = bare(problem)
    loss_and_gradient(criterion, scores, labels)
    if not last_of(criterion).seat.holding[0].item():
        return  # the best cut is not at the bound; then its own score holds the coverage
    there = labels[scores == last_of(criterion).seat.marginal.item()]
    assert len(there) > 0
    assert held_class is None or held_class in there
    members = len(labels) if held_class is None else int((labels == held_class).sum())
    least = 1 / (4 * last_of(criterion).width * members)
    assert (last_of(criterion).held.slope.abs() >= least * (1 - 1e-12)).all()


# ---- invariances -------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", SLICED, ids=str)
def test_groups_may_be_numbers_or_texts(problem):
    scores, labels = draw(240)
    groups = torch.arange(len(scores)) % 2
    loss, gradient = loss_and_gradient(bare(problem), scores, labels, groups=groups)
    names = np.array(["0", "1"])[groups.numpy()]
    as_text = sp.Problem.parse(str(problem).replace("=0", '="0"').replace("=1", '="1"'))
    other, other_gradient = loss_and_gradient(bare(as_text), scores, labels, groups=names)
    assert other.item() == pytest.approx(loss.item(), rel=1e-12)
    torch.testing.assert_close(other_gradient, gradient, rtol=1e-9, atol=1e-14)


@every_problem
@pytest.mark.parametrize("ties", [False, True])
def test_soft_counts_tend_to_hard_counts_as_the_width_falls(problem, ties):
    """What sits on the threshold counts by half; the rest by whether it is above."""
    scores, labels = draw(ties=ties)
    gaps = []
    for width in (1e-2, 1e-3, 1e-9):
        criterion = bare(problem, step=sp.Sigmoid(width=width))
        loss_and_gradient(criterion, scores, labels)
        reading = last_of(criterion).reading
        soft, _ = reading.counts()
        above = scores.numpy()[None, :, None] - reading.at[:, None]  # [1, n, m]
        limit = (above > 0) + 0.5 * (above == 0)
        hard = np.einsum("cnm,cnk->cmk", limit, reading.whole.columns)
        gaps.append(abs(soft - hard).max())
    assert gaps[-1] <= 1e-9
    assert gaps[-1] < gaps[0]


# ---- gradients ---------------------------------------------------------------------------------


def test_coupled_thresholds_follow_their_jacobian():
    """Two groups, one threshold each: equal coverage, and 30 % of everyone accepted."""
    scores, _ = draw(80)
    first = torch.arange(80) < 30
    h = 0.4

    def gap(s, t):
        a, b = torch.sigmoid((s[first] - t[0]) / h), torch.sigmoid((s[~first] - t[1]) / h)
        everyone = (a.sum() + b.sum()) / 80
        return torch.stack([a.mean() - b.mean(), everyone - 0.3])

    def solve(s):
        found = root(lambda t: gap(s, torch.tensor(t)).numpy(), np.zeros(2), tol=1e-13)
        assert found.success
        return torch.tensor(found.x)

    leaf = scores.clone().requires_grad_()
    weights = torch.tensor([0.7, -2.0], dtype=torch.float64)
    (hold(gap, leaf, find=solve, coupled=True) @ weights).backward()
    rng = torch.Generator().manual_seed(3)
    for _ in range(4):
        direction = torch.randn(80, generator=rng, dtype=torch.float64)
        ends = [solve(scores + e * direction) @ weights for e in (1e-5, -1e-5)]
        slope = ((ends[0] - ends[1]) / 2e-5).item()
        assert (leaf.grad @ direction).item() == pytest.approx(slope, rel=1e-6)


def test_the_threshold_of_a_gaussian_linear_model_converges_to_its_closed_form():
    """ICO, footnote 1. A sample quantile has the standard error sqrt(b (1 - b) / n) / density."""
    rng = np.random.default_rng(0)
    mean, factor = np.array([1.0, -0.5, 0.3]), np.array([[1, 0, 0], [0.5, 1, 0], [-0.3, 0.2, 0.7]])
    theta, level = np.array([0.8, -1.1, 0.4]), 0.05
    deviation = np.sqrt(theta @ factor @ factor.T @ theta)
    exact = theta @ mean + deviation * norm.ppf(level)
    errors = []
    for n in (1_000, 30_000, 300_000):
        positives = mean + rng.normal(size=(n, 3)) @ factor.T
        scores = torch.tensor(np.r_[positives @ theta, rng.normal(size=n)], requires_grad=True)
        labels = torch.arange(2 * n) < n
        criterion = bare(sp.Problem(minimize=sp.fpr, subject_to=sp.fnr.at(level)))
        criterion(scores, labels)
        density = norm.pdf(norm.ppf(level)) / deviation
        errors.append(abs(criterion.thresholds.item() - exact))
        assert errors[-1] <= 4 * np.sqrt(level * (1 - level) / n) / density
    assert errors[-1] < 0.01


@pytest.mark.parametrize("seed", range(10))
def test_a_linear_model_with_softplus_is_convex(seed):
    """Proposition 1: FPR at FNR as a function of the weights, the threshold held on soft counts."""
    rng = np.random.default_rng(seed)
    labels = torch.tensor(rng.random(60) < 0.4)
    x = torch.tensor(rng.normal(size=(60, 4))) + 0.7 * labels[:, None]
    step, level = Softplus(), 0.4

    def gap(s, t):
        return step.value(t - s[labels]).mean() - level

    def solve(s):
        return torch.tensor(brentq(lambda t: gap(s, t).item(), -60, 60, xtol=1e-13))

    def objective(theta):
        s = x @ theta
        t = hold(gap, s, find=solve)
        return step.value(s[~labels] - t).mean()

    a, b = (torch.tensor(rng.normal(size=4) * 2, requires_grad=True) for _ in range(2))
    start, end = objective(a), objective(b)
    for share in (0.2, 0.5, 0.8):
        between = objective((1 - share) * a + share * b)
        assert between <= (1 - share) * start + share * end + 1e-12
    (gradient,) = torch.autograd.grad(start, a)
    assert end >= start + gradient @ (b - a) - 1e-12  # the tangent lies below


def test_with_a_memory_the_mean_gradient_over_batches_is_the_full_one():
    """For equalities: what a bound is held by, and so the length, depends on the batch."""
    rng = np.random.default_rng(5)
    n, size, count = 20_000, 250, 300
    labels = torch.tensor(rng.random(n) < 0.2).long()
    x = torch.tensor(rng.normal(size=(n, 4))) + 0.8 * labels[:, None]
    scores = x @ torch.tensor([1.0, 0.5, -0.3, 0.2], dtype=torch.float64)
    for problem in (*EQUALITIES[:2], sp.roc_auc((0, 0.2), points=4)):
        full = bare(problem)
        loss_and_gradient(full, scores, labels)
        target = last_of(full).held.gradient[0] @ x
        criterion = sp.Implicit(problem, memory=n)
        loss_and_gradient(criterion, scores, labels)  # fills the memory with everybody
        criterion.eval()
        pulls = []
        for _ in range(count):
            rows = torch.tensor(rng.choice(n, size, replace=False))
            criterion(scores[rows], labels[rows])
            pulls.append(last_of(criterion).held.gradient[0] @ x[rows])
        pulls = torch.stack(pulls)
        spread = pulls.std(0) / count**0.5
        assert ((pulls.mean(0) - target).abs() <= 3 * spread).all()
        assert (spread < 0.2 * target.norm()).all()  # or the law would say nothing


# ---- one pass, and state -----------------------------------------------------------------------


class Counted(torch.autograd.Function):
    passes = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Counted.passes += 1
        return grad


@pytest.mark.parametrize("problem", [sp.fnr_at_fpr(0.1), sp.roc_auc((0, 0.2))], ids=str)
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda p, _: sp.Implicit(p), 1),
        (lambda p, _: sp.Implicit(p, share=0.0, flatness=0.1), 1),
        (lambda p, _: sp.Implicit(p, memory=100), 1),
        (lambda p, _: sp.Implicit.as_published(p, correct_every=5), 1),
    ],
    ids=["default", "bare and flat", "memory", "as published"],
)
def test_the_network_sees_one_backward_pass(problem, make, expected):
    model = torch.nn.Linear(3, 1)
    criterion = make(problem, model)
    Counted.passes = 0
    labels = torch.arange(60) % 3 == 0
    criterion(Counted.apply(model(torch.randn(60, 3))), labels).backward()
    assert Counted.passes == expected


def test_following_the_weights_costs_one_more_backward_pass():
    model = torch.nn.Linear(3, 1)
    criterion = sp.Implicit.as_published(sp.fnr_at_fpr(0.1), follow=model.parameters())
    Counted.passes = 0
    criterion(Counted.apply(model(torch.randn(60, 3))), torch.arange(60) % 3 == 0).backward()
    assert Counted.passes == 2


def test_a_checkpoint_remembers_how_long_its_history_was():
    """Its length comes from the first batch, also after a load."""
    make = lambda: sp.Implicit(sp.fnr_at_fpr(0.2), share=0.0, correct_every=2, correction_batches=3)  # noqa: E731
    batches = [draw(n, seed=i) for i, n in enumerate((32, 64, 64, 48, 32))]
    straight, first, second = make(), make(), make()
    expected = [loss_and_gradient(straight, *batch)[1] for batch in batches]
    for batch in batches[:3]:
        loss_and_gradient(first, *batch)
    second.load_state_dict(first.state_dict())
    for batch, gradient in zip(batches[3:], expected[3:], strict=True):
        assert torch.equal(loss_and_gradient(second, *batch)[1], gradient)
