"""What findings are made of: rates with intervals, decisions, neighbours, histograms, groups."""

import math

import numpy as np
import pytest

from setpoint.problems import Problem
from setpoint.rates import Counts, alerts, balanced_error, f_score, fpr, precision, recall, tpr
from setpoint.results import (
    Findings,
    Measured,
    RunResult,
    Scored,
    clopper_pearson,
    group_rates,
    histogram,
    measure,
    paired_bootstrap,
    pr_curve,
    roc_curve,
    sensitivity,
)
from setpoint.results.curves import corner, thin, training_series
from setpoint.results.measured import Margins, margins, read_goal
from setpoint.results.rows import at_prevalences, widest_gap
from setpoint.results.run import read_verdict

TABLE = {(): Counts(8, 5, 2, 95, 10, 100)}


def draw(n=400, seed=0, shift=2.0):
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.3
    return random.normal(size=n) + shift * y, y


def test_a_share_is_measured_with_its_counts_and_its_interval():
    for rate, count, total in ((fpr, 5, 100), (recall, 8, 10), (precision, 8, 13)):
        found = measure(rate, TABLE, 0.9)
        assert (found.count, found.total) == (count, total)
        assert found.value == count / total
        assert found.interval == clopper_pearson(count, total, 0.9)


def test_f1_is_a_share_of_true_alerts_among_all_that_matter():
    found = measure(f_score(1), TABLE, 0.9)
    assert found.value == pytest.approx(16 / 23)
    low, high = clopper_pearson(8, 15, 0.9)  # TP of TP + FP + FN
    assert found.interval == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))
    assert (found.count, found.total) == (None, None)


def test_what_has_no_share_has_no_interval():
    empty = {(): Counts(0, 0, 2, 3, 2, 3)}
    assert math.isnan(measure(precision, empty).value)
    assert measure(alerts, TABLE).interval is None
    assert measure(f_score(1), {(): Counts(0, 0, 0, 3, 0, 3)}).interval is None


A, B = tpr.on(g="a"), tpr.on(g="b")


@pytest.mark.parametrize("expression", [f_score(1), f_score(2), A - B, balanced_error], ids=str)
def test_intervals_hold_as_often_as_they_say(expression):
    random = np.random.default_rng(0)
    share, found, alarmed = 0.3, {"a": 0.8, "b": 0.7}, 0.1

    def counts(tp, fp, p, n):
        return Counts(tp, fp, p - tp, n - fp, p, n)

    truth = {
        (("g", g),): counts(share * f, (1 - share) * alarmed, share, 1 - share)
        for g, f in found.items()
    }
    truth[()] = counts(share * 0.75, (1 - share) * alarmed, share, 1 - share)
    expected, wrong = float(expression.of(truth)), np.zeros(2)
    for _ in range(400):
        tables, tp, fp, positives = {}, 0, 0, 0
        for g, f in found.items():
            p = random.binomial(200, share)
            cell = random.binomial(p, f), random.binomial(200 - p, alarmed), p, 200 - p
            tables[(("g", g),)] = counts(*cell)
            tp, fp, positives = tp + cell[0], fp + cell[1], positives + p
        tables[()] = counts(tp, fp, positives, 400 - positives)
        low, high = measure(expression, tables, 0.9).interval
        assert low <= float(expression.of(tables)) <= high
        wrong += [low > expected, high < expected]
    assert (wrong / 400 <= 0.1 + 3 * math.sqrt(0.09 / 400)).all()


def test_the_widest_gap_holds_for_the_pair_that_was_picked():
    random = np.random.default_rng(0)
    true, wrong = np.array([0.7, 0.7, 0.7, 0.75, 0.8]), np.zeros(2)
    for _ in range(400):
        rates = [Measured(k / 80, None, k, 80) for k in random.binomial(80, true).tolist()]
        gap = widest_gap(rates, 0.9)
        assert gap.value == max(r.value for r in rates) - min(r.value for r in rates)
        wrong += [gap.interval.low > 0.1 + 1e-12, gap.interval.high < 0.1 - 1e-12]
    assert (wrong / 400 <= 0.1 + 3 * math.sqrt(0.09 / 400)).all()
    assert widest_gap([rates[0], Measured(math.nan, None, 0, 0)]) is None


@pytest.mark.parametrize(
    ("count", "total", "says"),
    [(0, 400, "holds"), (3, 400, "met"), (5, 400, "missed"), (40, 400, "broken"), (0, 0, "missed")],
)
def test_a_bound_holds_only_if_the_whole_interval_says_so(count, total, says):
    found = measure(fpr, {(): Counts(0, count, 0, total - count, 0, total)})
    assert found.against(fpr <= 0.01) == says
    mirrored = measure(recall, {(): Counts(total - count, 0, count, 0, total, 0)})
    assert mirrored.against(recall >= 0.99) == says


