"""Shifts chosen on hard counts, beside slow references; and the language of classes."""

from itertools import permutations, product

import numpy as np
import pytest
from samples import draw_classes as draw
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score, top_k_accuracy_score

import setpoint as sp
from setpoint.axes import class_choice
from setpoint.axes.class_data import decide, numbered, read_data
from setpoint.axes.class_search import find_shifts
from setpoint.axes.transport import assign
from setpoint.batch import ScoredExamples
from setpoint.rates import top_k


@pytest.mark.parametrize("seed", range(4))
def test_coverages_are_met_to_the_example(seed):
    scores, labels = draw(97, 5, seed=seed)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(97, np.ones(5) / 5)
    targets = [sp.coverage.of(i).at(c / 97) for i, c in enumerate(counts) if c]
    choice = sp.Problem(maximize=sp.accuracy, subject_to=targets).choose(scores, labels)
    assert np.array_equal(np.bincount(decide(scores, choice.thresholds), minlength=5), counts)


def test_a_coverage_is_compared_as_a_whole_number():
    scores, labels = draw(100, 3, seed=1)
    targets = [sp.coverage.of(0).at(0.29), sp.coverage.of(1).at(0.57)]
    choice = sp.Problem(maximize=sp.macro(sp.recall), subject_to=targets).choose(scores, labels)
    assert np.bincount(decide(scores, choice.thresholds)).tolist() == [29, 57, 14]
    third = [sp.coverage.of(i).at(1 / 3) for i in range(3)]
    choice = sp.Problem(maximize=sp.accuracy, subject_to=third).choose(scores, labels)
    assert sorted(np.bincount(decide(scores, choice.thresholds)).tolist()) == [33, 33, 34]


@pytest.mark.parametrize("seed", range(5))
def test_transport_is_the_best_plan_that_another_solver_finds(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(40, 4)) * [1, 3, 0.1, 1]
    quotas = rng.multinomial(40, [0.7, 0.1, 0.1, 0.1])
    held = assign(scores, quotas.astype(float), np.ones(40))
    assert np.array_equal(np.bincount(held, minlength=4), quotas)
    seats = np.repeat(np.arange(4), quotas)  # one column for every seat of a class
    rows, columns = linear_sum_assignment(-scores[:, seats])
    best = scores[rows, seats[columns]].sum()
    assert scores[np.arange(40), held].sum() == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    "sentence",
    [
        "maximize macro(recall)",
        "maximize lowest(recall)",
        "minimize error subject to recall of 2 >= 0.8",
    ],
)
def test_chosen_shifts_are_near_the_best_of_a_fine_grid(sentence):
    scores, labels = draw(60, 3, seed=8)
    problem = sp.Problem.parse(sentence)
    if problem.kind == "everyone":
        pytest.fail("not about classes")
    found = problem.choose(scores, labels).value
    grid = np.linspace(-2.5, 2.5, 41)
    values = []
    for one, two in product(grid, grid):
        right = decide(scores, [0, one, two]) == labels.numpy()
        if "subject" not in sentence or right[labels == 2].mean() >= 0.8:
            values.append(problem.evaluate(scores, labels, [0, one, two]))
    sign = 1 if problem.maximize else -1
    assert sign * found >= max(sign * v for v in values) - 0.02


@pytest.mark.parametrize(("count", "classes", "seed", "by_mean"), [(150, 6, 3, 0), (90, 4, 4, 1)])
def test_the_worst_class_is_looked_for_in_two_ways(count, classes, seed, by_mean):
    scores, labels = draw(count, classes, seed)
    problem = sp.Problem(maximize=sp.lowest(sp.recall))
    chosen = problem.choose(scores, labels)
    data = read_data(problem, ScoredExamples(scores, labels))
    one = find_shifts(problem, data, 0.0, by_mean=bool(by_mean)).shifts
    assert chosen.value > problem.evaluate(scores, labels, one) + 0.05  # there it is a dead end
    bound = sp.Problem(maximize=sp.lowest(sp.recall), subject_to=sp.recall.of(0) >= 0.9)
    assert bound.choose(scores, labels).rates["recall of 0"] >= 0.9


def test_values_are_those_of_scikit_learn():
    scores, labels = draw(80, 4, seed=2)
    shifts, y = np.array([0.3, -0.2, 0.1, -0.2]), labels.numpy()
    scores = scores.numpy()
    decided = decide(scores, shifts)
    value = lambda objective: sp.Problem(maximize=objective).evaluate(scores, labels, shifts)  # noqa: E731
    assert value(sp.macro(sp.recall)) == pytest.approx(balanced_accuracy_score(y, decided))
    f1 = sp.Problem.parse("maximize macro(f_score(1))").evaluate(scores, labels, shifts)
    assert f1 == pytest.approx(f1_score(y, decided, average="macro"))
    expected = top_k_accuracy_score(y, scores - shifts, k=2)
    assert value(top_k(2)) == pytest.approx(expected)
    costs = np.arange(16).reshape(4, 4)
    assert value(sp.cost(costs)) == pytest.approx(costs[y, decided].mean())
    recalls = [(decided[y == k] == k).mean() for k in range(4)]
    assert value(sp.lowest(sp.recall)) == pytest.approx(min(recalls))
    assert value(sp.highest(sp.recall)) == pytest.approx(max(recalls))


