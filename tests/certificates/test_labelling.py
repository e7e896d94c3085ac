"""Label plans: the promise holds in simulation, and few labels are enough."""

import json
from contextlib import suppress

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

from setpoint import certify, label_plan
from setpoint.certificates import CannotPromise, LabelPlan, planned_labels


def draw(seed, n, prevalence=0.02, shift=2.5):
    random = np.random.default_rng(seed)
    positive = random.random(n) < prevalence
    return random.normal(size=n) + shift * positive, positive


def labelled(plan, positive):
    labels = np.full(len(positive), np.nan)
    labels[list(plan.rows)] = positive[list(plan.rows)]
    return labels


def planned(seed, n, goal, budget, digits=None, **more):
    scores, positive = draw(seed, n)
    if digits is not None:
        scores = np.round(scores, digits)
    plan = label_plan(scores, goal, budget, seed=seed, **more)
    return certify(scores, labelled(plan, positive), goal, plan=plan)


# 200 draws at delta = 0.05: more than 20 broken has a probability of 3e-4 if 5 % are
@pytest.mark.parametrize("digits", [None, 1])
def test_few_labels_keep_the_promise_on_fpr(digits):
    broken, recall = 0, []
    for seed in range(200):
        found = planned(seed, 5000, "fpr <= 0.02", 500, digits)
        threshold = found.threshold
        if digits is not None:  # scores are rounded: above the threshold means half a step above
            threshold = (np.floor(threshold * 10**digits + 1e-9) + 0.5) / 10**digits
        broken += 1 - ndtr(threshold) > 0.02
        recall.append(ndtr(2.5 - threshold))
    assert broken <= 20
    assert np.mean(recall) > 0.8 * ndtr(2.5 + ndtri(0.02))


def test_the_last_cut_is_where_the_product_of_exact_limits_fails():
    """150 labels among the 1,560 highest scores, recomputed with scipy.stats."""
    scores, positive = draw(0, 6000)
    plan = label_plan(scores, "fpr <= 0.02", 200, prevalence=0.18)
    found = certify(scores, labelled(plan, positive), "fpr <= 0.02", plan=plan)
    rows, below = np.array(plan.rows[: plan.top_labels]), np.array(plan.rows[plan.top_labels :])
    n, clear = len(scores), (~positive[below]).sum()
    others = beta.ppf(0.025 * 0.05, n - plan.top, plan.top + 1)
    negative = beta.ppf(0.025 * 0.05, clear, len(below) - clear + 1)

    def bound(alerts):
        own = rows[scores[rows] >= np.sort(scores)[-alerts]]
        wrong = (~positive[own]).sum()
        accepted = beta.isf(0.05 * 0.05, alerts + 1, n - alerts)
        return accepted * beta.isf(0.9 * 0.05, wrong + 1, len(own) - wrong) / others / negative

    alerts = (scores > found.threshold).sum()
    assert bound(alerts) <= 0.02 < bound(alerts + 1)
    assert found.claims[0].proved == 0.02  # at a cut that labels chose no smaller value is proved


def test_what_is_displayed_of_recall_goes_by_the_rank_that_was_fixed():
    """Ties at the threshold let more positives in; that count was not fixed, and proves nothing."""
    random = np.random.default_rng(0)
    scores = random.choice(5, 20_000, p=[0.22, 0.23, 0.2, 0.17, 0.18]).astype(float)
    positive = random.random(20_000) < np.array([0.02, 0.1, 0.3, 0.5, 0.7])[scores.astype(int)]
    plan = label_plan(scores, "recall >= 0.6", 4000, reviewed=0.5)
    claim = certify(scores, labelled(plan, positive), plan.goal, plan=plan).claims[0]
    top, below = (np.array(part) for part in np.split(plan.rows, [plan.top_labels]))
    n, found, missed = len(scores), positive[top].sum(), positive[below].sum()
    inside = beta.ppf(0.00125, len(top), n - len(top) + 1)
    inside *= beta.ppf(0.005, found, len(top) - found + 1)
    outside = beta.isf(0.00125, n - len(top) + 1, len(top))
    outside *= beta.isf(0.02, missed + 1, len(below) - missed)
    share = inside / (inside + outside)
    fixed = max(m for m in range(found) if binom.cdf(m, found, 1 - 0.6 / share) <= 0.45 * 0.05)
    limit = beta.ppf(0.45 * 0.05, found - fixed, fixed + 1)
    assert claim.proved == pytest.approx(share * limit, rel=1e-9)
    assert claim.proved < claim.measured - 0.05