def test_groups_have_their_own_thresholds_and_a_stranger_is_refused():
    part = Scored(np.array([0.5, 0.5, 0.5]), np.array([1, 0, 1]), np.array(["a", "b", "a"]))
    assert margins(part, {"a": 0.4, "b": 0.5}).accepted.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="'b'"):
        margins(part, {"a": 0.4})


def test_without_a_threshold_nobody_is_accepted_and_minus_infinity_accepts_all():
    part = Scored(np.array([0.5, 1e300]), np.array([1, 0]))
    assert not margins(part, None).accepted.any()
    assert margins(part, -math.inf).accepted.all()


def test_neighbours_run_from_strict_to_loose_and_hold_the_chosen_threshold():
    s, y = draw()
    rows = sensitivity(Margins(s, 1.5), y)
    assert [row.threshold for row in rows] == sorted((r.threshold for r in rows), reverse=True)
    (chosen,) = [row for row in rows if row.chosen]
    assert chosen.threshold == 1.5
    assert chosen.alerts_per_1000 == pytest.approx(1000 * (s > 1.5).mean())
    for row in rows:
        accepted = s > row.threshold
        assert row.fpr.value == pytest.approx(accepted[~y].mean())
        assert row.recall.value == pytest.approx(accepted[y].mean())
    assert rows[-1].alerts_per_1000 == pytest.approx(2 * chosen.alerts_per_1000, rel=0.02)


def test_neighbours_of_tied_scores_are_told_apart_by_what_they_accept():
    s = np.repeat([0.0, 1.0, 2.0], 50)
    rows = sensitivity(Margins(s, 1.0), np.tile([0, 1], 75))
    counts = [row.alerts_per_1000 for row in rows]
    assert len(set(counts)) == len(counts)
    assert sum(row.chosen for row in rows) == 1


def test_among_thresholds_that_accept_the_same_the_chosen_one_is_shown():
    s = np.array([9.0, 8.0, 7.0, 7.0, 7.0, 1.0, 0.0])
    rows = sensitivity(Margins(s, 7.5), np.arange(7) < 3)
    assert [row.threshold for row in rows if row.chosen] == [7.5]


def test_a_histogram_counts_everyone_and_shows_the_threshold():
    s, y = draw(2000)
    s[0] = 1e6  # one far outlier must not squeeze the others into one bin
    h = histogram(s, y, show=30.0)
    assert h.positives.sum() == y.sum()
    assert h.negatives.sum() == (~y).sum()
    assert h.edges[-1] >= 30
    assert (h.positives + h.negatives > 0).sum() > 3


@pytest.mark.parametrize("value", [0.0, 7.0, -1e10, 1e-300])
def test_constant_scores_have_a_histogram_and_are_called_ties(value):
    h = histogram(np.full(20, value), np.arange(20) < 3)
    assert h.positives.sum() + h.negatives.sum() == 20
    assert (np.diff(h.edges) > 0).all()
    assert (h.distinct, h.largest_tie) == (1, 1.0)


def test_precision_recall_agrees_with_scikit_learn():
    from sklearn.metrics import precision_recall_curve

    s, y = draw()
    s = s.round(1)
    p, r, _ = precision_recall_curve(y, s)
    ours = pr_curve(s, y)
    np.testing.assert_allclose(ours.precision, p[:-1][::-1])
    np.testing.assert_allclose(ours.recall, r[:-1][::-1])


@pytest.mark.parametrize("log", [True, False])
def test_a_corner_keeps_the_curve_to_within_what_an_eye_can_see(log):
    s, y = draw(100_000)
    curve = roc_curve(s, y)
    cut = corner(curve, 0.001, 0.1, log=log)
    assert len(cut.fpr) < 1500
    assert (cut.fpr[0], cut.fpr[-1]) == (0.001, 0.1)
    for level in np.geomspace(0.001, 0.1, 20):
        exact = curve.tpr[np.searchsorted(curve.fpr, level, side="right") - 1]
        shown = cut.tpr[np.searchsorted(cut.fpr, level, side="right") - 1]
        assert shown == pytest.approx(exact, abs=0.006)
    assert thin(np.array([0.5]), np.array([0.5])).all()


def test_groups_are_measured_on_their_own_rows():
    s, y = draw()
    g = np.where(np.arange(400) % 4 == 0, "b", "a")
    rows = group_rates(s > 1, y, g)
    assert [row.name for row in rows] == ["a", "b"]
    assert rows[1].recall.value == pytest.approx((s > 1)[(g == "b") & y].mean())
    assert sum(row.count for row in rows) == 400


