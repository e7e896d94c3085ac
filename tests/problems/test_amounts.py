"""Costs that differ by row: chosen, measured and trained by amounts; rows without a label."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from setpoint import Implicit, Lagrangian, Problem, certify, cost, evaluate, fpr, recall
from setpoint.rates import Counts, by_amounts


def draw(seed=0, n=300):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.3
    return random.normal(size=n) + 1.5 * labels, labels, random.exponential(20, n)


def paid(scores, labels, amounts, threshold):
    """The mean cost, by hand: a miss costs twice its amount, a false alarm 5."""
    accepted = scores > threshold
    lost = np.where(labels & ~accepted, 2 * amounts, 0) + np.where(~labels & accepted, 5, 0)
    return lost.mean()


PLAIN = cost(miss=2, false_alarm=5)
BY_COLUMN = cost(miss=2, false_alarm=5, amounts="worth")


@pytest.mark.parametrize("bound", [None, recall >= 0.8, fpr <= 0.1], ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_the_best_by_brute_force(bound, seed):
    scores, labels, amounts = draw(seed)
    targets = () if bound is None else bound
    problem = Problem(minimize=PLAIN, subject_to=targets)
    allowed = [
        t
        for t in np.append(scores, -np.inf)
        if bound is None
        or (bound.expression == recall and (scores[labels] > t).mean() >= 0.8)
        or (bound.expression == fpr and (scores[~labels] > t).mean() <= 0.1)
    ]
    best = min(paid(scores, labels, amounts, t) for t in allowed)
    chosen = problem.choose(scores, labels, amounts=amounts)
    assert chosen.value == pytest.approx(best, rel=1e-12)
    assert paid(scores, labels, amounts, chosen.thresholds[0]) == pytest.approx(best, rel=1e-12)
    named = Problem(minimize=BY_COLUMN, subject_to=targets)
    assert named.choose(scores, labels, groups={"worth": amounts}) == pytest.approx(chosen) or (
        named.choose(scores, labels, groups={"worth": amounts}).thresholds == chosen.thresholds
    )


def test_it_is_measured_at_a_threshold_and_in_a_slice():
    scores, labels, amounts = draw()
    found = evaluate(scores, labels, Problem(minimize=PLAIN), thresholds=0.3, amounts=amounts)
    assert found == pytest.approx(paid(scores, labels, amounts, 0.3), rel=1e-12)
    side = np.arange(300) % 2
    sliced = Problem(minimize=PLAIN.on(side=1))
    found = evaluate(scores, labels, sliced, thresholds=0.3, amounts=amounts, groups=side)
    rows = side == 1
    expected = paid(scores[rows], labels[rows], amounts[rows], 0.3)
    assert found == pytest.approx(expected, rel=1e-12)
    ones = evaluate(scores, labels, Problem(minimize=PLAIN), amounts=np.ones(300))
    assert ones == pytest.approx(evaluate(scores, labels, Problem(minimize=PLAIN)), rel=1e-12)


def test_sentences_read_back():
    problem = Problem.parse("minimize cost(miss=2, false_alarm=5, amounts=worth) s.t. fpr <= 10 %")
    assert problem.objective == BY_COLUMN
    assert Problem.parse(str(problem)) == problem
    on = Problem(minimize=BY_COLUMN.on(side="a"))
    assert Problem.parse(str(on)) == on


def test_twice_the_amounts_pull_twice_as_much():
    scores, labels, amounts = draw(n=60)
    criterion = Implicit(Problem(minimize=BY_COLUMN, subject_to=fpr <= 0.2), share=0.0)
    given = {"groups": {"worth": torch.tensor(amounts)}}
    s, y = torch.tensor(scores, requires_grad=True), torch.tensor(labels).double()
    criterion(s, y, **given).backward()
    double = Implicit(Problem(minimize=BY_COLUMN, subject_to=fpr <= 0.2), share=0.0)
    t = torch.tensor(scores, requires_grad=True)
    twice = {"groups": {"worth": torch.tensor(2 * amounts)}}
    double(t, y, **twice).backward()
    positive = torch.tensor(labels)
    assert torch.allclose(t.grad[positive], 2 * s.grad[positive], rtol=1e-9)  # money doubles
    assert s.grad[positive].abs().max() > 0


def test_training_learns_what_is_worth_most():
    """Rows that are worth most have a feature of their own: only amounts make it matter."""
    random = np.random.default_rng(0)
    n = 4000
    labels = random.random(n) < 0.3
    dear = random.random(n) < 0.2
    x = np.stack([random.normal(size=n) + 2 * (labels & ~dear), random.normal(size=n)], 1)
    x[:, 1] += 2 * (labels & dear)
    amounts = np.where(dear, 100.0, 1.0)
    x, y, worth = torch.tensor(x).float(), torch.tensor(labels).double(), torch.tensor(amounts)
    slopes = {}
    for name, objective in (("amounts", BY_COLUMN), ("plain", PLAIN)):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(model.weight)
        criterion = Implicit(Problem(minimize=objective, subject_to=fpr <= 0.1), share=0.0)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(100):
            optimizer.zero_grad()
            criterion(model(x), y, groups={"worth": worth}).backward()
            optimizer.step()
        slopes[name] = (model.weight[0, 1] / model.weight[0, 0]).item()
    assert abs(slopes["amounts"]) > 2 * abs(slopes["plain"])


def test_what_amounts_need():
    scores, labels, amounts = draw()
    with pytest.raises(ValueError, match="no cost"):
        evaluate(scores, labels, "maximize recall subject to fpr <= 0.1", amounts=amounts)
    for wrong in (-amounts, np.where(amounts > 9, np.nan, amounts)):
        with pytest.raises(ValueError, match="finite and at least 0"):
            Problem(minimize=PLAIN).choose(scores, labels, amounts=wrong)
    with pytest.raises(ValueError, match='group column "worth"'):
        Problem(minimize=BY_COLUMN).choose(scores, labels, groups={"other": amounts})
    with pytest.raises(ValueError, match="amounts="):
        certify(scores, labels, BY_COLUMN <= 8)
    with pytest.raises(ValueError, match="per group"):
        Problem(minimize=BY_COLUMN, subject_to=fpr <= 0.1, thresholds="per group")
    with pytest.raises(ValueError, match="per query"):
        Problem(minimize=BY_COLUMN).per("session")
    assert by_amounts(recall, "worth") == recall


@pytest.mark.parametrize("mark", [np.nan, -1])
def test_rows_without_a_label_are_absent_in_training_evaluation_and_certificates(mark):
    scores, labels, _ = draw(n=1000)
    truth = labels.astype(float)
    gone = np.arange(1000) % 5 == 0
    truth[gone] = mark
    known = scores[~gone], labels[~gone]
    goal = "maximize recall subject to fpr <= 0.1"
    assert evaluate(scores, truth, goal) == evaluate(*known, goal)
    both = evaluate(np.stack([scores] * 2, 1), np.stack([truth] * 2, 1), goal, outputs=["a", "b"])
    assert both == dict.fromkeys("ab", evaluate(*known, goal))
    assert certify(scores, truth, goal).threshold == certify(*known, goal).threshold
    for make in (
        lambda: Implicit(goal, share=0.3),
        lambda: Implicit(goal, share=0.3, outputs=["a", "b"]),
        lambda: Lagrangian(goal),
    ):
        losses = []
        for s, y in ((scores, truth), known):
            t = torch.tensor(s, requires_grad=True)
            criterion, target = make(), torch.tensor(y).double()
            several = getattr(criterion, "outputs", None) is not None
            pair = [torch.stack([x, x], 1) if several else x for x in (t, target)]
            loss = criterion(*pair)
            loss.sum().backward()
            losses.append((loss.sum().item(), t.grad))
        (a, slope), (b, expected) = losses
        assert a == pytest.approx(b, rel=1e-9)
        assert torch.allclose(slope[torch.tensor(~gone)], expected, rtol=1e-7, atol=1e-12)
        assert not slope[torch.tensor(gone)].any()


def test_minus_one_without_a_zero_is_refused():
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="If -1 marks negatives, pass labels > 0"):
        Implicit("maximize recall subject to fpr <= 0.5")(torch.randn(4), signs)


def test_gradients_are_finite_differences():
    random = np.random.default_rng(0)
    counts = {
        (): Counts(*random.uniform(1, 9, 6)),
        BY_COLUMN.priced: Counts(*random.uniform(1, 9, 6)),
    }
    slopes = BY_COLUMN.gradient(counts)
    for (where, i), slope in slopes.items():
        name = ("tp", "fp", "fn", "tn")[i]
        ends = []
        for step in (1e-6, -1e-6):
            moved = replace(counts[where], **{name: getattr(counts[where], name) + step})
            ends.append(BY_COLUMN.of({**counts, where: moved}))
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("goal", "columns"),
    [
        ("maximize recall subject to fpr <= 0.1", {}),
        ("maximize recall subject to fpr <= 0.1 with thresholds per group", {"groups": 2}),
        ("maximize recall subject to coverage <= 0.3 per query", {"queries": 30}),
        ("maximize macro(recall)", {"classes": 3}),
    ],
)
@pytest.mark.parametrize("missing", [np.nan, -1])
def test_choosing_ignores_rows_without_a_label(goal, columns, missing):
    """NaN or -1: as if the rows were not there, whoever shares a threshold."""
    random = np.random.default_rng(0)
    count = columns.get("classes", 2)
    labels = random.integers(0, count, 300).astype(float)
    scores = random.normal(size=(300, count)) + 2 * np.eye(count)[labels.astype(int)]
    scores = scores if count > 2 else scores[:, 1]
    given = {name: np.arange(300) % n for name, n in columns.items() if name != "classes"}
    known = random.random(300) < 0.7
    rest = {name: column[known] for name, column in given.items()}
    problem = Problem.parse(goal)
    some = problem.choose(scores, np.where(known, labels, missing), **given)
    assert some == problem.choose(scores[known], labels[known], **rest)
    at = some.thresholds if "query" not in goal else None
    value = problem.evaluate(scores, np.where(known, labels, missing), at, **given)
    assert value == problem.evaluate(scores[known], labels[known], at, **rest)
