"""Implicit: its options, its state, its words."""

import copy

import numpy as np
import pytest
import torch
from samples import draw_classes
from torch import nn

import setpoint as sp
from setpoint.losses import attach
from setpoint.losses.log_likelihood import (
    BINARY_LOSSES,
    CLASS_LOSSES,
    GRADIENTS,
    class_cross_entropy,
)
from setpoint.rates import macro
from setpoint.solvers import cross_entropy, focal
from setpoint.solvers.implicit import StarvedBatchWarning
from setpoint.solvers.main_loss import MAIN_NAMES
from setpoint.steps import Hard, Softplus


def draw(n=200, seed=0, shape=()):
    rng = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, *shape, generator=rng) < 0.3).long()
    scores = torch.randn(n, *shape, generator=rng, dtype=torch.float64) + labels
    return scores.requires_grad_(), labels


def gradient(criterion, scores, labels, **keywords):
    return torch.autograd.grad(criterion(scores, labels, **keywords), scores)[0]


def test_the_value_is_the_objective_not_the_mix():
    scores, labels = draw()
    values = [
        sp.Implicit(sp.fnr_at_fpr(0.1), share=s, widening=1.0)(scores, labels).item()
        for s in (0.0, 0.3, 1.0)
    ]
    assert values[0] == values[1] == values[2]
    criterion = sp.Implicit(sp.precision_at_recall(0.9))
    loss = criterion(scores, labels)
    assert loss.item() == pytest.approx(-criterion.stats()["soft_objective"])


def test_a_share_of_one_is_the_main_loss_alone():
    scores, labels = draw()
    expected = torch.autograd.grad(cross_entropy(scores, labels), scores)[0]
    torch.testing.assert_close(
        gradient(sp.Implicit(sp.fnr_at_fpr(0.1), share=1.0), scores, labels), expected
    )


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_the_mix_matches_lengths_on_the_scores(share):
    scores, labels = draw()
    main = torch.autograd.grad(cross_entropy(scores, labels), scores)[0]
    bare = gradient(sp.Implicit(sp.fnr_at_fpr(0.1), share=0.0), scores, labels)
    expected = share * main + (1 - share) * bare * main.abs().sum() / bare.abs().sum()
    mixed = sp.Implicit(sp.fnr_at_fpr(0.1), main="cross_entropy", share=share, widening=1.0)
    torch.testing.assert_close(gradient(mixed, scores, labels), expected)
    by_hand = sp.Implicit(
        sp.fnr_at_fpr(0.1), main=nn.BCEWithLogitsLoss(), share=share, widening=1.0
    )
    torch.testing.assert_close(gradient(by_hand, scores, labels), expected)


def test_the_share_fades_from_one_to_zero_over_the_steps():
    scores, labels = draw()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), steps=5)
    shares = []
    for _ in range(7):
        gradient(criterion, scores, labels)
        shares.append(criterion.stats()["share"])
    assert shares == pytest.approx([1, 0.75, 0.5, 0.25, 0, 0, 0])
    unknown = sp.Implicit(sp.fnr_at_fpr(0.1))
    gradient(unknown, scores, labels)
    assert unknown.stats()["share"] == 0.3


def test_the_share_may_fade_to_more_than_zero():
    scores, labels = draw()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), steps=3, end=0.4)
    shares = []
    for _ in range(4):
        gradient(criterion, scores, labels)
        shares.append(criterion.stats()["share"])
    assert shares == pytest.approx([1, 0.7, 0.4, 0.4])


