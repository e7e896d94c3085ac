"""Multipliers: the gradient of the Lagrangian, prices that move, words for trouble."""

import copy

import pytest
import torch
from samples import HARD_BATCHES, MIXED, SOME, draw
from samples import loss_and_gradient as gradient

import setpoint as sp
from setpoint.rates import lift
from setpoint.steps import Hinge, Softplus

PROBLEMS = [
    sp.fnr_at_fpr(0.1),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
    sp.precision_at_recall(0.9),
    sp.recall_at_precision(0.8),
    sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.2, sp.recall >= 0.7]),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=lift, subject_to=sp.coverage <= 0.3),
    sp.roc_auc((0, 0.2), points=3),
    sp.pr_auc((0.8, 1.0), points=2),
]
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def soft_tables(scores, labels, at, temperature):
    """Counts by the textbook: one step an example and threshold, differentiable."""
    from setpoint.rates import Counts

    up = torch.sigmoid((scores[:, None] - at) / temperature)
    p, n = (labels == 1).double(), (labels == 0).double()
    tp, fp = p @ up, n @ up
    return {(): Counts(tp, fp, p.sum() - tp, n.sum() - fp, p.sum(), n.sum())}


def by_hand(problem, scores, labels, at, prices, weight=1.0, temperature=1.0):
    """``weight * objective + sum price * gap``, by ordinary automatic differentiation."""
    tables = soft_tables(scores, labels, at, temperature)
    total = (-1 if problem.maximize else 1) * weight * problem.objective.of(tables)
    for i, target in enumerate(problem.points[0]):
        levels = torch.tensor([p[i].level for p in problem.points], dtype=torch.float64)
        excess = target.expression.of(tables) - levels
        total = total + prices[i] * (-excess if getattr(target, "sense", "") == ">=" else excess)
    return total.mean()


# ---- the gradient --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"proxy": True}, {"proxy": True, "regret": "swap"}])
@every_problem
def test_the_gradient_is_that_of_objective_plus_prices_times_gaps(problem, options):
    criterion = sp.Lagrangian(problem, slack_rate=1.0, dual_rate=0.9, **options)
    for seed in range(3):  # prices leave zero, thresholds their first place
        gradient(criterion, *draw(seed=seed))
    at = criterion.thresholds[0].clone()
    weight, prices = criterion.duals.prices(criterion.thresholds)
    scores, labels = draw(seed=9)
    leaf = scores.clone().requires_grad_()
    expected = by_hand(problem, leaf, labels, at, prices[:, 0], weight[0])
    (slopes,) = torch.autograd.grad(expected, leaf)
    loss, found = gradient(criterion, scores, labels)
    torch.testing.assert_close(found, slopes, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=1e-14)