def test_history_leaves_out_words_and_gaps():
    rows = [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": float("nan"), "status": "held"}]
    (only,) = training_series([*rows, {"epoch": 3, "loss": 0.5, "seconds": 3.0}])
    assert (only.name, only.x, only.y) == ("loss", (1.0, 3.0), (1.0, 0.5))
    assert training_series([]) == []


def test_precision_at_another_prevalence_is_bayes_rule():
    mixes = at_prevalences(0.6, 0.02, 0.25)
    (own,) = [mix for mix in mixes if mix.own]
    assert own.precision == pytest.approx(0.25 * 0.6 / (0.25 * 0.6 + 0.75 * 0.02))
    assert own.alerts_per_1000 == pytest.approx(165)
    assert at_prevalences(math.nan, 0.1, 0.5) == []


def test_a_goal_may_be_bounds_alone():
    goal = read_goal("fpr <= 0.01 and recall >= 0.5")
    assert list(map(str, goal.bounds)) == ["fpr <= 0.01", "recall >= 0.5"]
    assert goal.objective is None


def test_a_verdict_is_read_and_an_unknown_status_refused():
    found = read_verdict(
        {
            "status": "certified",
            "confidence": 0.9,
            "notes": ["n"],
            "advice": "a",
            "claims": [{"bound": "fpr <= 0.01", "proved": 0.009}, {"proved": None}, 3],
        }
    )
    assert (found.notes, found.advice, found.proved) == (("n",), ("a",), {"fpr <= 0.01": 0.009})
    with pytest.raises(ValueError, match="'fine'"):
        read_verdict({"status": "fine"})


PROBLEM = Problem.parse("maximize recall subject to fpr <= 0.05")


def test_a_better_model_is_found_better_and_an_equal_one_equal():
    random = np.random.default_rng(1)
    y = random.random(2000) < 0.2
    noise = random.normal(size=2000)
    better = paired_bootstrap(PROBLEM, noise + 3 * y, noise + 2 * y, y, draws=60)
    assert better.gain == pytest.approx(better.ours - better.theirs)
    assert 0 < better.interval.low <= better.gain <= better.interval.high
    same = paired_bootstrap(PROBLEM, noise + 2 * y, 5 * (noise + 2 * y) + 1, y, draws=30)
    assert (same.gain, same.interval) == (0.0, (0.0, 0.0))


def test_a_gain_is_positive_also_when_small_is_good():
    s, y = draw(1000, shift=3.0)
    worse = np.random.default_rng(5).normal(size=1000)
    misses = Problem.parse("minimize fnr subject to fpr <= 0.05")
    found = paired_bootstrap(misses, s, worse, y, draws=30)
    assert found.ours < found.theirs
    assert found.gain > 0


def test_an_interval_is_withheld_if_many_draws_are_infeasible():
    s, y = draw(60, shift=0.0)
    strict = Problem.parse("maximize recall subject to precision >= 0.99")
    s[np.argmax(y)] = 10.0  # one positive on top: feasible here, and in 63 % of the draws
    found = paired_bootstrap(strict, s, s, y, draws=60)
    assert found.gain == 0
    assert found.interval is None


def test_a_run_checks_its_splits():
    s, y = draw(20)
    run = RunResult("fpr <= 0.1", {"test": (s, y), "train": (s, y)}, 0.5)
    assert list(run.splits) == ["train", "test"]
    assert run.judged == "test"
    for splits, words in (
        ({}, "at least one"),
        ({"tests": (s, y)}, "'tests'"),
        ({"test": (s, y[:5])}, "labels"),
        ({"test": (np.append(s[:-1], np.nan), y)}, "row 19"),
        ({"test": (s, y, ["a"])}, "groups"),
    ):
        with pytest.raises(ValueError, match=words):
            RunResult("fpr <= 0.1", splits, 0.5)
    with pytest.raises(ValueError, match="same rows"):
        RunResult("fpr <= 0.1", {"test": (s, y)}, 0.5, baseline={"test": (s, ~y)})


@pytest.mark.parametrize("shape", [(6,), (6, 2), (0, 3)])
def test_scores_of_classes_have_a_column_for_each(shape):
    with pytest.raises(ValueError, match="a score for each of 3 classes and at least one example"):
        RunResult(
            goal="maximize macro(recall)",
            splits={"test": (np.zeros(shape), np.zeros(shape[0], int))},
            classes=("a", "b", "c"),
            threshold=(0.0, 0.0, 0.0),
        )


@pytest.mark.parametrize(("threshold", "cut"), [(1.0, 1.0), (-math.inf, None), (None, None)])
def test_the_threshold_stands_in_the_histogram_if_it_is_finite(threshold, cut):
    assert Findings(RunResult("fpr <= 0.1", {"test": draw()}, threshold)).cut == cut