@pytest.mark.parametrize("compiled", [False, True])
def test_the_band_narrows_as_the_main_loss_fades(compiled):
    """At a share s the steps are ``widening ** s`` times as wide."""
    scores, labels = draw(48)
    torch._dynamo.reset()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), steps=3, widening=9.0)
    run = torch.compile(criterion, fullgraph=True, backend="aot_eager") if compiled else criterion
    for share, width in ((1.0, 0.45), (0.5, 0.15), (0.0, 0.05)):
        found = torch.autograd.grad(run(scores, labels), scores)[0]
        same = sp.Implicit(
            sp.fnr_at_fpr(0.1), share=share, widening=1.0, step=sp.Sigmoid(width=width)
        )
        if share == 0:  # the end of a fade is matched to the main loss, the bare loss is not
            found, bare = (g / g.abs().sum() for g in (found, gradient(same, scores, labels)))
            torch.testing.assert_close(found, bare, rtol=1e-9, atol=1e-12)
        else:
            expected = gradient(same, scores, labels)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_end_of_the_fade_is_still_matched(compiled):
    """At a share of zero the implicit gradient keeps the length of the main one."""
    scores, labels = draw(48)
    scores = (scores.detach() * 0.01).requires_grad_()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), steps=3)
    torch._dynamo.reset()
    run = torch.compile(criterion, fullgraph=True, backend="aot_eager") if compiled else criterion
    main = torch.autograd.grad(cross_entropy(scores, labels), scores)[0].abs().sum()
    for _ in range(5):
        found = torch.autograd.grad(run(scores, labels), scores)[0].abs().sum()
        assert found <= main * (1 + 1e-6)
    assert criterion.stats()["share"] == 0
    torch.testing.assert_close(found, main)


def test_a_loss_scale_meets_the_gradient_before_half_precision_does():
    scores, labels = draw()
    half = scores.detach().half().requires_grad_()
    for scale in (1.0, 65536.0):
        loss = sp.Implicit(sp.fnr_at_fpr(0.1))(half, labels) * scale
        found = torch.autograd.grad(loss, half)[0].double() / scale
        expected = gradient(
            sp.Implicit(sp.fnr_at_fpr(0.1)), half.detach().double().requires_grad_(), labels
        )
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.int32])
def test_labels_of_any_type(dtype):
    scores, labels = draw()
    expected = gradient(sp.Implicit(sp.fnr_at_fpr(0.1)), scores, labels)
    assert torch.equal(
        gradient(sp.Implicit(sp.fnr_at_fpr(0.1)), scores, labels.to(dtype)), expected
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_reported_thresholds_decide_the_same_in_the_precision_of_the_scores(dtype):
    for seed in range(40):
        scores, labels = draw(60, seed=seed)
        low = scores.detach().to(dtype).requires_grad_()
        criterion = sp.Implicit(sp.precision_at_recall(0.9))
        criterion(low, labels)
        found = (low > criterion.thresholds.item())[labels == 1].double().mean()
        assert found >= 0.9


@pytest.mark.parametrize(
    "make",
    [
        lambda p: sp.Implicit(p, memory=100),
        lambda p: sp.Implicit(p, correct_every=3, correction_batches=2),
    ],
    ids=["memory", "published"],
)
def test_casting_a_criterion_leaves_its_state_in_full_precision(make):
    scores, labels = draw()
    cast, left = make(sp.fnr_at_fpr(0.1)), make(sp.fnr_at_fpr(0.1))
    for criterion in (cast, left):
        gradient(criterion, scores, labels)
    cast.half()
    assert cast.thresholds.dtype == torch.float64
    other = draw(seed=1)
    assert torch.equal(gradient(cast, *other), gradient(left, *other))


def test_a_memory_of_another_length_is_refused():
    scores, labels = draw()
    first = sp.Implicit(sp.fnr_at_fpr(0.1), memory=100)
    gradient(first, scores, labels)
    with pytest.raises(ValueError, match=r"remembers 100 scores, .* memory=200"):
        sp.Implicit(sp.fnr_at_fpr(0.1), memory=200).load_state_dict(first.state_dict())


def test_saving_between_backward_and_step_changes_nothing():
    torch.manual_seed(0)
    x, y = torch.randn(4, 60, 3), torch.rand(4, 60) < 0.3

    def train(save):
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        criterion = sp.Implicit.as_published(sp.fnr_at_fpr(0.2), follow=model.parameters())
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for i in range(4):
            optimizer.zero_grad()
            criterion(model(x[i]), y[i]).backward()
            if save:
                criterion.state_dict()
            optimizer.step()
        return criterion.thresholds

    torch.testing.assert_close(train(save=True), train(save=False))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (
            lambda: sp.Implicit.as_published(
                sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.05))
            ),
            "drifting",
        ),
        (lambda: sp.Implicit.as_published(sp.roc_auc((0, 0.5), points=2)), "drifting"),
        (lambda: sp.Implicit(sp.precision_at_k(500)), "infeasible (gap 3e+02)"),
        (lambda: sp.Implicit(sp.roc_auc((0, 0.001))), "too coarse"),
    ],
)
def test_setpoints_that_are_not_held_say_so(make, word):
    scores, labels = draw()
    criterion = make()
    gradient(criterion, scores, labels)
    gradient(criterion, (scores + 10).detach().requires_grad_(), labels)
    assert criterion.status.startswith(word)