def test_slack_variables_are_the_running_parts_of_the_ratio():
    """The tangent of precision at the running counts: only sums of the batch are left."""
    problem = sp.Problem(maximize=sp.precision)
    criterion = sp.Lagrangian(problem, threshold=0.0, slack_rate=0.25)
    running = None
    for seed in range(4):
        scores, labels = draw(seed=seed)
        leaf = scores.clone().requires_grad_()
        table = soft_tables(leaf, labels, torch.zeros(1), 1.0)[()]
        parts = torch.stack([table.tp, table.fp])
        still = parts.detach()
        running = still if running is None else running + 0.25 * (still - running)
        top, bottom = running[0], running.sum(0)
        ratio = top / bottom
        tangent = ratio + (parts[0] - ratio * parts.sum(0)) / bottom
        (slopes,) = torch.autograd.grad(-tangent.sum(), leaf)
        loss, found = gradient(criterion, scores, labels)
        torch.testing.assert_close(found, slopes, rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(loss, -tangent.detach()[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize("step", [Softplus(temperature=1.0), Hinge(temperature=1.0)])
def test_convex_steps_count_both_sides(step):
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1), threshold=0.2, step=step)
    criterion.duals.values.fill_(0.7)
    scores, y = draw()
    leaf = scores.clone().requires_grad_()
    surrogate = torch.nn.functional.softplus if isinstance(step, Softplus) else _hinge
    missed = surrogate(-(leaf - 0.2))[y == 1].mean()
    alarms = surrogate(leaf - 0.2)[y == 0].mean()
    (slopes,) = torch.autograd.grad(missed + 0.7 * (alarms - 0.1), leaf)
    torch.testing.assert_close(gradient(criterion, scores, y)[1], slopes, rtol=1e-10, atol=1e-14)


def _hinge(u):
    return torch.relu(1 + u)


# ---- the prices ----------------------------------------------------------------------------------


def test_a_price_climbs_its_gap_and_stops_at_zero():
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1), threshold=0.0, dual_rate=2.0)
    expected = 0.0
    for shift in (-5.0, -5.0, 1.0, 0.0, -5.0):
        scores, y = draw()
        soft = torch.sigmoid(scores[y == 0] + shift).mean().item()
        expected = max(0.0, expected + 2.0 * (soft - 0.1))
        gradient(criterion, scores + shift, y)
        assert criterion.multipliers.item() == pytest.approx(expected, abs=1e-12)
    assert criterion.history()[0]["multipliers"]["fpr <= 0.1"] == 0


def test_the_price_of_a_setpoint_may_be_negative():
    criterion = sp.Lagrangian(sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.9)), threshold=0.0)
    gradient(criterion, *draw())
    assert criterion.multipliers.item() < 0


def test_the_proxy_looks_at_true_counts():
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1), threshold=0.0, proxy=True, dual_rate=1.0)
    scores, y = draw()
    gradient(criterion, scores, y)
    true = (scores[y == 0] > 0).double().mean().item()
    assert criterion.multipliers.item() == pytest.approx(true - 0.1, abs=1e-12)


def test_swap_regret_prices_are_the_stationary_distribution():
    """By hand: the matrix of algorithm 2, its eigenvector of eigenvalue one."""
    problem = sp.Problem(minimize=sp.error, subject_to=[sp.fpr <= 0.2, sp.recall >= 0.7])
    criterion = sp.Lagrangian(problem, threshold=0.0, proxy=True, regret="swap", dual_rate=1.5)
    matrix = torch.full((3, 3), 1 / 3, dtype=torch.float64)
    shares = torch.full((3,), 1 / 3, dtype=torch.float64)
    for seed in range(4):
        scores, y = draw(seed=seed)
        gaps = [0.0, ((scores > 0) & (y == 0)).sum() / (y == 0).sum() - 0.2]
        gaps.append(0.7 - ((scores > 0) & (y == 1)).sum() / y.sum())
        gradient(criterion, scores, y)
        matrix = matrix * torch.exp(1.5 * torch.tensor(gaps).double()[:, None] * shares)
        matrix = matrix / matrix.sum(0)
        values, vectors = torch.linalg.eig(matrix)
        first = vectors[:, values.real.argmax()].real
        shares = first / first.sum()
        weight, prices = criterion.duals.prices(torch.zeros(1, 1, dtype=torch.float64))
        found = torch.cat([weight.reshape(-1), prices.reshape(-1)])
        torch.testing.assert_close(found, shares, rtol=1e-7, atol=1e-9)  # gaps in float32


def test_history_has_one_row_a_step_and_forgets_the_oldest():
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1))
    for seed in range(3):
        gradient(criterion, *draw(30, seed=seed))
    assert [row["step"] for row in criterion.history()] == [1, 2, 3]
    for _ in range(1000):
        criterion.log.add(torch.zeros(2, dtype=torch.float64))
    assert [row["step"] for row in criterion.history()][:2] == [4, 5]
    assert len(criterion.history()) == 1000