@pytest.mark.parametrize("ties", [False, True])
def test_areas_are_those_of_scikit_learn(ties):
    scores, labels = draw(80, 4, seed=2, ties=ties)
    scores, y = scores.numpy(), labels.numpy()
    one = np.mean([roc_auc_score(y == k, scores[:, k]) for k in range(4)])
    assert sp.Problem.parse("maximize one_vs_all_auc").evaluate(scores, labels) == pytest.approx(
        one
    )
    pairs = [
        roc_auc_score(
            y[(y == k) | (y == j)] == k, (scores[:, k] - scores[:, j])[(y == k) | (y == j)]
        )
        for k in range(4)
        for j in range(k)
    ]
    assert sp.Problem.parse("maximize auc_mu").evaluate(scores, labels) == pytest.approx(
        np.mean(pairs)
    )


def test_a_slice_and_a_set_of_classes():
    scores, labels = draw(80, 4, seed=2)
    side = np.array(["l", "r"] * 40)
    problem = sp.Problem(maximize=sp.recall.of(1, 3).on(side="l"))
    decided, y = decide(scores, np.zeros(4)), labels.numpy()
    here = (side == "l") & np.isin(y, [1, 3])
    value = problem.evaluate(scores, labels, np.zeros(4), groups=side)
    assert value == pytest.approx(np.isin(decided[here], [1, 3]).mean())


def test_what_cannot_be_reached_is_said():
    scores, labels = draw(60, 3)
    both = sp.Problem(minimize=sp.error, subject_to=[sp.recall.of(i) >= 0.99 for i in range(3)])
    with pytest.raises(sp.Infeasible, match="No shifts were found"):
        both.choose(scores, labels)
    with pytest.raises(ValueError, match="no example of 2"):
        sp.Problem(maximize=sp.macro(sp.recall)).evaluate(scores, labels.clip(max=1), [0, 0, 0])
    # eight equal rows are found all or none: four are off, and two (K - 1) may be
    labels = np.repeat([0, 1, 2], [10, 8, 10])
    half = sp.Problem(minimize=sp.error, subject_to=sp.recall.of(1).at(0.5))
    with pytest.raises(sp.Infeasible, match="for recall of 1 the nearest gives"):
        half.choose(np.eye(3)[labels], labels)


@pytest.mark.parametrize("label", [3, -2, 0.5])
def test_a_label_that_is_no_column_is_refused_with_its_row(label):
    scores, labels = draw(9, 3)
    wrong = labels.numpy().astype(float)
    wrong[5] = label
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 2.* in row 5"):
        sp.Problem(maximize=sp.macro(sp.recall)).choose(scores, wrong)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("maximize recall of cat", "name in quotes or its number"),
        ("maximize macro(recall of 1)", "already names some"),
        ("maximize recall subject to coverage of 1 at 0.1", "must say of which"),
        ("maximize macro(recall) subject to coverage of 0 at 0.6 and coverage of 1 at 0.6", "1.2"),
        (
            "maximize macro(recall) subject to coverage of 0 at 0.6 and fpr of 0 at 0.1",
            "already fixes",
        ),
        ("maximize auc_mu subject to coverage of 0 at 0.6", "objective by itself"),
        ("minimize cost([[0, 1], [1]])", "a row for each true class"),
        ("maximize recall of 1 over fpr of 1 in [0, 0.1]", "one shift for each class"),
    ],
)
def test_a_slip_is_answered_with_advice(sentence, why):
    with pytest.raises(ValueError, match=why):
        sp.Problem.parse(sentence)


def test_names_become_columns_and_two_class_tools_refuse():
    problem = sp.Problem.parse('maximize recall of "b" subject to coverage of "a" or "c" <= 0.5')
    assert str(numbered(problem, ["a", "b", "c"])) == (
        "maximize recall of 1 subject to coverage of 0 or 2 <= 0.5"
    )
    with pytest.raises(ValueError, match="is about several"):
        sp.certify([0.1, 0.2], [0, 1], sp.recall.of("a") >= 0.5)