def test_stats_are_json():
    import json

    criterion = sp.Implicit(sp.Problem(minimize=sp.fnr))  # accepts everybody
    gradient(criterion, *draw())
    assert criterion.stats()["threshold"] is None
    json.dumps(criterion.stats(), allow_nan=False)


def test_main_losses_of_all_kinds():
    scores, labels = draw()

    class Mine(nn.Module):
        def forward(self, scores, labels, weights=None):
            return cross_entropy(scores, labels, weights)

    weights = torch.rand(200, 1)
    ours = gradient(
        sp.Implicit(sp.fnr_at_fpr(0.1), main="cross_entropy"), scores, labels, weights=weights
    )
    theirs = sp.Implicit(sp.fnr_at_fpr(0.1), main=Mine())
    torch.testing.assert_close(gradient(theirs, scores, labels, weights=weights), ours)
    broken = sp.Implicit(sp.fnr_at_fpr(0.1), main=lambda s, y: (s * torch.nan).sum())
    assert torch.equal(gradient(broken, scores, labels), torch.zeros(200, dtype=torch.float64))
    assert broken.status == "undefined: the main loss has no finite gradient"
    with pytest.raises(ValueError, match=r"weights must be one per example, \[200\]"):
        theirs(scores, labels, weights=torch.tensor(1.0))


@pytest.mark.parametrize(
    ("goal", "known"),
    [
        ("minimize fnr subject to fpr <= 0.1", "'focal', 'cross_entropy' or"),
        (
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1, thresholds="per group"),
            "'focal', 'cr",
        ),
        (sp.Problem(maximize=macro(sp.recall)), "'adjusted', 'focal', 'cross_entropy' or"),
        (
            sp.Problem(maximize=sp.recall, subject_to=sp.precision >= 0.5).per("query"),
            "'listwise', 'focal', 'cross_entropy' or",
        ),
    ],
)
@pytest.mark.parametrize("name", ["adjustd", "adjusted", "listwise"])
def test_a_main_loss_of_another_kind_of_goal_is_refused(goal, known, name):
    if repr(name) in known:
        assert sp.Implicit(goal, main=name).main == name
        return
    with pytest.raises(ValueError, match=f"main must be one of {known}.*got '{name}'"):
        sp.Implicit(goal, main=name)


def test_a_main_loss_of_classes_alone_trains_classes(monkeypatch):
    monkeypatch.setitem(CLASS_LOSSES, "mine", class_cross_entropy)
    monkeypatch.setitem(MAIN_NAMES, "classes", (*MAIN_NAMES["classes"], "mine"))
    scores, labels = draw_classes()
    scores.requires_grad_()
    own, known = (
        sp.Implicit(sp.Problem(maximize=macro(sp.recall)), main=main)
        for main in ("mine", "cross_entropy")
    )
    torch.testing.assert_close(gradient(own, scores, labels), gradient(known, scores, labels))
    with pytest.raises(ValueError, match="main must be one of 'focal', 'cross_entropy' or"):
        sp.Implicit(sp.fnr_at_fpr(0.1), main="mine")