def test_training_finds_the_known_answer():
    """Scores are ``x + b``: of all shifts the largest that keeps the false alarms is best."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(1000, generator=rng) < 0.3).long()
    x = torch.randn(1000, generator=rng, dtype=torch.float64) + 2 * y
    shift = torch.zeros((), dtype=torch.float64, requires_grad=True)
    options = {"threshold": 0.0, "proxy": True, "dual_rate": 0.5}
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1), step=sp.Sigmoid(temperature=0.3), **options)
    optimizer = torch.optim.SGD([shift], lr=0.05)
    seen = []
    for step in range(900):
        optimizer.zero_grad()
        criterion(x + shift, y).backward()
        optimizer.step()
        if step >= 450:
            seen.append(shift.item())
    rate = (x[y == 0] + sum(seen) / len(seen) > 0).double().mean().item()
    assert rate == pytest.approx(0.1, abs=0.01)  # the mean iterate, as the theory says


# ---- as a module -------------------------------------------------------------------------------

OPTIONS = [{}, {"proxy": True, "regret": "swap"}, {"threshold": 0.0, "proxy": True}]


@pytest.mark.parametrize(
    ("problem", "options"), [(PROBLEMS[2], {}), (PROBLEMS[4], OPTIONS[1])], ids=str
)
def test_it_compiles_without_a_graph_break(problem, options):
    eager, compiled = sp.Lagrangian(problem, **options), sp.Lagrangian(problem, **options)
    torch._dynamo.reset()
    run = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    for seed in range(2):
        scores, y = draw(40, seed=seed)
        _, expected = gradient(eager, scores, y)
        leaf = scores.clone().requires_grad_()
        (found,) = torch.autograd.grad(run(leaf, y), leaf)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(compiled.multipliers, eager.multipliers)


def test_a_look_at_validation_data_is_no_step():
    criterion = sp.Lagrangian(sp.precision_at_recall(0.9))
    gradient(criterion, *draw())
    kept = copy.deepcopy(criterion.state_dict())
    with torch.no_grad():
        criterion(*draw(seed=1))
    criterion.eval()
    gradient(criterion, *draw(seed=1))
    assert all(torch.equal(kept[name], now) for name, now in criterion.state_dict().items())


def test_the_recipe_is_in_the_repr():
    text = repr(sp.Lagrangian(sp.fnr_at_fpr(0.1), proxy=True, dual_rate=0.5))
    assert "minimize fnr subject to fpr <= 0.1" in text
    assert "dual_rate=0.5, proxy=True" in text


# ---- batches nobody planned, and bad input -----------------------------------------------------

TWO = torch.stack([SOME, SOME.flip(0)], 1), torch.stack([MIXED, 0 * MIXED], 1)
BATCHES = {**HARD_BATCHES, "two outputs": TWO}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@every_problem
def test_loss_gradient_and_prices_stay_finite(problem, options, batch):
    scores, labels = BATCHES[batch]
    criterion = sp.Lagrangian(problem, **options)
    for _ in range(2):
        leaf = scores.clone().requires_grad_()
        loss = criterion(leaf, labels)
        loss.backward()
        assert loss.isfinite()
        assert leaf.grad.isfinite().all()
        assert isinstance(criterion.status, str)
        assert criterion.multipliers.isfinite().all()
        assert criterion.thresholds.isfinite().all()
        assert isinstance(criterion.stats(), dict)


@pytest.mark.parametrize("batch", ["no positives", "no negatives"])
def test_a_missing_class_moves_nothing_and_is_said(batch):
    criterion = sp.Lagrangian(sp.precision_at_recall(0.9))
    gradient(criterion, *draw())
    kept = [criterion.multipliers.clone(), criterion.thresholds.clone(), criterion.slack.counts]
    scores, labels = BATCHES[batch]
    _, found = gradient(criterion, scores, labels)
    assert torch.equal(found, torch.zeros(6))
    now = [criterion.multipliers, criterion.thresholds, criterion.slack.counts]
    assert all(torch.equal(a, b) for a, b in zip(kept, now, strict=True))
    assert criterion.status == f"{batch} in the batch"


def test_a_multiplier_that_diverges_says_so_and_stays_finite():
    """Both at once cannot be: nothing pays, and the prices run away."""
    problem = sp.Problem(minimize=sp.error, subject_to=[sp.recall >= 0.99, sp.fpr <= 0.001])
    criterion = sp.Lagrangian(problem, threshold=0.0, dual_rate=1e5)
    scores, y = draw()
    for _ in range(40):
        loss, found = gradient(criterion, scores - 1, y)
    assert "diverging (multiplier" in criterion.status
    assert "recall >= 0.99" in criterion.status
    assert loss.isfinite()
    assert found.isfinite().all()
    assert criterion.multipliers.max() <= 1e6


@pytest.mark.parametrize("regret", ["external", "swap"])
@pytest.mark.parametrize("reached", [False, True])
def test_a_target_that_stays_broken_is_told_at_the_default_rate(regret, reached):
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= (0.3 if reached else 0.001))
    criterion = sp.Lagrangian(problem, threshold=0.0, proxy=True, regret=regret)
    torch.manual_seed(0)
    x, y = torch.randn(200, 1), torch.arange(200) % 2
    x[y == 1] += 1
    scale = torch.ones(1, requires_grad=True)  # cannot move where the scores are cut
    shift = torch.zeros(1, requires_grad=reached)
    optimizer = torch.optim.SGD([scale, shift], lr=0.05)
    for step in range(510):
        optimizer.zero_grad()
        criterion((x * scale.exp() + shift)[:, 0], y).backward()
        optimizer.step()
        if step == 490:
            assert not criterion.status.startswith("diverging")
    assert criterion.status.startswith("diverging (multiplier") == (not reached)
    if not reached:
        assert "fpr <= 0.001 has been broken by 0." in criterion.status


def test_what_it_cannot_express_is_refused():
    with pytest.raises(TypeError, match="takes a Problem"):
        sp.Lagrangian(sp.fnr)
    gap = abs(sp.coverage.on(g="a") - sp.coverage.on(g="b")) <= 0.1
    problem = sp.Problem(minimize=sp.error, subject_to=gap, thresholds="per group")
    with pytest.raises(NotImplementedError, match=r"one per group\. Implicit trains those"):
        sp.Lagrangian(problem)
    with pytest.raises(ValueError, match="set proxy=True"):
        sp.Lagrangian(sp.fnr_at_fpr(0.1), regret="swap")
    with pytest.raises(ValueError, match="'external' or 'swap'"):
        sp.Lagrangian(sp.fnr_at_fpr(0.1), regret="none")
    with pytest.raises(ValueError, match="dual_rate must be positive"):
        sp.Lagrangian(sp.fnr_at_fpr(0.1), dual_rate=0)
    with pytest.raises(ValueError, match="finite"):
        sp.Lagrangian(sp.fnr_at_fpr(0.1))(torch.tensor([torch.nan, 1.0]), torch.tensor([0, 1]))


def test_groups_are_counted():
    scores, y = draw()
    groups = torch.arange(90) % 2
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group=1) <= 0.1)
    criterion = sp.Lagrangian(problem, threshold=0.0, proxy=True)
    gradient(criterion, scores, y, groups=groups)
    true = (scores[(y == 0) & (groups == 1)] > 0).double().mean().item()
    assert criterion.stats()["gaps"][str(problem.subject_to[0])] == pytest.approx(true - 0.1)


def test_scores_tied_at_the_top_are_told():
    criterion = sp.Lagrangian(sp.fnr_at_fpr(0.1))
    criterion(torch.zeros(40, requires_grad=True), torch.arange(40) % 2).backward()
    assert str(criterion.status).startswith("tied: 40 of 40 examples share the highest score")