def test_recall_is_proved_from_reviewed_alerts_and_a_sample_below():
    found = [planned(seed, 5000, "recall >= 0.7", 600, reviewed=0.3) for seed in range(100)]
    certified = [each for each in found if each]
    assert len(certified) > 50
    assert sum(ndtr(2.5 - each.threshold) < 0.7 for each in certified) <= 12


def test_a_precision_plan_gives_the_certificate_of_all_labels():
    for seed in range(10):
        scores, positive = draw(seed, 20_000, shift=4.0)
        plan = label_plan(scores, "precision >= 0.9", 800)
        few = certify(scores, labelled(plan, positive), "precision >= 0.9", plan=plan)
        full = certify(scores, positive, "precision >= 0.9")
        assert few.threshold == full.threshold


def test_precision_labels_may_end_early():
    scores, positive = draw(0, 20_000, shift=4.0)
    plan = label_plan(scores, "precision >= 0.9", 800)
    labels = labelled(plan, positive)
    labels[list(plan.rows[200:])] = np.nan
    early = certify(scores, labels, "precision >= 0.9", plan=plan)
    assert early.certified
    assert early.threshold >= certify(scores, positive, "precision >= 0.9").threshold


def test_uniform_labels_could_not():
    scores, positive = draw(0, 200_000, prevalence=0.01, shift=4.0)
    plan = label_plan(scores, "fpr <= 0.1 %", 2000, prevalence=0.01)
    found = certify(scores, labelled(plan, positive), "fpr <= 0.1 %", plan=plan)
    assert ndtr(4 - found.threshold) >= 0.95 * ndtr(4 + ndtri(0.001))
    some = np.random.default_rng(1).choice(len(scores), 2000, replace=False)
    assert certify(scores[some], positive[some], "fpr <= 0.1 %").status == "infeasible"


def test_a_plan_reads_back():
    scores, _ = draw(0, 3000)
    plan = label_plan(scores, "fpr <= 0.05", 300)
    assert LabelPlan.from_json(plan.to_json()) == plan
    with pytest.raises(ValueError, match="no label plan"):
        LabelPlan.from_json('{"kind": "another"}')
    with pytest.raises(ValueError, match="not those of the table"):
        LabelPlan.from_json(plan.to_json().replace('"examples": 3000', '"examples": 30'))


def test_what_a_plan_refuses():
    scores, positive = draw(0, 3000)
    plan = label_plan(scores, "fpr <= 0.05", 300)
    labels = labelled(plan, positive)
    with pytest.raises(ValueError, match="made for other scores"):
        certify(scores + 1, labels, "fpr <= 0.05", plan=plan)
    with pytest.raises(ValueError, match="was not drawn by the plan"):
        certify(scores, positive * 1.0, "fpr <= 0.05", plan=plan)
    less = labels.copy()
    less[plan.rows[0]] = -1
    with pytest.raises(ValueError, match="1 row of the plan has no label"):
        certify(scores, less, "fpr <= 0.05", plan=plan)
    with pytest.raises(ValueError, match="got 7 in row"):
        certify(scores, np.where(labels == 1, 7, labels), "fpr <= 0.05", plan=plan)
    with pytest.raises(ValueError, match="The plan was made for"):
        certify(scores, labels, "precision >= 0.9", plan=plan)
    with pytest.raises(ValueError, match="plan= does not go with candidates="):
        certify(scores, labels, "fpr <= 0.05", plan=plan, candidates=3)
    with pytest.raises(CannotPromise, match="reviewed="):
        label_plan(scores, "recall >= 0.9")
    with pytest.raises(CannotPromise, match="serves one bound"):
        label_plan(scores, "fpr <= 0.05 and recall >= 0.5")
    with pytest.raises(ValueError, match="No score is above"):
        label_plan(scores, "recall >= 0.9", reviewed=99.0)