def test_a_named_loss_without_a_gradient_in_closed_form_is_differentiated(monkeypatch):
    scores, labels = draw()
    expected = gradient(sp.Implicit(sp.fnr_at_fpr(0.1), main="focal"), scores, labels)
    monkeypatch.delitem(GRADIENTS, focal)
    found = gradient(sp.Implicit(sp.fnr_at_fpr(0.1), main="focal"), scores, labels)
    torch.testing.assert_close(found, expected)


def test_validation_between_steps_changes_nothing():
    scores, labels = draw()
    other, other_labels = draw(seed=1)
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), steps=5, memory=50)
    gradient(criterion, scores, labels)
    before = copy.deepcopy(criterion.state_dict())
    criterion.eval()
    gradient(criterion, other, other_labels)
    criterion.train()
    with torch.no_grad():
        criterion(other, other_labels)
    for key, value in criterion.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("loss", BINARY_LOSSES.values(), ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_gradients_of_main_losses(loss, shape, weighted):
    scores, labels = draw(shape=shape)
    scores = (scores.detach() * 8).requires_grad_()
    weights = torch.rand(200, dtype=torch.float64) if weighted else None
    expected = torch.autograd.grad(loss(scores, labels, weights), scores)[0]
    torch.testing.assert_close(GRADIENTS[loss](scores.detach(), labels, weights), expected)


def test_cross_entropy_and_focal_are_what_their_names_say():
    scores, labels = draw()
    expected = nn.functional.binary_cross_entropy_with_logits(scores, labels.double())
    torch.testing.assert_close(cross_entropy(scores, labels), expected)
    torch.testing.assert_close(focal(scores, labels, gamma=0.0), expected)
    p = torch.where(labels == 1, torch.sigmoid(scores), torch.sigmoid(-scores))
    torch.testing.assert_close(focal(scores, labels), (-((1 - p) ** 2) * p.log()).mean())


def test_a_main_loss_of_the_users_own_with_weights():
    scores, labels = draw()
    weights = torch.rand(200)

    def mine(s, y, weights=None):
        return cross_entropy(s, y, weights)

    ours = gradient(
        sp.Implicit(sp.fnr_at_fpr(0.1), main="cross_entropy"), scores, labels, weights=weights
    )
    theirs = gradient(sp.Implicit(sp.fnr_at_fpr(0.1), main=mine), scores, labels, weights=weights)
    torch.testing.assert_close(ours, theirs)
    with pytest.raises(TypeError, match="takes no weights"):
        sp.Implicit(sp.fnr_at_fpr(0.1), main=nn.BCEWithLogitsLoss())(
            scores, labels, weights=weights
        )
    with pytest.raises(ValueError, match="must return one number"):
        sp.Implicit(sp.fnr_at_fpr(0.1), main=nn.BCEWithLogitsLoss(reduction="none"))(scores, labels)


@pytest.mark.parametrize("step", [sp.Sigmoid(), Softplus(), sp.Sigmoid(temperature=0.5)], ids=repr)
def test_flatness_is_the_gradient_of_its_square(step):
    """Against central differences, the threshold solved again on soft counts."""
    from scipy.optimize import brentq

    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2))
    scores, labels = draw(80)
    plain = sp.Implicit(problem, share=0.0, step=step)
    flat = sp.Implicit(problem, share=0.0, step=step, flatness=0.7)
    pull = gradient(flat, scores, labels) - gradient(plain, scores, labels)
    h, t0 = flat.outcome.counts.width.item(), flat.outcome.placed.marginal.item()
    negatives = labels == 0

    def rate(s, t):
        return step.value((s[negatives] - t) / h).mean().item()

    level = rate(scores.detach(), t0)

    def square(s):
        t = brentq(lambda t: rate(s, t) - level, t0 - h, t0 + h, xtol=1e-14)
        return 0.7 * step.slope((s[negatives] - t) / h).mean().item() ** 2

    rng = torch.Generator().manual_seed(1)
    for _ in range(3):
        v = torch.randn(80, generator=rng, dtype=torch.float64)
        e = 1e-4 * h
        slope = (square(scores.detach() + e * v) - square(scores.detach() - e * v)) / (2 * e)
        assert (pull @ v).item() == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_as_published_corrects_every_so_often_on_the_last_batches():
    criterion = sp.Implicit.as_published(
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)),
        correct_every=3,
        correction_batches=2,
    )
    batches = [draw(60, seed=i) for i in range(5)]
    found = []
    for scores, labels in batches:
        criterion(scores, labels).backward()
        found.append(criterion.thresholds.item())
    assert found[0] == found[1] == found[2] != found[3] == found[4]
    pooled = sp.Implicit(criterion.problem, share=0.0)
    scores = torch.cat([batches[2][0], batches[3][0]])
    pooled(scores, torch.cat([batches[2][1], batches[3][1]]))
    assert found[3] == pooled.thresholds.item()


