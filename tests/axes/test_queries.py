"""Problems per query on data: means over queries, exact thresholds, sentences, errors."""

import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.metrics import roc_auc_score
from strategies import examples, made, problems, text

import setpoint as sp
from setpoint.axes.query_data import Grouped, Segments
from setpoint.rates import ONE

PROBLEMS = [
    sp.precision_at_k(4),
    sp.precision_at_k(3, of=10),
    sp.Problem(maximize=sp.recall, subject_to=sp.alerts.at(4)),
    sp.fnr_at_fpr(0.2),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2)),
    sp.precision_at_recall(0.6),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(maximize=sp.precision, subject_to=[sp.recall >= 0.3, sp.coverage <= 0.8]),
]


def draw(seed=0, ties=True, count=12):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 40, count)
    queries = np.repeat(np.arange(count), lengths)
    labels = rng.random(len(queries)) < 0.4
    first = np.cumsum(lengths) - lengths
    labels[first], labels[first + 1] = True, False
    scores = rng.normal(size=len(queries)) + labels
    return (scores.round(1) if ties else scores), labels.astype(int), queries


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_it_is_the_mean_over_queries_with_the_thresholds_of_each(problem, seed):
    scores, labels, queries = draw(seed)
    alone = [problem.choose(scores[queries == q], labels[queries == q]) for q in range(12)]
    found = problem.per("query").choose(scores, labels, queries=queries)
    assert found.value == pytest.approx(np.mean([one.value for one in alone]), rel=1e-12)
    assert found.thresholds == {q: one.thresholds[0] for q, one in enumerate(alone)}
    for name, rate in found.rates.items():
        assert rate == pytest.approx(np.mean([one.rates[name] for one in alone]), rel=1e-12)
    judged = problem.per("query")
    assert judged.evaluate(scores, labels, queries=queries) == found.value
    assert judged.evaluate(scores, labels, found.thresholds, queries=queries) == found.value


def test_areas_and_their_thresholds():
    scores, labels, queries = draw()
    area = sp.roc_auc(points=3).per("query")
    each = [roc_auc_score(labels[queries == q], scores[queries == q]) for q in range(12)]
    assert area.evaluate(scores, labels, queries=queries) == pytest.approx(np.mean(each))
    found = area.choose(scores, labels, queries=queries)
    assert all(len(thresholds) == 3 for thresholds in found.thresholds.values())
    value = area.evaluate(scores, labels, found.thresholds, queries=queries)
    assert value == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_precision_and_recall_of_the_first_k_are_those_of_the_sorted_documents(k):
    scores, labels, queries = draw(ties=False)
    hits, lengths, relevant = [], [], []
    for q in range(12):
        own, mine = scores[queries == q], labels[queries == q]
        hits.append(mine[np.argsort(-own)[:k]].sum())
        lengths.append(min(k, len(own)))
        relevant.append(mine.sum())
    judge = {"scores": scores, "labels": labels, "queries": queries}
    found = sp.precision_at_k(k).per().evaluate(**judge)
    assert found == pytest.approx(np.mean(np.divide(hits, lengths)), rel=1e-12)
    fixed = sp.Problem(
        maximize=sp.Rate(sp.TP, k * ONE), subject_to=sp.alerts.at(k)
    )  # a short query loses
    assert fixed.per().evaluate(**judge) == pytest.approx(np.mean(hits) / k, rel=1e-12)
    first = sp.Problem(maximize=sp.recall, subject_to=sp.alerts.at(k))
    expected = np.mean(np.divide(hits, relevant))
    assert first.per().evaluate(**judge) == pytest.approx(expected, rel=1e-12)


def test_a_query_that_cannot_be_judged_is_left_out():
    scores, labels, queries = [3.0, 2.0, 1.0, 5.0, 4.0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 1]
    first = sp.Problem(maximize=sp.recall, subject_to=sp.alerts.at(1)).per()
    assert first.evaluate(scores, labels, queries=queries) == 0.5  # nothing relevant in query 1
    assert sp.precision_at_k(1).per().evaluate(scores, labels, queries=queries) == 0.5  # 1 and 0
    assert sp.precision_at_recall(0.9).per().evaluate(scores, labels, queries=queries) == 2 / 3
    none = first.choose(scores, labels, queries=queries)
    assert set(none.thresholds) == {0, 1}
    with pytest.raises(ValueError, match=r"0/0 in every query \(1 in all\)"):
        first.evaluate(scores[3:], labels[3:], queries=queries[3:])
    nobody = sp.Problem(maximize=sp.precision).per()  # 0/0 at one threshold is the worst value
    assert nobody.evaluate(scores, labels, {0: 9.0, 1: 9.0}, queries=queries) == 0


def test_bounds_that_a_query_cannot_reach_are_infeasible():
    goal = sp.recall_at_precision(0.9).per("site")
    with pytest.raises(sp.Infeasible, match=r"`precision >= 0.9` in site 'a'. Loosen"):
        goal.choose([3.0, 2.0, 3.0, 2.0], [0, 1, 1, 0], queries=["a", "a", "b", "b"])