def test_an_fpr_is_never_proved_from_labels_that_are_all_negative():
    scores, _ = draw(0, 3000)
    plan = label_plan(scores, "fpr <= 0.05", 300)
    found = certify(scores, labelled(plan, np.zeros(3000, bool)), "fpr <= 0.05", plan=plan)
    assert found.points[0].alerts / 3000 <= 0.05


def test_a_plan_may_ask_for_the_first_row():
    scores = np.linspace(5, 0, 400)  # the highest score comes first
    plan = label_plan(scores, "precision >= 0.8", 50, prevalence=0.1)
    assert 0 in plan.rows
    assert LabelPlan.from_json(plan.to_json()) == plan


def test_a_plan_of_another_kind_or_with_other_fields_is_refused():
    body = json.loads(label_plan(np.linspace(0, 1, 300), "fpr <= 0.1").to_json())
    for changed in ({**body, "kind": "a holiday plan"}, {**body, "more": 1}):
        with pytest.raises(ValueError, match=r"This is no (valid )?label plan"):
            LabelPlan.from_json(json.dumps(changed))


def test_the_limits_of_a_plan_share_one_delta():
    assert (
        pytest.approx(1)
        == planned_labels.COVERAGE + planned_labels.LABELS + planned_labels.PREVALENCE
    )
    assert min(planned_labels.COVERAGE, planned_labels.LABELS, planned_labels.PREVALENCE) > 0


def test_a_plan_that_proves_only_that_nobody_may_be_accepted_is_of_no_use():
    scores, _ = draw(0, 2000)
    plan = label_plan(scores, "fpr <= 0.004", 400)
    found = certify(scores, labelled(plan, scores < -9), "fpr <= 0.004", plan=plan)
    assert found.certified
    assert found.points[0].alerts == 0
    assert "it accepts nobody" in found.verdict


def test_a_plan_never_asks_for_more_labels_than_the_budget():
    random = np.random.default_rng(0)
    for digits in (None, 1, 0):
        for goal in ("fpr <= 0.02", "precision >= 0.8"):
            for budget in (7, 60, 61, 300):
                scores = random.normal(size=2000)
                scores = scores if digits is None else np.round(scores, digits)
                with suppress(CannotPromise, ValueError):
                    assert len(label_plan(scores, goal, budget).rows) <= budget


def test_ties_that_leave_nothing_below_the_top_are_refused_before_anybody_labels():
    scores = np.repeat([0.0, 1.0, 2.0], [200, 1000, 300])
    assert label_plan(scores, "fpr <= 0.2", 300, prevalence=0.1).top == 300
    with pytest.raises(CannotPromise, match="as many scores are equal"):
        label_plan(np.zeros(2000), "fpr <= 0.02", 300)
    with pytest.raises(CannotPromise, match="may accept about 1,691 of 2,000 rows"):
        label_plan(np.arange(2000.0), "fpr <= 0.05", 300, prevalence=0.6)
    with pytest.raises(CannotPromise, match=r"300 rows share the highest score, 2.*budget=300"):
        label_plan(scores, "precision >= 0.9", 100)


def test_reviewed_alerts_without_a_positive_prove_no_recall():
    scores = np.arange(200.0)
    plan = label_plan(scores, "recall >= 0.5", 20, reviewed=150.0)
    found = certify(scores, labelled(plan, scores < 0), plan.goal, plan=plan)
    assert not found.certified
    assert "0.0% of the positives" in found.notes[-1]