def test_as_published_corrects_on_the_next_batches_if_asked():
    options = {"correct_every": 4, "correction_batches": 2, "correct_on": "next"}
    criterion = sp.Implicit.as_published(
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)), **options
    )
    batches = [draw(60, seed=i) for i in range(7)]
    found = []
    for scores, labels in batches:
        criterion(scores, labels).backward()
        found.append(criterion.thresholds.item())
    # due at steps 0 and 4, on batches 0, 1 and 4, 5; until batch 1 the first one's own threshold
    assert found[0] != found[1] == found[2] == found[4] != found[5] == found[6]
    pooled = sp.Implicit(criterion.problem, share=0.0)
    pooled(torch.cat([batches[4][0], batches[5][0]]), torch.cat([batches[4][1], batches[5][1]]))
    assert found[5] == pooled.thresholds.item()
    with pytest.raises(ValueError, match="'last' or 'next'"):
        sp.Implicit(criterion.problem, correct_on="later")


def test_between_corrections_the_threshold_follows_the_weights():
    """Line 10 of Algorithm 1: to first order the held rate stays where it is."""
    torch.manual_seed(0)
    y = (torch.rand(4000) < 0.3).long()
    x = torch.randn(4000, 3, dtype=torch.float64) + y[:, None]
    model = nn.Linear(3, 1, dtype=torch.float64)
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2))
    criterion = sp.Implicit.as_published(
        problem, temperature=5.0, correct_every=100, follow=model.parameters()
    )
    criterion(model(x), y).backward()
    start = criterion.thresholds.item()
    with torch.no_grad():
        model.weight += torch.tensor([[0.01, -0.005, 0.008]])
        model.bias += 0.02
    criterion(model(x), y).backward()
    moved = criterion.thresholds.item()
    again = sp.Implicit(problem)
    again(model(x), y)
    exact = again.thresholds.item()
    assert abs(exact - start) > 0.01
    assert abs(moved - exact) < 0.3 * abs(exact - start)


def test_drifting_is_said():
    criterion = sp.Implicit.as_published(sp.fnr_at_fpr(0.1), correct_every=100)
    scores, labels = draw()
    criterion(scores, labels).backward()
    criterion((scores + 3).detach().requires_grad_(), labels).backward()
    assert criterion.status.startswith("drifting (gap ")


def test_alerts_mean_heads_of_a_batch_however_long_the_memory():
    problem = sp.precision_at_k(20)
    criterion = sp.Implicit(problem, memory=2000)
    for seed in range(12):
        scores, labels = draw(200, seed=seed)
        criterion(scores, labels).backward()
    accepted = (criterion.outcome.counts.whole.scores > criterion.thresholds.numpy()).mean()
    assert accepted.item() == pytest.approx(0.1, abs=0.002)