def test_an_undefined_value_names_the_classes_that_are_there():
    problem = sp.Problem.parse('maximize recall of "c"')
    with pytest.raises(
        ValueError, match=r"The data have examples of 'a', 'b'; pass data"
    ) as caught:
        problem.evaluate(np.eye(3), [0, 1, 0], classes=["a", "b", "c"])
    assert "'c'; pass" not in str(caught.value)


# The cheapest shifts of a cost matrix are those of an integer program, and of brute force.


def draw_costs(seed, n, count, digits=3):
    """Scores in steps of 0.001, so that shifts which decide otherwise are not too near."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, count, n)
    scores = (random.normal(size=(n, count)) + 1.2 * np.eye(count)[labels]).round(digits)
    costs = random.integers(1, 10, (count, count)).astype(float)
    np.fill_diagonal(costs, 0)
    return scores, labels, costs


def by_integer_program(scores, prices):
    """The least cost of ``argmax(score - shift)``: a binary for each example and class."""
    n, count = scores.shape
    rows, limits, far, close = [], [], 2 * np.ptp(scores) + 9, 1e-5
    for i, (k, j) in product(range(n), permutations(range(count), 2)):
        row = np.zeros(n * count + count)  # t_k - t_j + far a_ik <= s_ik - s_ij - close + far
        row[[n * count + k, n * count + j, i * count + k]] = 1, -1, far
        rows.append(row)
        limits.append(scores[i, k] - scores[i, j] - close + far)
    each = np.hstack([np.kron(np.eye(n), np.ones(count)), np.zeros((n, count))])
    found = milp(
        np.append(prices.reshape(-1), np.zeros(count)),
        constraints=[LinearConstraint(np.array(rows), ub=limits), LinearConstraint(each, 1, 1)],
        integrality=np.append(np.ones(n * count), np.zeros(count)),
        bounds=Bounds(
            np.append(np.zeros(n * count), np.full(count, -far)),
            np.append(np.ones(n * count), np.full(count, far)),
        ),
    )
    assert found.success
    return found.fun


def by_brute_force(scores, prices):
    """Three classes: a point in every cell that the lines of all examples cut the plane into."""
    u, v = scores[:, 0] - scores[:, 2], scores[:, 1] - scores[:, 2]

    def between(values):
        known = np.unique(values)
        return np.concatenate([[known[0] - 1], (known[1:] + known[:-1]) / 2, [known[-1] + 1]])

    least = np.inf
    for x in between(np.concatenate([u, (v[:, None] - (v - u)).reshape(-1)])):
        y = between(np.concatenate([v, v - u + x]))
        shifted = np.stack(
            [np.tile(u - x, (len(y), 1)), v - y[:, None], np.zeros((len(y), len(u)))], axis=2
        )
        held = shifted.argmax(2)
        least = min(least, prices[np.arange(len(u)), held].sum(1).min())
    return least


@pytest.mark.parametrize(("count", "n"), [(3, 25), (4, 16), (5, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_that_of_an_integer_program(count, n, seed):
    scores, labels, costs = draw_costs(seed, n, count)
    found = sp.Problem(minimize=sp.cost(costs)).choose(scores, labels)
    assert found.value * n == pytest.approx(by_integer_program(scores, costs[labels]), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_is_that_of_brute_force_with_ties_and_weights(seed):
    scores, labels, costs = draw_costs(seed, 30, 3, digits=seed % 3)
    weights = np.random.default_rng(seed).integers(0, 4, 30).astype(float)
    found = sp.Problem(minimize=sp.cost(costs)).choose(scores, labels, weights)
    there = weights > 0
    least = by_brute_force(scores[there], weights[there, None] * costs[labels[there]])
    assert found.value * weights.sum() == pytest.approx(least, rel=1e-12)


def test_the_highest_gain_is_found_too():
    scores, labels, costs = draw_costs(0, 25, 3)
    found = sp.Problem(maximize=sp.cost(-costs)).choose(scores, labels)
    assert found.value * 25 == pytest.approx(-by_integer_program(scores, costs[labels]), abs=1e-6)


def test_a_search_that_is_cut_short_is_never_worse_than_before(monkeypatch):
    scores, labels, costs = draw_costs(2, 3000, 6)
    goal = sp.Problem(minimize=sp.cost(costs))
    values = []
    for most in (0, 10**6):
        monkeypatch.setattr(class_choice, "MOST_COMPARISONS", most)
        values.append(goal.choose(scores, labels).value)
    assert values[1] <= values[0]


def test_the_shifts_decide_what_was_counted():
    scores, labels, costs = draw_costs(1, 400, 4)
    found = sp.Problem(minimize=sp.cost(costs)).choose(scores, labels)
    held = (scores - np.array(found.thresholds)).argmax(1)
    assert found.value == pytest.approx(costs[labels, held].mean(), rel=1e-12)