def test_thresholds_decide_the_same_in_the_precision_of_the_scores():
    a = np.float32(1.0)
    scores = np.array([np.nextafter(a, np.float32(2)), a, 0.0, 3.0, 2.0, 1.0], dtype=np.float32)
    labels, queries = [1, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1]
    for given_ in (scores, torch.as_tensor(scores)):
        found = sp.precision_at_recall(0.9).per().choose(given_, labels, queries=queries)
        assert found.value == 1
        assert (scores > np.float32(found.thresholds[0])).tolist()[:3] == [True, False, False]


def test_slices():
    scores, labels, queries = draw()
    kinds = np.array(["a", "b"])[np.arange(len(scores)) % 2]
    sliced = sp.Problem(maximize=sp.coverage.on(kind="a"), subject_to=sp.fpr <= 0.3)
    alone = [
        sliced.evaluate(scores[m], labels[m], groups=kinds[m])
        for m in (queries == q for q in range(12))
    ]
    value = sliced.per().evaluate(scores, labels, groups=kinds, queries=queries)
    assert value == pytest.approx(np.mean(alone), rel=1e-12)


@examples(300)
@given(problems(kinds=("free", "bounds", "setpoint", "range")), made(text))
def test_every_problem_per_query_reads_back(problem, name):
    asked = problem.per(name or "query")
    assert sp.Problem.parse(str(asked)) == asked


SLIPS = {
    "no queries": (lambda g: g.evaluate([1.0], [1]), ValueError, "pass queries=, the query of"),
    "not per query": (
        lambda _: sp.precision_at_k(1).evaluate([1.0, 2.0], [1, 0], queries=[0, 0]),
        ValueError,
        r'write problem.per\("query"\)',
    ),
    "one threshold": (
        lambda g: g.evaluate([1.0], [1], 0.5, queries=[0]),
        TypeError,
        "pass {query: threshold}",
    ),
    "a threshold too few": (
        lambda g: g.evaluate([1.0, 2.0], [1, 0], {0: 1.0}, queries=[0, 1]),
        ValueError,
        "No threshold for query 1",
    ),
    "two thresholds": (
        lambda g: g.evaluate([1.0], [1], {0: (1.0, 2.0)}, queries=[0]),
        ValueError,
        "1 threshold, none NaN",
    ),
    "twice": (lambda g: g.per("site"), ValueError, "already per query"),
    "no name": (lambda _: sp.precision_at_k(1).per(3), TypeError, "the name of a column"),
    "certificate": (
        lambda _: sp.certify([1.0, 2.0], [0, 1], sp.fnr_at_fpr(0.1).per()),
        ValueError,
        "A certificate puts one threshold on all scores",
    ),
}


@pytest.mark.parametrize(("slip", "error", "words"), SLIPS.values(), ids=SLIPS.keys())
def test_slips_are_answered(slip, error, words):
    with pytest.raises(error, match=words):
        slip(sp.precision_at_k(1).per("query"))


def test_whole_queries_come_some_at_a_time():
    grouped = Grouped.by(np.array([3, 3, 1, 1, 1, 2, 3]))
    assert grouped.names.tolist() == [1, 2, 3]
    assert grouped.order.tolist() == [2, 3, 4, 5, 0, 1, 6]
    parts = list(grouped.parts(4))
    assert parts == [slice(0, 2), slice(2, 3)]
    assert [grouped.ids(part).tolist() for part in parts] == [[0, 0, 0, 1], [0, 0, 0]]
    assert list(grouped.parts(1)) == [slice(0, 1), slice(1, 2), slice(2, 3)]


def test_segments_add_up():
    ids = np.array([0, 0, 1, 2, 2, 2])
    segments = Segments.of(ids, 3)
    values = np.array([1.0, 4.0, 2.0, 3.0, 1.0, 5.0])
    assert segments.total(values).tolist() == [5, 2, 9]
    assert segments.extreme(np.minimum, values).tolist() == [1, 2, 1]
    assert segments.extreme(np.maximum, values).tolist() == [4, 2, 5]
    assert segments.running(values).tolist() == [1, 5, 2, 3, 4, 9]
    assert segments.positions().tolist() == [0, 1, 0, 0, 1, 2]
    front = np.array([7.0, 8.0, 9.0])
    assert segments.fronted(values, front).tolist() == [7, 1, 4, 8, 2, 9, 3, 1, 5]
    assert segments.longer().ids.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]


def test_judging_queries_needs_no_torch(fresh_python):
    code = (
        "import sys; from setpoint import precision_at_k as p;"
        "p(1).per('q').evaluate([2., 1.], [1, 0], queries=['a', 'a']);"
        "assert 'torch' not in sys.modules"
    )
    fresh_python(code)