def test_the_memory_forgets_the_oldest():
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1), memory=30)
    batches = [draw(20, seed=i) for i in range(3)]
    for scores, labels in batches:
        criterion(scores, labels).backward()
    kept = criterion.memory.scores.sort().values[0]
    expected = torch.cat([batches[1][0][-10:], batches[2][0]]).sort().values
    assert torch.equal(kept, expected.detach())


def test_the_state_moves_with_several_outputs():
    scores, labels = draw(shape=(3,))
    first = sp.Implicit(sp.roc_auc((0, 0.2), points=4), memory=50)
    first(scores, labels).backward()
    assert first.thresholds.shape == (3, 4)
    second = sp.Implicit(sp.roc_auc((0, 0.2), points=4), memory=50)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.thresholds, first.thresholds)
    assert torch.equal(gradient(first, scores, labels), gradient(second, scores, labels))


def test_stats_are_plain_numbers():
    scores, labels = draw()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1))
    assert criterion.status == "not started"
    assert criterion.stats() == {"status": "not started"}
    criterion(scores, labels).backward()
    stats = criterion.stats()
    assert stats["status"] == "held"
    names = ["threshold", "held_rate", "soft_objective", "hard_objective", "multiplier"]
    assert list(stats) == ["status", *names, "examples_in_band", "share", "recent"]
    recent = stats.pop("recent")
    assert recent == {"fnr": stats["hard_objective"], "fpr": stats["held_rate"]}
    assert all(type(v) is float for k, v in stats.items() if k != "status")
    assert stats["held_rate"] <= 0.1
    assert stats["hard_objective"] == pytest.approx(criterion.problem.evaluate(scores, labels))
    assert 1 < stats["examples_in_band"] < 200
    assert criterion.thresholds.item() == stats["threshold"]


def test_the_repr_is_the_recipe():
    text = repr(sp.Implicit(sp.fnr_at_fpr(0.01), steps=100))
    expected = (
        "Implicit(minimize fnr subject to fpr <= 0.01, main='cross_entropy', share='fade', "
        "steps=100, end=0.0, step=Sigmoid(width=0.05), widening=5.0, memory=0, correct_every=1, "
        "correction_batches=1, follow=None, flatness=0.0, slope_floor=0.0, strict=False)"
    )
    assert text == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.Implicit(sp.fnr), "takes a Problem"),
        (
            lambda: sp.Implicit(sp.fnr_at_fpr(0.1), share=1.5),
            "share must be a share between 0 and 1",
        ),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), share="fast"), "share"),
        (
            lambda: sp.Implicit(sp.fnr_at_fpr(0.1), main="hinge"),
            "'focal', 'cross_entropy' or a callable",
        ),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), main=3), "name of a loss or a callable"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), widening=0), "widening must be positive"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), end=-0.1), "end must be a share between 0 and 1"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), steps=0), "steps must be a whole number"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), memory=-1), "memory must be a whole number"),
        (
            lambda: sp.Implicit(sp.fnr_at_fpr(0.1), share=0.0, memory=5),
            "A memory needs a main loss",
        ),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), step=Hard()), "no gradient"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), step="sigmoid"), "step must be a step"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), flatness=-1), "flatness"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), follow=[]), "correct_every > 1"),
        (lambda: sp.Implicit(sp.fnr_at_fpr(0.1), follow=[], correct_every=2), "no parameter"),
        (
            lambda: sp.Implicit.as_published(sp.fnr_at_fpr(0.1), surrogate="hinge"),
            "surrogate must be",
        ),
        (lambda: sp.Implicit.as_published(sp.fnr_at_fpr(0.1), temperature=0), "temperature"),
        (
            lambda: sp.Implicit.as_published(sp.roc_auc(), follow=nn.Linear(1, 1).parameters()),
            "has 10",
        ),
        (
            lambda: sp.Implicit(
                sp.Problem(minimize=sp.error, subject_to=sp.coverage <= 0.1, thresholds="per group")
            ),
            "per group",
        ),
        (lambda: sp.Sigmoid(width=0), "width must be positive"),
        (lambda: sp.Sigmoid(width=1, temperature=1), "not both"),
    ],
)
def test_wrong_options_are_named(make, message):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        make()


def test_slices_need_their_groups():
    problem = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.1)
    scores, labels = draw()
    with pytest.raises(ValueError, match='by "group"; pass groups='):
        sp.Implicit(problem)(scores, labels)
    criterion = sp.Implicit(problem)
    groups = ["a" if i % 2 else "b" for i in range(200)]
    criterion(scores, labels, groups=groups).backward()
    mine = torch.arange(200) % 2 == 1
    admitted = (scores[mine & (labels == 0)] > criterion.thresholds).double().mean()
    assert admitted <= 0.1
    criterion(scores, labels, groups=["b"] * 200).backward()
    assert criterion.status.startswith('undefined: fpr on group="a" is 0/0 in the batch')


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (sp.fnr_at_fpr(0.1), {"steps": 9}),
        (sp.fnr_at_fpr(0.1), {"memory": 64}),
        (sp.roc_auc((0, 0.2), points=3), {"share": 0.0}),
        (sp.Problem(maximize=sp.f_score(1)), {}),
    ],
    ids=["fade", "memory", "bare area", "constant f score"],
)
def test_it_compiles_without_a_graph_break(problem, options):
    scores, labels = draw(48)
    eager, compiled = sp.Implicit(problem, **options), sp.Implicit(problem, **options)
    torch._dynamo.reset()
    run = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        expected = gradient(eager, scores, labels)
        found = torch.autograd.grad(run(scores, labels), scores)[0]
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(compiled.thresholds, eager.thresholds)
    assert compiled.status.startswith("held; ")


def test_compiled_scores_that_are_no_numbers_give_nan_and_say_so():
    scores, labels = draw(48)
    broken = scores.detach().clone()
    broken[3] = torch.nan
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1))
    torch._dynamo.reset()
    run = torch.compile(criterion, fullgraph=True, backend="aot_eager")
    assert run(broken.requires_grad_(), labels).isnan()
    assert criterion.status == "undefined: scores are not finite"


def test_following_takes_one_output():
    model = nn.Linear(2, 3)
    criterion = sp.Implicit.as_published(sp.fnr_at_fpr(0.1), follow=model.parameters())
    with pytest.raises(ValueError, match="one threshold; got scores of 3 outputs"):
        criterion(model(torch.randn(20, 2)), (torch.rand(20, 3) < 0.5).long())


def test_a_look_at_validation_data_leaves_the_published_schedule_alone():
    criterion = sp.Implicit.as_published(sp.fnr_at_fpr(0.1), correct_every=3, correction_batches=2)
    first, second = draw(60), draw(60, seed=1)
    with torch.no_grad():
        criterion(*second)
    criterion(*first).backward()
    found = criterion.thresholds.clone()
    with torch.no_grad():
        criterion(*second)
    alone = sp.Implicit(sp.fnr_at_fpr(0.1))
    alone(*first)
    assert torch.equal(criterion.thresholds, found)
    assert torch.equal(found, alone.thresholds)
    assert int(criterion.schedule.age) == 1


def test_weights_may_be_any_array():
    scores, labels = draw()
    weights = torch.rand(200)
    expected = gradient(sp.Implicit(sp.fnr_at_fpr(0.1)), scores, labels, weights=weights)
    found = gradient(
        sp.Implicit(sp.fnr_at_fpr(0.1)), scores, labels.numpy(), weights=weights.tolist()
    )
    torch.testing.assert_close(found, expected)


def test_autocast_and_a_loss_scale_leave_the_numbers_alone():
    scores, labels = draw()
    scores = scores.detach().float().requires_grad_()
    expected = gradient(sp.Implicit(sp.fnr_at_fpr(0.1)), scores, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = sp.Implicit(sp.fnr_at_fpr(0.1))(scores, labels)
    found = torch.autograd.grad(loss * 1024, scores)[0]
    torch.testing.assert_close(found, expected * 1024)
    assert loss.dtype == torch.float32


def test_several_ranks_are_refused_with_a_reason(monkeypatch):
    import torch.distributed as dist

    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    scores, labels = draw()
    with pytest.raises(RuntimeError, match=r"2 ranks.*Call criterion\.attach\(model\)"):
        sp.Implicit(sp.fnr_at_fpr(0.1))(scores, labels)


def test_a_loss_may_have_any_value_and_any_gradient_on_the_scores():
    scores = torch.randn(6, 2, dtype=torch.float16, requires_grad=True)
    wanted = torch.randn(6, 2)
    for value in (torch.tensor(0.3), 0.3):
        scores.grad = None
        loss = attach(scores, value, wanted)
        (3 * loss).backward()
        assert loss.item() == pytest.approx(0.3)
        assert loss.dtype == torch.float32
        torch.testing.assert_close(scores.grad, (3 * wanted).half())


def test_queries_are_refused_where_the_problem_knows_none():
    scores, labels = draw()
    with pytest.raises(ValueError, match="not asked of queries"):
        sp.Implicit(sp.fnr_at_fpr(0.1))(scores, labels, queries=torch.zeros(len(scores)))


@pytest.mark.parametrize(
    "criterion",
    [
        sp.Implicit,
        sp.Lagrangian,
        sp.CrossEntropy,
        sp.Pairwise,
        lambda goal: sp.LastLayer(goal, nn.Linear(3, 1)),
        lambda goal: sp.RateBarrier(goal, nn.Linear(3, 1).parameters()),
    ],
)
def test_criteria_take_goals_as_words_and_bounds(criterion):
    problem = sp.Problem(maximize=sp.tpr, subject_to=sp.fpr <= 0.01)
    for goal in (problem, "Maximise tpr s.t. fpr <= 1 %", sp.fpr <= 0.01, "fpr <= 1 %"):
        assert criterion(goal).problem == problem
    with pytest.raises(
        TypeError, match=r"takes a Problem, a sentence such as .*, or a bound such as .*; got 3"
    ):
        criterion(3)
    with pytest.raises(ValueError, match="fprr"):
        criterion("minimize fnr subject to fprr <= 0.01")


def test_starved_batches_are_told_once_with_the_cure():
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=32), requires_grad=True)
    few = torch.arange(32) < 3  # of 29 negatives none may be accepted
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01))
    for _ in range(19):
        criterion(scores, few)
    with pytest.warns(
        StarvedBatchWarning,
        match=r"20 of the first 20 .* at least 1 positive and 100 negatives\. .*memory=1000",
    ):
        criterion(scores, few)
    for _ in range(30):  # not again
        criterion(scores, few)
    enough = sp.Implicit(sp.fnr_at_fpr(0.1))
    pooled = sp.Implicit(sp.fnr_at_fpr(0.01), memory=1000)
    for _ in range(30):
        enough(scores, few)
        pooled(scores, few)


def test_scores_that_share_the_highest_value_are_told():
    """As when hidden units die: no threshold accepts anybody within the bound."""
    torch.manual_seed(0)
    labels = (torch.rand(400) < 0.2).long()
    scores = torch.randn(400) + 2 * labels
    criterion = sp.Implicit(sp.fnr_at_fpr(0.05), strict=True)
    criterion(scores, labels)
    assert criterion.status == "held"
    flat = scores.clamp(max=0.5)
    criterion(flat, labels)
    sharing = int((flat == 0.5).sum())
    assert criterion.status.startswith(f"tied: {sharing} of 400 examples share the highest score")
    loose = sp.Implicit(sp.fnr_at_fpr(0.9))  # a bound that the whole tie meets
    loose(flat, labels)
    assert loose.status == "held"
